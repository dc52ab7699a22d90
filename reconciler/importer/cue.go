package importer

import (
	"fmt"
	"path"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"
)

// File is a file of a fleet repository.
type File struct {
	// Name is the path in the repository, with slashes.
	Name string `json:"name"`
	// Text is its content.
	Text string `json:"text"`
}

// The names of the files of a cluster, as reeve init writes them.
const (
	poolFile  = "nodepools.cue"
	classFile = "nodeclasses.cue"
)

// Files are the imported objects in the files of a cluster. A file without
// objects is left out.
func (res *Result) Files(cluster string) ([]File, error) {
	var out []File
	for _, f := range []struct{ name, kind string }{{classFile, kindClass}, {poolFile, kindPool}} {
		body := res.section(f.kind)
		if body == "" {
			continue
		}
		text, err := wrap(body)
		if err != nil {
			return nil, err
		}
		out = append(out, File{Name: path.Join("clusters", cluster, f.name), Text: text})
	}
	return out, nil
}

// Single is everything in one file, to be printed.
func (res *Result) Single() (string, error) {
	return wrap(res.section(kindPool) + res.section(kindClass))
}

// wrap makes a file of package fleet.
func wrap(body string) (string, error) {
	text, err := format.Source([]byte("package fleet\n\nimport \"reeve.dev/fleet\"\n\n" + body))
	if err != nil {
		return "", fmt.Errorf("write CUE: %w", err)
	}
	return string(text), nil
}

// section is all objects of a kind, what they share first.
func (res *Result) section(kind string) string {
	field, definition, general := "nodePools", "fleet.#NodePools", "_general"
	if kind == kindClass {
		field, definition, general = "nodeClasses", "fleet.#NodeClasses", "_generalClass"
	}
	var objects []*object
	for _, o := range res.objects {
		if o.kind == kind {
			copied := *o
			objects = append(objects, &copied)
		}
	}
	if len(objects) == 0 {
		return ""
	}
	groups := factor(objects, general, res.taken)
	p := &printer{}
	p.line(field + ": " + definition)
	named := map[*object]string{}
	for _, g := range groups {
		p.line("")
		names := make([]string, len(g.members))
		for i, o := range g.members {
			named[o], names[i] = g.name, o.name
		}
		p.comment(wrapWords("What " + list(names) + " have in common.")...)
		p.line(g.name + ": {")
		p.members(g.shared)
		p.line("}")
	}
	for _, o := range objects {
		p.line("")
		p.object(field, o, named[o])
	}
	return p.out.String() + "\n"
}

func list(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// wrapWords breaks a comment into lines that are easy to read.
func wrapWords(s string) []string {
	const width = 76
	var out []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && len(line)+1+len(word) > width {
			out, line = append(out, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(out, line)
}

// printer writes CUE. Its output is put into CUE's own format afterwards; what
// it decides is what stands on one line.
type printer struct {
	out   strings.Builder
	depth int
}

func (p *printer) line(s string) {
	if s != "" {
		p.out.WriteString(strings.Repeat("\t", p.depth) + s)
	}
	p.out.WriteString("\n")
}

func (p *printer) comment(lines ...string) {
	for _, l := range lines {
		p.line(strings.TrimRight("// "+printable(l), " "))
	}
}

// printable is a comment in one line whatever stands in it.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f || r == 0xfeff || r == 0x2028 || r == 0x2029 || r == 0x85 {
			return ' '
		}
		return r
	}, s)
}

// object writes a NodePool or EC2NodeClass.
func (p *printer) object(top string, o *object, general string) {
	p.comment(o.notes...)
	head := top + ": " + label(o.name) + ": "
	if o.labels == nil && o.remarks == nil {
		p.comment(o.notesOf.lines()...)
		p.spec(head+"spec: ", o.spec, general)
		return
	}
	p.line(head + "{")
	p.depth++
	meta := &node{kind: mapping}
	for _, f := range []*field{o.labels, o.remarks} {
		if f != nil {
			meta.fields = append(meta.fields, f)
		}
	}
	p.field(&field{name: "metadata", value: meta})
	p.comment(o.notesOf.lines()...)
	p.spec("spec: ", o.spec, general)
	p.depth--
	p.line("}")
}

func (p *printer) spec(head string, spec *node, general string) {
	switch {
	case general != "" && len(spec.fields) == 0:
		p.line(head + general)
		return
	case general != "":
		head += general + " & "
	}
	p.line(head + "{")
	p.members(spec)
	p.line("}")
}

