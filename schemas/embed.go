// Package schemas holds the CUE schemas of a fleet: the CUE module
// reeve.dev/fleet@v1.
//
// The files with _gen in their names are made from the CRDs of the Karpenter
// provider module; the others are written by hand.
package schemas

import (
	"embed"
	"io/fs"
)

// Module is the CUE module path of the schemas.
const Module = "reeve.dev/fleet@v1"

// Version is the version under which a fleet repository depends on Module.
const Version = "v1.0.0"

// VendorDir is where a fleet repository holds its copy of the schemas.
const VendorDir = "cue.mod/reeve"

//go:generate go run ./internal/gen -dir .

//go:embed cue.mod/module.cue *.cue
var files embed.FS

// FS is the module as a file system: cue.mod/module.cue and the *.cue files of
// package fleet at its root.
func FS() fs.FS { return files }
