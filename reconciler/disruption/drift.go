package disruption

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/requirements"
)

// Cause is why a node is no longer what the fleet says, in Karpenter's word.
type Cause string

// The causes, in the order in which they are looked for; a node has the first
// that holds (Karpenter, pkg/controllers/nodeclaim/disruption/drift.go, and the
// AWS provider's pkg/cloudprovider/drift.go).
const (
	// NodePoolDrifted: the template of the NodePool has changed, its
	// requirements apart.
	NodePoolDrifted Cause = "NodePoolDrifted"
	// RequirementsDrifted: the labels no longer meet the requirements.
	RequirementsDrifted Cause = "RequirementsDrifted"
	// InstanceTypeNotFound: the catalog does not have the type, or not as the
	// node has it.
	InstanceTypeNotFound Cause = "InstanceTypeNotFound"
	// NodeClassDrift: the EC2NodeClass has changed, its selectors apart.
	NodeClassDrift Cause = "NodeClassDrift"
	// AMIDrift: the image is none that the class resolves to for the type.
	AMIDrift Cause = "AMIDrift"
	// SecurityGroupDrift: the security groups are not those of the class.
	SecurityGroupDrift Cause = "SecurityGroupDrift"
	// SubnetDrift: the subnet is none of the class.
	SubnetDrift Cause = "SubnetDrift"
	// CapacityReservationDrift: the reservation is none of the class.
	CapacityReservationDrift Cause = "CapacityReservationDrift"
	// PlacementGroupDrift: the node is in a placement group and the class
	// selects none, or the other way round.
	PlacementGroupDrift Cause = "PlacementGroupDrift"
)

// typeGrace is how long a new node is not tested for InstanceTypeNotFound.
const typeGrace = time.Hour

// DriftInput is everything that drift depends on. What is not known is not
// tested.
type DriftInput struct {
	// Snapshot of the cluster, sealed, with the status of the classes.
	Snapshot *cluster.Snapshot
	// Fleet that the nodes are held against.
	Fleet *fleet.Fleet
	// Types by EC2NodeClass name as the catalog resolved them.
	Types map[string][]*catalog.InstanceType
	// Before are the EC2NodeClasses, by name, under which Karpenter last wrote
	// the class hash of NodeClaims that Reeve did not make. That hash has the
	// certificate of the API server in it, so it can only be told from it that
	// something has changed, by comparing the classes themselves.
	Before map[string]*ec2v1.EC2NodeClass
	// Networks are what EC2 says of instances, by name of the NodeClaim.
	Networks map[string]Network
}

// Network is where an instance stands in the account.
type Network struct {
	// Subnet is the id of its subnet, SecurityGroups the ids of its groups.
	Subnet         string
	SecurityGroups []string
}

// Drifted is a node that is no longer what the fleet says.
type Drifted struct {
	Node  *cluster.Node
	Cause Cause
	// Detail says what differs.
	Detail string
}

// Drift finds the nodes that have drifted, sorted by key. Only what was
// launched, is not being deleted and has its NodePool in the fleet is looked at.
func Drift(in DriftInput) []Drifted {
	var out []Drifted
	for _, n := range in.Snapshot.Nodes {
		if n.Claim == nil || !n.Claim.Conditions.Launched || n.Deleting {
			continue
		}
		pool := in.Fleet.NodePool(n.Claim.NodePool)
		if pool == nil {
			continue
		}
		if cause, detail := in.cause(n.Claim, pool); cause != "" {
			out = append(out, Drifted{Node: n, Cause: cause, Detail: detail})
		}
	}
	return out
}

func (in *DriftInput) cause(c *cluster.Claim, pool *karpv1.NodePool) (Cause, string) {
	for _, test := range []func(*cluster.Claim, *karpv1.NodePool) (Cause, string){
		poolDrift, requirementsDrift, in.typeDrift, in.classDrift, in.imageDrift, in.groupDrift, in.subnetDrift, in.reservationDrift, in.placementDrift,
	} {
		if cause, detail := test(c, pool); cause != "" {
			return cause, detail
		}
	}
	return "", ""
}

