package pipeline

import (
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// batch waits until no new pod has come for the idle time, and at most for the
// maximum, so that pods that belong together are planned together (Karpenter,
// pkg/controllers/provisioning/batcher.go).
type batch struct {
	seen   map[string]bool
	opened time.Time
	last   time.Time
}

// closed says whether the pending pods may be planned now.
func (b *batch) closed(now time.Time, pods []*cluster.Pod, idle, limit time.Duration) bool {
	fresh := map[string]bool{}
	for _, p := range pods {
		if p.UID == "" {
			continue
		}
		fresh[p.UID] = true
		if !b.seen[p.UID] {
			if b.opened.IsZero() {
				b.opened = now
			}
			b.last = now
		}
	}
	b.seen = fresh
	if len(pods) == 0 || b.opened.IsZero() {
		b.opened = time.Time{}
		return len(pods) > 0
	}
	if now.Sub(b.last) < idle && now.Sub(b.opened) < limit {
		return false
	}
	b.opened = time.Time{}
	return true
}
