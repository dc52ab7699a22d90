package main

import (
	"bytes"
	"path"

	cueformat "cuelang.org/go/cue/format"
	regoformat "github.com/open-policy-agent/opa/v1/format"
)

// format is the file in its format, or nil when it is in it already. Go files
// are gofmt's.
func format(f file) ([]byte, error) {
	var (
		out []byte
		err error
	)
	switch path.Ext(f.path) {
	case ".cue":
		out, err = cueformat.Source(f.content)
	case ".rego":
		out, err = regoformat.Source(f.path, f.content)
	}
	if err != nil || out == nil || bytes.Equal(out, f.content) {
		return nil, err
	}
	return out, nil
}