func (p *printer) members(n *node) {
	p.depth++
	for _, f := range n.fields {
		p.field(f)
	}
	p.depth--
}

// label is a field's name, in quotes if it has to be.
func label(name string) string {
	if ast.StringLabelNeedsQuoting(name) {
		return literal.String.Quote(name)
	}
	return name
}

func (p *printer) field(f *field) {
	p.comment(f.notes.above...)
	note := f.notes.beside
	head := label(f.name) + ": "
	v, last := f.value, f.name
	// a: b: 1 is shorter than a: {b: 1}.
	for v.kind == mapping && len(v.fields) == 1 && !inlined[last] {
		inner := v.fields[0]
		if len(inner.notes.above)+len(inner.notes.below) > 0 || inner.notes.beside != "" && note != "" {
			break
		}
		v, last, note = inner.value, inner.name, note+inner.notes.beside
		head += label(last) + ": "
	}
	p.value(head, v, beside(note), inlined[last])
	if len(f.notes.below) > 0 {
		p.comment(f.notes.below...)
		p.line("")
	}
}

// beside is a comment behind a value.
func beside(note string) string {
	if note == "" {
		return ""
	}
	return " // " + printable(note)
}

// inlined are the mappings that read well on one line.
var inlined = map[string]bool{"nodeClassRef": true}

// value writes a value behind the start of its line.
func (p *printer) value(head string, v *node, note string, onOne bool) {
	switch {
	case v.kind == mapping && onOne && short(v, 100):
		p.line(head + inline(v) + note)
	case v.kind == mapping && len(v.fields) == 0:
		p.line(head + "{}" + note)
	case v.kind == mapping:
		p.line(head + "{" + note)
		p.members(v)
		p.line("}")
	case v.kind == sequence && oneLine(v):
		p.line(head + inline(v) + note)
	case v.kind == sequence:
		p.line(head + "[" + note)
		p.items(v)
		p.line("]")
	default:
		p.line(head + p.scalar(v) + note)
	}
}

func (p *printer) items(v *node) {
	p.depth++
	for _, item := range v.items {
		p.comment(item.notes.above...)
		note := beside(item.notes.beside)
		switch {
		case short(item, 110):
			p.line(inline(item) + "," + note)
		case item.kind == mapping:
			p.line("{" + note)
			p.members(item)
			p.line("},")
		case item.kind == sequence:
			p.line("[" + note)
			p.items(item)
			p.line("],")
		default:
			p.line(p.scalar(item) + "," + note)
		}
		p.comment(item.notes.below...)
	}
	p.depth--
}

// oneLine says whether a list reads well on one line.
func oneLine(v *node) bool {
	for _, item := range v.items {
		if !item.notes.empty() || item.kind == mapping && len(v.items) > 1 {
			return false
		}
	}
	return short(v, 90)
}

// short says whether a value can stand on one line of that width.
func short(v *node, width int) bool {
	return len(v.remarks()) == 0 && !multiline(v) && len(inline(v)) <= width
}

func multiline(v *node) bool {
	if v.kind == text && strings.Contains(v.value, "\n") {
		return true
	}
	for _, f := range v.fields {
		if multiline(f.value) {
			return true
		}
	}
	for _, item := range v.items {
		if multiline(item) {
			return true
		}
	}
	return false
}

// inline is a value on one line.
func inline(v *node) string {
	switch v.kind {
	case mapping:
		parts := make([]string, len(v.fields))
		for i, f := range v.fields {
			parts[i] = label(f.name) + ": " + inline(f.value)
			if f.value.kind == mapping && len(f.value.fields) == 1 {
				inner := inline(f.value)
				parts[i] = label(f.name) + ": " + strings.TrimSuffix(strings.TrimPrefix(inner, "{"), "}")
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case sequence:
		parts := make([]string, len(v.items))
		for i, item := range v.items {
			parts[i] = inline(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return (&printer{}).scalar(v)
}

// scalar is a value in CUE. A string of several lines keeps them.
func (p *printer) scalar(v *node) string {
	if v.kind != text {
		return v.value
	}
	if strings.Contains(v.value, "\n") && !strings.Contains(v.value, "\r") {
		return literal.String.WithOptionalTabIndent(p.depth + 1).Quote(v.value)
	}
	return literal.String.Quote(v.value)
}
