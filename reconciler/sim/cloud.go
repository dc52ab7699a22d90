package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/port"
)

const (
	// pendingTime is how long an instance is pending before it runs.
	pendingTime = 5 * time.Second
	// shutdownTime is how long a terminated instance is listed as shutting
	// down.
	shutdownTime = 20 * time.Second

	tagClaim = "karpenter.sh/nodeclaim"
)

// CloudOptions are what the account looks like.
type CloudOptions struct {
	// Cluster is the name of the EKS cluster.
	Cluster string
	// Catalog is the region with its prices.
	Catalog *catalog.Data
	// Settings of the sizes of nodes; Karpenter's defaults unless set.
	Settings *catalog.Settings
	// Zones are the names of those with a subnet; all of the region unless
	// set.
	Zones []string
	// Subnets of the account; one in each of Zones, tagged
	// karpenter.sh/discovery=<cluster>, unless set.
	Subnets []Subnet
	// SecurityGroups of the account; one with that tag unless set.
	SecurityGroups []SecurityGroup
	// Releases are the versions of the EKS AMIs of each family, oldest first,
	// by alias family: {"al2023": {"v20260318"}}.
	Releases map[string][]string
	// Boot is how an instance starts; as Timing says unless set.
	Boot func(port.Instance) Boot
}

// Subnet of the account.
type Subnet struct {
	ID, Zone, ZoneID string
	Tags             map[string]string
}

// SecurityGroup of the account.
type SecurityGroup struct {
	ID, Name string
	Tags     map[string]string
}

// Pool is what EC2 has capacity of: an instance type in a zone, on-demand or
// spot.
type Pool struct {
	InstanceType, Zone, CapacityType string
}

// Cloud is EC2 in memory as a port.Cloud.
type Cloud struct {
	world     *World
	options   CloudOptions
	settings  catalog.Settings
	data      *catalog.Data
	pools     map[Pool]int
	launches  map[string]*launch
	instances []*instance
	// queue is told of what happens to instances; nil until Attach.
	queue *Queue
	// onLaunch is told of every launch right before it happens, onTerminate of
	// every instance that Reeve terminates.
	onLaunch    []func(port.LaunchRequest)
	onTerminate []func(*instance)
}

var _ port.Cloud = (*Cloud)(nil)

type instance struct {
	port.Instance
	managed bool
}

// launch is what a client token stands for.
type launch struct {
	input  string
	result port.LaunchResult
}

// NewCloud is an account without instances. It fails without a catalog or
// cluster name.
func NewCloud(w *World, o CloudOptions) (*Cloud, error) {
	if o.Catalog == nil || o.Cluster == "" {
		return nil, fmt.Errorf("simulated cloud: a catalog and the name of the cluster are needed")
	}
	c := &Cloud{world: w, options: o, settings: catalog.DefaultSettings(), data: o.Catalog, pools: map[Pool]int{}, launches: map[string]*launch{}}
	if o.Settings != nil {
		c.settings = *o.Settings
	}
	discovery := map[string]string{"karpenter.sh/discovery": o.Cluster}
	if o.Subnets == nil {
		for _, z := range o.Catalog.Zones() {
			if o.Zones != nil && !slices.Contains(o.Zones, z.Name) {
				continue
			}
			c.options.Subnets = append(c.options.Subnets, Subnet{ID: "subnet-0" + HexID(o.Cluster, z.ID), Zone: z.Name, ZoneID: z.ID, Tags: discovery})
		}
	}
	if o.SecurityGroups == nil {
		c.options.SecurityGroups = []SecurityGroup{{ID: "sg-0" + HexID(o.Cluster, "nodes"), Name: o.Cluster + "-node", Tags: discovery}}
	}
	if o.Releases == nil {
		c.options.Releases = map[string][]string{"al2023": {"v20260318"}, "bottlerocket": {"v1.50.0"}}
	}
	return c, nil
}

// HexID is 16 hexadecimal digits that follow from the parts: the end of the ids
// of simulated instances, subnets and images. Equal parts give equal digits.
func HexID(parts ...any) string {
	return strings.ReplaceAll(string(uid(parts...)), "-", "")[:16]
}

// Catalog is what can be bought, at the prices of now.
func (c *Cloud) Catalog(ctx context.Context) (*catalog.Data, error) {
	var out *catalog.Data
	err := c.world.call(ctx, "cloud", "Catalog", "", func() error { out = c.data; return nil })
	return out, err
}

// SetCatalog changes what can be bought and its prices.
func (c *Cloud) SetCatalog(d *catalog.Data) { c.data = d }

// SetCapacity says how many more instances EC2 has of the pool; below zero is
// without bound, as every pool is at first.
func (c *Cloud) SetCapacity(p Pool, n int) { c.pools[p] = n }

// Instances lists what runs in the name of the cluster: not the instances of
// managed node groups, and not what has been terminated for a while.
func (c *Cloud) Instances(ctx context.Context) ([]port.Instance, error) {
	var out []port.Instance
	err := c.world.call(ctx, "cloud", "Instances", "", func() error {
		out = c.list()
		return nil
	})
	return out, err
}

