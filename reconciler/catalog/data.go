package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// Zone is an availability zone. The id names the same place in every account,
// the name does not: which zone an account calls "us-east-1a" is up to AWS.
type Zone struct {
	// Name in the account: "us-east-1a".
	Name string `json:"name"`
	// ID is the same in all accounts: "use1-az1".
	ID string `json:"id"`
}

// Type is what EC2 says about an instance type (DescribeInstanceTypes, the
// limits of the VPC resource controller, the bandwidth tables) as far as
// Karpenter turns it into a label or a resource.
type Type struct {
	// Name of the type: "m5.large".
	Name string `json:"name"`
	// Arch is the first supported architecture: "x86_64" or "arm64".
	Arch string `json:"arch"`
	// VCPUs is the default number of virtual CPUs.
	VCPUs int64 `json:"vcpus"`
	// MiB is the advertised memory.
	MiB int64 `json:"mib"`
	// Manufacturer of the processor: "Intel", "AMD", "AWS".
	Manufacturer string `json:"manufacturer"`
	// MHz is the sustained clock speed.
	MHz int64 `json:"mhz"`
	// Hypervisor is "nitro", "xen", or "" for bare metal.
	Hypervisor string `json:"hypervisor"`
	// Usage are the supported usage classes: "on-demand", "spot",
	// "capacity-block".
	Usage []string `json:"usage"`
	// Encrypted says whether traffic between instances is encrypted in
	// transit.
	Encrypted bool `json:"encrypted"`
	// EBSMbps is the largest EBS bandwidth, 0 when the type is not EBS
	// optimized by default.
	EBSMbps int64 `json:"ebsMbps"`
	// NetworkMbps is the network bandwidth, 0 when it is not documented.
	NetworkMbps int64 `json:"networkMbps"`
	// NVMeGB is the total size of local NVMe disks, DiskGB that of other
	// local disks, in decimal gigabytes.
	NVMeGB int64 `json:"nvmeGB"`
	DiskGB int64 `json:"diskGB"`
	// GPU is nil for types without one.
	GPU *GPU `json:"gpu,omitempty"`
	// Neuron is nil for types without AWS Neuron devices.
	Neuron *Neuron `json:"neuron,omitempty"`
	// Accelerator is nil for types without another inference accelerator.
	Accelerator *Accelerator `json:"accelerator,omitempty"`
	// EFAs is how many Elastic Fabric Adapters can be attached.
	EFAs int64 `json:"efas"`
	// Cards is how many network interfaces each network card takes. Pods get
	// addresses from the first card, which is the default one.
	Cards []int64 `json:"cards"`
	// IPv4 is the number of addresses of one network interface.
	IPv4 int64 `json:"ipv4"`
	// BranchENIs is the number of branch interfaces for security groups for
	// pods, 0 for types that cannot have any. VPCLimits says whether the VPC
	// resource controller knows the type at all.
	BranchENIs int64 `json:"branchENIs"`
	VPCLimits  bool  `json:"vpcLimits"`
	// Zones are the ids of the zones that offer the type, sorted.
	Zones []string `json:"zones"`
}

// GPU is the graphics processor of a type.
type GPU struct {
	// Count per instance.
	Count int64 `json:"count"`
	// Manufacturer: "NVIDIA", "AMD", "Habana".
	Manufacturer string `json:"manufacturer"`
	// Name: "L4".
	Name string `json:"name"`
	// MiB is the memory of each.
	MiB int64 `json:"mib"`
}

// Neuron is the AWS machine learning device of a type.
type Neuron struct {
	// Count of devices per instance.
	Count int64 `json:"count"`
	// Cores of each device.
	Cores int64 `json:"cores"`
	// Name: "Inferentia2".
	Name string `json:"name"`
}

// Accelerator is an inference accelerator that is not a Neuron device.
type Accelerator struct {
	// Count per instance.
	Count int64 `json:"count"`
	// Manufacturer: "qualcomm".
	Manufacturer string `json:"manufacturer"`
	// Name: "qualcomm-ai100".
	Name string `json:"name"`
}

// Bare says whether the type is bare metal.
func (t *Type) Bare() bool { return t.Hypervisor == "" }

// StorageGB is the total size of the local disks in decimal gigabytes.
func (t *Type) StorageGB() int64 { return t.NVMeGB + t.DiskGB }

// OnDemandPrices are prices in the region by type.
type OnDemandPrices map[string]resources.Price

// SpotPrices are prices by type and zone id.
type SpotPrices map[string]map[string]resources.Price

// Data is everything about one region that decisions depend on: which types
// there are, where they are offered, and what they cost. It is an immutable
// value; what its methods return must not be changed.
type Data struct {
	region   string
	zones    []Zone
	types    []Type
	onDemand OnDemandPrices
	spot     SpotPrices
	// files, digests and fixed are computed when first needed.
	files   func() map[string][]byte
	digests func() digests
	fixed   func() []requirements.Set
}

