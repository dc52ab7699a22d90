package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// poolOf makes a NodePool with a reference to a class; negative replicas are
// none.
func poolOf(name string, replicas int64, ref *karpv1.NodeClassReference) *karpv1.NodePool {
	p := pool(name, 0)
	if replicas >= 0 {
		p.Spec.Replicas = &replicas
	}
	p.Spec.Template.Spec.NodeClassRef = ref
	return p
}

func TestWhatAFleetCannotChange(t *testing.T) {
	ec2 := &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "a"}
	other := &karpv1.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "a"}
	renamed := &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "b"}
	fleetOf := func(pools ...*karpv1.NodePool) *Fleet { return &Fleet{NodePools: pools} }
	tests := []struct {
		name           string
		previous, next *Fleet
		want           []string
	}{
		{"the first fleet may be anything", nil, fleetOf(poolOf("p", 1, ec2)), nil},
		{"a new pool may be anything", fleetOf(), fleetOf(poolOf("p", 1, ec2)), nil},
		{"a pool stays as it is", fleetOf(poolOf("p", -1, ec2)), fleetOf(poolOf("p", -1, ec2)), nil},
		{"a static pool changes its size", fleetOf(poolOf("p", 0, ec2)), fleetOf(poolOf("p", 7, ec2)), nil},
		{"a pool turns static", fleetOf(poolOf("p", -1, ec2)), fleetOf(poolOf("p", 0, ec2)), []string{
			"nodePools.p.spec.replicas: replicas cannot be added to a pool that exists: it would turn static"}},
		{"a pool is no longer static", fleetOf(poolOf("p", 2, ec2)), fleetOf(poolOf("p", -1, ec2)), []string{
			"nodePools.p.spec.replicas: replicas cannot be taken from a pool that exists: it would no longer be static"}},
		{"a class is another one of its kind", fleetOf(poolOf("p", -1, ec2)), fleetOf(poolOf("p", -1, renamed)), nil},
		{"a class is of another kind", fleetOf(poolOf("p", -1, ec2)), fleetOf(poolOf("p", -1, other)), []string{
			"nodePools.p.spec.template.spec.nodeClassRef.group: the group of nodeClassRef is immutable: it is karpenter.k8s.aws in the pool that exists",
			"nodePools.p.spec.template.spec.nodeClassRef.kind: the kind of nodeClassRef is immutable: it is EC2NodeClass in the pool that exists"}},
		{"a reference that is missing is another rule's", fleetOf(poolOf("p", -1, nil)), fleetOf(poolOf("p", -1, ec2)), nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, r := range Transition(tc.previous, tc.next) {
				got = append(got, r.Path.String()+": "+r.Message)
				if r.Hint == "" || r.Path.Resource() != "NodePool/p" {
					t.Errorf("hint %q for %s", r.Hint, r.Path.Resource())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("remarks (-want +got):\n%s", diff)
			}
		})
	}
}
