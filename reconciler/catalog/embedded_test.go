package catalog

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestMalformedTablesNameTheirLine(t *testing.T) {
	head := strings.Join(TypeColumns, "\t") + "\n"
	row := func(cells ...string) string {
		all := []string{"m9.large", "x86_64", "2", "8192", "Intel", "3100", "nitro", "on-demand", "true", "", "", "", "", "", "", "", "", "3", "10", "9"}
		for i := 0; i < len(cells); i += 2 {
			for j, c := range TypeColumns {
				if c == cells[i] {
					all[j] = cells[i+1]
				}
			}
		}
		return strings.Join(all, "\t") + "\n"
	}
	for _, tc := range []struct{ name, types, region, want string }{
		{"no types", "", "", "embedded catalog: data/types.tsv has columns []"},
		{"a short row", head + "m9.large\tx86_64\n", "", "embedded catalog: data/types.tsv:2 has 2 columns, the head has 20"},
		{"memory is a word", head + row("mib", "much"), "", `embedded catalog: data/types.tsv:2: strconv.ParseInt: parsing "much": invalid syntax`},
		{"a GPU lacks parts", head + row() + row("gpu", "1|NVIDIA"), "", `embedded catalog: data/types.tsv:3: "1|NVIDIA" does not have 4 parts`},
		{"a region without prices", head + row(), "name\tz1\tz2\n", "embedded catalog: data/test-1.tsv has columns [name z1 z2]"},
		{"an on-demand price is a word", head + row(), "name\tondemand\tz1\nm9.large\tx\t\n",
			`embedded catalog: data/test-1.tsv:2: price "x" is not a decimal number`},
		{"a spot price is a word", head + row(), "name\tondemand\tz1\nm9.large\t1\tx\n",
			`embedded catalog: data/test-1.tsv:2: price "x" is not a decimal number`},
		{"a price without a type", head + row(), "name\tondemand\tz1\nm8.large\t1\t-\n",
			`catalog of region "test-1": on-demand price of m8.large: there is no such type`},
		{"all is well", head + row("neuron", "1|2|N", "accelerator", "3|Q|A"), "name\tondemand\tz1\tz2\nm9.large\t1\t-\t0.5\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tables := fstest.MapFS{"data/types.tsv": {Data: []byte(tc.types)}, "data/test-1.tsv": {Data: []byte(tc.region)}}
			types, err := readTypes(tables)
			var d *Data
			if err == nil {
				d, err = readRegion(tables, "test-1", types)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if err != nil {
				return
			}
			typ, _ := d.Type("m9.large")
			if diff := cmp.Diff([]string{"z1", "z2"}, typ.Zones); diff != "" {
				t.Errorf("zones (-want +got):\n%s", diff)
			}
			want := Type{Name: "m9.large", Arch: "x86_64", VCPUs: 2, MiB: 8192, Manufacturer: "Intel", MHz: 3100, Hypervisor: "nitro",
				Usage: []string{"on-demand"}, Encrypted: true, Cards: []int64{3}, IPv4: 10, BranchENIs: 9, VPCLimits: true, Zones: []string{"z1", "z2"},
				Neuron: &Neuron{Count: 1, Cores: 2, Name: "N"}, Accelerator: &Accelerator{Count: 3, Manufacturer: "Q", Name: "A"}}
			if diff := cmp.Diff(want, *typ); diff != "" {
				t.Errorf("type (-want +got):\n%s", diff)
			}
			if _, ok := d.SpotPrice("m9.large", "z1"); ok {
				t.Error("a dash became a price")
			}
			if p, _ := d.SpotPrice("m9.large", "z2"); fmt.Sprint(p) != "$0.5/h" {
				t.Errorf("spot price = %v", p)
			}
		})
	}
}
