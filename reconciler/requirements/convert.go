package requirements

import (
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// FromNodeSelector makes a set of the match expressions of one node selector
// term; their operators are In, NotIn, Exists, DoesNotExist, Gt and Lt. It
// fails as New does.
func FromNodeSelector(exprs []corev1.NodeSelectorRequirement) (Set, error) {
	reqs := make([]Requirement, 0, len(exprs))
	for i, e := range exprs {
		if e.Operator == karpv1.NodeSelectorOpGte || e.Operator == karpv1.NodeSelectorOpLte {
			return Set{}, fmt.Errorf("expression %d on label %q: only NodePools know operator %s: use Gt or Lt", i, e.Key, e.Operator)
		}
		r, err := New(e.Key, e.Operator, nil, e.Values...)
		if err != nil {
			return Set{}, fmt.Errorf("expression %d: %w", i, err)
		}
		reqs = append(reqs, r)
	}
	return NewSet(reqs...), nil
}

// FromKarpenter makes a set of the requirements of a NodePool or NodeClaim. It
// fails as New does and names the index of the requirement.
func FromKarpenter(in []karpv1.NodeSelectorRequirementWithMinValues) (Set, error) {
	reqs := make([]Requirement, 0, len(in))
	for i, e := range in {
		r, err := New(e.Key, e.Operator, e.MinValues, e.Values...)
		if err != nil {
			return Set{}, fmt.Errorf("requirements[%d]: %w", i, err)
		}
		reqs = append(reqs, r)
	}
	return NewSet(reqs...), nil
}

// NodeSelectorRequirements is the set in the API's form, sorted by key. A
// requirement that no single operator expresses becomes several on the same
// key (such as Gte, Lte and NotIn); FromKarpenter gives the same set back.
func (s Set) NodeSelectorRequirements() []karpv1.NodeSelectorRequirementWithMinValues {
	out := make([]karpv1.NodeSelectorRequirementWithMinValues, 0, len(s.list))
	for _, r := range s.list {
		out = append(out, r.parts()...)
	}
	return out
}

func (r Requirement) parts() []karpv1.NodeSelectorRequirementWithMinValues {
	var out []karpv1.NodeSelectorRequirementWithMinValues
	add := func(op corev1.NodeSelectorOperator, values ...string) {
		p := karpv1.NodeSelectorRequirementWithMinValues{Key: r.key, Operator: op, Values: values}
		if r.minValues > 0 {
			n := r.minValues
			p.MinValues = &n
		}
		out = append(out, p)
	}
	if r.hasLower {
		add(karpv1.NodeSelectorOpGte, strconv.FormatInt(r.lower, 10))
	}
	if r.hasUpper {
		add(karpv1.NodeSelectorOpLte, strconv.FormatInt(r.upper, 10))
	}
	bounded := r.hasLower || r.hasUpper
	switch op := r.Operator(); {
	case op == corev1.NodeSelectorOpIn:
		add(op, r.values...)
	case op == corev1.NodeSelectorOpNotIn && !r.absent && !bounded:
		add(corev1.NodeSelectorOpExists)
		add(op, r.values...)
	case op == corev1.NodeSelectorOpNotIn:
		add(op, r.values...)
	case op == corev1.NodeSelectorOpExists && !bounded:
		add(op)
	case op == corev1.NodeSelectorOpDoesNotExist:
		add(op)
		if !r.absent {
			add(corev1.NodeSelectorOpExists)
		}
	}
	return out
}

// MarshalJSON writes the set as NodeSelectorRequirements gives it; the empty
// set is [].
func (s Set) MarshalJSON() ([]byte, error) {
	return json.Marshal(s.NodeSelectorRequirements())
}

// UnmarshalJSON reads the form that MarshalJSON writes.
func (s *Set) UnmarshalJSON(b []byte) error {
	var in []karpv1.NodeSelectorRequirementWithMinValues
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	out, err := FromKarpenter(in)
	if err != nil {
		return err
	}
	*s = out
	return nil
}
