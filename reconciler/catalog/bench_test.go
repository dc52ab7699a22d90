package catalog

import (
	"testing"

	"github.com/reeve-project/reeve/reconciler/requirements"
)

func BenchmarkResolveAllTypes(b *testing.B) {
	d := embeddedData(b, "us-east-1")
	class := al2023(d)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Resolve(class, DefaultSettings()); err != nil {
			b.Fatal(err)
		}
	}
}

// Cold is what a process pays the first time: reading the tables as well.
func BenchmarkResolveAllTypesCold(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		types, err := readTypes(embedded)
		if err != nil {
			b.Fatal(err)
		}
		d, err := readRegion(embedded, "us-east-1", types)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := d.Resolve(al2023(d), DefaultSettings()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigests(b *testing.B) {
	d := embeddedData(b, "us-east-1")
	for b.Loop() {
		d.encode()
	}
}

func BenchmarkSortByPrice(b *testing.B) {
	d := embeddedData(b, "us-east-1")
	types, err := d.Resolve(al2023(d), DefaultSettings())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		SortByPrice(types, requirements.Set{})
	}
}
