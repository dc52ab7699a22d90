package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Digest is the SHA-256 over everything in a sealed snapshot. It is the same
// for a snapshot that was written to the ledger and read back.
func (s *Snapshot) Digest() string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	shapes := map[string]*Shape{}
	put := func(v any) {
		if err := enc.Encode(v); err != nil {
			panic("cluster: a snapshot is plain data and always encodes: " + err.Error())
		}
	}
	put(s.Time.UTC())
	for _, n := range s.Nodes {
		put(n)
		put(digestPods(n.Pods, shapes))
	}
	put(digestPods(s.Pending, shapes))
	for _, d := range s.DaemonSets {
		put(d)
		put(d.Shape.ID)
		shapes[d.Shape.ID] = d.Shape
	}
	// An empty list is read back as none.
	put(append([]*NodeClassStatus{}, s.NodeClasses...))
	put(append([]Unavailable{}, s.Unavailable...))
	put(append([]Recent{}, s.Recent...))
	// What came after the first release of the format is left out while it is
	// empty, so that older ledgers keep their digests.
	if len(s.Budgets)+len(s.Interruptions)+len(s.Orphans) > 0 {
		put(append([]*PodDisruptionBudget{}, s.Budgets...))
		put(append([]Interruption{}, s.Interruptions...))
		put(append([]Instance{}, s.Orphans...))
	}
	if s.Controller != (Controller{}) {
		put(s.Controller)
	}
	put(shapes)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// podDigest is what the digest holds of a pod beside its shape.
type podDigest struct {
	Key, UID, Shape  string
	Created, Started time.Time
	Terminating      bool
	Deadline         time.Time `json:",omitzero"`
	Unready          bool      `json:",omitempty"`
	Preempting       bool      `json:",omitempty"`
}

func digestPods(pods []*Pod, shapes map[string]*Shape) []podDigest {
	out := make([]podDigest, 0, len(pods))
	for _, p := range pods {
		shapes[p.Shape.ID] = p.Shape
		out = append(out, podDigest{p.Key(), p.UID, p.Shape.ID, p.Created.UTC(), p.Started.UTC(), p.Terminating, p.Deadline.UTC(), p.Unready, p.Preempting})
	}
	return out
}
