// Package demo plays a story on a simulated cluster in virtual time. Only the
// cluster and the cloud are simulated: Git, CUE, Rego, the engine, the pipeline
// and the ledger are those of production. The same options give the same
// commits.
package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Options of the demo.
type Options struct {
	// Dir is replaced; fleet.git is made in it.
	Dir string
	// Replicas are what the Deployment inflate is scaled to, one after the
	// other. Empty plays the whole story.
	Replicas []int
	// Out takes the progress.
	Out io.Writer
}

// Cluster is the name of the demo's cluster, and Branch where its decisions
// are.
const (
	Cluster = "myeks"
	Branch  = "reeve/myeks"
)

// maxReplicas is far above what the limits of the demo's NodePools let run, and
// below what takes minutes to simulate.
const maxReplicas = 10_000

// Virtual time begins at an instant that is always the same, so that a second
// run makes the same commits.
var begin = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)

// Run plays the demo. It fails if anything does not come out as the story
// says.
func Run(ctx context.Context, o Options) error {
	for _, n := range o.Replicas {
		if n < 0 || n > maxReplicas {
			return fmt.Errorf("replicas: %d is not a number from 0 to %d", n, maxReplicas)
		}
	}
	if err := replace(o.Dir); err != nil {
		return err
	}
	s, err := newStage(ctx, o)
	if err != nil {
		return fmt.Errorf("set the stage: %w", err)
	}
	steps := story()
	if len(o.Replicas) > 0 {
		steps = scaling(o.Replicas)
	}
	for i, step := range steps {
		s.print.heading(i+1, step.title)
		if err := step.play(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	if err := s.pipeline.Stop(ctx); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return s.close(ctx)
}

// marker is a file that says that a directory is the demo's own, so that
// nothing else is ever deleted.
const marker = ".reeve-demo"

// replace empties the demo's directory. One that the demo has not made is left
// alone unless it is empty.
func replace(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, marker)); err != nil {
			return fmt.Errorf("%s is not empty and was not made by the demo: choose another directory with --dir", dir)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, marker), []byte("made by reeve demo; the next run replaces this directory\n"), 0o644)
}
