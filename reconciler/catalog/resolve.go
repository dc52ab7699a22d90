package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// Settings are the settings of a cluster that change the size of a node.
type Settings struct {
	// VMMemoryOverheadPPM is the share of the advertised memory that the
	// hypervisor is assumed to keep, in millionths: 75000 is Karpenter's
	// default vmMemoryOverheadPercent of 0.075. It is used as it is: start
	// from DefaultSettings.
	VMMemoryOverheadPPM int64
	// ReservedENIs is how many network interfaces of the default card are not
	// for pods.
	ReservedENIs int64
}

// DefaultSettings are Karpenter's defaults.
func DefaultSettings() Settings { return Settings{VMMemoryOverheadPPM: 75_000} }

// SettingsOf reads the settings of a fleet. It fails when the memory overhead is
// not a decimal from 0 to below 1 with at most six decimals, or when the
// reserved interfaces are below zero.
func SettingsOf(e fleet.EngineSettings) (Settings, error) {
	out := DefaultSettings()
	if e.VMMemoryOverheadPercent != "" {
		share, err := parseMillionths(e.VMMemoryOverheadPercent)
		if err != nil {
			return Settings{}, fmt.Errorf("engine.vmMemoryOverheadPercent: %w", err)
		}
		out.VMMemoryOverheadPPM = share
	}
	if e.ReservedENIs < 0 {
		return Settings{}, fmt.Errorf("engine.reservedENIs: %d is below zero", e.ReservedENIs)
	}
	out.ReservedENIs = e.ReservedENIs
	return out, nil
}

// parseMillionths reads a decimal by the rules for prices, which are exact.
func parseMillionths(n json.Number) (int64, error) {
	const perMillionth = resources.USD / million
	p, err := resources.ParsePrice(n.String())
	if err != nil || p < 0 || p >= resources.USD || p%perMillionth != 0 {
		return 0, fmt.Errorf("%s is not a share from 0 to below 1 with at most six decimals: write one such as 0.075", n)
	}
	return int64(p / perMillionth), nil
}

// classInput is what an EC2NodeClass says about its nodes, read once for all
// types.
type classInput struct {
	name     string
	settings Settings
	family   family
	kubelet  kubelet
	raid0    bool
	// rootStorage is the size of the pods' device in bytes.
	rootStorage int64
	// interfaces are those that the class prescribes, nil for none.
	interfaces []*awsv1.NetworkInterface
	// efaOnly are those of them for EFA only; efaOnlyFirstCard those of these
	// on the default card.
	efaOnly, efaOnlyFirstCard int64
	// images are the requirements of the class's images; nil while they are
	// not resolved.
	images []requirements.Set
	// zones are those of the region with the account's names; closed says why
	// nothing can be launched in any, if so.
	zones  []Zone
	closed string
	// Things the class asks of the type.
	nestedVirtualization, placementGroup, connectionTracking bool
	// labels are the sets that classLabels has made.
	labels map[string]requirements.Set
}

// Resolve computes every type of the region for nodes of the class, sorted by
// name. It uses the status of the class: offerings exist only in zones of its
// subnets, and only types that one of its images fits are available. While the
// status has no subnets nothing is available, and the zones are those that
// offer the type. An offering without a listed price does not exist.
//
// It fails when the class names an unknown image family, when a kubelet value
// is not a quantity (expressions are not supported), or when an image has
// malformed requirements.
func (d *Data) Resolve(class *awsv1.EC2NodeClass, s Settings) ([]*InstanceType, error) {
	if class == nil {
		return nil, fmt.Errorf("resolve instance types: no EC2NodeClass was given")
	}
	if s.VMMemoryOverheadPPM < 0 || s.VMMemoryOverheadPPM >= million || s.ReservedENIs < 0 {
		return nil, fmt.Errorf("resolve instance types: settings %+v are out of range", s)
	}
	c, err := d.readClass(class, s)
	if err != nil {
		return nil, fmt.Errorf("EC2NodeClass %q: %w", class.Name, err)
	}
	fixed := d.fixed()
	out := make([]*InstanceType, len(d.types))
	all := make([]InstanceType, len(d.types))
	for i := range d.types {
		d.resolve(&all[i], &d.types[i], fixed[i], c)
		out[i] = &all[i]
	}
	return out, nil
}

