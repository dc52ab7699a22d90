package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// Names of the files that hold a Data in the ledger, under inputs/catalog.
const (
	// TypesFile has region, zones and types, one type per line.
	TypesFile = "types.json"
	// OnDemandFile has the on-demand prices, one type per line.
	OnDemandFile = "ondemand.json"
	// SpotFile has the spot prices: a row per type, a column per zone.
	SpotFile = "spot.tsv"
)

// Decimals that every spot price has at least, so that columns line up.
const spotDecimals = 4

// Files are the data as the ledger stores them, by file name. Types change with
// releases, prices often: they are apart so that a refresh of prices is a small
// change in Git. The bytes depend on nothing but the data.
func (d *Data) Files() map[string][]byte { return maps.Clone(d.files()) }

// TypesDigest is the digest of region, zones and types: "sha256:" and 64
// hexadecimal digits over TypesFile.
func (d *Data) TypesDigest() string { return d.digests().types }

// PricesDigest is the digest of all prices: "sha256:" and 64 hexadecimal digits
// over OnDemandFile followed by SpotFile.
func (d *Data) PricesDigest() string { return d.digests().prices }

// digests are computed once: every decision names them, and the files have
// some megabytes.
type digests struct{ types, prices string }

func (d *Data) digest() digests {
	files := d.files()
	return digests{types: digest(files[TypesFile]), prices: digest(files[OnDemandFile], files[SpotFile])}
}

func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func (d *Data) encode() map[string][]byte {
	return map[string][]byte{TypesFile: d.encodeTypes(), OnDemandFile: d.encodeOnDemand(), SpotFile: d.encodeSpot()}
}

// typesFile is the form of types.json.
type typesFile struct {
	Region string `json:"region"`
	Zones  []Zone `json:"zones"`
	Types  []Type `json:"types"`
}

func (d *Data) encodeTypes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n\"region\":%s,\n\"zones\":%s,\n\"types\":[", mustJSON(d.region), mustJSON(slices.Concat([]Zone{}, d.zones)))
	for i := range d.types {
		t := d.types[i]
		t.Usage, t.Zones = slices.Concat([]string{}, t.Usage), slices.Concat([]string{}, t.Zones)
		writeLine(&b, i, mustJSON(t))
	}
	b.WriteString("\n]\n}\n")
	return b.Bytes()
}

func (d *Data) encodeOnDemand() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(d.onDemand)) {
		writeLine(&b, i, append(append(mustJSON(name), ':'), d.onDemand[name].Decimal()...))
	}
	b.WriteString("\n}\n")
	return b.Bytes()
}

func writeLine(b *bytes.Buffer, i int, line []byte) {
	if i > 0 {
		b.WriteByte(',')
	}
	b.WriteByte('\n')
	b.Write(line)
}

// mustJSON encodes strings, whole numbers and booleans, which cannot fail.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func (d *Data) encodeSpot() []byte {
	var b bytes.Buffer
	b.WriteString("type")
	for _, z := range d.zones {
		b.WriteString("\t" + z.ID)
	}
	b.WriteByte('\n')
	for _, name := range slices.Sorted(maps.Keys(d.spot)) {
		b.WriteString(name)
		for _, z := range d.zones {
			b.WriteByte('\t')
			if p, ok := d.spot[name][z.ID]; ok {
				b.WriteString(padDecimal(p.Decimal()))
			}
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func padDecimal(s string) string {
	whole, frac, _ := strings.Cut(s, ".")
	if missing := spotDecimals - len(frac); missing > 0 {
		frac += strings.Repeat("0", missing)
	}
	return whole + "." + frac
}

// FromFiles reads what Files gives. The function returns the bytes of a file by
// its name. It fails when a file is missing or malformed, and as New does.
func FromFiles(read func(name string) ([]byte, error)) (*Data, error) {
	raw := map[string][]byte{}
	for _, name := range []string{TypesFile, OnDemandFile, SpotFile} {
		b, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("catalog file %s: %w", name, err)
		}
		raw[name] = b
	}
	var head typesFile
	if err := strictJSON(raw[TypesFile], &head); err != nil {
		return nil, fmt.Errorf("catalog file %s: %w", TypesFile, err)
	}
	var onDemand OnDemandPrices
	if err := strictJSON(raw[OnDemandFile], &onDemand); err != nil {
		return nil, fmt.Errorf("catalog file %s: %w", OnDemandFile, err)
	}
	spot, err := parseSpot(raw[SpotFile])
	if err != nil {
		return nil, fmt.Errorf("catalog file %s: %w", SpotFile, err)
	}
	return New(head.Region, head.Zones, head.Types, onDemand, spot)
}

func strictJSON(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return fmt.Errorf("something follows the JSON value")
	}
	return nil
}

func parseSpot(b []byte) (SpotPrices, error) {
	rows := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	columns := strings.Split(rows[0], "\t")
	if columns[0] != "type" {
		return nil, fmt.Errorf("line 1: the first column is %q, not \"type\"", columns[0])
	}
	out := make(SpotPrices, len(rows)-1)
	for i, row := range rows[1:] {
		cells := strings.Split(row, "\t")
		if len(cells) != len(columns) {
			return nil, fmt.Errorf("line %d has %d columns, the head has %d", i+2, len(cells), len(columns))
		}
		if _, twice := out[cells[0]]; twice {
			return nil, fmt.Errorf("line %d: type %s is there twice", i+2, cells[0])
		}
		byZone := make(map[string]resources.Price, len(cells)-1)
		for j, cell := range cells[1:] {
			if cell == "" {
				continue
			}
			p, err := resources.ParsePrice(cell)
			if err != nil {
				return nil, fmt.Errorf("line %d, zone %s: %w", i+2, columns[j+1], err)
			}
			byZone[columns[j+1]] = p
		}
		out[cells[0]] = byZone
	}
	return out, nil
}
