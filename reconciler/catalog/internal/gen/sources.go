package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// sources are the collected facts.
type sources struct {
	described  map[string]described
	documented map[string]documented
	limits     map[string][]any
	zones      map[string]zoneTable
	onDemand   map[string]map[string]json.Number // by region; the newest list wins
	spot       map[string]map[string][]json.RawMessage
}

type described struct {
	VCPU   int64    `json:"vcpu"`
	MiB    int64    `json:"mib"`
	Arch   []string `json:"arch"`
	Maker  string   `json:"mfr"`
	MHz    int64    `json:"mhz"`
	Hyp    string   `json:"hyp"`
	Usage  []string `json:"usage"`
	Enc    bool     `json:"encTransit"`
	NVMeGB int64    `json:"nvmeGB"`
	HDDGB  int64    `json:"hddGB"`
	EFA    int64    `json:"efa"`
	IP4    int64    `json:"ip4"`
	Card0  int      `json:"card0"`
	Cards  []int64  `json:"cards"`
	Mbps   int64    `json:"mbps"`
	EBS    struct {
		Support string `json:"support"`
		Max     int64  `json:"max"`
	} `json:"ebs"`
	GPU *struct {
		Name  string `json:"name"`
		Maker string `json:"mfr"`
		Count int64  `json:"count"`
		MiB   int64  `json:"mib"`
	} `json:"gpu"`
	Neuron *struct {
		Name  string `json:"name"`
		Count int64  `json:"count"`
		Cores int64  `json:"cores"`
	} `json:"neuron"`
	Accel *struct {
		Name  string `json:"name"`
		Maker string `json:"mfr"`
		Count int64  `json:"count"`
	} `json:"accel"`
}

type documented struct {
	Labels      map[string]string `json:"labels"`
	Allocatable map[string]string `json:"allocatable"`
}

type zoneTable struct {
	Zones []string       `json:"zones"`
	Types map[string]int `json:"types"`
}

func readSources(dir string) (*sources, error) {
	s := &sources{onDemand: map[string]map[string]json.Number{}}
	var (
		types struct{ Types map[string]described }
		docs  struct{ Types map[string]documented }
		eni   struct{ Types map[string][]any }
		zones struct{ Regions map[string]zoneTable }
		spot  struct {
			Prices map[string]map[string][]json.RawMessage
		}
		regions struct {
			Prices map[string]map[string]json.Number
		}
		newest struct {
			Prices map[string]map[string]json.Number
		}
	)
	for name, into := range map[string]any{
		"describe-instance-types.json": &types, "instance-types.json": &docs, "eni-limits.json": &eni,
		"offerings-zone-ids.json": &zones, "prices-spot.json": &spot,
		"prices-ondemand-regions.json": &regions, "prices-ondemand-karpenter.json": &newest,
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(b, into); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	s.described, s.documented, s.limits, s.zones, s.spot = types.Types, docs.Types, eni.Types, zones.Regions, spot.Prices
	maps.Copy(s.onDemand, regions.Prices)
	maps.Copy(s.onDemand, newest.Prices)
	return s, nil
}

func (s *sources) names() []string { return slices.Sorted(maps.Keys(s.described)) }

// region is the table of one region: on-demand price, then for each zone the
// spot price, "-" where the type is offered without one, nothing where it is
// not offered. The listed spot prices carry no zones; the n-th price, in
// ascending order, goes to the n-th zone that offers the type.
func (s *sources) region(name string) (string, error) {
	zones, ok := s.zones[name]
	if !ok {
		return "", fmt.Errorf("no zones are listed")
	}
	if !slices.IsSorted(zones.Zones) {
		return "", fmt.Errorf("zones are not sorted: %v", zones.Zones)
	}
	var b strings.Builder
	b.WriteString("name\tondemand\t" + strings.Join(zones.Zones, "\t") + "\n")
	for _, t := range s.names() {
		row, err := s.regionRow(name, t, zones)
		if err != nil {
			return "", fmt.Errorf("%s: %w", t, err)
		}
		if strings.Trim(row, "\t") != "" {
			b.WriteString(t + row + "\n")
		}
	}
	return b.String(), nil
}

func (s *sources) regionRow(region, name string, zones zoneTable) (string, error) {
	price, err := decimal(s.onDemand[region][name])
	if err != nil {
		return "", err
	}
	var spot []json.Number
	if row := s.spot[region][name]; len(row) > 0 {
		if err := json.Unmarshal(row[0], &spot); err != nil {
			return "", err
		}
	}
	row, n := "\t"+price, 0
	for i := range zones.Zones {
		row += "\t"
		if zones.Types[name]&(1<<i) == 0 {
			continue
		}
		cell := "-"
		if n < len(spot) {
			if cell, err = decimal(spot[n]); err != nil {
				return "", err
			}
		}
		row += cell
		n++
	}
	return row, nil
}

// decimal is the price as a plain decimal, "" for none.
func decimal(n json.Number) (string, error) {
	if n == "" {
		return "", nil
	}
	p, err := resources.ParsePrice(n.String())
	if err != nil {
		return "", err
	}
	return p.Decimal(), nil
}
