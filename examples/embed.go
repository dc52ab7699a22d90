// Package examples holds complete fleets that a user can copy.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed all:myeks
var files embed.FS

// MyEKS is the fleet repository of the demo.
func MyEKS() fs.FS {
	sub, err := fs.Sub(files, "myeks")
	if err != nil {
		panic("examples: the path is a constant and valid: " + err.Error())
	}
	return sub
}
