package sim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/port"
)

// Repository is the ledger as somebody else sees it who has a clone: not what
// the pipeline remembers.
type Repository interface {
	// Recorded says whether a decision of that id is in the ledger.
	Recorded(decision string) bool
}

// Violation is something that must never be.
type Violation struct {
	Time time.Time
	// Rule is a short name: "claim-before-record".
	Rule    string
	Message string
}

// String is the violation as one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s", v.Time.Format(time.RFC3339), v.Rule, v.Message)
}

// Invariants watch a simulation for what must never be. They read the API
// server, EC2 and the ledger's repository, and never the memory of the pipeline.
type Invariants struct {
	// OrphanGrace is how old an instance without claim may get before it is a
	// violation; a minute unless set. Reeve is to reclaim it after half of
	// that.
	OrphanGrace time.Duration
	// DaemonGrace is how long a daemon may wait on an initialized node before
	// it is a violation; 1 minute unless set.
	DaemonGrace time.Duration
	// PodGrace is how long a pod that a node could help may wait before it is a
	// violation; for ever unless set.
	PodGrace time.Duration
	// Removing are the subjects of the open decisions that remove something:
	// names of nodes and claims, and ids of instances. What depends on it is
	// not checked while it is nil.
	Removing func() map[string]bool

	world *World
	cloud *Cloud
	repo  Repository
	found []Violation
	seen  map[string]bool
	// since is from when on each thing has been seen that may not last, and
	// round the number of the Check that saw it last.
	since map[string]sighting
	round int
	// asked are the claims that instances were launched for, by call.
	asked map[launchKey]map[string]bool
}

// Watch begins to watch: every claim and every launch is held against the
// repository at the moment it happens.
func Watch(cl *Cluster, cloud *Cloud, repo Repository) *Invariants {
	i := &Invariants{OrphanGrace: time.Minute, DaemonGrace: time.Minute, world: cl.world, cloud: cloud, repo: repo, seen: map[string]bool{}, since: map[string]sighting{}, asked: map[launchKey]map[string]bool{}}
	cl.onCreate = append(cl.onCreate, func(nc *karpv1.NodeClaim) {
		id := nc.Annotations[cluster.DecisionAnnotation]
		if id == "" || !repo.Recorded(id) {
			i.add("claim-before-record", "NodeClaim %s is created for decision %q, which is not recorded", nc.Name, id)
		}
	})
	cloud.onLaunch = append(cloud.onLaunch, func(req port.LaunchRequest) {
		i.ask(req)
		if !repo.Recorded(req.Decision) {
			i.add("launch-before-record", "%d instances are launched for decision %q, which is not recorded", len(req.Claims), req.Decision)
		}
	})
	cl.onEvict = append(cl.onEvict, i.evicted)
	cl.onDelete = append(cl.onDelete, i.deleted)
	cloud.onTerminate = append(cloud.onTerminate, i.terminated)
	return i
}

// Found is what was violated so far, in order; each thing once.
func (i *Invariants) Found() []Violation { return i.found }

func (i *Invariants) add(rule, format string, args ...any) {
	v := Violation{Time: i.world.Now(), Rule: rule, Message: fmt.Sprintf(format, args...)}
	if key := v.Rule + v.Message; !i.seen[key] {
		i.seen[key] = true
		i.found = append(i.found, v)
	}
}

// Check looks at the cluster and the cloud as they are now. Call it as often as
// time passes; what it finds is added to Found.
func (i *Invariants) Check() {
	i.round++
	byInstance := map[string]string{}
	for _, nc := range List[*karpv1.NodeClaim](i.world.API) {
		if id := nc.Status.ProviderID; id != "" {
			if other, ok := byInstance[id]; ok {
				i.add("instance-of-two-claims", "%s and %s both have instance %s", other, nc.Name, id)
			}
			byInstance[id] = nc.Name
		}
	}
	claimed := i.checkInstances(byInstance)
	i.checkClaimsHaveInstances()
	i.checkNodes()
	i.checkNodesHaveClaims(claimed)
	i.checkTaints(byInstance)
	i.checkDaemons()
	i.checkPodsAreHelped()
	for _, e := range i.world.API.Events() {
		if e.Reason == "Bug" {
			i.add("simulation", "%s", e.Message)
		}
	}
}

// checkClaimsHaveInstances: a claim that says it was launched names an instance
// that EC2 knows.
func (i *Invariants) checkClaimsHaveInstances() {
	for _, nc := range List[*karpv1.NodeClaim](i.world.API) {
		id := nc.Status.ProviderID
		if id == "" {
			continue
		}
		if !slices.ContainsFunc(i.cloud.instances, func(in *instance) bool { return in.ProviderID == id }) {
			i.add("claim-without-instance", "NodeClaim %s names instance %s, which never was", nc.Name, id)
		}
	}
}

// checkNodes: no node holds more than it offers, and every pod may be where it
// is. Taints may have come since and count only if they evict.
func (i *Invariants) checkNodes() {
	v := i.world.View()
	for _, n := range v.nodes {
		if over := n.used.Lacking(n.allocatable); len(over) > 0 {
			i.add("over-committed", "node %s offers %s and its pods request %s", n.node.Name, n.allocatable, n.used)
		}
		for _, p := range n.pods {
			if reason := v.misplaced(p, n); reason != "" {
				i.add("misplaced", "pod %s on node %s: %s", KeyOf(p), n.node.Name, reason)
			}
		}
	}
}

// misplaced says why a pod that is on the node could not have been placed
// there, leaving out what may have changed since: cordons, NoSchedule taints,
// and the pods of other nodes.
func (v *View) misplaced(pod *corev1.Pod, n *nodeView) string {
	if ok, reason := matchesNode(pod, n.node); !ok {
		return reason
	}
	for _, p := range hostPortsOf(pod) {
		uses := 0
		for _, o := range n.ports {
			if p.conflicts(o) {
				uses++
			}
		}
		if uses > 1 {
			return fmt.Sprintf("host port %d is taken twice", p.port)
		}
	}
	for _, t := range requiredAnti(pod) {
		if v.inDomain(n, t.TopologyKey, func(o *corev1.Pod) bool { return o != pod && v.matchesPod(pod, t, o) }) {
			return "node(s) didn't match pod anti-affinity rules"
		}
	}
	return filterVolumes(v, pod, n)
}

// sighting is since when something has been there, as of a round.
type sighting struct {
	since time.Time
	round int
}

// lasts says whether what the key names has been there in every Check for
// longer than the time.
func (i *Invariants) lasts(key string, d time.Duration) bool {
	s, ok := i.since[key]
	if !ok || s.round < i.round-1 {
		s.since = i.world.Now()
	}
	s.round = i.round
	i.since[key] = s
	return i.world.Clock.Since(s.since) > d
}
