// Package spec turns a commit of a fleet repository into a fleet.
//
// CUE from a repository is hostile until proved otherwise, and its evaluator
// cannot be stopped, so it runs in a child process: the same binary started
// with the argument start.Arg, limited in processor time and memory, without
// environment or open files. The parent sends it the CUE files of the commit and
// receives the rendered fleet with the place of every field, or what is wrong.
// Package eval answers for every binary that links it, test binaries included.
package spec

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"time"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/spec/eval"
	"github.com/reeve-project/reeve/reconciler/spec/start"
)

// Limits bound one evaluation. A zero field means its default.
type Limits struct {
	// CPU is processor time of the child, rounded up to seconds.
	CPU time.Duration
	// Memory is the data segment of the child in bytes.
	Memory int64
	// Wall is the time after which the child is killed whatever it does.
	Wall time.Duration
	// Size is the sum of all CUE files in the tree in bytes.
	Size int64
	// Output is the size of the rendered fleet with its positions in bytes.
	Output int64
}

// DefaultLimits leave room for about a thousand NodePools.
var DefaultLimits = Limits{
	CPU:    10 * time.Second,
	Memory: 2 * start.DefaultMemory,
	Wall:   30 * time.Second,
	Size:   8 << 20,
	Output: 64 << 20,
}

func (l Limits) withDefaults() Limits {
	if l.CPU <= 0 {
		l.CPU = DefaultLimits.CPU
	}
	if l.Memory <= 0 {
		l.Memory = DefaultLimits.Memory
	}
	if l.Wall <= 0 {
		l.Wall = DefaultLimits.Wall
	}
	if l.Size <= 0 {
		l.Size = DefaultLimits.Size
	}
	if l.Output <= 0 {
		l.Output = DefaultLimits.Output
	}
	return l
}

// Options say what to load and how.
type Options struct {
	// Cluster is the name of the directory below clusters/.
	Cluster string
	// Commit is recorded as fleet.Fleet.Commit.
	Commit string
	// Limits of the evaluation.
	Limits Limits
	// Seen, unless nil, gets the texts of the CUE files in the cluster's directory
	// before they are evaluated: what can be guessed from them can be prepared
	// in the meantime. They must not be changed.
	Seen func(texts [][]byte)
	// Binary is the path of a binary that links package eval; the running one
	// unless set.
	Binary string
}

var clusterName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`)

// Load evaluates the package clusters/<name> of the tree and checks it. The
// tree is the root of a fleet repository at some commit; only its CUE files are
// read, and symbolic links are not followed.
//
// The error is an *Error when the repository is at fault, a *LimitError when
// evaluation was cut off (see IsLimit), the context's error when that ended,
// and anything else when the tree could not be read or the child not run.
func Load(ctx context.Context, fsys fs.FS, opts Options) (*fleet.Fleet, error) {
	if !clusterName.MatchString(opts.Cluster) {
		return nil, fmt.Errorf("load fleet: %q is not the name of a cluster: letters, digits, '-' and '_', at most 100", opts.Cluster)
	}
	limits := opts.Limits.withDefaults()
	files, err := collect(ctx, fsys, limits.Size)
	if err != nil {
		return nil, fmt.Errorf("load fleet: %w", err)
	}
	if err := checkLayout(files, fsys, opts.Cluster); err != nil {
		return nil, err
	}
	dir := path.Join(clustersDir, opts.Cluster)
	if opts.Seen != nil {
		opts.Seen(textsIn(files, dir))
	}
	c := child{binary: opts.Binary, limits: limits, where: dir}
	resp, err := c.evaluate(ctx, eval.Request{Dir: dir, Files: files})
	if err != nil {
		return nil, err
	}
	if len(resp.Diagnostics) > 0 {
		return nil, newError(fromChild(resp.Diagnostics))
	}
	return decode(resp, opts)
}

// textsIn are the texts of the files of a directory.
func textsIn(files []eval.File, dir string) [][]byte {
	var out [][]byte
	for _, f := range files {
		if path.Dir(f.Name) == dir {
			out = append(out, f.Data)
		}
	}
	return out
}
