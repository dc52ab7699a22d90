package start

import (
	"runtime"
	"syscall"
	"unsafe"
)

// Self is the running binary, also after the file has been replaced.
func Self() (string, error) { return "/proc/self/exe", nil }

const (
	hugePage = 2 << 20
	// hugeHeap is about what a hundred NodePools take.
	hugeHeap = 96 << 20
)

// HugePages asks for large pages below the first n bytes of the heap: a process
// that lives for a fraction of a second spends much of it on the faults of small
// ones, in a virtual machine half of it. No memory is used before it is needed.
// It is for the beginning of a process, and only a wish: where the system has
// no such pages nothing changes.
func HugePages(n int) {
	b := make([]byte, n)
	begin := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % hugePage
	if end := uintptr(n) - (uintptr(n)-begin)%hugePage; begin < end {
		_ = syscall.Madvise(b[begin:end], syscall.MADV_HUGEPAGE)
	}
	runtime.KeepAlive(b)
	// What was reserved becomes free, and what follows is put there.
	runtime.GC()
}
