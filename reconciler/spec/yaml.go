package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"cuelang.org/go/cue/token"
	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// The bounds of a file of YAML. Aliases can make a small file into a large
// value, and deep nesting costs stack.
const (
	maxFileSize  = 8 << 20
	maxYAMLNodes = 1_000_000
	maxYAMLDepth = 200
)

// yamlFile reads the documents of one file. The structure comes from the nodes
// of the YAML library, which know their places. What a plain word means is asked
// of the library that the API server uses: there y is true and 010 is 8.
type yamlFile struct {
	name    string
	data    []byte
	file    *token.File
	lines   []int // byte offset of each line as YAML counts them
	meaning map[string]any
	nodes   int
	open    map[*yaml.Node]bool // anchors that are being expanded
	found   []Diagnostic
}

// datum is a value with the places at which it and its parts were written.
type datum struct {
	value any // a string, json.Number, bool or nil; or nothing, for the rest
	at    int // byte offset
	keys  []key
	items []*datum
	kind  yaml.Kind // MappingNode, SequenceNode or ScalarNode
}

// key is a field of a mapping.
type key struct {
	name  string
	at    int
	value *datum
}

// readYAML reads the documents of a file; empty ones are left out. What cannot
// be read is in the diagnostics.
func readYAML(name string, data []byte) ([]*datum, *yamlFile) {
	f := &yamlFile{name: name, data: data, meaning: map[string]any{}, open: map[*yaml.Node]bool{}}
	f.file = token.NewFile(name, 0, len(data)+1)
	f.file.SetLinesForContent(data)
	body := bytes.TrimPrefix(data, []byte("\ufeff"))
	f.lines = yamlLines(data, len(data)-len(body))
	switch {
	case len(data) > maxFileSize:
		f.add(0, fmt.Sprintf("the file is larger than %s", size(maxFileSize)), "split it")
		return nil, f
	case !utf8.Valid(body):
		f.add(0, "the file is not UTF-8", "save it as UTF-8")
		return nil, f
	}
	var out []*datum
	for dec := yaml.NewDecoder(bytes.NewReader(body)); ; {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out, f
		}
		if err != nil {
			f.syntax(err)
			return out, f
		}
		d, err := f.convert(&doc, 0)
		if err != nil {
			return out, f
		}
		if d != nil && (d.kind != yaml.ScalarNode || d.value != nil) {
			out = append(out, d)
		}
	}
}

// yamlLines are the offsets at which lines begin, from the given one on. YAML
// ends a line at more characters than most editors do.
func yamlLines(data []byte, from int) []int {
	lines := []int{from}
	for i := from; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		i += n
		switch r {
		case '\r':
			if i < len(data) && data[i] == '\n' {
				i++
			}
		case '\n', '\u0085', '\u2028', '\u2029':
		default:
			continue
		}
		lines = append(lines, i)
	}
	return lines
}

// offset is where a node begins; the library counts characters.
func (f *yamlFile) offset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(f.lines) {
		return 0
	}
	at := f.lines[n.Line-1]
	for range n.Column - 1 {
		if at >= len(f.data) {
			break
		}
		_, size := utf8.DecodeRune(f.data[at:])
		at += size
	}
	return at
}

// position is a place in the file.
func (f *yamlFile) position(at int) fleet.Position {
	p := f.file.Pos(at, token.NoRelPos).Position()
	return fleet.Position{File: f.name, Line: p.Line, Column: p.Column}
}

func (f *yamlFile) add(at int, message, hint string) {
	f.found = append(f.found, Diagnostic{Position: f.position(at), Message: message, Hint: hint})
}

// errRefused ends the reading of a file after what is wrong was noted.
var errRefused = errors.New("refused")

