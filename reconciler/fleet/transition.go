package fleet

import karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

// Remark is something to say about a field of a fleet.
type Remark struct {
	// Path of the field.
	Path Path
	// Message says what is the matter.
	Message string
	// Hint says what to do about it, if more can be said.
	Hint string
}

// Transition says what of a fleet cannot follow the one before it: the rules of
// Karpenter's CRDs that compare an object with the stored one. A fleet without
// a predecessor may be anything; so may an object that is new.
func Transition(previous, next *Fleet) []Remark {
	if previous == nil {
		return nil
	}
	var out []Remark
	for _, p := range next.NodePools {
		out = append(out, PoolTransition(previous.NodePool(p.Name), p, Path{"nodePools", p.Name})...)
	}
	return out
}

// PoolTransition says what of a NodePool cannot replace the previous one of the
// same name; nil stands for none. The paths begin with that of the pool.
func PoolTransition(previous, next *karpv1.NodePool, at Path) []Remark {
	if previous == nil {
		return nil
	}
	below := func(names ...string) Path { return append(append(Path{}, at...), names...) }
	var out []Remark
	if was, is := previous.Spec.Replicas != nil, next.Spec.Replicas != nil; was != is {
		message := "replicas cannot be added to a pool that exists: it would turn static"
		if was {
			message = "replicas cannot be taken from a pool that exists: it would no longer be static"
		}
		out = append(out, Remark{below("spec", "replicas"), message, "make a pool of another name and remove this one"})
	}
	old, ref := previous.Spec.Template.Spec.NodeClassRef, next.Spec.Template.Spec.NodeClassRef
	if old == nil || ref == nil {
		return out
	}
	for _, f := range []struct{ name, was, is string }{{"group", old.Group, ref.Group}, {"kind", old.Kind, ref.Kind}} {
		if f.was != f.is {
			out = append(out, Remark{below("spec", "template", "spec", "nodeClassRef", f.name),
				"the " + f.name + " of nodeClassRef is immutable: it is " + f.was + " in the pool that exists",
				"only the name may change; for another " + f.name + " make a pool of another name"})
		}
	}
	return out
}
