package eval

import "encoding/json"

// Path names a field of the rendered fleet; list elements by their index in
// decimal.
type Path []string

// Position is a place in a file of the repository, counted from 1; columns are
// bytes.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// Diagnostic is one fault of the repository.
type Diagnostic struct {
	Position Position `json:"position"`
	Path     Path     `json:"path,omitempty"`
	Message  string   `json:"message"`
	Hint     string   `json:"hint,omitempty"`
}

// File is one file that the loader may read.
type File struct {
	Name string `json:"name"`
	Data []byte `json:"data,omitempty"`
	// Refused says why a file or directory that exists must not be read.
	// Opening it fails with these words.
	Refused string `json:"refused,omitempty"`
}

// Request is what the parent writes to the child's standard input.
type Request struct {
	// Dir is the directory of the package to render: "clusters/blue".
	Dir string `json:"dir"`
	// Files are all CUE files of the repository.
	Files  []File `json:"files"`
	Limits Limits `json:"limits"`
}

// Limits are what the child allows itself before it looks at the files.
type Limits struct {
	CPUSeconds  uint64 `json:"cpuSeconds"`
	MemoryBytes uint64 `json:"memoryBytes"`
	WallMillis  int64  `json:"wallMillis"`
	OutputBytes int64  `json:"outputBytes"`
}

// Greeting starts everything that the child writes. A binary that does not link
// this package writes something else.
const Greeting = "reeve-eval/1\n"

// Response is what the child writes after the greeting. Either Document and
// Positions are set or Diagnostics, or TooLarge alone.
type Response struct {
	// Document is the rendered fleet as JSON with sorted keys, without the
	// defaults of the schemas.
	Document json.RawMessage `json:"document,omitempty"`
	// Positions tell where each field was written, best first.
	Positions Table `json:"positions"`
	// Diagnostics say why there is no fleet.
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	// TooLarge says that the response would exceed Limits.OutputBytes.
	TooLarge bool `json:"tooLarge,omitempty"`
}

// Table holds the places of all fields compactly.
type Table struct {
	// Files are named by their index.
	Files  []string `json:"files,omitempty"`
	Fields []Field  `json:"fields,omitempty"`
}

// Field is where one field was written.
type Field struct {
	Path Path `json:"p"`
	// At are places as file index, line and column.
	At [][3]int `json:"a"`
}
