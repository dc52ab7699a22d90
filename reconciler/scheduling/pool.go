package scheduling

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

const (
	nodePoolLabel     = karpv1.NodePoolLabelKey
	capacityTypeLabel = karpv1.CapacityTypeLabelKey
)

// nodeClassLabel is the label that Karpenter puts on nodes for the class.
const nodeClassLabel = "karpenter.k8s.aws/ec2nodeclass"

// pool is a NodePool with the instance types of its class as the search needs
// them.
type pool struct {
	index       int
	name, class string
	reqs        requirements.Set
	taints      []corev1.Taint
	// why is set when the pool takes no new nodes at all.
	why string
	// catalog is all types of the class; types are those with an offering that
	// can be launched, by price and name.
	catalog []*catalog.InstanceType
	types   []*ptype
	limits  *limits
	// minValues says whether the pool asks for a variety of types.
	minValues bool
	rules     []OfferingExclusion
	excluded  map[string][]OfferingExclusion
	// filters are the first steps of every claim's choice of types.
	filters []Filter
	// penalty raises the cost of nodes in the search while limits press.
	penalty *penalty
	// admitted remembers which classes the template can meet.
	admitted map[int]error
	combos   map[string]*combo
	root     *combo
}

// ptype is an instance type in one pool.
type ptype struct {
	*catalog.InstanceType
	// room is what pods may use: allocatable less the daemons'.
	room     vector
	overhead *overhead
	// offers can be launched now and meet the template, cheapest first.
	offers []catalog.Offering
	exotic bool
	// use is the capacity in the limited resources of the pool.
	use vector
}

func (p *problem) compilePools() {
	for i, np := range p.in.Fleet.ByWeight() {
		p.pools = append(p.pools, p.newPool(i, np))
	}
}

func (p *problem) newPool(index int, np *karpv1.NodePool) *pool {
	pl := &pool{index: index, name: np.Name, admitted: map[int]error{}, taints: np.Spec.Template.Spec.Taints}
	if ref := np.Spec.Template.Spec.NodeClassRef; ref != nil {
		pl.class = ref.Name
	}
	reqs, err := requirements.FromKarpenter(np.Spec.Template.Spec.Requirements)
	if err != nil {
		pl.why = "has requirements that cannot be read: " + err.Error()
		return pl
	}
	labels := requirements.FromLabels(np.Spec.Template.Labels)
	own := requirements.NewSet(requirements.In(nodePoolLabel, np.Name), requirements.In(nodeClassLabel, pl.class))
	pl.reqs = reqs.Merge(labels).Merge(own)
	pl.minValues = pl.reqs.HasMinValues()
	types, ready := p.in.Types[pl.class]
	switch {
	case np.DeletionTimestamp != nil:
		pl.why = "is being deleted"
	case np.Spec.Replicas != nil:
		pl.why = "is static: it keeps a fixed number of nodes"
	case !ready:
		pl.why = fmt.Sprintf("has EC2NodeClass %q that is not ready: %s", pl.class, cmp.Or(p.in.NotReady[pl.class], "it does not exist"))
	}
	pl.catalog = types
	pl.exclude(p.in.Exclusions.Offerings[np.Name])
	pl.limits = p.newLimits(np)
	return pl
}

// exclude takes note of the policies' exclusions, by instance type.
func (pl *pool) exclude(rules []OfferingExclusion) {
	pl.excluded = make(map[string][]OfferingExclusion, len(rules))
	for _, r := range rules {
		if r.Type == "" {
			pl.rules = append(pl.rules, r)
			continue
		}
		pl.excluded[r.Type] = append(pl.excluded[r.Type], r)
	}
}

// excludedBy is the rule that excludes the offering, or "".
func (pl *pool) excludedBy(typeName string, o *catalog.Offering) string {
	for _, list := range [2][]OfferingExclusion{pl.excluded[typeName], pl.rules} {
		for _, r := range list {
			if (r.Zone == "" || r.Zone == o.Zone) && (r.CapacityType == "" || r.CapacityType == o.CapacityType) {
				return cmp.Or(r.Rule, "policy")
			}
		}
	}
	return ""
}

// compileTypes works out the pool's types. It is done once, and only for pools
// that some pod may use.
func (p *problem) compileTypes(pl *pool) {
	if pl.root != nil {
		return
	}
	daemons := p.newOverheads(pl.reqs, pl.taints)
	sel := newSelector(pl.reqs)
	var labelled, allowed, offered int
	var all []catalog.Offering // of all types, one after the other
	for _, it := range pl.catalog {
		p.steps++
		if !offers(it.Requirements, pl.reqs) {
			continue
		}
		labelled++
		from := len(all)
		var excluded bool
		all, excluded = p.launchable(all, pl, it, sel)
		if !excluded {
			allowed++
		}
		found := all[from:len(all):len(all)]
		if len(found) == 0 {
			continue
		}
		offered++
		if t := p.newType(pl, it, daemons.of(it)); t != nil {
			t.offers = found
			pl.types = append(pl.types, t)
		}
	}
	slices.SortFunc(pl.types, func(a, b *ptype) int {
		return cmp.Or(cmp.Compare(a.offers[0].Price, b.offers[0].Price), cmp.Compare(a.Name, b.Name))
	})
	pl.filters = []Filter{{FilterCatalog, len(pl.catalog)}, {FilterRequirements, labelled}}
	if len(pl.excluded)+len(pl.rules) > 0 {
		pl.filters = append(pl.filters, Filter{FilterPolicy, allowed})
	}
	pl.filters = append(pl.filters, Filter{FilterOfferings, offered})
	p.reset(pl)
}

