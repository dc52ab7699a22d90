package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/kube/convert"
	"github.com/reeve-project/reeve/reconciler/kube/dump"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// scene is a snapshot that was not read from a live cluster, and what had to be
// assumed to make it.
type scene struct {
	fleet       *fleet.Fleet
	data        *catalog.Data
	snap        *cluster.Snapshot
	assumptions []string
}

func (s *scene) assume(format string, args ...any) {
	s.assumptions = append(s.assumptions, fmt.Sprintf(format, args...))
}

// stage makes the snapshot of what was given.
func (s *scene) stage(seen *dump.Dump, now time.Time, idle bool) {
	s.assumptions = []string{fmt.Sprintf("Instance types and prices are those built in for %s.", s.data.Region())}
	s.snap = seen.Objects.Snapshot(now)
	s.classes(seen.NodeClasses)
	s.price()
	s.missing(seen)
	if idle {
		for _, n := range s.snap.Nodes {
			if n.Claim != nil {
				n.Claim.LastPodEvent, n.Claim.Conditions.InitializedAt = time.Time{}, time.Time{}
			}
		}
		s.assume("consolidateAfter has passed on every node (--assume-idle).")
	}
	s.snap.Seal()
}

// classes gives every class of the fleet the status that it has in the cluster,
// or one that it may well have.
func (s *scene) classes(given []*ec2v1.EC2NodeClass) {
	for _, class := range s.fleet.NodeClasses {
		i := slices.IndexFunc(given, func(g *ec2v1.EC2NodeClass) bool { return g.Name == class.Name })
		if i < 0 || len(given[i].Status.Conditions) == 0 && len(given[i].Status.Subnets) == 0 {
			s.assumeStatus(class.Name)
			continue
		}
		s.snap.NodeClasses = append(s.snap.NodeClasses, &cluster.NodeClassStatus{Name: class.Name, Status: given[i].Status})
		if fields := selectors(&given[i].Spec, &class.Spec); fields != "" {
			s.assume("EC2NodeClass %s resolves to what it does in the cluster, though the fleet has other %s.", class.Name, fields)
		}
	}
	s.snap.Seal()
}

// selectors are the selector terms that differ, which decide what a class
// resolves to.
func selectors(a, b *ec2v1.EC2NodeClassSpec) string {
	var out []string
	if !equality.Semantic.DeepEqual(a.SubnetSelectorTerms, b.SubnetSelectorTerms) {
		out = append(out, "subnetSelectorTerms")
	}
	if !equality.Semantic.DeepEqual(a.SecurityGroupSelectorTerms, b.SecurityGroupSelectorTerms) {
		out = append(out, "securityGroupSelectorTerms")
	}
	if !equality.Semantic.DeepEqual(a.AMISelectorTerms, b.AMISelectorTerms) {
		out = append(out, "amiSelectorTerms")
	}
	return strings.Join(out, " and ")
}

// given takes over the status of the classes as it was recorded.
func (s *scene) given(before *fleet.Fleet) {
	for _, class := range s.fleet.NodeClasses {
		if s.snap.NodeClass(class.Name) == nil {
			s.assumeStatus(class.Name)
			continue
		}
		was := before.NodeClass(class.Name)
		if was == nil {
			continue
		}
		if fields := selectors(&was.Spec, &class.Spec); fields != "" {
			s.assume("EC2NodeClass %s resolves to what it did, though its %s changed: nodes may drift once AWS is asked.", class.Name, fields)
		}
	}
	s.snap.Seal()
}

// assumeStatus takes a class for ready, with a subnet in each zone that a node
// is in, or in all zones of the region.
func (s *scene) assumeStatus(class string) {
	zones := map[string]bool{}
	for _, n := range s.snap.Nodes {
		zone := n.Labels[corev1.LabelTopologyZone]
		if zone == "" && n.Claim != nil {
			zone = n.Claim.Zone
		}
		zones[zone] = true
	}
	all := s.data.Subnets()
	subnets := slices.DeleteFunc(slices.Clone(all), func(n ec2v1.Subnet) bool { return !zones[n.Zone] })
	from := "where there are nodes"
	if len(subnets) == 0 {
		subnets, from = all, "all of the region"
	}
	var names []string
	for _, n := range subnets {
		names = append(names, n.Zone)
	}
	s.snap.NodeClasses = append(s.snap.NodeClasses, &cluster.NodeClassStatus{Name: class, Status: ec2v1.EC2NodeClassStatus{Subnets: subnets}})
	s.assume("EC2NodeClass %s is ready, has images for every architecture, and has subnets in %s (%s).", class, strings.Join(names, ", "), from)
}

