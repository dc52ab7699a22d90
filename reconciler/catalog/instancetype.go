package catalog

import (
	"cmp"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// InstanceType is what a node of one type looks like when it is made from one
// EC2NodeClass. It is an immutable value that may be shared.
type InstanceType struct {
	// Name of the type: "m5.large".
	Name string
	// Requirements are the labels that such a node can have. Labels with
	// several values (zone, capacity type) are fixed by the offering; labels
	// that such a node never has are there as DoesNotExist.
	Requirements requirements.Set
	// Capacity is what the node reports as its capacity.
	Capacity resources.List
	// Overhead is what kubelet and system keep back from it.
	Overhead resources.List
	// Allocatable is Capacity less Overhead, at least zero: what pods get.
	Allocatable resources.List
	// Offerings are sorted by price, then zone, then capacity type.
	Offerings []Offering
}

// Offering is one way to buy an instance type: a zone and a capacity type.
type Offering struct {
	// Zone is the name of the zone in the account.
	Zone string
	// ZoneID names the same zone in every account.
	ZoneID string
	// CapacityType is "on-demand" or "spot".
	CapacityType string
	// Price per hour.
	Price resources.Price
	// Available says whether it can be launched now.
	Available bool
	// Reason is why it is not available, empty if it is.
	Reason string
}

// OfferingKey names an offering among all instance types.
type OfferingKey struct {
	// InstanceType is the name of the type.
	InstanceType string
	// Zone is the name of the zone in the account.
	Zone string
	// CapacityType is "on-demand" or "spot".
	CapacityType string
}

// Meets says whether the requirements allow the offering's zone, zone id and
// capacity type. It does not look at Available.
func (o Offering) Meets(reqs requirements.Set) bool {
	return allows(reqs, corev1.LabelTopologyZone, o.Zone) &&
		allows(reqs, awsv1.LabelTopologyZoneID, o.ZoneID) &&
		allows(reqs, karpv1.CapacityTypeLabelKey, o.CapacityType)
}

func allows(reqs requirements.Set, key, value string) bool {
	r, ok := reqs.Lookup(key)
	return !ok || r.Has(value)
}

// Cheapest is the cheapest available offering that the requirements allow. It
// looks at zone and capacity type only, not at the type's other labels.
func (it *InstanceType) Cheapest(reqs requirements.Set) (Offering, bool) {
	for _, o := range it.Offerings {
		if o.Available && o.Meets(reqs) {
			return o, true
		}
	}
	return Offering{}, false
}

// Exotic says whether the type is bare metal or has accelerators. Karpenter
// launches such types only when nothing else is left
// (pkg/providers/instance/filter).
func (it *InstanceType) Exotic() bool {
	_, size, _ := strings.Cut(it.Name, ".")
	if strings.Contains(size, "metal") {
		return true
	}
	return slices.ContainsFunc(exoticResources, func(name corev1.ResourceName) bool { return it.Capacity[name] > 0 })
}

var exoticResources = []corev1.ResourceName{
	awsv1.ResourceNVIDIAGPU, awsv1.ResourceAMDGPU, awsv1.ResourceAWSNeuron, awsv1.ResourceAWSNeuronCore, awsv1.ResourceHabanaGaudi,
}

// SortByPrice is the types in the order of their cheapest available offering
// that the requirements allow, then by name. Types without one come last.
func SortByPrice(types []*InstanceType, reqs requirements.Set) []*InstanceType {
	type priced struct {
		it    *InstanceType
		price resources.Price
		ok    bool
	}
	all := make([]priced, len(types))
	for i, it := range types {
		o, ok := it.Cheapest(reqs)
		all[i] = priced{it, o.Price, ok}
	}
	slices.SortStableFunc(all, func(a, b priced) int {
		if a.ok != b.ok {
			if a.ok {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.price, b.price), strings.Compare(a.it.Name, b.it.Name))
	})
	out := make([]*InstanceType, len(all))
	for i, p := range all {
		out[i] = p.it
	}
	return out
}

// WithUnavailable is the types with the given offerings marked as not available
// for the given reasons. Types that are not concerned are shared with the
// input, the others are copies. An offering that was not available before keeps
// its reason.
func WithUnavailable(types []*InstanceType, reasons map[OfferingKey]string) []*InstanceType {
	if len(reasons) == 0 {
		return types
	}
	concerned := make(map[string]bool, len(reasons))
	for key := range reasons {
		concerned[key.InstanceType] = true
	}
	out := slices.Clone(types)
	for i, it := range out {
		if !concerned[it.Name] {
			continue
		}
		c := *it
		c.Offerings = slices.Clone(it.Offerings)
		for j := range c.Offerings {
			o := &c.Offerings[j]
			reason, ok := reasons[OfferingKey{it.Name, o.Zone, o.CapacityType}]
			if ok && o.Available {
				o.Available, o.Reason = false, reason
			}
		}
		out[i] = &c
	}
	return out
}
