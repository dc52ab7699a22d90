package policy

import (
	"context"
	"errors"
	"runtime/metrics"
	"time"
)

// errMemory is why an evaluation was ended that took too much memory.
var errMemory = errors.New("memory")

const (
	defaultMemory = 512 << 20
	heapMetric    = "/memory/classes/heap/objects:bytes"
	// memoryTick is how often memory is looked at. Most evaluations end before
	// the first look.
	memoryTick = 20 * time.Millisecond
)

// watchMemory cancels an evaluation when the heap of the process grows by more
// than the limit while it runs. OPA has no such bound, and a policy of a few
// lines can ask for any amount: without it one commit could keep the process
// from ever starting. Others use the heap too, so the limit has to be far above
// what they need. The function returned ends the watch.
func watchMemory(cancel context.CancelCauseFunc, limit uint64) (stop func()) {
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(memoryTick) //lint:impure it bounds the machine's memory; virtual time has none
		defer ticker.Stop()
		var base uint64
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			switch now := heap(); {
			case base == 0 || now < base:
				base = now
			case now-base > limit:
				cancel(errMemory)
				return
			}
		}
	}()
	return func() { close(done) }
}

// heap is the number of bytes in use.
func heap() uint64 {
	sample := []metrics.Sample{{Name: heapMetric}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