// newType is nil when the type is too small for its daemons.
func (p *problem) newType(pl *pool, it *catalog.InstanceType, over *overhead) *ptype {
	room := toVector(p.dims, it.Allocatable)
	room.addTimes(over.sum, -1)
	if slices.ContainsFunc(room, func(x int64) bool { return x < 0 }) {
		return nil
	}
	return &ptype{InstanceType: it, room: room, overhead: over, exotic: isExotic(it), use: pl.limits.of(it.Capacity)}
}

// launchable appends the offerings that can be launched now, cheapest first.
// excluded says that policy leaves none of those that the template admits.
func (p *problem) launchable(all []catalog.Offering, pl *pool, it *catalog.InstanceType, sel selector) (out []catalog.Offering, excluded bool) {
	out = all
	admitted, kept := 0, 0
	for i := range it.Offerings {
		o := &it.Offerings[i]
		if !sel.takes(o) {
			continue
		}
		admitted++
		if pl.excludedBy(it.Name, o) != "" {
			continue
		}
		kept++
		if o.Available && !p.isUnavailable(it.Name, o) {
			out = append(out, *o)
		}
	}
	if found := out[len(all):]; !slices.IsSortedFunc(found, compareOffers) {
		slices.SortFunc(found, compareOffers)
	}
	return out, admitted > 0 && kept == 0
}

// compareOffers puts the cheaper one first, then the capacity type that would
// be asked for first, then the zone.
func compareOffers(a, b catalog.Offering) int {
	return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(capacityRank(a.CapacityType), capacityRank(b.CapacityType)), cmp.Compare(a.Zone, b.Zone))
}

// capacityRank is the order in which capacity types are asked for (AWS
// provider: pkg/providers/instance, getCapacityType).
func capacityRank(capacityType string) int {
	switch capacityType {
	case karpv1.CapacityTypeReserved:
		return 0
	case karpv1.CapacityTypeSpot:
		return 1
	default:
		return 2
	}
}

// selector tests offerings against the requirements that an offering fixes.
type selector struct {
	capacityType, zone, zoneID requirements.Requirement
}

func newSelector(reqs requirements.Set) selector {
	return selector{
		capacityType: reqs.Get(capacityTypeLabel),
		zone:         reqs.Get(corev1.LabelTopologyZone),
		zoneID:       reqs.Get(awsv1.LabelTopologyZoneID),
	}
}

func (s selector) takes(o *catalog.Offering) bool {
	return s.capacityType.Has(o.CapacityType) && s.zone.Has(o.Zone) && (o.ZoneID == "" || s.zoneID.Has(o.ZoneID))
}

// isExotic says whether a type is kept for pods that need it: bare metal and
// types with accelerators (AWS provider: filter.go, exotic instance filter).
func isExotic(it *catalog.InstanceType) bool {
	for _, name := range []corev1.ResourceName{awsv1.ResourceNVIDIAGPU, awsv1.ResourceAMDGPU, awsv1.ResourceAWSNeuron, awsv1.ResourceAWSNeuronCore, awsv1.ResourceHabanaGaudi} {
		if it.Capacity[name] > 0 {
			return true
		}
	}
	size, ok := it.Requirements.Lookup(awsv1.LabelInstanceSize)
	return ok && slices.ContainsFunc(size.Values(), func(v string) bool { return strings.Contains(v, "metal") })
}

// unavailable are offerings that EC2 had no capacity for, by type.
func (p *problem) compileUnavailable() {
	for _, u := range p.in.Snapshot.Unavailable {
		if u.Until.After(p.in.Snapshot.Time) {
			p.unavailable[u.InstanceType] = append(p.unavailable[u.InstanceType], u)
		}
	}
}

func (p *problem) isUnavailable(typeName string, o *catalog.Offering) bool {
	for _, u := range p.unavailable[typeName] {
		if u.Zone == o.Zone && u.CapacityType == o.CapacityType {
			return true
		}
	}
	return false
}

// cost of a node in the search: its price, the fee of a node, and while limits
// press a penalty. It is never reported.
func (p *problem) cost(pl *pool, use vector, price resources.Price) resources.Price {
	return price + p.fee + pl.penalty.of(use)
}
