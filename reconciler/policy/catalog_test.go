package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// The story of the seeds: five sizes of Graviton types are never among the
// candidates, and the record says why.
func TestTheStorysTypesAreExcludedFromTheWholeCatalog(t *testing.T) {
	data, err := catalog.Embedded("ap-northeast-2")
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := data.Everywhere(catalog.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	list := FromCatalog(resolved)
	i := slices.IndexFunc(list, func(it InstanceType) bool { return it.Name == "c5a.2xlarge" })
	if i < 0 {
		t.Fatal("c5a.2xlarge is not there")
	}
	it := list[i]
	for key, want := range map[string]string{
		"karpenter.k8s.aws/instance-family": "c5a", "karpenter.k8s.aws/instance-size": "2xlarge",
		"node.kubernetes.io/instance-type": "c5a.2xlarge", "kubernetes.io/arch": "amd64",
		"topology.kubernetes.io/zone": "", "karpenter.sh/capacity-type": "",
	} {
		if it.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, it.Labels[key], want)
		}
	}
	o := Offering{Zone: "ap-northeast-2a", CapacityType: "on-demand", Price: 344_000_000}
	if it.Offerings[0] != o || !slices.IsSortedFunc(it.Offerings, func(a, b Offering) int { return strings.Compare(a.Zone+a.CapacityType, b.Zone+b.CapacityType) }) {
		t.Errorf("offerings %+v", it.Offerings)
	}
	if it.Capacity["cpu"] != 8000 || (it.Allocatable["cpu"] >= 8000) || cmp.Diff(it.Capacity, resources.List{}) == "" {
		t.Errorf("capacity %v, allocatable %v", it.Capacity, it.Allocatable)
	}

	excluded := []string{"c6g.16xlarge", "m6g.16xlarge", "m6gd.16xlarge", "r6g.16xlarge", "r6gd.16xlarge"}
	settings, err := json.Marshal(map[string]any{"instanceTypes": map[string]any{"enabled": true, "exclude": excluded, "gpu": "on-request"}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(NewBundle(nil, settings), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := judgeOffering(t, e, Case{Fleet: newFleet(t, "al2023@v20260318"), Now: noon}, newTypes(t, list), nil)
	var got, gpus []string
	for _, x := range r.Exclusions {
		names, err := x.Types.Resolve(r.Lists)
		if err != nil {
			t.Fatal(err)
		}
		switch x.Rule {
		case "REEVE-TYPE-001":
			got = append(got, names...)
		case "REEVE-TYPE-004":
			gpus = names
		}
	}
	if diff := cmp.Diff(excluded, got); diff != "" {
		t.Errorf("excluded (-want +got):\n%s", diff)
	}
	for _, name := range []string{"g5.xlarge", "p4d.24xlarge", "inf1.xlarge"} {
		if !slices.Contains(gpus, name) {
			t.Errorf("%s is not among the types with accelerators", name)
		}
	}
	for _, name := range gpus {
		if family, _, _ := strings.Cut(name, "."); !strings.ContainsAny(family[:1], "gpitdfv") {
			t.Errorf("%s is among the types with accelerators", name)
		}
	}
}