func (c *Cloud) list() []port.Instance {
	var out []port.Instance
	for _, in := range c.instances {
		if !in.managed && in.Tags[ec2v1.EKSClusterNameTagKey] == c.options.Cluster && in.Tags[karpv1.NodePoolLabelKey] != "" && in.State != stateTerminated {
			out = append(out, in.value())
		}
	}
	slices.SortFunc(out, func(a, b port.Instance) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// value is a copy that the caller may keep.
func (in *instance) value() port.Instance {
	out := in.Instance
	out.Tags = maps.Clone(in.Tags)
	return out
}

// Terminate terminates the instances.
func (c *Cloud) Terminate(ctx context.Context, ids []string) error {
	return c.world.call(ctx, "cloud", "Terminate", strings.Join(ids, ","), func() error {
		for _, id := range ids {
			if in := c.find(id); in != nil && in.alive() {
				for _, f := range c.onTerminate {
					f(in)
				}
				c.Kill(id)
			}
		}
		return nil
	})
}

// Tag adds tags to the instance.
func (c *Cloud) Tag(ctx context.Context, id string, tags map[string]string) error {
	return c.world.call(ctx, "cloud", "Tag", id, func() error {
		in := c.find(id)
		if in == nil {
			return fmt.Errorf("instance %s: %w", id, port.ErrNotFound)
		}
		in.tag(tags)
		return nil
	})
}

// Sweep has nothing to remove: the account in memory has no launch templates
// and no instance profiles.
func (c *Cloud) Sweep(context.Context, []*ec2v1.EC2NodeClass) error { return nil }

// nodeName is what EKS names the node of the nth instance of the account.
func (c *Cloud) nodeName(n int) string {
	return fmt.Sprintf("ip-10-0-%d-%d.%s.compute.internal", n/250, 4+n%250, c.data.Region())
}

// AddManaged adds a node of a managed node group, which is ready at once and
// none of Reeve's. It gives the node's name.
func (c *Cloud) AddManaged(group, instanceType, zone string) (string, error) {
	class := &ec2v1.EC2NodeClass{}
	class.Name = group
	class.Spec.AMIFamily = new(ec2v1.AMIFamilyAL2023)
	for _, s := range c.options.Subnets {
		class.Status.Subnets = append(class.Status.Subnets, ec2v1.Subnet{ID: s.ID, Zone: s.Zone, ZoneID: s.ZoneID})
	}
	it, err := c.typeOf(class, instanceType)
	if err != nil {
		return "", fmt.Errorf("managed node group %s: %w", group, err)
	}
	i := slices.IndexFunc(it.Offerings, func(o catalog.Offering) bool {
		return o.Zone == zone && o.CapacityType == karpv1.CapacityTypeOnDemand
	})
	if i < 0 {
		return "", fmt.Errorf("managed node group %s: %s is not sold on demand in zone %q", group, instanceType, zone)
	}
	n := len(c.instances)
	in := &instance{managed: true, Instance: c.instanceOf(it, it.Offerings[i], "i-0"+HexID("managed", group, n))}
	in.State = stateRunning
	labels := maps.Clone(in.Labels)
	delete(labels, karpv1.CapacityTypeLabelKey)
	labels["eks.amazonaws.com/nodegroup"] = group
	labels["eks.amazonaws.com/capacityType"] = "ON_DEMAND"
	m := c.machine(in, c.nodeName(n), labels)
	if err := c.world.AddNode(m); err != nil {
		return "", fmt.Errorf("managed node group %s: %w", group, err)
	}
	c.instances = append(c.instances, in)
	return m.Name, nil
}

// typeOf is what a node of the type made from the class is like.
func (c *Cloud) typeOf(class *ec2v1.EC2NodeClass, name string) (*catalog.InstanceType, error) {
	types, err := c.data.Resolve(class, c.settings)
	if err != nil {
		return nil, err
	}
	i, ok := slices.BinarySearchFunc(types, name, func(t *catalog.InstanceType, n string) int { return strings.Compare(t.Name, n) })
	if !ok {
		return nil, fmt.Errorf("there is no instance type %q in %s", name, c.data.Region())
	}
	return types[i], nil
}

// instanceOf is an instance of the offering that starts now.
func (c *Cloud) instanceOf(it *catalog.InstanceType, o catalog.Offering, id string) port.Instance {
	labels := it.Requirements.Labels()
	labels[corev1.LabelTopologyZone] = o.Zone
	labels[ec2v1.LabelTopologyZoneID] = o.ZoneID
	labels[karpv1.CapacityTypeLabelKey] = o.CapacityType
	return port.Instance{
		ID: id, ProviderID: "aws:///" + o.Zone + "/" + id, InstanceType: it.Name, Zone: o.Zone, CapacityType: o.CapacityType, Price: o.Price,
		Capacity: it.Capacity, Allocatable: it.Allocatable, Labels: labels, Launched: c.world.Now(), State: statePending,
		Group: -1,
	}
}

func (c *Cloud) machine(in *instance, name string, labels map[string]string) Machine {
	return Machine{
		Name: name, ProviderID: in.ProviderID, Labels: with(labels, corev1.LabelHostname, name),
		Capacity: in.Capacity.Kubernetes(), Allocatable: in.Allocatable.Kubernetes(),
	}
}
