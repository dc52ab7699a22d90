// Package eval renders the CUE package of one cluster in a process that does
// nothing else.
//
// CUE's evaluator cannot be stopped and knows no bounds, so package spec starts
// its own binary again with the argument start.Arg. Linking this package is enough to
// answer: its init function takes over when the first argument is start.Arg. It does
// so before most other packages are initialised, for which it imports nothing
// but CUE, the schemas and package start: the child starts several times faster, and hostile
// input meets little code.
package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/reeve-project/reeve/reconciler/spec/start"
)

func init() {
	if start.Requested() {
		os.Exit(serve(os.Stdin, os.Stdout, os.Stderr, confine)) //lint:impure this is the child's main function
	}
}

// serve reads a request, confines the process, evaluates and answers. It gives
// the exit status.
func serve(in io.Reader, out, errs io.Writer, confine func(Limits) error) int {
	var req Request
	if err := json.NewDecoder(in).Decode(&req); err != nil {
		fmt.Fprintln(errs, "request:", err)
		return 1
	}
	if err := confine(req.Limits); err != nil {
		fmt.Fprintln(errs, "limits:", err)
		return 1
	}
	resp, err := evaluate(req)
	if err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	body, err := json.Marshal(resp)
	if err == nil && int64(len(body)) > req.Limits.OutputBytes {
		body, err = json.Marshal(Response{TooLarge: true})
	}
	if err == nil {
		_, err = out.Write(append([]byte(Greeting), body...))
	}
	if err != nil {
		fmt.Fprintln(errs, "answer:", err)
		return 1
	}
	return 0
}

// confine puts the limits on this process. It also ends the process somewhat
// after the parent would have, for a parent may die.
func confine(l Limits) error {
	debug.SetMemoryLimit(int64(l.MemoryBytes / 2))
	debug.SetMaxStack(int(l.MemoryBytes / 4))
	//lint:impure a child whose parent died has nobody to return an error to
	time.AfterFunc(time.Duration(l.WallMillis)*time.Millisecond+10*time.Second, func() { os.Exit(1) })
	return setLimits(l)
}
