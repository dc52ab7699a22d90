package explain

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/port"
)

// identity is what a node is known by. The claim and the instance belong to one
// node for ever; the name of a node may come again.
type identity struct{ claim, node, instance string }

// key is the name by which records refer to the node.
func (id identity) key() string { return cmp.Or(id.claim, id.node, id.instance) }

// named says whether any of the names is the one.
func (id identity) named(name string) bool {
	return name != "" && (id.claim == name || id.node == name || id.instance == name)
}

// is says whether two descriptions are of the same node. The name counts only
// where one of them has nothing better.
func (id identity) is(o identity) bool {
	switch {
	case id.claim != "" && o.claim != "":
		return id.claim == o.claim
	case id.instance != "" && o.instance != "":
		return id.instance == o.instance
	default:
		return id.node != "" && id.node == o.node && id.claim == o.claim
	}
}

// with fills in what the other description knows.
func (id identity) with(o identity) identity {
	return identity{cmp.Or(id.claim, o.claim), cmp.Or(id.node, o.node), cmp.Or(id.instance, o.instance)}
}

// instanceID is the last part of "aws:///<zone>/<instance id>".
func instanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// identities are the nodes that a record speaks of.
func identities(r port.Record) []identity {
	var out []identity
	p := &r.Decision.Proposal
	for i := range p.Claims {
		out = append(out, identity{claim: p.Claims[i].Name})
	}
	for _, n := range p.Nodes {
		out = append(out, identity{n.Claim, n.Name, instanceID(n.ProviderID)})
	}
	for _, in := range p.Instances {
		out = append(out, identity{claim: in.Claim, instance: in.ID})
	}
	if r.Outcome != nil {
		for _, s := range r.Outcome.Steps {
			if id := (identity{s.Claim, s.Node, s.Instance}); id != (identity{}) {
				out = append(out, id)
			}
		}
	}
	return out
}

func identityOf(n *cluster.Node) identity {
	id := identity{node: n.Name, instance: instanceID(n.ProviderID)}
	if n.Claim != nil {
		id.claim = n.Claim.Name
		id.instance = cmp.Or(id.instance, instanceID(n.Claim.ProviderID))
	}
	return id
}

// resolve finds the node of that name: the newest, if a name has come again, and
// the others. ok is false if there is none.
func (h *history) resolve(ctx context.Context, name string) (id identity, others []string, ok bool, err error) {
	var found []identity // newest first
	add := func(o identity) {
		if !o.named(name) {
			return
		}
		if at := slices.IndexFunc(found, o.is); at >= 0 {
			found[at] = found[at].with(o)
			return
		}
		found = append(found, o)
	}
	if h.tip != nil {
		for _, n := range h.tip.Nodes {
			add(identityOf(n))
		}
	}
	records, err := h.naming(ctx, name)
	if err != nil {
		return id, nil, false, err
	}
	for _, r := range slices.Backward(records) {
		for _, o := range identities(r) {
			add(o)
		}
	}
	if len(found) == 0 {
		return id, nil, false, nil
	}
	for _, o := range found[1:] {
		others = append(others, o.key())
	}
	return found[0], others, true, nil
}

// about are the decisions about a node, oldest first, and the node's names as
// far as these tell.
func (h *history) about(ctx context.Context, id identity) ([]port.Record, identity, error) {
	records, err := h.naming(ctx, id.key())
	if err != nil {
		return nil, id, err
	}
	for _, r := range records {
		for _, o := range identities(r) {
			if o.is(id) {
				id = id.with(o)
			}
		}
	}
	return records, id, nil
}
