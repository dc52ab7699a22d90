//go:build !linux

package eval

import (
	"fmt"
	"os"
	"runtime/metrics"
	"time"
)

// setLimits watches the memory of this process, for systems other than Linux
// do not bound it. Processor time is bounded by the parent's deadline alone.
func setLimits(l Limits) error {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			metrics.Read(sample)
			if sample[0].Value.Uint64() > l.MemoryBytes {
				fmt.Fprintln(os.Stderr, "out of memory")
				os.Exit(2)
			}
		}
	}()
	return nil
}
