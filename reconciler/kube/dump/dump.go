// Package dump reads what kubectl prints: the objects of a cluster as YAML or
// JSON, in lists or one after the other. What a plan needs is kept, and what it
// does not is counted. Files come from anywhere, so nothing in them is trusted.
package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/kube/convert"
)

// ErrNothing says that no object was found that a plan could be made of.
var ErrNothing = errors.New("no object of a cluster")

// The most that is read of one input. YAML takes many times its size in memory.
const (
	maxJSON = 512 << 20
	maxYAML = 48 << 20
)

// Source is one input.
type Source struct {
	// Name of the file, for errors.
	Name   string
	Reader io.Reader
}

// Dump is what was found.
type Dump struct {
	// Objects of the cluster. Pods that no API server has seen are completed.
	Objects convert.Objects
	// NodeClasses carry the status that a controller gave them, if one did.
	NodeClasses []*ec2v1.EC2NodeClass
	// Manifests are the keys of pods without any status, sorted: somebody wrote
	// them and no API server has seen them. They are taken for pending.
	Manifests []string
	// Unused are the kinds that no plan depends on, sorted.
	Unused []Count
	// Twice is how many objects were given more than once; the first counts.
	Twice int
	// Newest is the latest instant that an object tells of.
	Newest time.Time
}

// Count is a number of objects of one kind: "ConfigMap v1".
type Count struct {
	Kind string
	N    int
}

// Error is a fault of an input at a line, counted from one.
type Error struct {
	File string
	Line int
	Err  error
}

// Error is "file:line: what is wrong".
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap is the error without its place.
func (e *Error) Unwrap() error { return e.Err }

// reader collects the objects of several inputs.
type reader struct {
	out    Dump
	file   string
	unused map[string]int
	seen   map[string]bool
}

// Read reads all inputs. An error of what they hold is an *Error; it fails with
// ErrNothing if they hold no object that is kept.
func Read(sources ...Source) (*Dump, error) {
	r := &reader{unused: map[string]int{}, seen: map[string]bool{}}
	for _, s := range sources {
		r.file = s.Name
		if err := r.read(s.Reader); err != nil {
			return nil, err
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(r.unused)) {
		r.out.Unused = append(r.out.Unused, Count{kind, r.unused[kind]})
	}
	if len(r.seen) == 0 {
		return nil, fmt.Errorf("%w was found: give what kubectl get pods,nodes,nodeclaims,pdb,daemonsets -A -o json prints", ErrNothing)
	}
	r.finish()
	return &r.out, nil
}

// finish completes the pods that no API server has seen, now that all priority
// classes are known. Of the others only requests may be missing, where a person
// has edited what kubectl printed.
func (r *reader) finish() {
	for _, p := range r.out.Objects.Pods {
		convert.CompleteRequests(p)
		if unseen(p) {
			r.out.Manifests = append(r.out.Manifests, p.Namespace+"/"+p.Name)
			r.out.Objects.Complete(p)
			makePending(p)
		}
	}
	slices.Sort(r.out.Manifests)
}

func (r *reader) read(in io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(in, maxJSON+1))
	if err != nil {
		return fmt.Errorf("%s: %w", r.file, err)
	}
	if len(b) > maxJSON {
		return fmt.Errorf("%s: it is larger than %d MiB: split it by namespace", r.file, maxJSON>>20)
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if looksLikeJSON(b) {
		return r.json(b)
	}
	if len(b) > maxYAML {
		return fmt.Errorf("%s: it is larger than %d MiB, which is too much for YAML: give the output of kubectl -o json", r.file, maxYAML>>20)
	}
	return r.yaml(b)
}

// looksLikeJSON tells JSON from YAML that begins with a brace, too, and from
// JSON documents with the separators of YAML. In JSON no string has a line end.
func looksLikeJSON(b []byte) bool {
	const space = " \t\r\n"
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(b, space), []byte("{"))
	if !ok || bytes.Contains(b, []byte("\n---")) {
		return false
	}
	rest = bytes.TrimLeft(rest, space)
	return len(rest) == 0 || rest[0] == '"' || rest[0] == '}'
}

func (r *reader) fault(line int, format string, args ...any) error {
	return &Error{File: r.file, Line: line, Err: fmt.Errorf(format, args...)}
}
