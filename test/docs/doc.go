// Package docs reads the documentation the way a reader does: it finds the
// commands, files and links in it, so that a test can run the commands, write
// the files and follow the links.
//
// A fenced block says by its info string what it is:
//
//	console          lines that begin with "$ " are commands, those after them
//	                 what they print
//	cue, rego, …     a snippet, which must parse; with a file name behind the
//	                 language it is written to that file
//	text             a picture or a listing, which is left alone
//
// In what a command prints, a line "..." stands for any lines and "…" in a line
// for any text. "# exit 1" at the end of a command is the exit code it ends
// with, 0 otherwise; a command that prints lines that nobody has to see has
// "..." below it. A backslash at the end of a line continues the command.
package docs
