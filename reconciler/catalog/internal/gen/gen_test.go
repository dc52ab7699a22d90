package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The facts that the tables are made from are not part of this repository.
// Where they are at hand, the committed tables must be what they give.
func TestCommittedTablesAreUpToDate(t *testing.T) {
	dir := os.Getenv("REEVE_SHARED_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(dir, "instance-types.json")); err != nil {
		t.Skip("the collected facts are not here: set REEVE_SHARED_DATA to their directory")
	}
	files, err := generate(dir, regions)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		in := "data"
		if isExpected(name) {
			in = "testdata"
		}
		got, err := os.ReadFile(filepath.Join("..", "..", in, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what the facts give: run go generate", name)
		}
	}
}

// two are the regions of the facts.
var two = []string{"ap-northeast-2", "us-east-1"}

// facts writes a complete set of sources with one type.
func facts(t *testing.T, change map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"describe-instance-types.json": `{"types":{"g9.large":{"vcpu":2,"mib":8192,"arch":["x86_64"],"mfr":"Intel","mhz":3100,"hyp":"nitro",
			"usage":["spot","on-demand"],"encTransit":true,"ebs":{"support":"default","max":650},"eni":4,"ip4":10,"card0":1,"cards":[2,3],"mbps":750,
			"nvmeGB":50,"gpu":{"name":"T4","mfr":"NVIDIA","count":1,"mib":16384},"neuron":{"name":"N","count":1,"cores":2},"accel":{"name":"A","mfr":"Q","count":3}}}}`,
		"instance-types.json":            `{"types":{"g9.large":{"labels":{"k/instance-cpu":"2"},"allocatable":{"cpu":"1930m"}}}}`,
		"eni-limits.json":                `{"types":{"g9.large":[4,10,1,9,0,[4],"nitro",0,750]}}`,
		"offerings-zone-ids.json":        `{"regions":{"us-east-1":{"zones":["z1","z2","z3"],"types":{"g9.large":6}},"ap-northeast-2":{"zones":["y1"],"types":{}}}}`,
		"prices-spot.json":               `{"prices":{"us-east-1":{"g9.large":[[0.1234],0.1,0,"<5%"]}}}`,
		"prices-ondemand-regions.json":   `{"prices":{"us-east-1":{"g9.large":9.9}}}`,
		"prices-ondemand-karpenter.json": `{"prices":{"us-east-1":{"g9.large":0.526}}}`,
	}
	for name, text := range change {
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTablesOfOneType(t *testing.T) {
	got, err := generate(facts(t, nil), two)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"types.tsv": "name\tarch\tvcpus\tmib\tmanufacturer\tmhz\thypervisor\tusage\tencrypted\tebsMbps\tnetworkMbps\tnvmeGB\tdiskGB\tgpu\tneuron\taccelerator\tefas\tcards\tipv4\tbranchENIs\n" +
			"g9.large\tx86_64\t2\t8192\tIntel\t3100\tnitro\ton-demand,spot\ttrue\t650\t750\t50\t\t1|NVIDIA|T4|16384\t1|2|N\t3|Q|A\t\t3,2\t10\t9\n",
		"us-east-1.tsv":            "name\tondemand\tz1\tz2\tz3\ng9.large\t0.526\t\t0.1234\t-\n",
		"ap-northeast-2.tsv":       "name\tondemand\ty1\n",
		"expected-labels.tsv":      "name\tkarpenter.k8s.aws/instance-cpu\ng9.large\t2\n",
		"expected-allocatable.tsv": "name\tcpu\tmemory\tpods\tephemeral-storage\tvpc.amazonaws.com/pod-eni\tvpc.amazonaws.com/efa\tnvidia.com/gpu\tamd.com/gpu\taws.amazon.com/neuron\taws.amazon.com/neuroncore\ng9.large\t1930m\t\t\t\t\t\t\t\t\t\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}

func TestUnusableFactsAreRefused(t *testing.T) {
	for name, change := range map[string]map[string]string{
		"not JSON":              {"eni-limits.json": "x"},
		"a region is missing":   {"offerings-zone-ids.json": `{"regions":{}}`},
		"zones are not sorted":  {"offerings-zone-ids.json": `{"regions":{"ap-northeast-2":{"zones":["b","a"]}}}`},
		"a price has exponents": {"prices-ondemand-karpenter.json": `{"prices":{"us-east-1":{"g9.large":1e-7}}}`},
	} {
		if _, err := generate(facts(t, change), two); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := generate(t.TempDir(), two); err == nil {
		t.Error("an empty directory was accepted")
	}
}
