package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDocumentGivesBackWhatEC2DoesNotTell(t *testing.T) {
	for _, region := range Regions() {
		d, err := Embedded(region)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range d.Types() {
			got := want
			got.NetworkMbps, got.BranchENIs, got.VPCLimits = 0, 0, false
			if err := got.Document(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s in %s (-want +got):\n%s", want.Name, region, diff)
			}
		}
	}
	unknown := Type{Name: "z99.large", MiB: 1}
	if err := unknown.Document(); err != nil || unknown.NetworkMbps != 0 || unknown.VPCLimits {
		t.Errorf("an unknown type became %+v, %v", unknown, err)
	}
}
