//go:build !linux

package start

import "os"

// Self is the path of the running binary.
func Self() (string, error) { return os.Executable() }

const hugeHeap = 0

// HugePages does nothing: only Linux is asked for large pages.
func HugePages(int) {}
