package port

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
)

type diagnosed struct{ error }

func (diagnosed) Findings() []decision.Finding { return []decision.Finding{{Rule: "R"}} }

func TestErrorsSayWhatToDoAboutThem(t *testing.T) {
	base := errors.New("base")
	terminal := fmt.Errorf("outer: %w", Terminal(base))
	if !IsTerminal(terminal) || IsTerminal(base) || !errors.Is(terminal, base) || terminal.Error() != "outer: base" {
		t.Errorf("terminal: %v", terminal)
	}
	wait := RetryAfter(base, time.Minute)
	var w *WaitError
	if !errors.As(wait, &w) || w.After != time.Minute || !errors.Is(wait, base) || wait.Error() != "base (again in 1m0s)" {
		t.Errorf("wait: %v", wait)
	}
	if Terminal(nil) != nil || RetryAfter(nil, time.Second) != nil {
		t.Error("no error became one")
	}
	if fs := Findings(fmt.Errorf("load: %w", diagnosed{base})); len(fs) != 1 || fs[0].Rule != "R" {
		t.Errorf("findings: %v", fs)
	}
	if Findings(base) != nil {
		t.Error("findings from nowhere")
	}
}
