package report

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// CatalogText writes instance types as a table.
func CatalogText(w io.Writer, types []*catalog.InstanceType) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "TYPE\tARCH\tCPU\tMEMORY\tPODS\tON-DEMAND\tSPOT FROM\tZONES")
	for _, t := range types {
		arch, _ := t.Requirements.Get("kubernetes.io/arch").Single()
		a := t.Allocatable.Kubernetes()
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", t.Name, arch, a.Cpu(), a.Memory(), a.Pods(),
			from(t, "on-demand"), from(t, "spot"), zones(t))
	}
	return tw.Flush()
}

// from is the lowest price of the capacity type, or a dash.
func from(t *catalog.InstanceType, capacityType string) string {
	for _, o := range t.Offerings {
		if o.Available && o.CapacityType == capacityType {
			return o.Price.String()
		}
	}
	return "-"
}

func zones(t *catalog.InstanceType) int {
	seen := map[string]bool{}
	for _, o := range t.Offerings {
		if o.Available {
			seen[o.Zone] = true
		}
	}
	return len(seen)
}

// CatalogJSON writes instance types with everything the engine knows of them.
func CatalogJSON(w io.Writer, types []*catalog.InstanceType) error {
	type offering struct {
		Zone         string          `json:"zone"`
		ZoneID       string          `json:"zoneID"`
		CapacityType string          `json:"capacityType"`
		Price        resources.Price `json:"price"`
	}
	type row struct {
		Name         string           `json:"name"`
		Capacity     resources.List   `json:"capacity"`
		Overhead     resources.List   `json:"overhead"`
		Allocatable  resources.List   `json:"allocatable"`
		Requirements requirements.Set `json:"requirements"`
		Offerings    []offering       `json:"offerings"`
	}
	out := make([]row, 0, len(types))
	for _, t := range types {
		r := row{Name: t.Name, Capacity: t.Capacity, Overhead: t.Overhead, Allocatable: t.Allocatable, Requirements: t.Requirements, Offerings: []offering{}}
		for _, o := range t.Offerings {
			if o.Available {
				r.Offerings = append(r.Offerings, offering{o.Zone, o.ZoneID, o.CapacityType, o.Price})
			}
		}
		out = append(out, r)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
