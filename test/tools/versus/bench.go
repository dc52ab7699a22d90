package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// bench runs the commands.
type bench struct {
	root, dir string
	rounds    int
}

func (b *bench) reeve() string    { return filepath.Join(b.dir, "reeve") }
func (b *bench) conftest() string { return filepath.Join(b.dir, "conftest") }

// build compiles this tree's reeve, and conftest in the version that
// test/conftest pins.
func (b *bench) build(ctx context.Context) error {
	for _, c := range []struct{ dir, out, pkg string }{
		{b.root, b.reeve(), "./cmd/reeve"},
		{filepath.Join(b.root, "test", "conftest"), b.conftest(), "github.com/open-policy-agent/conftest"},
	} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", c.out, c.pkg)
		cmd.Dir = c.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", c.pkg, err, out)
		}
	}
	return nil
}

// compare measures in turns, on n NodePools: reeve check and conftest with the
// team's rules, and reeve check with all shipped policies beside them.
func (b *bench) compare(ctx context.Context, n int) (f figures, err error) {
	fleet, all, rules, documents := b.path(n, "fleet"), b.path(n, "all"), b.path(n, "rules"), b.path(n, "documents.yaml")
	if err := b.prepare(ctx, n, fleet, all, rules, documents); err != nil {
		return figures{}, err
	}
	f.Pools = n
	for range b.rounds {
		r, err := b.check(ctx, fleet)
		if err != nil {
			return figures{}, err
		}
		c, err := b.conftestTest(ctx, rules, documents)
		if err != nil {
			return figures{}, err
		}
		a, err := b.check(ctx, all)
		if err != nil {
			return figures{}, err
		}
		if r.Breaches != c.Breaches || a.Breaches != c.Breaches || c.Breaches == 0 {
			return figures{}, fmt.Errorf("reeve found %d breaches of the rules, %d beside all policies, and conftest %d: they do not judge the same", r.Breaches, a.Breaches, c.Breaches)
		}
		f.Reeve, f.Conftest, f.All = fastest(f.Reeve, r), fastest(f.Conftest, c), fastest(f.All, a)
	}
	f.Ratio = float64(f.Reeve.Wall) / float64(f.Conftest.Wall)
	f.RatioAll = float64(f.All.Wall) / float64(f.Conftest.Wall)
	return f, nil
}

// large measures reeve check with all policies on a large fleet.
func (b *bench) large(ctx context.Context) (best sample, err error) {
	fleet := b.path(largeFleet, "fleet")
	if err := writeFleet(fleet, largeFleet, policy); err != nil {
		return sample{}, err
	}
	for range b.rounds {
		s, err := b.check(ctx, fleet)
		if err != nil {
			return sample{}, err
		}
		best = fastest(best, s)
	}
	return best, nil
}

func (b *bench) path(n int, name string) string {
	return filepath.Join(b.dir, fmt.Sprint(n), name)
}

func (b *bench) prepare(ctx context.Context, n int, fleet, all, rules, documents string) error {
	if err := writeFleet(fleet, n, noPolicy); err != nil {
		return err
	}
	if err := writeFleet(all, n, policy); err != nil {
		return err
	}
	if err := os.MkdirAll(rules, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(rules, "team.rego"), teamRules, 0o644); err != nil {
		return err
	}
	return writeDocuments(ctx, fleet, documents)
}

// check runs reeve check and counts what the team's rules found.
func (b *bench) check(ctx context.Context, fleet string) (sample, error) {
	out, s, err := measured(ctx, b.reeve(), "check", fleet, "-o", "json", "--now", "2026-04-06T12:00:00Z")
	if err != nil {
		return sample{}, err
	}
	var res struct {
		Clusters []struct {
			Violations []struct{ Message string }
		}
	}
	if err := json.Unmarshal(out, &res); err != nil {
		return sample{}, fmt.Errorf("output of reeve check: %w", err)
	}
	for _, c := range res.Clusters {
		for _, v := range c.Violations {
			s.Breaches += ofTeam(v.Message)
		}
	}
	return s, nil
}

// conftestTest runs conftest on the documents and counts its failures.
func (b *bench) conftestTest(ctx context.Context, rules, documents string) (sample, error) {
	out, s, err := measured(ctx, b.conftest(), "test", "--policy", rules, "--output", "json", documents)
	if err != nil {
		return sample{}, err
	}
	var res []struct {
		Failures []struct{ Msg string }
	}
	if err := json.Unmarshal(out, &res); err != nil {
		return sample{}, fmt.Errorf("output of conftest: %w", err)
	}
	for _, r := range res {
		for _, f := range r.Failures {
			s.Breaches += ofTeam(f.Msg)
		}
	}
	return s, nil
}

// ofTeam is 1 for a message of the team's rules, which begin with the object;
// the shipped policies find some of the same faults in words of their own.
func ofTeam(message string) int {
	for _, end := range []string{"spec.limits.cpu is missing", "@latest changes by itself", "nodes never expire"} {
		if strings.HasSuffix(message, end) {
			return 1
		}
	}
	return 0
}

// measured runs a command that is to find something, which is exit code 1 for
// both.
func measured(ctx context.Context, name string, args ...string) ([]byte, sample, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	err := cmd.Run()
	wall := time.Since(begin)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return nil, sample{}, fmt.Errorf("%s %s: want exit code 1, because something is to be found: %v\n%s%s",
			filepath.Base(name), strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	s := sample{Wall: wall, CPU: exit.UserTime() + exit.SystemTime()}
	if usage, ok := exit.SysUsage().(*syscall.Rusage); ok {
		// Linux counts in KiB, and the largest of the process and its children.
		s.Memory = usage.Maxrss << 10
	}
	return stdout.Bytes(), s, nil
}

// fastest is the faster of two runs; the zero sample is none.
func fastest(a, b sample) sample {
	if a.Wall == 0 || b.Wall < a.Wall {
		return b
	}
	return a
}
