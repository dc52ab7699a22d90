package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// sample is one run of a command.
type sample struct {
	// Wall and CPU are in nanoseconds; CPU counts the child processes too.
	Wall time.Duration `json:"wallNs"`
	CPU  time.Duration `json:"cpuNs"`
	// Memory is the largest resident set of any of its processes, in bytes.
	Memory int64 `json:"memoryBytes"`
	// Breaches is how many the three rules found.
	Breaches int `json:"breaches"`
}

// figures are what one run of this program has measured.
type figures struct {
	Pools int `json:"pools"`
	// Reeve and Conftest judge by the same three rules; Ratio is of their times.
	Reeve    sample  `json:"reeve"`
	Conftest sample  `json:"conftest"`
	Ratio    float64 `json:"ratio"`
	// All is reeve check with every shipped policy beside the three rules.
	All        sample  `json:"all"`
	RatioAll   float64 `json:"ratioAll"`
	LargePools int     `json:"largePools"`
	// Large is that of a large fleet.
	Large sample `json:"large"`
}

func (f *figures) print(w io.Writer) {
	const row = "%-50s %6.0f ms %6.0f ms CPU %5d MiB %4d breaches\n"
	line := func(name string, s sample) {
		fmt.Fprintf(w, row, name, s.Wall.Seconds()*1e3, s.CPU.Seconds()*1e3, s.Memory>>20, s.Breaches)
	}
	line(fmt.Sprintf("conftest test, %d NodePools, three rules", f.Pools), f.Conftest)
	line(fmt.Sprintf("reeve check, %d NodePools, three rules", f.Pools), f.Reeve)
	line(fmt.Sprintf("reeve check, %d NodePools, all shipped policies", f.Pools), f.All)
	line(fmt.Sprintf("reeve check, %d NodePools, all shipped policies", f.LargePools), f.Large)
	fmt.Fprintf(w, "ratio %.2f: the time of reeve check over that of conftest, with the same three rules (at most %.1f)\n", f.Ratio, maxRatio)
	fmt.Fprintf(w, "ratio %.2f: with all shipped policies beside them, which conftest does not run\n", f.RatioAll)
	fmt.Fprintln(w, "reeve check evaluates CUE, validates the schema and looks up instance types besides; conftest reads YAML.")
}

// missed says which goals are not met.
func (f *figures) missed() []string {
	var out []string
	miss := func(missed bool, format string, args ...any) {
		if missed {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	miss(f.Ratio > maxRatio, "the ratio %.2f is more than %.1f", f.Ratio, maxRatio)
	miss(f.All.Wall > maxCheck, "%d NodePools took %s, more than %s", f.Pools, f.All.Wall, maxCheck)
	miss(f.Large.Wall > maxLarge, "%d NodePools took %s, more than %s", f.LargePools, f.Large.Wall, maxLarge)
	miss(f.Large.Memory > maxLargeMemory, "%d NodePools took %d MiB, more than %d", f.LargePools, f.Large.Memory>>20, maxLargeMemory>>20)
	return out
}

func (f *figures) write(name string) error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}
