package catalog

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/resources"
)

func small(name string) Type {
	return Type{Name: name, Arch: "x86_64", VCPUs: 2, MiB: 8192, Manufacturer: "Intel", MHz: 3100, Hypervisor: "nitro",
		Usage: []string{"on-demand", "spot"}, Cards: []int64{3}, IPv4: 10, VPCLimits: true, BranchENIs: 9, Zones: []string{"z1", "z2"}}
}

func smallData(t *testing.T) *Data {
	t.Helper()
	d, err := New("test-1", []Zone{{"test-1b", "z2"}, {"test-1a", "z1"}}, []Type{small("m9.large"), small("c9.large")},
		OnDemandPrices{"m9.large": 96_000_000, "c9.large": 85_500_001},
		SpotPrices{"c9.large": {"z2": 30_100_000, "z1": 29_123_450}, "m9.large": {}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func reading(files map[string][]byte) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		b, ok := files[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return b, nil
	}
}

func TestFilesAreReadableAndStable(t *testing.T) {
	files := smallData(t).Files()
	const typeLine = `"arch":"x86_64","vcpus":2,"mib":8192,"manufacturer":"Intel","mhz":3100,"hypervisor":"nitro","usage":["on-demand","spot"],` +
		`"encrypted":false,"ebsMbps":0,"networkMbps":0,"nvmeGB":0,"diskGB":0,"efas":0,"cards":[3],"ipv4":10,"branchENIs":9,"vpcLimits":true,"zones":["z1","z2"]}`
	want := map[string]string{
		TypesFile: "{\n\"region\":\"test-1\",\n\"zones\":[{\"name\":\"test-1a\",\"id\":\"z1\"},{\"name\":\"test-1b\",\"id\":\"z2\"}],\n\"types\":[\n" +
			`{"name":"c9.large",` + typeLine + ",\n" + `{"name":"m9.large",` + typeLine + "\n]\n}\n",
		OnDemandFile: "{\n\"c9.large\":0.085500001,\n\"m9.large\":0.096\n}\n",
		SpotFile:     "type\tz1\tz2\nc9.large\t0.02912345\t0.0301\n",
	}
	got := map[string]string{}
	for name, b := range files {
		got[name] = string(b)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestDataComesBackFromItsFiles(t *testing.T) {
	all := []*Data{smallData(t)}
	for _, region := range Regions() {
		all = append(all, embeddedData(t, region))
	}
	empty, err := New("nowhere", nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range append(all, empty) {
		back, err := FromFiles(reading(d.Files()))
		if err != nil {
			t.Fatalf("%s: %v", d.Region(), err)
		}
		for name, b := range d.Files() {
			if !bytes.Equal(b, back.Files()[name]) {
				t.Errorf("%s: %s differs after a round trip", d.Region(), name)
			}
		}
		if back.TypesDigest() != d.TypesDigest() || back.PricesDigest() != d.PricesDigest() || back.Region() != d.Region() {
			t.Errorf("%s: digests differ after a round trip", d.Region())
		}
		if diff := cmp.Diff(d.Zones(), back.Zones()); diff != "" && len(d.Zones()) > 0 {
			t.Errorf("%s: zones (-want +got):\n%s", d.Region(), diff)
		}
	}
}

func TestDigestsFollowTheirPart(t *testing.T) {
	d := smallData(t)
	moved, err := d.WithPrices(OnDemandPrices{"m9.large": 96_000_001, "c9.large": 85_500_001}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if moved.TypesDigest() != d.TypesDigest() || moved.PricesDigest() == d.PricesDigest() {
		t.Error("a price changed the wrong digest")
	}
	if !strings.HasPrefix(d.TypesDigest(), "sha256:") || len(d.TypesDigest()) != len("sha256:")+64 {
		t.Errorf("digest = %q", d.TypesDigest())
	}
}

func TestCallersCannotChangeTheFiles(t *testing.T) {
	d := smallData(t)
	delete(d.Files(), SpotFile)
	if len(d.Files()) != 3 {
		t.Error("deleting from the result deleted from the data")
	}
}

func TestNewRefusesDataThatDoesNotFitTogether(t *testing.T) {
	zones := []Zone{{"a", "z1"}, {"b", "z2"}}
	broken := func(change func(*Type)) []Type {
		typ := small("m9.large")
		change(&typ)
		return []Type{typ}
	}
	ok := []Type{small("m9.large")}
	for _, tc := range []struct {
		name, region string
		zones        []Zone
		types        []Type
		onDemand     OnDemandPrices
		spot         SpotPrices
		want         string
	}{
		{"no region", "", zones, ok, nil, nil, `catalog of region "": the region has no name`},
		{"a zone without id", "r", []Zone{{"a", ""}}, nil, nil, nil, `catalog of region "r": zone 0 has name "a" and id "": both are needed`},
		{"a repeated zone", "r", []Zone{{"a", "z1"}, {"b", "z1"}}, nil, nil, nil, `catalog of region "r": zone z1 is there twice`},
		{"a repeated type", "r", zones, append(ok, ok...), nil, nil, `catalog of region "r": type m9.large is there twice`},
		{"a type without cards", "r", zones, broken(func(t *Type) { t.Cards = nil }), nil, nil,
			`catalog of region "r": type "m9.large" needs a name, CPUs, memory and a network card`},
		{"a type in an unknown zone", "r", zones, broken(func(t *Type) { t.Zones = []string{"z3"} }), nil, nil,
			`catalog of region "r": type m9.large is offered in zone "z3", which the region does not have`},
		{"zones out of order", "r", zones, broken(func(t *Type) { t.Zones = []string{"z2", "z1"} }), nil, nil,
			`catalog of region "r": type m9.large: zones are not sorted: [z2 z1]`},
		{"a price of nothing", "r", zones, ok, OnDemandPrices{"x9.large": 1}, nil, `catalog of region "r": on-demand price of x9.large: there is no such type`},
		{"a free machine", "r", zones, ok, OnDemandPrices{"m9.large": 0}, nil, `catalog of region "r": on-demand price of m9.large: $0/h is not above zero`},
		{"a spot price nowhere", "r", zones, ok, nil, SpotPrices{"m9.large": {"z3": 1}}, `catalog of region "r": spot price of m9.large: the region has no zone "z3"`},
		{"a negative spot price", "r", zones, ok, nil, SpotPrices{"m9.large": {"z1": -resources.USD}},
			`catalog of region "r": spot price of m9.large in z1: -$1/h is not above zero`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := New(tc.region, tc.zones, tc.types, tc.onDemand, tc.spot)
			if diff := cmp.Diff(tc.want, fmt.Sprint(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromFilesNamesTheFaultyFile(t *testing.T) {
	good := smallData(t).Files()
	for _, tc := range []struct{ name, file, content, want string }{
		{"types are not JSON", TypesFile, "x", "catalog file types.json: "},
		{"types have an unknown field", TypesFile, `{"region":"r","extra":1}`, `catalog file types.json: json: unknown field "extra"`},
		{"something follows", TypesFile, `{"region":"r"} {}`, "catalog file types.json: something follows the JSON value"},
		{"a price is a word", OnDemandFile, `{"m9.large":"cheap"}`, "catalog file ondemand.json: price"},
		{"a row is short", SpotFile, "type\tz1\tz2\nm9.large\t1\n", "catalog file spot.tsv: line 2 has 2 columns, the head has 3"},
		{"a row is there twice", SpotFile, "type\tz1\nm9.large\t1\nm9.large\t1\n", "catalog file spot.tsv: line 3: type m9.large is there twice"},
		{"a spot price is a word", SpotFile, "type\tz1\nm9.large\tx\n", `catalog file spot.tsv: line 2, zone z1: price "x" is not a decimal number`},
		{"the head is missing", SpotFile, "m9.large\t1\n", `catalog file spot.tsv: line 1: the first column is "m9.large", not "type"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := map[string][]byte{TypesFile: good[TypesFile], OnDemandFile: good[OnDemandFile], SpotFile: good[SpotFile]}
			files[tc.file] = []byte(tc.content)
			if _, err := FromFiles(reading(files)); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error = %v, want %q", err, tc.want)
			}
		})
	}
	if _, err := FromFiles(reading(nil)); err == nil || err.Error() != "catalog file types.json: file does not exist" {
		t.Errorf("error = %v", err)
	}
}

func TestEmbeddedKnowsItsRegions(t *testing.T) {
	regions := []string{"ap-northeast-1", "ap-northeast-2", "ap-southeast-1", "eu-central-1", "eu-west-1", "us-east-1", "us-east-2", "us-west-2"}
	if diff := cmp.Diff(regions, Regions()); diff != "" {
		t.Errorf("regions (-want +got):\n%s", diff)
	}
	_, err := Embedded("mars-1")
	if diff := cmp.Diff(`no catalog of region "mars-1" is built in: there are `+strings.Join(regions, ", "), fmt.Sprint(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	for region, zones := range map[string]int{"ap-northeast-2": 4, "us-east-1": 6, "eu-west-1": 3, "us-west-2": 4} {
		d := embeddedData(t, region)
		if len(d.Types()) != 1363 || len(d.Zones()) != zones {
			t.Errorf("%s has %d types and %d zones", region, len(d.Types()), len(d.Zones()))
		}
		if again := embeddedData(t, region); again != d {
			t.Errorf("%s was read twice", region)
		}
	}
}

func TestZonesAndPricesOfTheTables(t *testing.T) {
	d := embeddedData(t, "ap-northeast-2")
	want := []Zone{{"ap-northeast-2a", "apne2-az1"}, {"ap-northeast-2b", "apne2-az2"}, {"ap-northeast-2c", "apne2-az3"}, {"ap-northeast-2d", "apne2-az4"}}
	if diff := cmp.Diff(want, d.Zones()); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
	if p, ok := d.OnDemandPrice("c5a.2xlarge"); !ok || p != 344_000_000 {
		t.Errorf("c5a.2xlarge costs %v, %v", p, ok)
	}
	if _, ok := d.OnDemandPrice("c8i.large"); ok {
		t.Error("a type that is newer than the region's list has a price")
	}
	if _, ok := d.Type("p3.2xlarge"); ok {
		t.Error("a type that is not documented is in the catalog")
	}
}
