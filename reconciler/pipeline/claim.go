package pipeline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// nodeClaim is the NodeClaim of a planned claim: the template of its NodePool,
// narrowed by the plan, with the hashes that drift is found by (Karpenter,
// pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go).
func nodeClaim(f *fleet.Fleet, d *decision.Decision, c *decision.Claim) (*karpv1.NodeClaim, error) {
	pool, class := f.NodePool(c.NodePool), f.NodeClass(c.NodeClass)
	if pool == nil || class == nil {
		return nil, fmt.Errorf("claim %s: NodePool %q or EC2NodeClass %q is no longer in the fleet", c.Name, c.NodePool, c.NodeClass)
	}
	types, err := c.Launchable.Resolve(d.Proposal.Lists)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", c.Name, err)
	}
	claim := pool.Spec.Template.ToNodeClaim()
	claim.APIVersion, claim.Kind = "karpenter.sh/v1", "NodeClaim"
	claim.Name = c.Name
	claim.Finalizers = []string{karpv1.TerminationFinalizer}
	claim.CreationTimestamp = metav1.NewTime(d.Time)
	claim.Labels = claimLabels(pool, c)
	claim.Annotations = maps.Clone(claim.Annotations)
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	maps.Copy(claim.Annotations, map[string]string{
		karpv1.NodePoolHashAnnotationKey:              pool.Hash(),
		karpv1.NodePoolHashVersionAnnotationKey:       karpv1.NodePoolHashVersion,
		karpv1.NodeClaimMinValuesRelaxedAnnotationKey: "false",
		ec2v1.AnnotationEC2NodeClassHash:              class.Hash(nil),
		ec2v1.AnnotationEC2NodeClassHashVersion:       ec2v1.EC2NodeClassHashVersion,
		cluster.DecisionAnnotation:                    d.ID,
		cluster.IndexAnnotation:                       strconv.Itoa(c.Index),
	})
	claim.Spec.Requirements = c.Requirements.With(requirements.In(instanceTypeLabel, types...)).NodeSelectorRequirements()
	claim.Spec.Resources.Requests = c.Requests.Kubernetes()
	return claim, nil
}

const instanceTypeLabel = "node.kubernetes.io/instance-type"

// claimLabels are the labels of the template, of the class, and those that the
// plan has narrowed to one value.
func claimLabels(pool *karpv1.NodePool, c *decision.Claim) map[string]string {
	out := maps.Clone(pool.Spec.Template.Labels)
	if out == nil {
		out = map[string]string{}
	}
	for key, value := range c.Requirements.Labels() {
		if !requirements.WellKnown(key) || key == karpv1.CapacityTypeLabelKey {
			out[key] = value
		}
	}
	out[karpv1.NodePoolLabelKey] = c.NodePool
	out[ec2v1.LabelNodeClass] = c.NodeClass
	return out
}

// planned turns a claim of the engine into one of the record.
func planned(c *scheduling.Claim, lists map[string][]string) decision.Claim {
	names := make([]string, len(c.Types))
	for i, t := range c.Types {
		names[i] = t.Name
	}
	out := decision.Claim{
		NodePool: c.NodePool, NodeClass: c.NodeClass,
		InstanceType: c.InstanceType, Zone: c.Offering.Zone, CapacityType: c.Offering.CapacityType, Price: c.Offering.Price,
		Launchable:   decision.NewTypeSet(names, lists),
		Requirements: c.Requirements,
		Requests:     c.Requests, Daemons: c.Daemons,
		Pods: podGroups(c.Pods),
	}
	for _, o := range c.Cheapest {
		out.Cheapest = append(out.Cheapest, decision.Offering{InstanceType: o.InstanceType, Zone: o.Offering.Zone, CapacityType: o.Offering.CapacityType, Price: o.Offering.Price})
	}
	for _, f := range c.Filters {
		out.Filters = append(out.Filters, decision.Filter{By: f.By, Left: f.Left})
	}
	return out
}

// podGroups groups pods by shape; groups and names are sorted.
func podGroups(pods []*cluster.Pod) []decision.PodGroup {
	type key struct{ namespace, shape string }
	byShape := map[key][]string{}
	for _, p := range pods {
		k := key{p.Namespace, p.Shape.ID}
		byShape[k] = append(byShape[k], p.Name)
	}
	out := make([]decision.PodGroup, 0, len(byShape))
	for k, names := range byShape {
		slices.Sort(names)
		out = append(out, decision.PodGroup{Namespace: k.namespace, Shape: k.shape, Names: names})
	}
	slices.SortFunc(out, func(a, b decision.PodGroup) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Shape, b.Shape))
	})
	return out
}

