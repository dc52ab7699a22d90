package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// head is what tells kinds apart.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// lines counts lines up to ever larger offsets.
type lines struct {
	data     []byte
	at, line int
}

func newLines(data []byte) *lines { return &lines{data: data, line: 1} }

// of is the line that the offset is in.
func (l *lines) of(offset int) int {
	offset = min(max(offset, l.at), len(l.data))
	l.line += bytes.Count(l.data[l.at:offset], []byte("\n"))
	l.at = offset
	return l.line
}

// json reads JSON documents that stand one after the other.
func (r *reader) json(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	ln := newLines(data)
	for {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return r.fault(ln.of(faultOffset(err, dec, data)), "it is not JSON: %w", err)
		}
		start := int(dec.InputOffset()) - len(raw)
		if err := r.jsonDocument(raw, start, ln); err != nil {
			return err
		}
	}
}

// faultOffset is where the decoder stopped.
func faultOffset(err error, dec *json.Decoder, data []byte) int {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return len(data)
	}
	var se *json.SyntaxError
	if errors.As(err, &se) {
		return int(se.Offset)
	}
	return int(dec.InputOffset())
}

// jsonDocument takes an object, or the items of a list.
func (r *reader) jsonDocument(raw json.RawMessage, start int, ln *lines) error {
	var h head
	if err := json.Unmarshal(raw, &h); err != nil {
		return r.fault(ln.of(start), "it is not an object of Kubernetes: %w", err)
	}
	if !strings.HasSuffix(h.Kind, "List") {
		return r.object(raw, h, ln.of(start))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil { // the brace
		return r.fault(ln.of(start), "it is not an object of Kubernetes: %w", err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return r.fault(ln.of(start), "%w", err)
		}
		if key == "items" {
			err = r.jsonItems(dec, h, start, ln)
		} else {
			var skipped json.RawMessage
			err = dec.Decode(&skipped)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) jsonItems(dec *json.Decoder, list head, start int, ln *lines) error {
	open, err := dec.Token()
	if err != nil || open == nil { // an empty list may be null
		return err
	}
	if open != json.Delim('[') {
		return r.fault(ln.of(start+int(dec.InputOffset())), "items of a %s is not a list", list.Kind)
	}
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		line := ln.of(start + int(dec.InputOffset()) - len(raw))
		if err := r.item(raw, list, line); err != nil {
			return err
		}
	}
	_, err = dec.Token() // the bracket
	return err
}

// item takes an item of a list. The items of a typed list, as the API itself
// gives it, say no kind.
func (r *reader) item(raw json.RawMessage, list head, line int) error {
	var h head
	if err := json.Unmarshal(raw, &h); err != nil {
		return r.fault(line, "it is not an object of Kubernetes: %w", err)
	}
	if h.Kind == "" && list.Kind != "List" {
		h = head{list.APIVersion, strings.TrimSuffix(list.Kind, "List")}
	}
	return r.object(raw, h, line)
}
