package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	kjson "sigs.k8s.io/json"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/spec/eval"
)

// decode checks a rendered fleet and makes values of it.
func decode(resp eval.Response, opts Options) (*fleet.Fleet, error) {
	positions, err := expand(resp.Positions)
	if err != nil {
		return nil, fmt.Errorf("evaluate specs: %w", err)
	}
	root, err := parseNode(resp.Document)
	if err != nil {
		return nil, fmt.Errorf("evaluate specs: rendered fleet: %w", err)
	}
	if err := complete(root); err != nil {
		return nil, fmt.Errorf("defaults: %w", err)
	}
	d := &decoder{positions: positions, opts: opts, fallback: fleet.Position{File: clustersDir + "/" + opts.Cluster, Line: 1, Column: 1}}
	checkFleet(root, opts.Cluster, d.add)
	f := d.fleet(root)
	if len(d.found) > 0 {
		return nil, newError(d.found)
	}
	warnFleet(root, func(at fleet.Path, message, hint string) {
		f.Warnings = append(f.Warnings, fleet.Remark{Path: at, Message: message, Hint: hint})
	})
	return f, nil
}

// expand makes of the child's table the form that the rest of Reeve uses.
func expand(t eval.Table) (fleet.Positions, error) {
	ps := make(fleet.Positions, len(t.Fields))
	for _, f := range t.Fields {
		at := make([]fleet.Position, len(f.At))
		for i, a := range f.At {
			if a[0] < 0 || a[0] >= len(t.Files) {
				return nil, fmt.Errorf("position of %s names file %d of %d", fleet.Path(f.Path), a[0], len(t.Files))
			}
			at[i] = fleet.Position{File: t.Files[a[0]], Line: a[1], Column: a[2]}
		}
		ps.Set(fleet.Path(f.Path), at...)
	}
	return ps, nil
}

// decoder turns the document into Go values and collects what does not fit.
type decoder struct {
	positions fleet.Positions
	opts      Options
	fallback  fleet.Position // for what has no position
	found     []Diagnostic
}

// add places a fault in the repository.
func (d *decoder) add(at fleet.Path, message, hint string) {
	pos, ok := d.positions.Find(at)
	if !ok {
		pos = d.fallback
	}
	d.found = append(d.found, Diagnostic{Position: pos, Path: at, Message: message, Hint: hint})
}

func (d *decoder) fleet(root node) *fleet.Fleet {
	f := &fleet.Fleet{Commit: d.opts.Commit, Document: root.raw(), Positions: d.positions}
	strict(d, root.get("cluster"), &f.Cluster)
	for name, n := range root.get("nodePools").fields() {
		p := &karpv1.NodePool{}
		if strict(d, n, p) {
			p.Name = name
			f.NodePools = append(f.NodePools, p)
		}
	}
	for name, n := range root.get("nodeClasses").fields() {
		c := &ec2v1.EC2NodeClass{}
		if strict(d, n, c) {
			c.Name = name
			f.NodeClasses = append(f.NodeClasses, c)
		}
	}
	for _, n := range root.get("exceptions").items() {
		if e, ok := d.exception(n); ok {
			f.Exceptions = append(f.Exceptions, e)
		}
	}
	f.Policy = root.get("policy").raw()
	slices.SortFunc(f.NodePools, func(a, b *karpv1.NodePool) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(f.NodeClasses, func(a, b *ec2v1.EC2NodeClass) int { return cmp.Compare(a.Name, b.Name) })
	return f
}

func (d *decoder) exception(n node) (fleet.Exception, bool) {
	expires, err := parseExpiry(n.get("expires").str())
	if err != nil {
		d.add(n.get("expires").path, err.Error(), "write a date such as 2026-05-01 or an instant such as 2026-05-01T12:00:00Z")
		return fleet.Exception{}, false
	}
	return fleet.Exception{
		Rule:     n.get("rule").str(),
		Resource: n.get("resource").str(),
		Reason:   n.get("reason").str(),
		Owner:    n.get("owner").str(),
		Expires:  expires,
	}, true
}

// parseExpiry reads a date, which means its start in UTC, or an instant.
func parseExpiry(s string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither a date nor an instant", s)
	}
	// In UTC it may be in a year that no record can hold.
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return time.Time{}, fmt.Errorf("%q is not in the years 0000 to 9999 of UTC", s)
	}
	return t, nil
}

// refused says whether a fault was found in that part of the document.
func (d *decoder) refused(at fleet.Path) bool {
	return slices.ContainsFunc(d.found, func(f Diagnostic) bool {
		return len(f.Path) >= len(at) && slices.Equal(f.Path[:len(at)], at)
	})
}

// strict decodes a part of the document and refuses fields that the type does
// not have, letter case included. What the rules have refused is left alone:
// decoding a quantity that they did not read may take forever.
func strict(d *decoder, n node, into any) bool {
	if d.refused(n.path) {
		return false
	}
	unknown, err := kjson.UnmarshalStrict(n.raw(), into)
	if err == nil && len(unknown) == 0 {
		return true
	}
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType) && wrongType.Field != "":
		d.add(n.at(strings.Split(wrongType.Field, ".")...), fmt.Sprintf("a %s does not fit here, want %s", wrongType.Value, wrongType.Type), "")
	case err != nil:
		d.add(n.path, err.Error(), "")
	}
	for _, u := range unknown {
		d.add(n.path, u.Error(), "this version of Reeve does not know the field")
	}
	return false
}

// node is a part of a JSON document that knows its path. A node that does not
// exist has a nil value; everything can be asked of it.
type node struct {
	value any
	path  fleet.Path
}

func parseNode(document []byte) (node, error) {
	dec := json.NewDecoder(bytes.NewReader(document))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return node{}, err
	}
	return node{value: v}, nil
}

// at is the path of something below the node.
func (n node) at(names ...string) fleet.Path { return append(slices.Clip(n.path), names...) }

// get goes down through fields.
func (n node) get(names ...string) node {
	v := n.value
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return node{value: v, path: n.at(names...)}
}

// has says whether the field exists, as has() does in CEL.
func (n node) has(name string) bool {
	m, _ := n.value.(map[string]any)
	_, ok := m[name]
	return ok
}

// hasAny says whether one of the fields exists.
func (n node) hasAny(names ...string) bool { return slices.ContainsFunc(names, n.has) }

// exists says whether the node itself does.
func (n node) exists() bool { return n.value != nil }

// str is the string, or empty.
func (n node) str() string {
	s, _ := n.value.(string)
	return s
}

// text is a string or a number as it was written.
func (n node) text() string {
	if num, ok := n.value.(json.Number); ok {
		return num.String()
	}
	return n.str()
}

// integer is the whole number, if it is one.
func (n node) integer() (int64, bool) {
	num, ok := n.value.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := num.Int64()
	return i, err == nil
}

// items are the elements of a list.
func (n node) items() []node {
	list, _ := n.value.([]any)
	out := make([]node, len(list))
	for i, v := range list {
		out[i] = node{value: v, path: n.at(strconv.Itoa(i))}
	}
	return out
}

// fields are the members of a struct in order of their names.
func (n node) fields() func(yield func(string, node) bool) {
	m, _ := n.value.(map[string]any)
	return func(yield func(string, node) bool) {
		for _, k := range sortedKeys(m) {
			if !yield(k, n.get(k)) {
				return
			}
		}
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// raw is the node as JSON with sorted keys; null if it does not exist.
func (n node) raw() json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(n.value); err != nil {
		return json.RawMessage("null") // cannot happen: it was decoded from JSON
	}
	return bytes.TrimSpace(out.Bytes())
}
