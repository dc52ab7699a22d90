package pipeline

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/port"
)

// A node whose removal was dropped or rolled back is left alone for holdFirst,
// and twice as long each time that happens again, up to holdMost. What made it
// fail would most likely make the next attempt fail too, and each is recorded.
const (
	holdFirst = time.Minute
	holdMost  = time.Hour
)

// holds are the nodes that are left alone, by claim and reason.
type holds map[holdKey]*hold

type holdKey struct{ claim, reason string }

// hold is how long and until when a node is left alone.
type hold struct {
	// commit of the fleet: another may have another policy.
	commit string
	length time.Duration
	until  time.Time
}

// hold leaves a node of the decision alone for the reason that it was to be
// removed for. Other reasons remain: a node that is empty by now may go.
func (p *Pipeline) hold(snap *cluster.Snapshot, r *port.Record, claim string) {
	key := holdKey{claim, r.Decision.Proposal.Reason}
	next := &hold{commit: p.fleet.Commit, length: holdFirst}
	if last := p.holds[key]; last != nil {
		next.length = min(2*last.length, holdMost)
	}
	next.until = snap.Time.Add(next.length)
	p.holds[key] = next
}

// note notes the holds on the nodes of the snapshot, where the record has them
// too. One that is over for as long as it lasted is forgotten, and so are those
// of nodes that are gone and of an earlier commit.
func (h holds) note(snap *cluster.Snapshot, commit string) {
	byName := func(a, b holdKey) int { return cmp.Or(cmp.Compare(a.claim, b.claim), cmp.Compare(a.reason, b.reason)) }
	for _, key := range slices.SortedFunc(maps.Keys(h), byName) {
		one, node := h[key], snap.NodeOf(key.claim)
		switch {
		case node == nil || one.commit != commit || !one.until.Add(one.length).After(snap.Time):
			delete(h, key)
		case one.until.After(snap.Time):
			node.Held = append(node.Held, cluster.Hold{Reason: key.reason, Until: one.until})
		}
	}
}