// poolDrift compares hashes of the same version only: one of another version
// says nothing.
func poolDrift(c *cluster.Claim, pool *karpv1.NodePool) (Cause, string) {
	hash, ok := c.Annotations[karpv1.NodePoolHashAnnotationKey]
	if !ok || c.Annotations[karpv1.NodePoolHashVersionAnnotationKey] != karpv1.NodePoolHashVersion || hash == pool.Hash() {
		return "", ""
	}
	return NodePoolDrifted, fmt.Sprintf("the template of NodePool %s has changed since the node was made", pool.Name)
}

func requirementsDrift(c *cluster.Claim, pool *karpv1.NodePool) (Cause, string) {
	asked, err := requirements.FromKarpenter(pool.Spec.Template.Spec.Requirements)
	if err != nil {
		return "", "" // the schema refuses such a NodePool
	}
	if err := requirements.FromLabels(c.Labels).Compatible(asked, nil); err != nil {
		return RequirementsDrifted, err.Error()
	}
	return "", ""
}

func (in *DriftInput) typeDrift(c *cluster.Claim, pool *karpv1.NodePool) (Cause, string) {
	types := in.typesOf(pool)
	if len(types) == 0 || in.Snapshot.Time.Sub(c.Created) <= typeGrace {
		return "", ""
	}
	name := c.Labels[corev1.LabelInstanceTypeStable]
	it := find(types, name)
	if it == nil {
		return InstanceTypeNotFound, fmt.Sprintf("the catalog has no instance type %q", name)
	}
	zone, bought := c.Labels[corev1.LabelTopologyZone], c.Labels[karpv1.CapacityTypeLabelKey]
	for _, o := range it.Offerings {
		// One that lost its reservation has become an on-demand instance.
		alike := o.CapacityType == bought || bought == karpv1.CapacityTypeReserved && o.CapacityType == karpv1.CapacityTypeOnDemand
		if (zone == "" || o.Zone == zone) && (bought == "" || alike) {
			return "", ""
		}
	}
	return InstanceTypeNotFound, fmt.Sprintf("%s is not offered as %s in %s", name, bought, zone)
}

func (in *DriftInput) typesOf(pool *karpv1.NodePool) []*catalog.InstanceType {
	return in.Types[className(pool)]
}

func className(pool *karpv1.NodePool) string {
	if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil {
		return ref.Name
	}
	return ""
}

func find(types []*catalog.InstanceType, name string) *catalog.InstanceType {
	if i := slices.IndexFunc(types, func(t *catalog.InstanceType) bool { return t.Name == name }); i >= 0 {
		return types[i]
	}
	return nil
}

// classDrift compares hashes of the same version. Reeve's own have no
// certificate in them.
func (in *DriftInput) classDrift(c *cluster.Claim, pool *karpv1.NodePool) (Cause, string) {
	class := in.Fleet.NodeClass(className(pool))
	hash, ok := c.Annotations[ec2v1.AnnotationEC2NodeClassHash]
	if class == nil || !ok || c.Annotations[ec2v1.AnnotationEC2NodeClassHashVersion] != ec2v1.EC2NodeClassHashVersion {
		return "", ""
	}
	want := class.Hash(nil)
	if hash == want {
		return "", ""
	}
	if c.Decision == "" {
		before := in.Before[class.Name]
		if before == nil || before.Hash(nil) == want {
			return "", ""
		}
	}
	return NodeClassDrift, fmt.Sprintf("EC2NodeClass %s has changed since the node was made", class.Name)
}

func (in *DriftInput) status(pool *karpv1.NodePool) *ec2v1.EC2NodeClassStatus {
	if s := in.Snapshot.NodeClass(className(pool)); s != nil {
		return &s.Status
	}
	return &ec2v1.EC2NodeClassStatus{}
}

