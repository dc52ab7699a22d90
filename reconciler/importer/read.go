package importer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// Bounds of one document. Nothing that Karpenter takes comes near them; what
// does is an alias bomb or not a manifest.
const (
	maxDepth = 64
	maxNodes = 100_000
)

// fault is why a document cannot be imported.
type fault struct {
	at   fleet.Position
	why  string
	hint string
}

func (f *fault) Error() string { return f.at.String() + ": " + f.why }

// reader turns one document into a tree.
type reader struct {
	file   string
	offset int // lines before the document
	left   int // nodes that may still be made
	report *Report
	depth  int
}

// read parses a document. The tree is nil for an empty one; its comments are
// returned all the same.
func read(file string, c chunk, r *Report) (tree *node, remarks []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			tree, remarks, err = nil, nil, &fault{at: fleet.Position{File: file, Line: c.line, Column: 1},
				why: fmt.Sprintf("the YAML parser cannot read this document (%v)", p), hint: "write it more simply, without tags and anchors"}
		}
	}()
	if i := invalidUTF8(c.text); i >= 0 {
		return nil, nil, &fault{at: place(file, c, i), why: "the text is not UTF-8", hint: "convert the file to UTF-8"}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(untabbed(c.text)), &doc); err != nil {
		return nil, nil, diagnose(file, c, err)
	}
	if doc.Kind == 0 || len(doc.Content) == 0 {
		return nil, onlyComments(c.text), nil
	}
	rd := &reader{file: file, offset: c.line - 1, left: maxNodes, report: r}
	tree, err = rd.node(doc.Content[0])
	if err != nil {
		return nil, nil, err
	}
	root := doc.Content[0]
	tree.notes = rd.notes(&yaml.Node{HeadComment: doc.HeadComment, FootComment: doc.FootComment}, root)
	if tree.kind == null {
		return nil, onlyComments(c.text), nil
	}
	return tree, nil, nil
}

// untabbed lets JSON be indented by tabs, as kubectl does.
func untabbed(doc string) string {
	if !strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(doc, "---")), "{") || !strings.Contains(doc, "\t") {
		return doc
	}
	var b strings.Builder
	for line := range strings.Lines(doc) {
		body := strings.TrimLeft(line, " \t")
		b.WriteString(strings.ReplaceAll(line[:len(line)-len(body)], "\t", " ") + body)
	}
	return b.String()
}

func invalidUTF8(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// place is the position of a byte of the document.
func place(file string, c chunk, at int) fleet.Position {
	before := c.text[:at]
	return fleet.Position{File: file, Line: c.line + strings.Count(before, "\n"), Column: at - strings.LastIndexByte(before, '\n')}
}

// onlyComments are the comments of a document without a value.
func onlyComments(doc string) []string {
	var out []string
	for line := range strings.Lines(doc) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "---"))
		if strings.HasPrefix(line, "#") {
			out = append(out, unmark(line))
		}
	}
	return out
}

func (r *reader) at(n *yaml.Node) fleet.Position {
	return fleet.Position{File: r.file, Line: n.Line + r.offset, Column: n.Column}
}

func (r *reader) fault(n *yaml.Node, hint, format string, args ...any) *fault {
	return &fault{at: r.at(n), why: fmt.Sprintf(format, args...), hint: hint}
}

// node makes a tree of a parsed value. Aliases are replaced by what they stand
// for.
func (r *reader) node(n *yaml.Node) (*node, error) {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > maxDepth {
		return nil, r.fault(n, "no field of a NodePool or EC2NodeClass is that deep", "nested more than %d levels deep", maxDepth)
	}
	if r.left--; r.left < 0 {
		return nil, r.fault(n, "write out what the anchors stand for", "more than %d values once aliases are replaced", maxNodes)
	}
	switch n.Kind {
	case yaml.AliasNode:
		v, err := r.node(n.Alias)
		if err != nil {
			return nil, err
		}
		return v.bare(), nil
	case yaml.ScalarNode:
		return r.scalar(n)
	case yaml.SequenceNode:
		return r.list(n)
	case yaml.MappingNode:
		return r.mapping(n)
	}
	return nil, r.fault(n, "", "a YAML construct that manifests do not have")
}

func (r *reader) list(n *yaml.Node) (*node, error) {
	out := &node{kind: sequence, at: r.at(n)}
	for _, item := range n.Content {
		v, err := r.node(item)
		if err != nil {
			return nil, err
		}
		if v.at.Line == 0 || item.Kind == yaml.AliasNode {
			v.at = r.at(item)
		}
		v.notes = r.notes(item)
		out.items = append(out.items, v)
	}
	return out, nil
}

