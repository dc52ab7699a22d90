// Package importer turns Karpenter's YAML into a fleet in CUE, and a fleet back
// into YAML.
//
// An import goes through these steps: a stream is split into documents, each is
// parsed into a tree that knows places and comments, objects that a fleet holds
// are taken out of it, older versions are converted to v1, every field is held
// against Karpenter's own types, and what several objects share is written
// once. Whatever does not reach the fleet is in the report: nothing gets lost
// in silence.
package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// Input is a YAML stream.
type Input struct {
	// Name is what positions call it: a path, or "-" for standard input.
	Name string
	Data []byte
}

// Options of an import.
type Options struct {
	// Role is the IAM role for classes of v1alpha1 that name neither a role nor
	// an instance profile. Empty: they are reported as incomplete.
	Role string
	// Taken says that the cluster's package has the hidden field already, so
	// that shared parts get another name. Nil: none is taken.
	Taken func(name string) bool
}

// Result is what an import made.
type Result struct {
	Report *Report

	objects []*object
	taken   func(string) bool
}

// Import reads manifests. It never fails: what it could not read is in the
// report.
func Import(inputs []Input, o Options) *Result {
	r := &Report{order: map[string]int{}}
	c := &collector{report: r}
	for i, in := range inputs {
		if _, twice := r.order[in.Name]; !twice {
			r.order[in.Name] = i
		}
		for _, ch := range split(string(in.Data)) {
			c.document(in.Name, ch)
		}
		c.leftOver(in.Name)
	}
	c.singular()
	conv := &converter{report: r, role: o.Role, objects: c.objects}
	conv.run()
	res := &Result{Report: r, taken: o.Taken}
	for _, ob := range conv.objects {
		if err := fitObject(ob, r); err != nil {
			c.refuse(err, ob.label)
			continue
		}
		res.objects = append(res.objects, ob)
	}
	for _, ob := range res.objects {
		r.Imported = append(r.Imported, Imported{Kind: ob.kind, Name: ob.name, From: ob.at, Version: ob.version})
	}
	r.sort()
	return res
}

// leftOver gives the comments at the end of a file to its last object.
func (c *collector) leftOver(file string) {
	if n := len(c.objects); n > 0 && c.objects[n-1].at.File == file {
		last := c.objects[n-1]
		last.notes = append(last.notes, c.pending...)
	}
	c.pending = nil
}

func fitObject(o *object, r *Report) error {
	f := &fitter{report: r, object: o.label}
	if err := f.fit(o.spec, shapes()[o.kind], fleet.Path{"spec"}); err != nil {
		return err
	}
	placeholders(o, r)
	return nil
}

// singular keeps the first of several objects of a kind and name. One that says
// the same is no news, one that says otherwise is refused.
func (c *collector) singular() {
	type key struct{ kind, name string }
	seen := map[key]*object{}
	c.objects = slices.DeleteFunc(c.objects, func(o *object) bool {
		k := key{o.kind, o.name}
		p := seen[k]
		switch {
		case p == nil:
			seen[k] = o
			return false
		case p.version == o.version && same(p.spec, o.spec) && sameField(p.labels, o.labels) && sameField(p.remarks, o.remarks):
			c.report.add(Entry{Position: o.at, Class: Dropped, Object: o.label, Why: "says the same as " + p.at.String()})
		default:
			c.report.add(Entry{Position: o.at, Class: Refused, Object: o.label, Why: fmt.Sprintf("another %s of this name is in %s and says something else: keep one of them", o.kind, p.at)})
		}
		return true
	})
}

func sameField(a, b *field) bool {
	if a == nil || b == nil {
		return a == b
	}
	return same(a.value, b.value)
}

// placeholder is what templating tools leave when nobody fills it in.
var placeholder = regexp.MustCompile(`\$?\$\{[^}\n]*\}|\$[A-Z][A-Z0-9_]+|\{\{[^\n]*?\}\}|<<?[A-Za-z][A-Za-z0-9 _-]*>>?`)

// placeholders reports strings that look as if something had to be filled in,
// each placeholder once for an object. User data are shell or TOML, where the
// same signs have a meaning.
func placeholders(o *object, r *Report) {
	entries := map[string]*Entry{}
	var found []*Entry
	more := map[*Entry]int{}
	walkTexts(o.spec, fleet.Path{"spec"}, func(n *node, path fleet.Path) {
		m := placeholder.FindString(n.value)
		if m == "" || slices.Equal(path, fleet.Path{"spec", "userData"}) {
			return
		}
		if e := entries[m]; e != nil {
			more[e]++
			return
		}
		e := &Entry{Position: n.at, Class: Placeholder, Object: o.label, Field: path.String(), Was: quoteBrief(n.value), Why: "nothing has filled in " + m + "; it is imported as it stands"}
		entries[m] = e
		found = append(found, e)
	})
	for _, e := range found {
		if n := more[e]; n > 0 {
			e.Why += ", here and in " + plural(n, "more field", "more fields")
		}
		r.add(*e)
	}
}

// walkTexts calls for every string below a value.
func walkTexts(n *node, path fleet.Path, visit func(*node, fleet.Path)) {
	for _, f := range n.fields {
		walkTexts(f.value, append(slices.Clip(path), f.name), visit)
	}
	for i, item := range n.items {
		walkTexts(item, append(slices.Clip(path), strconv.Itoa(i)), visit)
	}
	if n.kind == text {
		visit(n, path)
	}
}
