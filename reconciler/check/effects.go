package check

import (
	"fmt"
	"strings"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/report"
)

// effect is what a changed field does to nodes, and why.
type effect struct {
	// path begins the fields that it holds for; "*" stands for any element.
	path  string
	class report.Effect
	why   string
	// hash says that the field counts because it is part of Karpenter's hash:
	// a change that leaves the hash as it is replaces nothing.
	hash bool
}

// effects of fields by kind; the first that fits holds. What is in a hash and
// what is not is Karpenter's (pkg/apis/v1: NodePool.Hash and EC2NodeClass.Hash,
// the fields without the tag hash:"ignore"); what drifts without a hash is in
// pkg/controllers/nodeclaim/disruption/drift.go and, for AWS,
// pkg/cloudprovider/drift.go. A test compares with Karpenter's functions.
var effects = map[string][]effect{
	"NodePool": {
		{path: "spec.template.spec.requirements.*.minValues", class: report.NewNodesOnly, why: "minValues counts when nodes are launched or consolidated"},
		{path: "spec.template.spec.requirements", class: report.ReplacesOutside, why: "nodes whose labels no longer meet the requirements drift"},
		{path: "spec.template", class: report.Replaces, why: "it is part of the NodePool's hash, so its nodes drift", hash: true},
		{path: "spec.replicas", class: report.InPlace, why: "nodes are added or removed to reach the number"},
		{path: "spec.limits", class: report.InPlace, why: "limits hold back new nodes"},
		{path: "spec.weight", class: report.InPlace, why: "weight orders the NodePools for new nodes"},
		{path: "spec.disruption", class: report.InPlace, why: "it says when and how many nodes may be disrupted"},
		{path: "", class: report.InPlace, why: "it is no part of the NodePool's hash"},
	},
	"EC2NodeClass": {
		{path: "spec.amiSelectorTerms", class: report.ReplacesOutside, why: "nodes drift when their image is no longer selected"},
		{path: "spec.subnetSelectorTerms", class: report.ReplacesOutside, why: "nodes drift when their subnet is no longer selected"},
		{path: "spec.securityGroupSelectorTerms", class: report.ReplacesOutside, why: "nodes drift when their security groups are not those selected"},
		{path: "spec.capacityReservationSelectorTerms", class: report.ReplacesOutside, why: "nodes drift when their capacity reservation is no longer selected"},
		{path: "spec.amiFamily", class: report.Replaces, why: "the family is part of the EC2NodeClass's hash, so its nodes drift", hash: true},
		{path: "spec.ipPrefixCount", class: report.NewNodesOnly, why: "it is no part of the EC2NodeClass's hash"},
		{path: "spec", class: report.Replaces, why: "it is part of the EC2NodeClass's hash, so its nodes drift", hash: true},
		{path: "", class: report.InPlace, why: "it is no part of the EC2NodeClass's hash"},
	},
	"Cluster": {
		{path: "kubernetesVersion", class: report.ReplacesOutside, why: "aliases choose images by version, and nodes drift when their image is no longer selected"},
		{path: "engine.vmMemoryOverheadPercent", class: report.NewNodesOnly, why: "it is how large a new node is taken to be"},
		{path: "engine.reservedENIs", class: report.NewNodesOnly, why: "it is how many pods a new node is taken to hold"},
		{path: "", class: report.InPlace, why: "it is a setting of Reeve"},
	},
}

// sameHash is the effect of a change that Karpenter's hash does not see, such as
// another order, or the same duration written otherwise.
var sameHash = effect{class: report.InPlace, why: "the hash stays the same, so nothing drifts"}

// widening is the effect of a requirement that asks for less than before.
var widening = effect{class: report.NewNodesOnly, why: "it asks for less, so every node that met the requirements still does"}

// whole are the effects of an object that is added or removed, by kind.
var whole = map[string]map[string]effect{
	"NodePool": {
		"add":    {class: report.NewNodesOnly, why: "it has no nodes yet"},
		"remove": {class: report.Replaces, why: "its nodes are drained and removed"},
	},
	"EC2NodeClass": {
		"add":    {class: report.InPlace, why: "it has no nodes yet"},
		"remove": {class: report.InPlace, why: "it goes when no node uses it any more"},
	},
	"Cluster": {"add": {class: report.InPlace, why: "the cluster is new"}},
}

// effectOf is the effect of a field below an object of the kind.
func effectOf(kind string, field fleet.Path) effect {
	for _, e := range effects[kind] {
		if e.holds(field) {
			return e
		}
	}
	return effect{class: report.InPlace}
}

func (e *effect) holds(field fleet.Path) bool {
	if e.path == "" {
		return true
	}
	words := strings.Split(e.path, ".")
	if len(field) < len(words) {
		return false
	}
	for i, w := range words {
		if w != "*" && w != field[i] {
			return false
		}
	}
	return true
}

// sections are where the objects of each kind are in the document of a fleet.
var sections = map[string]string{"NodePool": "nodePools", "EC2NodeClass": "nodeClasses"}

// fieldChanges are the fields of the changed objects that differ, by object and
// path.
func fieldChanges(base, head *fleet.Fleet, objects []decision.Change) ([]report.FieldChange, error) {
	fields, err := policy.NewFields(base, head)
	if err != nil {
		return nil, err
	}
	out := []report.FieldChange{}
	for _, c := range objects {
		kind, name, _ := strings.Cut(c.Resource, "/")
		at := fleet.Path{"cluster"}
		if section := sections[kind]; section != "" {
			at = fleet.Path{section, name}
		}
		if c.Op != "change" {
			out = append(out, wholeChange(head, c, kind, at))
			continue
		}
		h, err := newHasher(base, kind, name)
		if err != nil {
			return nil, fmt.Errorf("%s: hash: %w", c.Resource, err)
		}
		for _, f := range fields.Changes(at) {
			fc, err := fieldChange(head, c.Resource, kind, len(at), f, h)
			if err != nil {
				return nil, err
			}
			out = append(out, fc)
		}
	}
	return out, nil
}

func wholeChange(head *fleet.Fleet, c decision.Change, kind string, at fleet.Path) report.FieldChange {
	e := whole[kind][c.Op]
	out := report.FieldChange{Op: c.Op, Resource: c.Resource, Effect: e.class, Why: e.why}
	if c.Op == "add" {
		out.Position = position(head, at)
	}
	return out
}

func fieldChange(head *fleet.Fleet, resource, kind string, depth int, f policy.FieldChange, h *hasher) (report.FieldChange, error) {
	e := effectOf(kind, f.Path[depth:])
	if kind == "NodePool" && e.class == report.ReplacesOutside && widens(&f) {
		e = widening
	}
	if e.hash {
		moves, err := h.moves(f.Stable[depth:], f.StableTo)
		if err != nil {
			return report.FieldChange{}, fmt.Errorf("%s: hash: %w", resource, err)
		}
		if !moves {
			e = sameHash
		}
	}
	return report.FieldChange{
		Op: "change", Resource: resource, Field: f.Name[depth:].String(), From: f.From, To: f.To,
		Effect: e.class, Why: e.why, Position: position(head, f.Path),
	}, nil
}

func position(f *fleet.Fleet, at fleet.Path) *fleet.Position {
	p, ok := f.Positions.Find(at)
	if !ok {
		return nil
	}
	return &p
}
