package decision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"crypto/sha256"
)

// ErrVersion says that a record has a format that this version cannot read.
var ErrVersion = errors.New("unknown format version")

// Encode is the record of a sealed decision as it stands in the ledger: JSON
// with two spaces of indent, fields in the order of the type, map keys sorted,
// and a newline at the end. Equal decisions are equal bytes on every machine.
func Encode(d *Decision) ([]byte, error) { return encode(d, "  ") }

// EncodeOutcome is the record of an outcome, encoded as Encode does.
func EncodeOutcome(o *Outcome) ([]byte, error) { return encode(o, "  ") }

// canonical is the compact encoding without the id and what follows from it.
func (d *Decision) canonical() ([]byte, error) {
	bare := *d
	bare.ID = ""
	bare.Proposal.Claims = slices.Clone(d.Proposal.Claims)
	for i := range bare.Proposal.Claims {
		bare.Proposal.Claims[i].Name = ""
	}
	return encode(&bare, "")
}

func encode(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return buf.Bytes(), nil
}

// Decode reads a record that Encode wrote. It fails with ErrVersion on another
// format, and on fields it does not know, since a record that is read
// differently from how it was written is no evidence.
func Decode(b []byte) (*Decision, error) {
	var d Decision
	if err := decode(b, &d); err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	if !d.Kind.Valid() {
		return nil, fmt.Errorf("decision %s: unknown kind %q", d.ID, d.Kind)
	}
	return &d, nil
}

// DecodeOutcome reads a record that EncodeOutcome wrote.
func DecodeOutcome(b []byte) (*Outcome, error) {
	var o Outcome
	if err := decode(b, &o); err != nil {
		return nil, fmt.Errorf("outcome: %w", err)
	}
	for _, s := range o.Steps {
		if !s.State.Valid() {
			return nil, fmt.Errorf("outcome of %s: unknown state %q", o.Decision, s.State)
		}
	}
	return &o, nil
}

func decode(b []byte, into any) error {
	var head struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	if head.Version != Version {
		return fmt.Errorf("%w %q: this release reads %q", ErrVersion, head.Version, Version)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value in the file")
	}
	return nil
}

// inlineTypes is how many names of instance types a record holds itself.
const inlineTypes = 16

// NewTypeSet makes the set of the names, which need not be sorted. A long one
// goes into lists, where the ledger finds it.
func NewTypeSet(names []string, lists map[string][]string) TypeSet {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if len(sorted) <= inlineTypes {
		return TypeSet{Count: len(sorted), Names: sorted}
	}
	id := ListID(sorted)
	lists[id] = sorted
	return TypeSet{Count: len(sorted), List: id}
}

// ListID names a sorted list by its content.
func ListID(sorted []string) string {
	sum := sha256.Sum256([]byte(strings.Join(sorted, "\n")))
	return lower32.EncodeToString(sum[:])[:idHash]
}

// Resolve are the names of the set, where lists hold those kept apart.
func (t TypeSet) Resolve(lists map[string][]string) ([]string, error) {
	if t.List == "" {
		return t.Names, nil
	}
	names, ok := lists[t.List]
	if !ok {
		return nil, fmt.Errorf("type list %s is not at hand", t.List)
	}
	return names, nil
}
