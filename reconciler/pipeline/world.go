package pipeline

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/disruption"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/policy"
)

// World is everything that a decision depends on. What is proposed and judged
// is a function of it alone, whether it comes from a live cluster or was read
// back from the ledger.
type World struct {
	Fleet    *fleet.Fleet
	Judge    *policy.Engine
	Catalog  *catalog.Data
	Snapshot *cluster.Snapshot
	// Repeats is how often the proposal with that fingerprint came again since
	// it was recorded.
	Repeats map[string]int

	caches *caches
	digest string
	// blocked is why nodes stay, as of the last look at them.
	blocked []disruption.Blocked
}

// NewWorld makes a world of its own, without a cache to share.
func NewWorld(f *fleet.Fleet, judge *policy.Engine, data *catalog.Data, snap *cluster.Snapshot) *World {
	return &World{Fleet: f, Judge: judge, Catalog: data, Snapshot: snap, caches: newCaches()}
}

// With is a world of the same caches with other contents.
func (w *World) With(f *fleet.Fleet, judge *policy.Engine, data *catalog.Data, snap *cluster.Snapshot) *World {
	return &World{Fleet: f, Judge: judge, Catalog: data, Snapshot: snap, caches: w.caches}
}

func (p *Pipeline) world(snap *cluster.Snapshot) *World {
	return &World{Fleet: p.fleet, Judge: p.judge, Catalog: p.catalog, Snapshot: snap, Repeats: p.repeats, caches: p.caches}
}

// inputs are the digests of the world.
func (w *World) inputs() decision.Inputs {
	return decision.Inputs{
		SpecCommit: w.Fleet.Commit,
		Fleet:      decision.Digest(w.Fleet.Document),
		Policies:   w.Judge.Digest(),
		Types:      w.Catalog.TypesDigest(),
		Prices:     w.Catalog.PricesDigest(),
		State:      w.state(),
	}
}

// state is the digest of the snapshot, computed once.
func (w *World) state() string {
	if w.digest == "" {
		w.digest = w.Snapshot.Digest()
	}
	return w.digest
}

// finish turns a judged proposal into a sealed decision.
func (w *World) finish(d *decision.Decision) (*decision.Decision, error) {
	d.Cluster, d.Mode = w.Fleet.Cluster.Name, w.Fleet.Cluster.Mode
	d.Time, d.Inputs, d.Engine = w.Snapshot.Time, w.inputs(), decision.CurrentEngine()
	if err := d.Seal(); err != nil {
		return nil, err
	}
	if n := w.Repeats[d.Fingerprint]; n > 0 {
		d.Repeats = n
		if err := d.Seal(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Prepare works out what Offerings begins with and keeps it, so that this can be
// done while the fleet is still being judged. What keeps it from being worked out
// is for Offerings to say.
func (w *World) Prepare() {
	if _, _, err := w.resolve(); err == nil {
		_, _ = w.caches.specsOf(w.Fleet)
	}
}

// resolve computes the instance types of every EC2NodeClass that is ready, and
// says of the others why they are not.
func (w *World) resolve() (map[string]*resolvedTypes, map[string]string, error) {
	types, notReady := map[string]*resolvedTypes{}, map[string]string{}
	settings, err := catalog.SettingsOf(w.Fleet.Cluster.Engine)
	if err != nil {
		return nil, nil, err
	}
	for _, class := range w.Fleet.NodeClasses {
		st := w.Snapshot.NodeClass(class.Name)
		if why := whyNotReady(st); why != "" {
			notReady[class.Name] = why
			continue
		}
		resolved := class.DeepCopy()
		resolved.Status = st.Status
		if types[class.Name], err = w.caches.resolve(w.Catalog, resolved, settings); err != nil {
			notReady[class.Name] = err.Error()
			delete(types, class.Name)
		}
	}
	return types, notReady, nil
}

// whyNotReady is empty for a class whose Ready condition is true.
func whyNotReady(st *cluster.NodeClassStatus) string {
	if st == nil {
		return "its status is not resolved yet"
	}
	for _, c := range st.Status.Conditions {
		if c.Status != metav1.ConditionTrue {
			return c.Type + ": " + c.Message
		}
	}
	if len(st.Status.Subnets) == 0 {
		return "no subnet matches its subnetSelectorTerms"
	}
	return ""
}