// imageDrift takes the first image of the class that fits the type, since that
// is what a new node would get.
func (in *DriftInput) imageDrift(c *cluster.Claim, pool *karpv1.NodePool) (Cause, string) {
	it := find(in.typesOf(pool), c.Labels[corev1.LabelInstanceTypeStable])
	images := in.status(pool).AMIs
	if it == nil || len(images) == 0 || c.ImageID == "" {
		return "", ""
	}
	for i := range images {
		asked, err := requirements.FromNodeSelector(images[i].Requirements)
		if err != nil || !it.Requirements.IsCompatible(asked, nil) {
			continue
		}
		if images[i].ID == c.ImageID {
			return "", ""
		}
		return AMIDrift, fmt.Sprintf("the node runs %s, and EC2NodeClass %s resolves to %s for %s", c.ImageID, className(pool), images[i].ID, it.Name)
	}
	return AMIDrift, fmt.Sprintf("the node runs %s, and no image of EC2NodeClass %s fits %s any more", c.ImageID, className(pool), it.Name)
}

func (in *DriftInput) groupDrift(c *cluster.Claim, pool *karpv1.NodePool) (Cause, string) {
	network, ok := in.Networks[c.Name]
	want := map[string]bool{}
	for _, g := range in.status(pool).SecurityGroups {
		want[g.ID] = true
	}
	if !ok || len(want) == 0 {
		return "", ""
	}
	have := map[string]bool{}
	for _, id := range network.SecurityGroups {
		have[id] = true
	}
	if maps.Equal(want, have) {
		return "", ""
	}
	return SecurityGroupDrift, fmt.Sprintf("the instance has %s, and EC2NodeClass %s resolves to %s", names(have), className(pool), names(want))
}

func names(set map[string]bool) string {
	return cmp.Or(strings.Join(slices.Sorted(maps.Keys(set)), ", "), "none")
}

// subnetDrift also finds a zone that the class has no subnet in any more, which
// needs no word from EC2.
func (in *DriftInput) subnetDrift(c *cluster.Claim, pool *karpv1.NodePool) (Cause, string) {
	subnets := in.status(pool).Subnets
	if len(subnets) == 0 {
		return "", ""
	}
	if network, ok := in.Networks[c.Name]; ok {
		if !slices.ContainsFunc(subnets, func(s ec2v1.Subnet) bool { return s.ID == network.Subnet }) {
			return SubnetDrift, fmt.Sprintf("the instance is in %s, which EC2NodeClass %s does not resolve to", network.Subnet, className(pool))
		}
		return "", ""
	}
	if c.Zone != "" && !slices.ContainsFunc(subnets, func(s ec2v1.Subnet) bool { return s.Zone == c.Zone }) {
		return SubnetDrift, fmt.Sprintf("EC2NodeClass %s has no subnet in %s any more", className(pool), c.Zone)
	}
	return "", ""
}

func (in *DriftInput) reservationDrift(c *cluster.Claim, pool *karpv1.NodePool) (Cause, string) {
	id := c.Labels[ec2v1.LabelCapacityReservationID]
	if id == "" || in.Snapshot.NodeClass(className(pool)) == nil {
		return "", ""
	}
	if slices.ContainsFunc(in.status(pool).CapacityReservations, func(r ec2v1.CapacityReservation) bool { return r.ID == id }) {
		return "", ""
	}
	return CapacityReservationDrift, fmt.Sprintf("capacity reservation %s is none of EC2NodeClass %s", id, className(pool))
}

// placementDrift knows of a group that a class names by its id, and that a
// class without a selector has none.
func (in *DriftInput) placementDrift(c *cluster.Claim, pool *karpv1.NodePool) (Cause, string) {
	class := in.Fleet.NodeClass(className(pool))
	if class == nil {
		return "", ""
	}
	have, want := c.Labels[ec2v1.LabelPlacementGroupID], ""
	if sel := class.Spec.PlacementGroupSelector; sel != nil {
		if sel.ID == nil && have != "" {
			return "", "" // only AWS knows the id of a name
		}
		want = cmp.Or(deref(sel.ID), deref(sel.Name))
	}
	if have == want {
		return "", ""
	}
	return PlacementGroupDrift, fmt.Sprintf("the node is in placement group %q, and EC2NodeClass %s asks for %q", have, class.Name, want)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
