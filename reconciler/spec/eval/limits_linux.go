package eval

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// setLimits bounds this process for good. The address space is not among the
// limits: Go reserves far more of it than it uses.
func setLimits(l Limits) error {
	for _, r := range []struct {
		name     string
		resource int
		value    uint64
	}{
		// Soft and hard alike: the runtime survives the signal of the soft one.
		{"cpu", unix.RLIMIT_CPU, l.CPUSeconds},
		{"data", unix.RLIMIT_DATA, l.MemoryBytes},
		{"core", unix.RLIMIT_CORE, 0},
		{"fsize", unix.RLIMIT_FSIZE, 0},
		{"nofile", unix.RLIMIT_NOFILE, 16},
	} {
		if err := unix.Setrlimit(r.resource, &unix.Rlimit{Cur: r.value, Max: r.value}); err != nil {
			return fmt.Errorf("set %s: %w", r.name, err)
		}
	}
	return nil
}
