package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// al2023 is an EC2NodeClass as Karpenter's documentation assumes it, with a
// subnet in each zone.
func al2023(d *Data) *awsv1.EC2NodeClass {
	class := &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec:       awsv1.EC2NodeClassSpec{AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@v20260318"}}},
	}
	for i, z := range d.Zones() {
		class.Status.Subnets = append(class.Status.Subnets, awsv1.Subnet{ID: fmt.Sprintf("subnet-%d", i), Zone: z.Name, ZoneID: z.ID})
	}
	return class
}

func embeddedData(t testing.TB, region string) *Data {
	t.Helper()
	d, err := Embedded(region)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func resolved(t testing.TB, d *Data, class *awsv1.EC2NodeClass) map[string]*InstanceType {
	t.Helper()
	types, err := d.Resolve(class, DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]*InstanceType, len(types))
	for _, it := range types {
		out[it.Name] = it
	}
	return out
}

// documented are the rows of a table of expected values: type, column, value.
type documented map[string]map[string]string

func readDocumented(t *testing.T, name string) documented {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	head := strings.Split(lines[0], "\t")
	out := documented{}
	for _, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		row := map[string]string{}
		for i, key := range head[1:] {
			row[key] = cells[i+1]
		}
		out[cells[0]] = row
	}
	return out
}

// allocatableDifferences compares every documented amount of every type.
func allocatableDifferences(want documented, got map[string]*InstanceType) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		it, ok := got[name]
		if !ok {
			out = append(out, name+" is missing")
			continue
		}
		list := resources.List{}
		for key, text := range want[name] {
			if text != "" {
				list[corev1.ResourceName(key)] = resources.Amount(corev1.ResourceName(key), resource.MustParse(text))
			}
		}
		have := it.Allocatable
		if list[awsv1.ResourceAWSPodENI] == 0 && have[awsv1.ResourceAWSPodENI] > 0 {
			// The table of VPC limits is newer than the documentation and has
			// been completed for 56 types since.
			have = maps.Clone(have)
			delete(have, awsv1.ResourceAWSPodENI)
		}
		if diff := cmp.Diff(list, have); diff != "" {
			out = append(out, fmt.Sprintf("%s (-documented +computed):\n%s", name, diff))
		}
	}
	if len(want) != len(got) {
		out = append(out, fmt.Sprintf("%d types are documented, there are %d", len(want), len(got)))
	}
	return out
}

func report(t *testing.T, differences []string) {
	t.Helper()
	for i, d := range differences {
		if i == 10 {
			t.Fatalf("and %d more", len(differences)-i)
		}
		t.Error(d)
	}
}

func TestAllocatableOfAllTypesIsAsDocumented(t *testing.T) {
	want := readDocumented(t, "expected-allocatable.tsv")
	if len(want) != 1363 {
		t.Fatalf("%d types are documented, want 1363", len(want))
	}
	for _, region := range Regions() {
		d := embeddedData(t, region)
		report(t, allocatableDifferences(want, resolved(t, d, al2023(d))))
	}
}

func TestOneMebibyteTooMuchIsNoticed(t *testing.T) {
	want := readDocumented(t, "expected-allocatable.tsv")
	d := embeddedData(t, "us-east-1")
	got := resolved(t, d, al2023(d))
	got["m5.large"].Allocatable[corev1.ResourceMemory] += mib
	if differences := allocatableDifferences(want, got); len(differences) != 1 || !strings.HasPrefix(differences[0], "m5.large ") {
		t.Errorf("differences = %v", differences)
	}
}

// Labels that the documentation leaves out because they depend on the class.
var undocumented = []string{corev1.LabelTopologyRegion, karpv1.CapacityTypeLabelKey, corev1.LabelTopologyZone, awsv1.LabelTopologyZoneID}

// The table of bandwidths is newer than the documentation, too.
var newerBandwidth = map[string]string{"g7.2xlarge": "40000", "g7.4xlarge": "80000", "g7.8xlarge": "100000"}

func labelDifferences(want documented, got map[string]*InstanceType) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		labels := map[string]string{}
		for key, value := range want[name] {
			if value != "~" {
				labels[key] = value
			}
		}
		if newer, ok := newerBandwidth[name]; ok {
			labels[awsv1.LabelInstanceNetworkBandwidth] = newer
		}
		have := got[name].Requirements.Without(undocumented...).Labels()
		if diff := cmp.Diff(labels, have); diff != "" {
			out = append(out, fmt.Sprintf("%s (-documented +computed):\n%s", name, diff))
		}
		for key, value := range want[name] {
			if r, ok := got[name].Requirements.Lookup(key); !ok || r.AllowsAbsent() != (value == "~") {
				out = append(out, fmt.Sprintf("%s: label %s is %v", name, key, r))
			}
		}
	}
	return out
}

func TestLabelsOfAllTypesAreAsDocumented(t *testing.T) {
	want := readDocumented(t, "expected-labels.tsv")
	d := embeddedData(t, "us-east-1")
	report(t, labelDifferences(want, resolved(t, d, al2023(d))))
}

// The sources of the tables are not part of this repository. Where they are at
// hand the results are compared with them directly.
func TestResultsEqualTheCollectedDocumentation(t *testing.T) {
	dir := os.Getenv("REEVE_SHARED_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	b, err := os.ReadFile(filepath.Join(dir, "instance-types.json"))
	if err != nil {
		t.Skip("the collected documentation is not here: set REEVE_SHARED_DATA to its directory")
	}
	var in struct {
		Types map[string]struct{ Labels, Allocatable map[string]string }
	}
	if err := json.Unmarshal(b, &in); err != nil {
		t.Fatal(err)
	}
	d := embeddedData(t, "us-east-1")
	got := resolved(t, d, al2023(d))
	amounts, labels := documented{}, documented{}
	for name, row := range in.Types {
		amounts[name], labels[name] = row.Allocatable, map[string]string{}
		for key, value := range row.Labels {
			labels[name][strings.Replace(key, "k/", "karpenter.k8s.aws/", 1)] = value
		}
	}
	report(t, allocatableDifferences(amounts, got))
	report(t, labelDifferences(labels, got))
}