func (f *yamlFile) refuse(at int, message, hint string) error {
	f.add(at, message, hint)
	return errRefused
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax notes an error of the YAML library, which knows the line only.
func (f *yamlFile) syntax(err error) {
	at, message, hint := 0, err.Error(), ""
	if m := syntaxLine.FindStringSubmatch(message); m != nil {
		message = m[2]
		if line, err := strconv.Atoi(m[1]); err == nil && line >= 1 && line <= len(f.lines) {
			at = f.lines[line-1]
		}
	}
	if bytes.Contains(f.data, []byte("{{")) {
		hint = "this looks like a template: render it first"
	} else if bytes.ContainsAny(f.data, "“”„‘’") {
		hint = "there are typographic quotes in the file: write \" or '"
	}
	f.add(at, "not YAML: "+message, hint)
}

// convert makes a datum of a node.
func (f *yamlFile) convert(n *yaml.Node, depth int) (*datum, error) {
	if f.nodes++; f.nodes > maxYAMLNodes {
		return nil, f.refuse(f.offset(n), fmt.Sprintf("the file has more than %d values once its aliases are expanded", maxYAMLNodes), "split it")
	}
	if depth > maxYAMLDepth {
		return nil, f.refuse(f.offset(n), fmt.Sprintf("values are nested more than %d deep", maxYAMLDepth), "")
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return f.convert(n.Content[0], depth)
	case yaml.AliasNode:
		return f.alias(n, depth)
	case yaml.MappingNode:
		return f.mapping(n, depth)
	case yaml.SequenceNode:
		d := &datum{at: f.offset(n), kind: n.Kind}
		for _, c := range n.Content {
			item, err := f.convert(c, depth+1)
			if err != nil {
				return nil, err
			}
			d.items = append(d.items, item)
		}
		return d, nil
	}
	return f.scalar(n)
}

// alias expands an alias: it stands where it is used, its parts where they were
// written.
func (f *yamlFile) alias(n *yaml.Node, depth int) (*datum, error) {
	if f.open[n.Alias] {
		return nil, f.refuse(f.offset(n), fmt.Sprintf("the anchor %q contains itself", n.Value), "")
	}
	f.open[n.Alias] = true
	defer delete(f.open, n.Alias)
	d, err := f.convert(n.Alias, depth+1)
	if err != nil {
		return nil, err
	}
	out := *d
	out.at = f.offset(n)
	return &out, nil
}

func (f *yamlFile) mapping(n *yaml.Node, depth int) (*datum, error) {
	d := &datum{at: f.offset(n), kind: n.Kind}
	own := map[string]int{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.ScalarNode && k.Tag == "!!merge" {
			merged = append(merged, v)
			continue
		}
		name, err := f.keyName(k)
		if err != nil {
			return nil, err
		}
		if first, twice := own[name]; twice {
			// Noted, and read on: the rest of the file may have faults too.
			f.add(f.offset(k), fmt.Sprintf("the key %q is there twice, first in line %d", name, f.position(first).Line), "remove one: without strict reading the last one would win")
			continue
		}
		own[name] = f.offset(k)
		value, err := f.convert(v, depth+1)
		if err != nil {
			return nil, err
		}
		d.keys = append(d.keys, key{name: name, at: f.offset(k), value: value})
	}
	for _, m := range merged {
		if err := f.merge(d, m, depth); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// merge adds the fields of a merge key that are not there yet.
func (f *yamlFile) merge(into *datum, n *yaml.Node, depth int) error {
	from, err := f.convert(n, depth+1)
	if err != nil {
		return err
	}
	sources := []*datum{from}
	if from.kind == yaml.SequenceNode {
		sources = from.items
	}
	for _, s := range sources {
		if s.kind != yaml.MappingNode {
			return f.refuse(s.at, "only mappings can be merged", "name an anchor of a mapping after <<")
		}
		for _, k := range s.keys {
			if into.get(k.name) == nil {
				into.keys = append(into.keys, k)
			}
		}
	}
	return nil
}

// keyName is the name of a field; numbers and booleans are names as the API
// server spells them.
func (f *yamlFile) keyName(n *yaml.Node) (string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		hint := "write it in quotes"
		if bytes.Contains(f.data, []byte("{{")) {
			hint = "this looks like a template: render it first"
		}
		return "", f.refuse(f.offset(n), "a key must be a single word", hint)
	}
	d, err := f.scalar(n)
	if err != nil {
		return "", err
	}
	switch v := d.value.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", f.refuse(d.at, "a key must not be null", "")
}

// scalar is a single value. What is quoted is text.
func (f *yamlFile) scalar(n *yaml.Node) (*datum, error) {
	d := &datum{at: f.offset(n), kind: yaml.ScalarNode}
	tagged := n.Style&yaml.TaggedStyle != 0
	if !tagged && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		d.value = n.Value
		return d, nil
	}
	text := n.Value
	if tagged {
		text = n.Tag + " " + strconv.QuoteToASCII(n.Value)
	} else if strings.Contains(text, "\n") {
		d.value = n.Value // only text spans lines
		return d, nil
	}
	v, err := f.mean(text)
	if err != nil {
		return nil, f.refuse(d.at, fmt.Sprintf("the value %s cannot be written as JSON", text), "write it in quotes if it is text")
	}
	d.value = v
	return d, nil
}

// mean says what a plain word means to the API server.
func (f *yamlFile) mean(text string) (any, error) {
	if v, ok := f.meaning[text]; ok {
		return v, nil
	}
	asJSON, err := kyaml.YAMLToJSON([]byte("v: " + text + "\n"))
	if err != nil {
		return nil, err
	}
	root, err := parseNode(asJSON)
	if err != nil {
		return nil, err
	}
	v := root.get("v").value
	f.meaning[text] = v
	return v, nil
}

// get is a field of a mapping, or nil.
func (d *datum) get(name string) *datum {
	if d == nil {
		return nil
	}
	for _, k := range d.keys {
		if k.name == name {
			return k.value
		}
	}
	return nil
}

// str is the text of a field, or empty.
func (d *datum) str(name string) string {
	if v := d.get(name); v != nil {
		s, _ := v.value.(string)
		return s
	}
	return ""
}
