// Package demo plays a story on a simulated cluster in virtual time. Only the
// cluster and AWS's side of the wire are simulated: Git, CUE, Rego, the engine,
// the pipeline, the ledger and the client of AWS are those of production. The
// same options give the same commits.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// Options of the demo.
type Options struct {
	// Dir is replaced; fleet.git is made in it.
	Dir string
	// Replicas are what the Deployment inflate is scaled to, one after the
	// other. Empty plays the whole story.
	Replicas []int
	// Only plays the scene of that name and no other; see Scenes.
	Only string
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
	scenes, err := o.scenes()
	if err != nil {
		return err
	}
	if err := replace(o.Dir); err != nil {
		return err
	}
	for _, sc := range scenes {
		if len(scenes) > 1 {
			fmt.Fprintf(o.Out, "\n== %s: %s\n", sc.example, sc.title)
		}
		if _, err := sc.run(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", sc.title, err)
		}
	}
	invite(o.Out, filepath.Join(o.Dir, scenes[0].repository()), "reeve/"+scenes[0].cluster)
	return nil
}

// Scenes are the names of what can be played by itself: the story first, then
// the labs. Each has the name of its example and of its cluster.
func Scenes() []string {
	var out []string
	for _, sc := range all() {
		out = append(out, sc.example)
	}
	return out
}

func all() []scene { return append([]scene{story()}, labs()...) }

// scenes are what the options ask for.
func (o Options) scenes() ([]scene, error) {
	switch {
	case len(o.Replicas) > 0 && o.Only != "":
		return nil, errors.New("replicas belong to a scene of their own: leave out either --replicas or --only")
	case len(o.Replicas) > 0:
		return []scene{scaling(o.Replicas)}, nil
	case o.Only == "":
		return all(), nil
	}
	for _, sc := range all() {
		if sc.example == o.Only {
			return []scene{sc}, nil
		}
	}
	return nil, fmt.Errorf("there is no scene %q: there are %s", o.Only, strings.Join(Scenes(), ", "))
}

// scene is a cluster, its fleet and what happens to them.
type scene struct {
	title string
	// example is the fleet below examples/, and cluster the one of it that is
	// played.
	example, cluster string
	managed          []managed
	workloads        []sim.Object
	// startupTaints are those that a daemon takes off new nodes.
	startupTaints []corev1.Taint
	steps         []step
}

// step is one thing that happens. It fails if it does not come out as it
// should.
type step struct {
	title string
	play  func(context.Context, *stage) error
}

// repository is the name of the bare repository of the scene.
func (sc scene) repository() string {
	if sc.cluster == Cluster {
		return "fleet.git"
	}
	return sc.cluster + ".git"
}

// run plays the scene and gives the stage as it was left.
func (sc scene) run(ctx context.Context, o Options) (*stage, error) {
	s, err := newStage(ctx, o, sc)
	if err != nil {
		return nil, fmt.Errorf("set the stage: %w", err)
	}
	for i, step := range sc.steps {
		s.print.heading(i+1, step.title)
		if err := step.play(ctx, s); err != nil {
			return nil, fmt.Errorf("%s: %w", step.title, err)
		}
	}
	if err := s.pipeline.Stop(ctx); err != nil {
		return nil, fmt.Errorf("stop: %w", err)
	}
	s.close()
	return s, nil
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
