package awsapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// freeAddresses is how many a subnet has unless it says otherwise: those of a
// /20 but for the five that AWS keeps.
const freeAddresses = 4091

// Subnet of the account.
type Subnet struct {
	// ID is "subnet-0…".
	ID string
	// Zone is the name of its zone.
	Zone string
	// ZoneID is that of the zone; it follows from Zone unless set.
	ZoneID string
	// Free is how many addresses it has left; 4091 unless set, and below zero
	// for none.
	Free int
	// Tags of the subnet.
	Tags map[string]string
}

// SecurityGroup of the account.
type SecurityGroup struct {
	// ID is "sg-0…".
	ID string
	// Name of the group.
	Name string
	// Tags of the group.
	Tags map[string]string
}

// Image of the account or of Amazon.
type Image struct {
	// ID is "ami-0…".
	ID string
	// Name of the image.
	Name string
	// Family is how it boots: "al2023", "bottlerocket", or "" for an image
	// that knows nothing of EKS.
	Family string
	// Architecture is "x86_64" or "arm64".
	Architecture string
	// Created is when it was made, Deprecated when it is no longer listed
	// unless asked for; zero is never.
	Created, Deprecated time.Time
	// Owner is the account that owns it, or an alias such as "amazon"; this
	// account unless set.
	Owner string
	// Tags of the image.
	Tags map[string]string
}

// Pool is what EC2 has capacity of: an instance type in a zone, on-demand or
// spot.
type Pool struct {
	// InstanceType is "m5.large".
	InstanceType string
	// Zone is its name.
	Zone string
	// CapacityType is "on-demand" or "spot".
	CapacityType string
}

// Instance is an EC2 instance as tests and other services see it.
type Instance struct {
	// ID is "i-0…".
	ID string
	// ProviderID is "aws:///<zone>/<id>".
	ProviderID string
	// Type is "m5.large".
	Type string
	// Zone is its name, ZoneID the same for all accounts.
	Zone, ZoneID string
	// CapacityType is "on-demand" or "spot".
	CapacityType string
	// Price per hour when it was launched; zero if none is listed.
	Price resources.Price
	// ImageID, SubnetID, SecurityGroups and Profile are what it was launched
	// with.
	ImageID, SubnetID string
	SecurityGroups    []string
	Profile           string
	// Node is the name of its node, if one joins.
	Node string
	// State is "pending", "running", "shutting-down" or "terminated".
	State string
	// Launched is when.
	Launched time.Time
	// Tags of the instance.
	Tags map[string]string
	// SpotRequest is "sir-…" for spot instances.
	SpotRequest string
	// Fleet is the id of the fleet that launched it, "" for a managed node.
	Fleet string
	// Managed says that it belongs to a managed node group.
	Managed bool
	// Trouble is why its node can never join, as its console would tell; ""
	// if it can.
	Trouble string
}

// ec2State is what EC2 knows.
type ec2State struct {
	subnets    []*Subnet
	groups     []SecurityGroup
	images     []Image
	parameters map[string]string
	templates  []*template
	instances  []*instance
	tokens     map[string]*answered
	capacity   map[Pool]int
	shapes     map[shape]map[string]size
	quotas     map[string]int
	// onState and onWarning are told of what happens to instances; they are
	// called with the mutex held.
	onState   []func(Instance)
	onWarning []func(Instance)
	// leftovers tell what other services still have of ours; they are called
	// with the mutex held.
	leftovers []func() []string
	// launched counts the instances that there ever were.
	launched int
}

func newEC2State(o Options) (*ec2State, error) {
	s := &ec2State{parameters: map[string]string{}, tokens: map[string]*answered{}, capacity: map[Pool]int{}, quotas: map[string]int{}, shapes: map[shape]map[string]size{}}
	for _, name := range o.Zones {
		if _, ok := o.zone(name); !ok {
			return nil, fmt.Errorf("region %s has no zone %q", o.Catalog.Region(), name)
		}
	}
	if err := s.addSubnets(&o); err != nil {
		return nil, err
	}
	s.groups = slices.Clone(o.SecurityGroups)
	if o.SecurityGroups == nil {
		s.groups = []SecurityGroup{{ID: "sg-0" + sim.HexID(o.Cluster, "nodes"), Name: o.Cluster + "-node", Tags: discovery(o.Cluster)}}
	}
	for _, im := range o.Images {
		im.Owner = cmp.Or(im.Owner, o.Account)
		s.images = append(s.images, im)
	}
	for _, family := range []string{"al2023", "bottlerocket"} {
		for i, version := range o.Releases[family] {
			s.release(family, version, o.KubernetesVersion, i == len(o.Releases[family])-1)
		}
	}
	return s, nil
}

func discovery(cluster string) map[string]string {
	return map[string]string{"karpenter.sh/discovery": cluster}
}

func (s *ec2State) addSubnets(o *Options) error {
	list := o.Subnets
	if list == nil {
		for _, z := range o.Catalog.Zones() {
			if o.Zones == nil || slices.Contains(o.Zones, z.Name) {
				list = append(list, Subnet{ID: "subnet-0" + sim.HexID(o.Cluster, z.ID), Zone: z.Name, Tags: discovery(o.Cluster)})
			}
		}
	}
	for _, sub := range list {
		z, ok := o.zone(sub.Zone)
		if !ok {
			return fmt.Errorf("subnet %s lies in zone %q, which region %s does not have", sub.ID, sub.Zone, o.Catalog.Region())
		}
		sub.ZoneID = z.ID
		sub.Free = max(cmp.Or(sub.Free, freeAddresses), 0)
		s.subnets = append(s.subnets, &sub)
	}
	return nil
}

// Release publishes a newer release of the images of a family: "al2023",
// "v20260405".
func (e *Endpoint) Release(family, version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ec2.release(strings.ToLower(family), version, e.options.KubernetesVersion, true)
}

// SetFree says how many addresses a subnet has left.
func (e *Endpoint) SetFree(subnet string, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.ec2.subnet(subnet); s != nil {
		s.Free = n
	}
}

func (s *ec2State) subnet(id string) *Subnet {
	i := slices.IndexFunc(s.subnets, func(s *Subnet) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return s.subnets[i]
}

func (s *ec2State) image(id string) *Image {
	i := slices.IndexFunc(s.images, func(im Image) bool { return im.ID == id })
	if i < 0 {
		return nil
	}
	return &s.images[i]
}
