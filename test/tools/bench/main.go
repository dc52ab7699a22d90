// Command bench runs the benchmarks of the table, prints their figures, writes
// them to build/bench.json, and compares them with those of the merge base,
// which it builds and runs in turns with this tree.
//
//	go run ./test/tools/bench                   # what "make bench" does
//	go run ./test/tools/bench -rounds 10 -only scheduling
//
// It exits with 1 when a benchmark has become slower than allowed or misses
// its goal, and with 2 when it could not measure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

type options struct {
	root, out, base, only, goals string
	rounds                       int
	limit                        float64
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "directory of the module")
	flag.StringVar(&o.out, "o", "build/bench.json", "file to write the figures to")
	flag.StringVar(&o.base, "base", "", "revision to compare with (default: the merge base with main, or the commit before)")
	flag.StringVar(&o.only, "only", "", "measure only packages whose path has this in it")
	flag.StringVar(&o.goals, "goals", "fail", "what a missed goal does: fail or warn")
	flag.IntVar(&o.rounds, "rounds", 5, "runs of each benchmark; the fastest counts")
	flag.Float64Var(&o.limit, "limit", 1.2, "how many times the base's time is allowed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	failures, err := run(ctx, o, table, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	bad := false
	for _, f := range failures {
		warning := f.goal && o.goals == "warn"
		bad = bad || !warning
		fmt.Fprintf(os.Stderr, "bench: %s: %s\n", map[bool]string{true: "warning", false: "failure"}[warning], f.text)
	}
	if bad {
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, entries []entry, w io.Writer) (failures []failure, err error) {
	if o.goals != "fail" && o.goals != "warn" || o.rounds < 1 {
		return nil, errors.New("-goals is fail or warn, and -rounds at least 1")
	}
	root, err := filepath.Abs(o.root)
	if err != nil {
		return nil, err
	}
	bin, err := os.MkdirTemp("", "reeve-bench-head-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bin)
	b := bench{head: tree{dir: root, bin: bin}, rounds: o.rounds, limit: o.limit, log: w}
	old, commit, reason, remove, err := base(ctx, root, o.base)
	if err != nil {
		return nil, fmt.Errorf("check out the base: %w", err)
	}
	defer remove()
	if commit != "" {
		b.base = &old
		fmt.Fprintf(w, "base: %s\n", commit)
	} else {
		fmt.Fprintf(w, "no base to compare with: %s\n", reason)
	}
	var results []result
	for _, e := range entries {
		if !strings.Contains(e.dir, o.only) {
			continue
		}
		r, err := b.measure(ctx, e)
		if err != nil {
			return nil, err
		}
		results = append(results, r...)
	}
	return report(w, results, o.limit), write(o.out, results)
}

func write(name string, results []result) error {
	b, err := encodeFigures(results)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o644)
}
