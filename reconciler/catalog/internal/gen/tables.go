package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/reeve-project/reeve/reconciler/catalog"
)

func isExpected(name string) bool { return strings.HasPrefix(name, "expected") }

// types is the table of types; its columns are those of catalog.TypeColumns.
func (s *sources) types() string {
	var b strings.Builder
	b.WriteString(strings.Join(catalog.TypeColumns, "\t") + "\n")
	for _, name := range s.names() {
		b.WriteString(strings.Join(s.typeRow(name, s.described[name]), "\t") + "\n")
	}
	return b.String()
}

func (s *sources) typeRow(name string, d described) []string {
	ebs := int64(0)
	if d.EBS.Support == "default" {
		ebs = d.EBS.Max
	}
	slices.Sort(d.Usage)
	return []string{
		name, d.Arch[0], number(d.VCPU), number(d.MiB), d.Maker, number(d.MHz), d.Hyp, strings.Join(d.Usage, ","),
		strconv.FormatBool(d.Enc), number(ebs), number(d.Mbps), number(d.NVMeGB), number(d.HDDGB),
		gpu(d), neuron(d), accelerator(d), number(d.EFA), cards(d), number(d.IP4), s.branch(name),
	}
}

// number leaves the cell of a zero empty.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func gpu(d described) string {
	if d.GPU == nil {
		return ""
	}
	return fmt.Sprintf("%d|%s|%s|%d", d.GPU.Count, d.GPU.Maker, d.GPU.Name, d.GPU.MiB)
}

func neuron(d described) string {
	if d.Neuron == nil {
		return ""
	}
	return fmt.Sprintf("%d|%d|%s", d.Neuron.Count, d.Neuron.Cores, d.Neuron.Name)
}

func accelerator(d described) string {
	if d.Accel == nil {
		return ""
	}
	return fmt.Sprintf("%d|%s|%s", d.Accel.Count, d.Accel.Maker, d.Accel.Name)
}

// cards puts the default card first.
func cards(d described) string {
	order := slices.Concat(d.Cards[d.Card0:d.Card0+1], d.Cards[:d.Card0], d.Cards[d.Card0+1:])
	out := make([]string, len(order))
	for i, n := range order {
		out[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(out, ",")
}

// branch is empty for types that the VPC resource controller does not know, and
// 0 for those that cannot have branch interfaces. Columns 2 and 3 of the limits
// say whether trunking is possible and with how many interfaces.
func (s *sources) branch(name string) string {
	row, ok := s.limits[name]
	switch {
	case !ok:
		return ""
	case row[2] != float64(1):
		return "0"
	default:
		return fmt.Sprint(row[3])
	}
}

// The resources that expected-allocatable.tsv has as columns, after the name.
var allocatable = []string{
	"cpu", "memory", "pods", "ephemeral-storage", "vpc.amazonaws.com/pod-eni", "vpc.amazonaws.com/efa",
	"nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore",
}

func (s *sources) expectedAllocatable() string {
	var b strings.Builder
	b.WriteString("name\t" + strings.Join(allocatable, "\t") + "\n")
	for _, name := range slices.Sorted(maps.Keys(s.documented)) {
		b.WriteString(name)
		for _, r := range allocatable {
			b.WriteString("\t" + s.documented[name].Allocatable[r])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// expectedLabels has the documented labels as columns; a cell of "~" is a label
// that the type does not have, an empty cell is the empty value.
func (s *sources) expectedLabels() string {
	keys := map[string]bool{}
	for _, d := range s.documented {
		for k := range d.Labels {
			keys[k] = true
		}
	}
	columns := slices.Sorted(maps.Keys(keys))
	var b strings.Builder
	b.WriteString("name")
	for _, k := range columns {
		b.WriteString("\t" + strings.Replace(k, "k/", "karpenter.k8s.aws/", 1))
	}
	b.WriteByte('\n')
	for _, name := range slices.Sorted(maps.Keys(s.documented)) {
		b.WriteString(name)
		for _, k := range columns {
			v, ok := s.documented[name].Labels[k]
			if !ok {
				v = "~"
			}
			b.WriteString("\t" + v)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
