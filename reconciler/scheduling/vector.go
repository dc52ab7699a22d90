package scheduling

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// A vector holds one amount per dimension. The dimensions of a problem are the
// resources that some pod or daemon of it asks for, sorted by name: nothing
// else can make a node too small.
type vector []int64

func toVector(dims []corev1.ResourceName, l resources.List) vector {
	out := make(vector, len(dims))
	for i, name := range dims {
		out[i] = l[name]
	}
	return out
}

// fits says whether v is at most room everywhere.
func (v vector) fits(room vector) bool {
	for i, x := range v {
		if x > room[i] {
			return false
		}
	}
	return true
}

// addTimes adds o n times over.
func (v vector) addTimes(o vector, n int64) {
	for i, x := range o {
		v[i] += n * x
	}
}

// timesIn is how often v fits into room. It is unlimited for a vector that
// asks for nothing.
func (v vector) timesIn(room vector) int64 {
	n := int64(math.MaxInt64)
	for i, x := range v {
		switch {
		case x > 0:
			n = min(n, room[i]/x)
		case room[i] < 0:
			return 0
		}
	}
	return max(n, 0)
}

// covers says whether v is at least o everywhere.
func (v vector) covers(o vector) bool { return o.fits(v) }

// bits is a set of small whole numbers.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) set(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b bits) has(i int) bool { return b != nil && b[i>>6]&(1<<(i&63)) != 0 }
