// Package early begins what commands take long for before the rest of the binary
// is initialised. It imports little, so that Go initialises it early; see
// package start.
package early

import (
	"os"
	"runtime/debug"

	"github.com/reeve-project/reeve/reconciler/spec/start"
)

const (
	// heap is about what a check of a hundred NodePools takes in bytes.
	heap = 96 << 20
	// collectAt is how much the heap grows, in percent, before it is collected.
	// A command that soon ends gains nothing from its memory being reused; the
	// limit, in bytes, is where it begins to count.
	collectAt   = 400
	collectFrom = 384 << 20
)

func init() {
	if len(os.Args) < 2 || os.Args[1] != "check" {
		return
	}
	start.Ahead(start.DefaultMemory)
	debug.SetGCPercent(collectAt)
	debug.SetMemoryLimit(collectFrom)
	start.HugePages(heap)
}
