package eval

import (
	"regexp"
	"strings"

	"cuelang.org/go/cue"
)

var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// hint says what to do about a message where that is not plain from it.
func (e *evaluation) hint(at Path, message string) string {
	switch {
	case strings.HasPrefix(message, notAllowed):
		return e.hintNotAllowed(at)
	case len(at) == 4 && at[2] == "metadata" && at[3] == "name":
		return "the name is the key above; remove metadata.name"
	case strings.Contains(message, "required but not present"):
		return "add it"
	case strings.HasPrefix(message, "incompatible list lengths"):
		return "there are two lists for one field"
	case strings.Contains(message, "cycle"):
		return "a value refers to itself without end"
	}
	return ""
}

func (e *evaluation) hintNotAllowed(at Path) string {
	if len(at) >= 2 && at[0] == "nodePools" && (len(at[1]) > 63 || !objectName.MatchString(at[1])) {
		return "the name of a NodePool is lower case letters, digits, '-' and '.', at most 63 characters"
	}
	if len(at) >= 2 && at[0] == "nodeClasses" && !objectName.MatchString(at[1]) {
		return "the name of an EC2NodeClass is lower case letters, digits, '-' and '.'"
	}
	if len(at) == 0 {
		return ""
	}
	allowed := e.allowed(at[:len(at)-1])
	if near := nearest(at[len(at)-1], allowed); near != "" {
		return "did you mean " + near + "?"
	}
	if len(at) == 1 {
		return "the fields at the top are " + strings.Join(allowed, ", ") + "; start the names of helpers with _"
	}
	if len(allowed) > 0 && len(allowed) <= 12 {
		return "allowed here: " + strings.Join(allowed, ", ")
	}
	return ""
}

// allowed are the fields that the schema knows in a struct.
func (e *evaluation) allowed(at Path) []string {
	v, ok := e.schemaValue, true
	for _, p := range at {
		if v, ok = step(v, p); !ok {
			return nil
		}
	}
	return fieldNames(v)
}

// fieldNames are the names of the fields of a schema, optional ones included.
func fieldNames(v cue.Value) []string {
	fields, err := v.Fields(cue.Optional(true))
	if err != nil {
		return nil
	}
	var names []string
	for fields.Next() {
		names = append(names, fields.Selector().Unquoted())
	}
	return names
}

// step goes from a part of the schema to that of a field or element.
func step(schema cue.Value, name string) (cue.Value, bool) {
	for _, sel := range []cue.Selector{cue.Str(name).Optional(), cue.AnyString, cue.AnyIndex} {
		if next := schema.LookupPath(cue.MakePath(sel)); next.Exists() {
			return next, true
		}
	}
	return cue.Value{}, false
}

// nearest is the candidate with the smallest edit distance, if it is near
// enough to be a slip.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", len(word)/3+2
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours between two words.
func distance(a, b string) int {
	before, prev := []int(nil), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, prev[j]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(b)]
}