func (r *reader) mapping(n *yaml.Node) (*node, error) {
	out := &node{kind: mapping, at: r.at(n)}
	seen := map[string]*field{}
	var merged []*node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag == "!!merge" || k.Kind == yaml.ScalarNode && k.Value == "<<" && k.Style == 0 {
			from, err := r.merge(v)
			if err != nil {
				return nil, err
			}
			merged = append(merged, from...)
			continue
		}
		f, err := r.field(k, v)
		if err != nil {
			return nil, err
		}
		if first := seen[f.name]; first != nil {
			return nil, r.fault(k, "keep one of them", "the key %q is there twice, first in line %d", f.name, first.at.Line)
		}
		seen[f.name] = f
		out.fields = append(out.fields, f)
	}
	for _, m := range merged {
		for _, f := range m.bare().fields {
			if seen[f.name] == nil {
				seen[f.name] = f
				out.fields = append(out.fields, f)
			}
		}
	}
	return out, nil
}

// merge are the mappings that a merge key names, the strongest first.
func (r *reader) merge(v *yaml.Node) ([]*node, error) {
	from, err := r.node(v)
	if err != nil {
		return nil, err
	}
	list := []*node{from}
	if from.kind == sequence {
		list = from.items
	}
	for _, m := range list {
		if m.kind != mapping {
			return nil, r.fault(v, "", "a merge key (<<) names a %s, want a mapping", m.kind)
		}
	}
	return list, nil
}

func (r *reader) field(k, v *yaml.Node) (*field, error) {
	if k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if k.Kind == yaml.MappingNode {
		return nil, r.fault(k, templateHint, "a mapping stands where a key or a value is expected, as {{ … }} does without quotes: a template that was not rendered")
	}
	if k.Kind != yaml.ScalarNode {
		return nil, r.fault(k, "", "a key that is not a word")
	}
	if key, err := r.scalar(k); err == nil && key.kind == boolean {
		r.report.add(Entry{Position: r.at(k), Class: Changed, Field: k.Value, Was: key.value, Is: quoteBrief(k.Value),
			Why: "kubectl reads this key as a boolean; it is taken as written"})
	}
	value, err := r.node(v)
	if err != nil {
		return nil, err
	}
	if v.Kind == yaml.AliasNode {
		value.at = r.at(v)
	}
	return &field{name: k.Value, at: r.at(k), value: value, notes: r.notes(k, v)}, nil
}

// scalar reads a scalar as kubectl does: by YAML 1.1, where an unquoted yes is
// a boolean and 010 is eight.
func (r *reader) scalar(n *yaml.Node) (*node, error) {
	out := &node{kind: text, value: n.Value, written: n.Value, at: r.at(n)}
	if n.Style&yaml.TaggedStyle != 0 {
		return r.tagged(n, out)
	}
	if n.Style != 0 || !strings.Contains("0123456789+-.yYnNtTfFoO~", first(n.Value)) && n.Value != "" {
		return out, nil
	}
	if strings.Contains(n.Value, "\n") || len(n.Value) > 64 {
		return out, nil
	}
	j, err := kyaml.YAMLToJSON([]byte(n.Value))
	if err != nil {
		return out, nil // such as .nan, which JSON cannot hold
	}
	switch v := string(j); {
	case v == "null":
		out.kind, out.value = null, v
	case v == "true", v == "false":
		out.kind, out.value = boolean, v
	case strings.HasPrefix(v, `"`), strings.HasPrefix(v, "{"), strings.HasPrefix(v, "["):
	default:
		out.kind, out.value = fraction, v
		if _, err := strconv.ParseInt(v, 10, 64); err == nil {
			out.kind = integer
		}
	}
	return out, nil
}

func (r *reader) tagged(n *yaml.Node, out *node) (*node, error) {
	switch n.ShortTag() {
	case "!!str":
		return out, nil
	case "!!int", "!!bool", "!!float", "!!null":
		plain := *n
		plain.Style, plain.Tag = 0, ""
		return r.scalar(&plain)
	}
	return nil, r.fault(n, "remove the tag, or render the file first with the tool that knows it", "the tag %s is not one of Kubernetes manifests", n.Tag)
}

func first(s string) string {
	if s == "" {
		return ""
	}
	return s[:1]
}

// notes gathers the comments of a key and its value.
func (r *reader) notes(nodes ...*yaml.Node) comments {
	var c comments
	for _, n := range nodes {
		c.above = append(c.above, unmarkAll(n.HeadComment)...)
		if lines := unmarkAll(n.LineComment); len(lines) == 1 && c.beside == "" {
			c.beside = lines[0]
		} else {
			c.above = append(c.above, lines...)
		}
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		c.below = append(c.below, unmarkAll(nodes[i].FootComment)...)
	}
	return c
}

func unmarkAll(comment string) []string {
	if comment == "" {
		return nil
	}
	var out []string
	for line := range strings.SplitSeq(comment, "\n") {
		out = append(out, unmark(line))
	}
	return out
}

// unmark removes the mark of a comment and the space after it.
func unmark(line string) string {
	line = strings.TrimPrefix(strings.TrimSpace(line), "#")
	return strings.TrimRight(strings.TrimPrefix(line, " "), " \t\r")
}