// New makes the data of a region. It sorts zones by id and types by name, and
// fails when a name is missing or repeated, when a type is offered in a zone
// that is not listed, or when a price is not above zero or has no such type or
// zone.
func New(region string, zones []Zone, types []Type, onDemand OnDemandPrices, spot SpotPrices) (*Data, error) {
	d := &Data{
		region:   region,
		zones:    slices.Clone(zones),
		types:    slices.Clone(types),
		onDemand: maps.Clone(onDemand),
		spot:     make(SpotPrices, len(spot)),
	}
	for name, byZone := range spot {
		if len(byZone) > 0 {
			d.spot[name] = maps.Clone(byZone)
		}
	}
	slices.SortFunc(d.zones, func(a, b Zone) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(d.types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	if err := cmp.Or(d.checkZones(), d.checkTypes(), d.checkPrices()); err != nil {
		return nil, fmt.Errorf("catalog of region %q: %w", region, err)
	}
	d.files = sync.OnceValue(d.encode)
	d.digests = sync.OnceValue(d.digest)
	d.fixed = sync.OnceValue(d.fixedSets)
	return d, nil
}

func (d *Data) checkZones() error {
	if d.region == "" {
		return fmt.Errorf("the region has no name")
	}
	for i, z := range d.zones {
		if z.ID == "" || z.Name == "" {
			return fmt.Errorf("zone %d has name %q and id %q: both are needed", i, z.Name, z.ID)
		}
		if i > 0 && z.ID == d.zones[i-1].ID {
			return fmt.Errorf("zone %s is there twice", z.ID)
		}
	}
	return nil
}

func (d *Data) checkTypes() error {
	for i := range d.types {
		t := &d.types[i]
		if t.Name == "" || t.VCPUs <= 0 || t.MiB <= 0 || len(t.Cards) == 0 {
			return fmt.Errorf("type %q needs a name, CPUs, memory and a network card", t.Name)
		}
		if i > 0 && t.Name == d.types[i-1].Name {
			return fmt.Errorf("type %s is there twice", t.Name)
		}
		for j, id := range t.Zones {
			if _, ok := d.zone(id); !ok {
				return fmt.Errorf("type %s is offered in zone %q, which the region does not have", t.Name, id)
			}
			if j > 0 && id <= t.Zones[j-1] {
				return fmt.Errorf("type %s: zones are not sorted: %v", t.Name, t.Zones)
			}
		}
	}
	return nil
}

func (d *Data) checkPrices() error {
	for _, name := range slices.Sorted(maps.Keys(d.onDemand)) {
		if err := d.checkPrice(name, d.onDemand[name]); err != nil {
			return fmt.Errorf("on-demand price of %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.spot)) {
		for _, id := range slices.Sorted(maps.Keys(d.spot[name])) {
			if _, ok := d.zone(id); !ok {
				return fmt.Errorf("spot price of %s: the region has no zone %q", name, id)
			}
			if err := d.checkPrice(name, d.spot[name][id]); err != nil {
				return fmt.Errorf("spot price of %s in %s: %w", name, id, err)
			}
		}
	}
	return nil
}

func (d *Data) checkPrice(name string, p resources.Price) error {
	if _, ok := d.Type(name); !ok {
		return fmt.Errorf("there is no such type")
	}
	if p <= 0 {
		return fmt.Errorf("%s is not above zero", p)
	}
	return nil
}

func (d *Data) zone(id string) (Zone, bool) {
	i, ok := slices.BinarySearchFunc(d.zones, id, func(z Zone, id string) int { return strings.Compare(z.ID, id) })
	if !ok {
		return Zone{}, false
	}
	return d.zones[i], true
}

// Region is the name of the region: "ap-northeast-2".
func (d *Data) Region() string { return d.region }

// Zones are the zones of the region, sorted by id.
func (d *Data) Zones() []Zone { return d.zones }

// Types are the types, sorted by name.
func (d *Data) Types() []Type { return d.types }

// Type is the type of that name.
func (d *Data) Type(name string) (*Type, bool) {
	i, ok := slices.BinarySearchFunc(d.types, name, func(t Type, n string) int { return strings.Compare(t.Name, n) })
	if !ok {
		return nil, false
	}
	return &d.types[i], true
}

// OnDemandPrice is the listed on-demand price of the type.
func (d *Data) OnDemandPrice(name string) (resources.Price, bool) {
	p, ok := d.onDemand[name]
	return p, ok
}

// SpotPrice is the listed spot price of the type in the zone with that id.
func (d *Data) SpotPrice(name, zoneID string) (resources.Price, bool) {
	p, ok := d.spot[name][zoneID]
	return p, ok
}

// WithPrices is the same region with other prices. It fails as New does.
func (d *Data) WithPrices(onDemand OnDemandPrices, spot SpotPrices) (*Data, error) {
	return New(d.region, d.zones, d.types, onDemand, spot)
}
