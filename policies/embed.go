// Package policies holds the Rego that ships with Reeve. A fleet switches each
// policy on and sets it up by data (data.policy.<name>); it never copies the
// Rego.
//
// Each policy is a package of its own below the package of its stage, such as
// reeve.spec.ami_pinning, so that no helper of one can change another.
package policies

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.rego
var files embed.FS

const testSuffix = "_test.rego"

// Files are the policies by file name, without their tests.
func Files() map[string][]byte {
	return read(func(name string) bool { return !strings.HasSuffix(name, testSuffix) })
}

// Tests are the tests of the policies by file name.
func Tests() map[string][]byte {
	return read(func(name string) bool { return strings.HasSuffix(name, testSuffix) })
}

func read(want func(name string) bool) map[string][]byte {
	out := map[string][]byte{}
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("policies: the embedded directory is part of the program: %v", err))
	}
	for _, e := range entries {
		if !want(e.Name()) {
			continue
		}
		b, err := files.ReadFile(e.Name())
		if err != nil {
			panic(fmt.Sprintf("policies: the embedded file %s is part of the program: %v", e.Name(), err))
		}
		out[e.Name()] = b
	}
	return out
}
