package catalog

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/reeve-project/reeve/reconciler/resources"
)

//go:generate go run ./internal/gen -data $REEVE_SHARED_DATA -out data -expected testdata

//go:embed data/*.tsv
var embedded embed.FS

const (
	embeddedTypes = "data/types.tsv"
	// notSold marks, in the table of a region, a zone that offers the type but
	// has no listed spot price.
	notSold = "-"
)

// TypeColumns are the columns of data/types.tsv in order; see the package
// documentation for their meaning.
var TypeColumns = []string{
	"name", "arch", "vcpus", "mib", "manufacturer", "mhz", "hypervisor", "usage", "encrypted", "ebsMbps",
	"networkMbps", "nvmeGB", "diskGB", "gpu", "neuron", "accelerator", "efas", "cards", "ipv4", "branchENIs",
}

// loaded keeps one Data per region: reading takes milliseconds, a Data is
// immutable, and the files cannot change.
var loaded sync.Map

// Regions are the regions that Embedded knows, sorted.
func Regions() []string {
	names, err := fs.Glob(embedded, "data/*.tsv")
	if err != nil {
		return nil // only a malformed pattern fails
	}
	var out []string
	for _, n := range names {
		if n != embeddedTypes {
			out = append(out, strings.TrimSuffix(strings.TrimPrefix(n, "data/"), ".tsv"))
		}
	}
	slices.Sort(out)
	return out
}

// Embedded is the data of a region that was compiled in. It fails for other
// regions and names those it knows.
func Embedded(region string) (*Data, error) {
	if d, ok := loaded.Load(region); ok {
		return d.(*Data), nil
	}
	if !slices.Contains(Regions(), region) {
		return nil, fmt.Errorf("no catalog of region %q is built in: there are %s", region, strings.Join(Regions(), ", "))
	}
	types, err := readTypes(embedded)
	if err != nil {
		return nil, err
	}
	d, err := readRegion(embedded, region, types)
	if err != nil {
		return nil, err
	}
	first, _ := loaded.LoadOrStore(region, d)
	return first.(*Data), nil
}

// readTable splits a table into its head and its rows.
func readTable(tables fs.FS, name string) (head []string, rows [][]string, err error) {
	b, err := fs.ReadFile(tables, name)
	if err != nil {
		return nil, nil, fmt.Errorf("embedded catalog: %w", err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		cells := strings.Split(line, "\t")
		if i == 0 {
			head = cells
			continue
		}
		if len(cells) != len(head) {
			return nil, nil, fmt.Errorf("embedded catalog: %s:%d has %d columns, the head has %d", name, i+1, len(cells), len(head))
		}
		rows = append(rows, cells)
	}
	return head, rows, nil
}

func readTypes(tables fs.FS) ([]Type, error) {
	head, rows, err := readTable(tables, embeddedTypes)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(head, TypeColumns) {
		return nil, fmt.Errorf("embedded catalog: %s has columns %v", embeddedTypes, head)
	}
	out := make([]Type, len(rows))
	for i, cells := range rows {
		p := rowParser{cells: cells}
		out[i] = p.readType()
		if p.err != nil {
			return nil, fmt.Errorf("embedded catalog: %s:%d: %w", embeddedTypes, i+2, p.err)
		}
	}
	return out, nil
}

// rowParser takes the cells of a row one by one and keeps the first error.
type rowParser struct {
	cells []string
	err   error
}

func (p *rowParser) text() string {
	s := p.cells[0]
	p.cells = p.cells[1:]
	return s
}

// number is 0 for an empty cell.
func (p *rowParser) number() int64 { return p.parse(p.text()) }

func (p *rowParser) parse(s string) int64 {
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && p.err == nil {
		p.err = err
	}
	return n
}

// parts splits a cell of n parts; it is nil for an empty cell.
func (p *rowParser) parts(n int) []string {
	s := p.text()
	if s == "" {
		return nil
	}
	out := strings.Split(s, "|")
	if len(out) != n && p.err == nil {
		p.err = fmt.Errorf("%q does not have %d parts", s, n)
	}
	return append(out, make([]string, n)...)
}

func (p *rowParser) readType() Type {
	t := Type{Name: p.text(), Arch: p.text(), VCPUs: p.number(), MiB: p.number(), Manufacturer: p.text(), MHz: p.number(), Hypervisor: p.text()}
	t.Usage = strings.Split(p.text(), ",")
	t.Encrypted = p.text() == "true"
	t.EBSMbps, t.NetworkMbps, t.NVMeGB, t.DiskGB = p.number(), p.number(), p.number(), p.number()
	if g := p.parts(4); g != nil {
		t.GPU = &GPU{Count: p.parse(g[0]), Manufacturer: g[1], Name: g[2], MiB: p.parse(g[3])}
	}
	if n := p.parts(3); n != nil {
		t.Neuron = &Neuron{Count: p.parse(n[0]), Cores: p.parse(n[1]), Name: n[2]}
	}
	if a := p.parts(3); a != nil {
		t.Accelerator = &Accelerator{Count: p.parse(a[0]), Manufacturer: a[1], Name: a[2]}
	}
	t.EFAs = p.number()
	for _, c := range strings.Split(p.text(), ",") {
		t.Cards = append(t.Cards, p.parse(c))
	}
	t.IPv4 = p.number()
	branch := p.text()
	t.VPCLimits, t.BranchENIs = branch != "", p.parse(branch)
	return t
}

func readRegion(tables fs.FS, region string, types []Type) (*Data, error) {
	name := "data/" + region + ".tsv"
	head, rows, err := readTable(tables, name)
	if err != nil {
		return nil, err
	}
	if len(head) < 3 || head[0] != "name" || head[1] != "ondemand" {
		return nil, fmt.Errorf("embedded catalog: %s has columns %v", name, head)
	}
	r := regionRows{zones: head[2:], offered: map[string][]string{}, onDemand: OnDemandPrices{}, spot: SpotPrices{}}
	for i, cells := range rows {
		if err := r.add(cells); err != nil {
			return nil, fmt.Errorf("embedded catalog: %s:%d: %w", name, i+2, err)
		}
	}
	zones := make([]Zone, len(r.zones))
	for i, id := range r.zones {
		zones[i] = Zone{Name: region + string(rune('a'+i)), ID: id}
	}
	for i := range types {
		types[i].Zones = r.offered[types[i].Name]
	}
	return New(region, zones, types, r.onDemand, r.spot)
}

// regionRows collects the rows of a region's table.
type regionRows struct {
	zones    []string
	offered  map[string][]string
	onDemand OnDemandPrices
	spot     SpotPrices
}

func (r *regionRows) add(cells []string) error {
	name := cells[0]
	if cells[1] != "" {
		p, err := resources.ParsePrice(cells[1])
		if err != nil {
			return err
		}
		r.onDemand[name] = p
	}
	for i, cell := range cells[2:] {
		if cell == "" {
			continue
		}
		r.offered[name] = append(r.offered[name], r.zones[i])
		if cell == notSold {
			continue
		}
		p, err := resources.ParsePrice(cell)
		if err != nil {
			return err
		}
		if r.spot[name] == nil {
			r.spot[name] = map[string]resources.Price{}
		}
		r.spot[name][r.zones[i]] = p
	}
	return nil
}