// group numbers the claims so that those with the same launch input share a
// number and are launched by one call.
func group(claims []decision.Claim) error {
	numbers := map[string]int{}
	for i := range claims {
		c := &claims[i]
		input, err := json.Marshal(struct {
			Pool, Class, CapacityType string
			Launchable                decision.TypeSet
			Requirements              requirements.Set
		}{c.NodePool, c.NodeClass, c.CapacityType, c.Launchable, c.Requirements})
		if err != nil {
			return fmt.Errorf("claim %d: %w", c.Index, err)
		}
		n, ok := numbers[string(input)]
		if !ok {
			n = len(numbers)
			numbers[string(input)] = n
		}
		c.Group = n
	}
	return nil
}

// offerings are what EC2 may launch for a claim, cheapest first: those of its
// launchable types that its requirements admit, that are not known to be
// without capacity, and that no policy excludes.
func offerings(d *decision.Decision, c *decision.Claim, types []*catalog.InstanceType, snap *cluster.Snapshot) ([]decision.Offering, error) {
	names, err := c.Launchable.Resolve(d.Proposal.Lists)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", c.Name, err)
	}
	excluded, err := newExcluded(d, c.NodePool)
	if err != nil {
		return nil, err
	}
	var out []decision.Offering
	for _, t := range types {
		if _, ok := slices.BinarySearch(names, t.Name); !ok {
			continue
		}
		for _, o := range t.Offerings {
			of := decision.Offering{InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType, Price: o.Price}
			if o.Available && o.CapacityType == c.CapacityType && admits(c.Requirements, o) && !excluded.has(of) && !snap.IsUnavailable(t.Name, o.Zone, o.CapacityType) {
				out = append(out, of)
			}
		}
	}
	slices.SortFunc(out, func(a, b decision.Offering) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Zone, b.Zone))
	})
	return out, nil
}

func admits(reqs requirements.Set, o catalog.Offering) bool {
	for key, value := range map[string]string{zoneLabel: o.Zone, ec2v1.LabelTopologyZoneID: o.ZoneID, karpv1.CapacityTypeLabelKey: o.CapacityType} {
		if r, ok := reqs.Lookup(key); ok && value != "" && !r.Has(value) {
			return false
		}
	}
	return true
}

const zoneLabel = "topology.kubernetes.io/zone"

// excludedOfferings answers whether policy excluded an offering.
type excludedOfferings struct {
	byType map[string][]decision.Exclusion
}

func newExcluded(d *decision.Decision, pool string) (excludedOfferings, error) {
	out := excludedOfferings{byType: map[string][]decision.Exclusion{}}
	for _, e := range d.Verdict.Exclusions {
		if e.NodePool != "" && e.NodePool != pool {
			continue
		}
		names, err := e.Types.Resolve(d.Proposal.Lists)
		if err != nil {
			return out, fmt.Errorf("exclusion by %s: %w", e.Rule, err)
		}
		for _, n := range names {
			out.byType[n] = append(out.byType[n], e)
		}
	}
	return out, nil
}

func (x excludedOfferings) has(o decision.Offering) bool {
	return slices.ContainsFunc(x.byType[o.InstanceType], func(e decision.Exclusion) bool {
		return (e.Zone == "" || e.Zone == o.Zone) && (e.CapacityType == "" || e.CapacityType == o.CapacityType)
	})
}

// tags are those of Karpenter (AWS.md section 6) and the decision, by which an
// instance is traced to its record.
func tags(f *fleet.Fleet, class *ec2v1.EC2NodeClass, c *decision.Claim, id string) map[string]string {
	out := maps.Clone(class.Spec.Tags)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, map[string]string{
		"kubernetes.io/cluster/" + f.Cluster.Name: "owned",
		ec2v1.EKSClusterNameTagKey:                f.Cluster.Name,
		karpv1.NodePoolLabelKey:                   c.NodePool,
		ec2v1.LabelNodeClass:                      c.NodeClass,
		cluster.DecisionAnnotation:                id,
		port.GroupTag:                             strconv.Itoa(c.Group),
	})
	return out
}

// Tags of instances, as Karpenter sets them.
const (
	nodePoolTag  = karpv1.NodePoolLabelKey
	nodeClaimTag = "karpenter.sh/nodeclaim"
)
