// Package schemas holds the CUE schemas of a fleet: the CUE module
// reeve.dev/fleet@v1.
//
// Package document beside it is for YAML: see Documents.
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

// LocalModule is the line of cue.mod/local-module.cue that says where a fleet
// repository holds Module.
const LocalModule = `deps: "` + Module + `": {v: "` + Version + `", default: true, replaceWith: "./` + VendorDir + `"}`

//go:generate go run ./internal/gen -dir .

//go:embed cue.mod/module.cue *.cue
var files embed.FS

// FS is the module as a file system: cue.mod/module.cue and the *.cue files of
// package fleet at its root.
func FS() fs.FS { return files }

//go:embed cue.mod/module.cue *.cue document/*.cue
var withDocuments embed.FS

// Documents is FS with the package document in a directory of that name: the
// schemas of single objects as YAML holds them, which a fleet has no use for.
func Documents() fs.FS { return withDocuments }
