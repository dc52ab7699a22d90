package sim

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }

// collectGarbage deletes what is left over: objects whose owners are all gone,
// and pods whose node is.
func (w *World) collectGarbage() {
	alive := map[types.UID]bool{}
	for _, k := range kinds {
		for _, o := range w.API.tables[k].objects {
			alive[o.GetUID()] = true
		}
	}
	for _, k := range kinds {
		// The slice of keys changes under the loop.
		for _, key := range append([]string(nil), w.API.tables[k].keys...) {
			o := w.API.tables[k].objects[key]
			if o.GetDeletionTimestamp() == nil && orphaned(o, alive) {
				w.must(w.API.delete(actorGC, o, nil))
			}
		}
	}
	for _, p := range List[*corev1.Pod](w.API) {
		if p.Spec.NodeName == "" {
			continue
		}
		if _, ok := w.API.tables[KindNode].lookup(p.Spec.NodeName); !ok {
			w.must(Delete[*corev1.Pod](w.API, actorGC, KeyOf(p), new(int64(0))))
		}
	}
}

// orphaned says whether the object has owners and none is left. Owners of kinds
// that the simulation does not store are taken to be there.
func orphaned(o Object, alive map[types.UID]bool) bool {
	refs := o.GetOwnerReferences()
	for _, ref := range refs {
		if alive[ref.UID] || !stored(Kind(ref.Kind)) {
			return false
		}
	}
	return len(refs) > 0
}

func stored(k Kind) bool {
	for _, o := range kinds {
		if o == k {
			return true
		}
	}
	return false
}