// price gives claims that say no price that of the catalog.
func (s *scene) price() {
	for _, n := range s.snap.Nodes {
		if c := n.Claim; c != nil && c.Price == 0 {
			c.Price = listPrice(s.data, c)
		}
	}
}

// listPrice is what the instance of a claim costs by the catalog, else what it
// cost when it was launched.
func listPrice(data *catalog.Data, c *cluster.Claim) resources.Price {
	var p resources.Price
	ok := false
	if c.CapacityType == karpv1.CapacityTypeSpot {
		for _, z := range data.Zones() {
			if z.Name == c.Zone {
				p, ok = data.SpotPrice(c.InstanceType, z.ID)
			}
		}
	} else {
		p, ok = data.OnDemandPrice(c.InstanceType)
	}
	if !ok {
		return c.Price
	}
	return p
}

// costOf is what the instances of all NodeClaims cost.
func costOf(data *catalog.Data, s *cluster.Snapshot) resources.Price {
	var sum resources.Price
	for _, n := range s.Nodes {
		if n.Claim != nil && n.Claim.InstanceType != "" {
			sum += listPrice(data, n.Claim)
		}
	}
	return sum
}

// missing says what was not given and what that comes to.
func (s *scene) missing(seen *dump.Dump) {
	o := &seen.Objects
	if len(o.Nodes) == 0 {
		s.assume("No Node was given: there is no room on any.")
	}
	if len(o.DaemonSets) == 0 {
		s.assume("No DaemonSet was given: new nodes keep no room for daemons.")
	}
	if len(o.Budgets) == 0 {
		s.assume("No PodDisruptionBudget was given: none holds a pod.")
	}
	claimless := count(s.snap.Nodes, func(n *cluster.Node) bool { return n.Claim == nil && n.Labels[karpv1.NodePoolLabelKey] != "" })
	if claimless > 0 {
		s.assume("Nodes without a NodeClaim are never removed, though %d of them carry the label of a NodePool: give what kubectl get nodeclaims prints too.", claimless)
	}
	known := map[string]bool{}
	for _, n := range o.Nodes {
		known[n.Name] = true
	}
	if n := count(o.Pods, func(p *corev1.Pod) bool { return convert.StateOf(p) == convert.Bound && !known[p.Spec.NodeName] }); n > 0 && len(o.Nodes) > 0 {
		s.assume("Pods on nodes that were not given (%d) are left out.", n)
	}
	if len(seen.Manifests) > 0 {
		s.assume("Pods without a status count as pending: %s.", few(seen.Manifests))
	}
	if seen.Twice > 0 {
		s.assume("Of objects that were given more than once (%d) the first counts.", seen.Twice)
	}
}

// seen counts what the plan is made on.
func (s *scene) seen(d *dump.Dump) report.PlanSeen {
	out := report.PlanSeen{Pending: len(s.snap.Pending)}
	for _, n := range s.snap.Nodes {
		if n.Claim != nil {
			out.Nodes++
		} else {
			out.Others++
		}
		out.Bound += len(n.Pods)
	}
	waiting := map[string]int{}
	for _, p := range d.Objects.Pods {
		switch st := convert.StateOf(p); st {
		case convert.Gated:
			waiting["held by a scheduling gate"]++
		case convert.Unseen:
			waiting["not looked at by the scheduler yet"]++
		case convert.Preempting:
			waiting["about to take the place of others"]++
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(waiting)) {
		out.Waiting = append(out.Waiting, report.PlanUnused{Kind: kind, Count: waiting[kind]})
	}
	return out
}

func count[T any](list []T, is func(T) bool) int {
	n := 0
	for _, v := range list {
		if is(v) {
			n++
		}
	}
	return n
}

// few are the first names and how many more there are.
func few(names []string) string {
	const most = 5
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
