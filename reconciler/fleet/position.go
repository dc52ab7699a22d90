package fleet

import (
	"fmt"
	"strings"
)

// Position is a place in a file of the fleet repository. Lines and columns
// start at 1; columns count bytes, as CUE does.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// String is "file:line:column", which editors and terminals open.
func (p Position) String() string {
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Path names a field of Fleet.Document: ["nodePools", "default", "spec"].
// List elements are named by their index in decimal.
type Path []string

// String joins the path with dots, as CUE writes it; elements that are not
// plain words are quoted.
func (p Path) String() string {
	var b strings.Builder
	for i, e := range p {
		switch {
		case strings.ContainsAny(e, "./\"[] ") || e == "":
			fmt.Fprintf(&b, "[%q]", e)
		case i > 0:
			b.WriteString("." + e)
		default:
			b.WriteString(e)
		}
	}
	return b.String()
}

// Resource names the object that a path leads into, as findings do:
// "NodePool/default". It is empty for everything that is no object.
func (p Path) Resource() string {
	kinds := map[string]string{"nodePools": "NodePool", "nodeClasses": "EC2NodeClass"}
	if len(p) < 2 || kinds[p[0]] == "" {
		return ""
	}
	return kinds[p[0]] + "/" + p[1]
}

// key is the path in the form that Positions is indexed by: an RFC 6901 JSON
// pointer without the leading slash.
func (p Path) key() string {
	parts := make([]string, len(p))
	for i, e := range p {
		parts[i] = pointerEscape.Replace(e)
	}
	return strings.Join(parts, "/")
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// Positions are the places where each field of a fleet was written, by JSON
// pointer without the leading slash. The first position is the one to show: in
// the cluster's own directory if there is one there.
type Positions map[string][]Position

// Set records where the field at path was written.
func (ps Positions) Set(path Path, at ...Position) { ps[path.key()] = at }

// Find is the first position of the field at path or, where the field was not
// written anywhere, of its nearest parent that was.
func (ps Positions) Find(path Path) (Position, bool) {
	for n := len(path); n >= 0; n-- {
		if at := ps[path[:n].key()]; len(at) > 0 {
			return at[0], true
		}
	}
	return Position{}, false
}
