// Package examples holds complete fleets that a user can copy.
package examples

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed all:*/clusters all:*/cue.mod all:*/policies
var files embed.FS

// Names are the names of the fleets, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("examples: the root of an embedded tree can be read: " + err.Error())
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// Fleet is the fleet repository of that name. It fails for one that is not
// there.
func Fleet(name string) (fs.FS, error) {
	if _, err := fs.Stat(files, name); err != nil {
		return nil, fmt.Errorf("there is no example %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return fs.Sub(files, name)
}

// MyEKS is the fleet repository of the demo's story.
func MyEKS() fs.FS {
	sub, err := Fleet("myeks")
	if err != nil {
		panic("examples: the name is a constant and valid: " + err.Error())
	}
	return sub
}
