package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// Class says what an entry of the report means for whoever imports.
type Class string

// The classes of entries.
const (
	// Changed is a field that says the same, or nearly, in another way.
	Changed Class = "changed"
	// Dropped is a field that is no part of a spec: the API server or a
	// controller wrote it.
	Dropped Class = "dropped"
	// Placeholder is a value with a placeholder that nothing has filled in. It
	// is imported as it stands.
	Placeholder Class = "placeholder"
	// Incomplete is something that has to be added by hand.
	Incomplete Class = "incomplete"
	// Lost is a field with a meaning that was not imported.
	Lost Class = "lost"
	// Foreign is an object that Reeve does not keep.
	Foreign Class = "foreign"
	// Refused is a document or a file that was not imported.
	Refused Class = "refused"
	// Finding is a fault in what was written, as reeve check would report it.
	Finding Class = "check"
)

// serious are the classes that somebody has to look at.
var serious = []Class{Incomplete, Lost, Foreign, Refused, Finding}

// Entry is one line of the report.
type Entry struct {
	// Position is the place in the file that was imported; that of a Finding is
	// in what was written.
	Position fleet.Position `json:"position"`
	Class    Class          `json:"class"`
	// Object is the kind and name that the document had: "Provisioner/default".
	Object string `json:"object,omitempty"`
	// Field is the path of the field in the document.
	Field string `json:"field,omitempty"`
	// Was is what the document said, and Is what the fleet says now.
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`
	// Why is the reason, and what to do.
	Why string `json:"why"`
}

// String is the entry as a line of text.
func (e Entry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s:", e.Position, e.Class)
	for _, part := range []string{e.Object, e.Field} {
		if part != "" {
			b.WriteString(" " + part)
		}
	}
	switch {
	case e.Was != "" && e.Is != "":
		fmt.Fprintf(&b, " %s -> %s", e.Was, e.Is)
	case e.Was != "":
		b.WriteString(" " + e.Was)
	case e.Is != "":
		b.WriteString(" -> " + e.Is)
	}
	if e.Object+e.Field+e.Was+e.Is != "" {
		b.WriteString(":")
	}
	return b.String() + " " + e.Why
}

// Imported is an object that was imported.
type Imported struct {
	// Kind and Name are those in the fleet.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// From is where its document begins, and Version the API version that it
	// had there.
	From    fleet.Position `json:"from"`
	Version string         `json:"version"`
}

// Report says what an import did and what it could not do.
type Report struct {
	// Imported are the objects in the order of the documents.
	Imported []Imported `json:"imported"`
	// Entries are sorted by file, in the order of the arguments, and position.
	Entries []Entry `json:"entries"`
	// Written are the files that were written, with slashes.
	Written []string `json:"written"`

	order map[string]int
}

func (r *Report) add(e Entry) { r.Entries = append(r.Entries, e) }

// Add puts an entry into the report and the report in order again.
func (r *Report) Add(e Entry) {
	r.add(e)
	r.sort()
}

// sort puts the entries in the order of the files and of their lines.
func (r *Report) sort() {
	slices.SortStableFunc(r.Entries, func(a, b Entry) int {
		return cmp.Or(
			cmp.Compare(r.rank(a), r.rank(b)), cmp.Compare(a.Position.File, b.Position.File),
			cmp.Compare(a.Position.Line, b.Position.Line), cmp.Compare(a.Position.Column, b.Position.Column),
		)
	})
	r.Entries = slices.Compact(r.Entries)
}

func (r *Report) rank(e Entry) int {
	if e.Class == Finding {
		return len(r.order)
	}
	return r.order[e.Position.File]
}

// Clean says that everything was imported and nothing is left to do.
func (r *Report) Clean() bool {
	return !slices.ContainsFunc(r.Entries, func(e Entry) bool { return slices.Contains(serious, e.Class) })
}

// Count is the number of entries of a class.
func (r *Report) Count(c Class) int {
	n := 0
	for _, e := range r.Entries {
		if e.Class == c {
			n++
		}
	}
	return n
}

// Text writes the report for people: a line for each entry, what was written,
// and a summary.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	for _, e := range r.Entries {
		b.WriteString(e.String() + "\n")
	}
	for _, f := range r.Written {
		b.WriteString("wrote " + f + "\n")
	}
	b.WriteString(r.summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) summary() string {
	pools, classes := 0, 0
	for _, i := range r.Imported {
		if i.Kind == kindPool {
			pools++
		} else {
			classes++
		}
	}
	parts := []string{fmt.Sprintf("imported %s and %s", plural(pools, "NodePool", "NodePools"), plural(classes, "EC2NodeClass", "EC2NodeClasses"))}
	for _, c := range []Class{Changed, Dropped, Placeholder, Incomplete, Lost, Foreign, Refused, Finding} {
		if n := r.Count(c); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c))
		}
	}
	return strings.Join(parts, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// JSON writes the report for programs. Files are added where nothing was
// written to a directory.
func (r *Report) JSON(w io.Writer, files []File) error {
	out := struct {
		Report
		Counts map[Class]int `json:"counts"`
		Files  []File        `json:"files,omitempty"`
	}{Report: *r, Counts: map[Class]int{}, Files: files}
	out.Imported = append([]Imported{}, r.Imported...)
	out.Entries = append([]Entry{}, r.Entries...)
	out.Written = append([]string{}, r.Written...)
	for _, e := range r.Entries {
		out.Counts[e.Class]++
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

// quoteBrief is a string in quotes, cut where a report would get unreadable.
func quoteBrief(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}
