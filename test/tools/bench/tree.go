package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is a checkout whose benchmarks are run.
type tree struct {
	dir string
	// bin holds the test binaries.
	bin string
}

// errNoPackage says that the tree has no such package.
var errNoPackage = errors.New("no such package")

// build compiles the tests of the package. It fails with errNoPackage where
// the tree has none.
func (t tree) build(ctx context.Context, dir string) error {
	if found, _ := filepath.Glob(filepath.Join(t.dir, filepath.FromSlash(dir), "*_test.go")); len(found) == 0 {
		return errNoPackage
	}
	_, err := command(ctx, t.dir, "go", "test", "-c", "-o", t.binary(dir), "./"+dir)
	return err
}

func (t tree) binary(dir string) string {
	return filepath.Join(t.bin, strings.ReplaceAll(dir, "/", "-")+".test")
}

// run measures the benchmarks once.
func (t tree) run(ctx context.Context, e entry) (string, error) {
	return command(ctx, filepath.Join(t.dir, filepath.FromSlash(e.dir)), t.binary(e.dir),
		"-test.run=^$", "-test.bench="+e.pattern(), "-test.benchtime="+e.benchtime, "-test.benchmem", "-test.timeout=5m")
}

// pattern is what the test binary takes for -test.bench.
func (e entry) pattern() string {
	p := "^Benchmark(" + strings.Join(e.benchmarks, "|") + ")"
	if e.sub != "" {
		p += "/^" + e.sub
	}
	return p
}

// base checks out what to compare with in a directory of its own. It gives the
// reason when there is nothing to compare with. The caller must call the
// function that removes it.
func base(ctx context.Context, root, rev string) (t tree, commit, reason string, remove func(), err error) {
	commit, reason = baseCommit(ctx, root, rev)
	if commit == "" {
		return tree{}, "", reason, func() {}, nil
	}
	tmp, err := os.MkdirTemp("", "reeve-bench-")
	if err != nil {
		return tree{}, "", "", nil, err
	}
	dir := filepath.Join(tmp, "base")
	remove = func() {
		// The context may be over already, and the checkout must go all the same.
		clean := context.WithoutCancel(ctx)
		_, _ = command(clean, root, "git", "worktree", "remove", "--force", dir)
		_ = os.RemoveAll(tmp)
		_, _ = command(clean, root, "git", "worktree", "prune")
	}
	if _, err := command(ctx, root, "git", "worktree", "add", "--detach", "--quiet", dir, commit); err != nil {
		remove()
		return tree{}, "", "", nil, err
	}
	return tree{dir: dir, bin: filepath.Join(tmp, "bin")}, commit, "", remove, nil
}

// baseCommit is the commit to compare with: what was asked for, or where this
// branch left main, or on main itself the commit before.
func baseCommit(ctx context.Context, root, rev string) (commit, reason string) {
	head, err := command(ctx, root, "git", "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return "", "this is no Git repository with a commit"
	}
	if rev != "" {
		if out, err := command(ctx, root, "git", "rev-parse", "--verify", "--quiet", rev+"^{commit}"); err == nil {
			return strings.TrimSpace(out), ""
		}
		return "", fmt.Sprintf("there is no commit %q", rev)
	}
	for _, main := range []string{"origin/main", "main"} {
		out, err := command(ctx, root, "git", "merge-base", "HEAD", main)
		if err == nil && out != head {
			return strings.TrimSpace(out), ""
		}
	}
	if out, err := command(ctx, root, "git", "rev-parse", "--verify", "--quiet", "HEAD~1^{commit}"); err == nil {
		return strings.TrimSpace(out), ""
	}
	return "", "the history ends at this commit"
}

// command is the standard output of the program; its error holds what the
// program said.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}
