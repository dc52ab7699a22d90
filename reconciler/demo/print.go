package demo

import (
	"fmt"
	"io"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/report"
)

// printer writes the progress for people. What it cannot write is lost: the
// record is in Git.
type printer struct{ w io.Writer }

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p.w, "  "+format+"\n", args...) }

func (p *printer) heading(n int, title string) { fmt.Fprintf(p.w, "\n%d. %s\n", n, title) }

// event prints what somebody who watches wants to see of it.
func (p *printer) event(e pipeline.Event) {
	at := e.Time.Format(time.TimeOnly)
	switch {
	case e.Step != nil:
		p.step(at, e)
	case e.Decision != nil:
		p.decision(at, e.Decision)
	case e.Err != nil:
		fmt.Fprintf(p.w, "  %s  error: %v\n", at, e.Err)
	}
}

func (p *printer) decision(at string, d *decision.Decision) {
	word := report.Status(d, nil)
	if word == "open" {
		word = "allowed"
	}
	fmt.Fprintf(p.w, "  %s  %-9s %s\n", at, word, d.Summary)
	for _, f := range d.Verdict.Violations {
		where := ""
		if f.Position != nil {
			where = " at " + f.Position.String()
		}
		fmt.Fprintf(p.w, "            %s%s: %s\n", f.Rule, where, f.Message)
	}
}

func (p *printer) step(at string, e pipeline.Event) {
	s := e.Step
	switch s.State {
	case decision.Launched:
		if s.Price != nil {
			fmt.Fprintf(p.w, "  %s  launched  %s: %s %s %s %s\n", at, s.Claim, s.Instance, s.InstanceType, s.Zone, s.Price)
		}
	case decision.Initialized:
		fmt.Fprintf(p.w, "  %s  ready     %s: %s\n", at, s.Claim, s.Node)
	case decision.Failed:
		fmt.Fprintf(p.w, "  %s  failed    %s: %s\n", at, s.Claim, s.Message)
	}
}

// number is a number of things and what is said of them.
func number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
