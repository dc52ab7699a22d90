package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yaml reads YAML documents. Nodes of the document are turned into JSON, since
// that is what the types of the API are read from.
func (r *reader) yaml(data []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			line, text := yamlFault(err)
			return r.fault(line, "it is not YAML: %s", text)
		}
		if err := r.yamlDocument(&doc); err != nil {
			return err
		}
	}
}

// yamlFault takes the line out of "yaml: line 3: did not find …".
func yamlFault(err error) (int, string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	rest, ok := strings.CutPrefix(text, "line ")
	if !ok {
		return 1, text
	}
	number, rest, _ := strings.Cut(rest, ": ")
	line, err := strconv.Atoi(number)
	if err != nil || line < 1 {
		return 1, text
	}
	return line, rest
}

func (r *reader) yamlDocument(doc *yaml.Node) error {
	if len(doc.Content) == 0 {
		return nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil // nothing stands between two separators
	}
	if root.Kind != yaml.MappingNode {
		return r.fault(root.Line, "it is not an object of Kubernetes, which is a mapping with apiVersion and kind")
	}
	h := yamlHead(root)
	if !strings.HasSuffix(h.Kind, "List") {
		raw, err := r.toJSON(root)
		if err != nil {
			return err
		}
		return r.object(raw, h, root.Line)
	}
	items := child(root, "items")
	switch {
	case items == nil || items.Kind == yaml.ScalarNode && items.ShortTag() == "!!null":
		return nil
	case items.Kind != yaml.SequenceNode:
		return r.fault(items.Line, "items of a %s is not a list", h.Kind)
	}
	for _, n := range items.Content {
		raw, err := r.toJSON(n)
		if err != nil {
			return err
		}
		if err := r.item(raw, h, n.Line); err != nil {
			return err
		}
	}
	return nil
}

func yamlHead(root *yaml.Node) head {
	var h head
	if n := child(root, "apiVersion"); n != nil && n.Kind == yaml.ScalarNode {
		h.APIVersion = n.Value
	}
	if n := child(root, "kind"); n != nil && n.Kind == yaml.ScalarNode {
		h.Kind = n.Value
	}
	return h
}

// child is the value of a key of a mapping, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func (r *reader) toJSON(n *yaml.Node) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := r.writeJSON(&b, n); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (r *reader) writeJSON(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		return r.writeMapping(b, n)
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := r.writeJSON(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		text, err := scalar(n)
		if err != nil {
			return r.fault(n.Line, "%w", err)
		}
		b.WriteString(text)
		return nil
	default:
		return r.fault(n.Line, "an alias of YAML is not read here: kubectl writes none")
	}
}

func (r *reader) writeMapping(b *bytes.Buffer, n *yaml.Node) error {
	seen := make(map[string]bool, len(n.Content)/2)
	b.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode:
			return r.fault(key.Line, "the key of a mapping is not a word")
		case key.ShortTag() == "!!merge":
			return r.fault(key.Line, "a merge key of YAML is not read here: kubectl writes none")
		case seen[key.Value]:
			return r.fault(key.Line, "key %q is given twice", key.Value)
		}
		seen[key.Value] = true
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(key.Value))
		b.WriteByte(':')
		if err := r.writeJSON(b, n.Content[i+1]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // a string always encodes
	}
	return string(b)
}

// scalar is the value as JSON. What YAML takes for a time is text in the API.
func scalar(n *yaml.Node) (string, error) {
	switch n.ShortTag() {
	case "!!null":
		return "null", nil
	case "!!bool":
		var v bool
		if err := n.Decode(&v); err != nil {
			return "", fmt.Errorf("%q is neither true nor false", n.Value)
		}
		return strconv.FormatBool(v), nil
	case "!!int", "!!float":
		return number(n)
	default:
		return quote(n.Value), nil
	}
}

// number keeps the text of a number where JSON writes it alike: a quantity must
// not go through a float.
func number(n *yaml.Node) (string, error) {
	if c := n.Value[:min(1, len(n.Value))]; c != "" && strings.Contains("-0123456789", c) && json.Valid([]byte(n.Value)) {
		return n.Value, nil
	}
	if n.ShortTag() == "!!int" {
		var i int64
		if err := n.Decode(&i); err != nil {
			return "", fmt.Errorf("%q is not a number of 64 bits", n.Value)
		}
		return strconv.FormatInt(i, 10), nil
	}
	var f float64
	if err := n.Decode(&f); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return "", fmt.Errorf("%q is not a number that an object can have", n.Value)
	}
	return strconv.FormatFloat(f, 'g', -1, 64), nil
}
