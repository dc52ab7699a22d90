package explain

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/report"
)

// Pod explains a pod, given as NAMESPACE/NAME or as NAME in namespace default. A
// pod that nobody knows is an Unknown error.
func Pod(ctx context.Context, src ledger.Source, pod string) (*report.PodStory, error) {
	namespace, name, ok := strings.Cut(pod, "/")
	if !ok {
		namespace, name = "default", pod
	}
	h, err := open(ctx, src)
	if err != nil {
		return nil, err
	}
	records, err := h.naming(ctx, `"`+name+`"`)
	if err != nil {
		return nil, err
	}
	out := &report.PodStory{Pod: namespace + "/" + name}
	var last *decision.Decision
	for _, r := range records {
		evs, err := h.podEvents(r, namespace, name)
		if err != nil {
			return nil, err
		}
		if len(evs) > 0 {
			last = r.Decision
		}
		out.Events = append(out.Events, evs...)
	}
	h.stand(out)
	out.Searched = h.searched // before other searches
	if last == nil && out.State != "running" && out.State != "pending" {
		return nil, h.unknownPod(ctx, out.Pod)
	}
	if last != nil && pending(out) {
		out.Needs = needs(last, out.Pod)
	}
	if err := h.since(ctx, out); err != nil {
		return nil, err
	}
	return out, h.fates(ctx, out)
}

// podEvents are what a decision has to do with the pod.
func (h *history) podEvents(r port.Record, namespace, name string) ([]report.PodEvent, error) {
	d := r.Decision
	var out []report.PodEvent
	act, err := h.act(d, r.Outcome)
	if err != nil {
		return nil, err
	}
	p := &d.Proposal
	add := func(groups []decision.PodGroup, ev report.PodEvent) {
		if siblings, ok := without(groups, namespace, name); ok {
			ev.Act, ev.Siblings, ev.Repeats = act, siblings, d.Repeats
			out = append(out, ev)
		}
	}
	for _, n := range p.Nodes {
		add(n.Pods, report.PodEvent{What: report.PodRemoved, Node: cmp.Or(n.Claim, n.Name), Detail: n.Detail, Offering: &decision.Offering{
			InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType, Price: n.Price,
		}})
	}
	for i := range p.Claims {
		o := offering(&p.Claims[i])
		add(p.Claims[i].Pods, report.PodEvent{What: report.PodClaim, Node: p.Claims[i].Name, Offering: &o})
	}
	for _, pl := range p.Placements {
		add(pl.Pods, report.PodEvent{What: report.PodNode, Node: pl.Node})
	}
	for _, u := range p.Unplaced {
		add(u.Pods, report.PodEvent{What: report.PodPending, Unplaced: &decision.Unplaced{Reason: u.Reason, Message: u.Message, Rules: u.Rules}})
	}
	return out, nil
}

// without are the groups without the pod, and whether it was in them.
func without(groups []decision.PodGroup, namespace, name string) (rest []decision.PodGroup, ok bool) {
	for _, g := range groups {
		if at := slices.Index(g.Names, name); g.Namespace == namespace && at >= 0 {
			ok = true
			g.Names = slices.Delete(slices.Clone(g.Names), at, at+1)
		}
		if len(g.Names) > 0 {
			rest = append(rest, g)
		}
	}
	return rest, ok
}

// stand says where the pod is in the last recorded state.
func (h *history) stand(out *report.PodStory) {
	out.State = "unknown"
	if h.tip == nil {
		return
	}
	out.State = "gone"
	for _, p := range h.tip.Pending {
		if p.Key() == out.Pod {
			out.State, out.Created = "pending", p.Created
		}
	}
	for _, n := range h.tip.Nodes {
		for _, p := range n.Pods {
			if p.Key() == out.Pod {
				out.State, out.Node, out.Created = "running", n.Key(), p.Created
			}
		}
	}
	// The state is that before the actions of the last pass: what was planned
	// there is on its way.
	if n := len(out.Events); out.State == "pending" && n > 0 {
		if ev := &out.Events[n-1]; ev.What == report.PodClaim || ev.What == report.PodNode {
			out.Node = ev.Node
		}
	}
}

// pending says whether no decision has found a place for the pod.
func pending(out *report.PodStory) bool {
	n := len(out.Events)
	return out.State != "running" && n > 0 && out.Events[n-1].What == report.PodPending
}

// since looks up when the pod was created, where the last state does not tell.
func (h *history) since(ctx context.Context, out *report.PodStory) error {
	if !out.Created.IsZero() || len(out.Events) == 0 {
		return nil
	}
	id := out.Events[0].Act.Decision
	if err := h.locate(ctx, id); err != nil {
		return err
	}
	e, ok := h.at[id]
	if !ok {
		return nil
	}
	snap, err := e.View.Snapshot()
	if err != nil {
		return err
	}
	created := func(key string, at time.Time) {
		if key == out.Pod {
			out.Created = at
		}
	}
	for _, p := range snap.Pending {
		created(p.Key(), p.Created)
	}
	for _, n := range snap.Nodes {
		for _, p := range n.Pods {
			created(p.Key(), p.Created)
		}
	}
	return nil
}

// fates say what became of the nodes that the pod was planned for or was on.
func (h *history) fates(ctx context.Context, out *report.PodStory) error {
	var keys []string
	for _, ev := range out.Events {
		if ev.Node != "" && !slices.Contains(keys, ev.Node) {
			keys = append(keys, ev.Node)
		}
	}
	if out.Node != "" && !slices.Contains(keys, out.Node) {
		keys = append(keys, out.Node)
	}
	if len(keys) == 0 {
		return nil
	}
	records, err := h.naming(ctx, keys...)
	if err != nil {
		return err
	}
	for _, key := range keys {
		f := report.Fate{Node: key}
		for _, r := range records {
			if err := h.tellFate(&f, r); err != nil {
				return err
			}
		}
		out.Nodes = append(out.Nodes, f)
	}
	return nil
}

func (h *history) tellFate(f *report.Fate, r port.Record) error {
	p := &r.Decision.Proposal
	for i := range p.Claims {
		if p.Claims[i].Name == f.Node {
			f.Steps = steps(r.Outcome, f.Node)
		}
	}
	for _, n := range p.Nodes {
		if cmp.Or(n.Claim, n.Name) != f.Node {
			continue
		}
		act, err := h.actOf(r.Decision, r.Outcome, f.Node, n.Name)
		if err != nil {
			return err
		}
		f.Removals = append(f.Removals, act)
	}
	return nil
}