// fixedSets are the fixed labels of all types, in their order.
func (d *Data) fixedSets() []requirements.Set {
	out := make([]requirements.Set, len(d.types))
	for i := range d.types {
		out[i] = fixedLabels(&d.types[i], d.region)
	}
	return out
}

func (d *Data) resolve(it *InstanceType, t *Type, fixed requirements.Set, c *classInput) {
	zones := c.zonesOf(t)
	it.Name = t.Name
	it.Requirements = fixed.Merge(c.classLabels(t, zones))
	it.Capacity = c.capacity(t)
	it.Overhead = c.overhead(t, it.Capacity)
	it.Allocatable = allocatable(it.Capacity, it.Overhead)
	reason := cmp.Or(c.closed, c.incompatible(t, it.Requirements))
	types := it.Requirements.Get(karpv1.CapacityTypeLabelKey).Values()
	it.Offerings = make([]Offering, 0, len(types)*len(zones))
	for _, capacityType := range types {
		for _, z := range zones {
			price, ok := d.price(t.Name, z.ID, capacityType)
			if !ok {
				continue
			}
			it.Offerings = append(it.Offerings, Offering{
				Zone: z.Name, ZoneID: z.ID, CapacityType: capacityType, Price: price, Available: reason == "", Reason: reason,
			})
		}
	}
	slices.SortFunc(it.Offerings, func(a, b Offering) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), strings.Compare(a.Zone, b.Zone), strings.Compare(a.CapacityType, b.CapacityType))
	})
}

func (d *Data) price(name, zoneID, capacityType string) (resources.Price, bool) {
	if capacityType == karpv1.CapacityTypeSpot {
		return d.SpotPrice(name, zoneID)
	}
	return d.OnDemandPrice(name)
}

// zonesOf are the zones of the class that offer the type.
func (c *classInput) zonesOf(t *Type) []Zone {
	out := make([]Zone, 0, len(c.zones))
	for _, z := range c.zones {
		if slices.Contains(t.Zones, z.ID) {
			out = append(out, z)
		}
	}
	return out
}

// incompatible is why nodes of the type cannot be made from the class, "" if
// they can (Karpenter, pkg/providers/instancetype/compatibility).
func (c *classInput) incompatible(t *Type, labels requirements.Set) string {
	switch {
	case c.family.name == awsv1.AMIFamilyAL2023 && strings.HasPrefix(t.Name, "a1."):
		return "AL2023 does not run on a1 instances"
	case c.connectionTracking && t.Hypervisor != "nitro":
		return fmt.Sprintf("EC2NodeClass %s sets connection tracking, which needs a nitro instance", c.name)
	case c.nestedVirtualization:
		return fmt.Sprintf("EC2NodeClass %s asks for nested virtualization, and the catalog does not know which types have it", c.name)
	case c.placementGroup:
		return fmt.Sprintf("EC2NodeClass %s selects a placement group, and the catalog does not know which types fit it", c.name)
	case !c.interfacesFit(t):
		return fmt.Sprintf("EC2NodeClass %s prescribes network interfaces that the type does not have", c.name)
	case c.images != nil && !slices.ContainsFunc(c.images, func(image requirements.Set) bool { return labels.IsCompatible(image, nil) }):
		return fmt.Sprintf("no image of EC2NodeClass %s fits the type (architecture %s)", c.name, t.kubeArch())
	}
	return ""
}

func (c *classInput) interfacesFit(t *Type) bool {
	for _, n := range c.interfaces {
		if int(n.NetworkCardIndex) >= len(t.Cards) || int64(n.DeviceIndex) >= t.Cards[n.NetworkCardIndex] {
			return false
		}
	}
	return c.efaOnly <= t.EFAs
}
