package lifecycle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// drainPod is a pod of a ReplicaSet with 30 s of grace.
func drainPod(name string, edit ...func(*cluster.Pod)) *cluster.Pod {
	p := &cluster.Pod{Namespace: "default", Name: name, Started: t0.Add(-time.Hour), Shape: &cluster.Shape{
		Owner: cluster.Owner{Kind: "ReplicaSet", Name: "web"}, GracePeriodSeconds: new(int64(30)),
	}}
	for _, e := range edit {
		e(p)
	}
	return p
}

func ownedBy(kind string) func(*cluster.Pod) {
	return func(p *cluster.Pod) { p.Shape.Owner.Kind = kind }
}

func class(name string) func(*cluster.Pod) {
	return func(p *cluster.Pod) { p.Shape.PriorityClass = name }
}

func tolerating(key string) func(*cluster.Pod) {
	return func(p *cluster.Pod) {
		p.Shape.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
	}
}

func protected(value string) func(*cluster.Pod) {
	return func(p *cluster.Pod) {
		p.Shape.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: value}
	}
}

func endingAt(at time.Duration) func(*cluster.Pod) {
	return func(p *cluster.Pod) { p.Terminating, p.Deadline = true, t0.Add(at) }
}

func grace(s int64) func(*cluster.Pod) {
	return func(p *cluster.Pod) { p.Shape.GracePeriodSeconds = &s }
}

// deletedNode was deleted at t0; a tgp of zero is none.
func deletedNode(tgp time.Duration) *cluster.Node {
	n := claimed(registered, deleting)
	if tgp > 0 {
		n.Claim.TerminationGracePeriod = new(fleet.Duration(tgp))
	}
	return n
}

// line is a drain for people: "evict a b; delete c(30s); wait d; until 5s".
func line(d Drain) string {
	var out []string
	say := func(verb string, pods []*cluster.Pod) {
		if len(pods) > 0 {
			names := make([]string, len(pods))
			for i, p := range pods {
				names[i] = p.Name
			}
			out = append(out, verb+" "+strings.Join(names, " "))
		}
	}
	say("evict", d.Evict)
	for _, f := range d.Delete {
		out = append(out, fmt.Sprintf("delete %s with %s", f.Pod.Name, f.Grace))
	}
	say("wait for", d.Waiting)
	if d.Drained {
		out = append(out, "drained")
	}
	if !d.Until.IsZero() {
		out = append(out, "until +"+d.Until.Sub(t0).String())
	}
	return strings.Join(out, "; ")
}

// Case D10 of the disruption semantics: each tier is evicted when the one
// before is gone.
func TestDrainOrder(t *testing.T) {
	pods := []*cluster.Pod{
		drainPod("node-critical-daemon", ownedBy("DaemonSet"), class("system-node-critical")),
		drainPod("cluster-critical", class("system-cluster-critical")),
		drainPod("logging", ownedBy("DaemonSet")),
		drainPod("app"),
		drainPod("tolerates", tolerating("karpenter.sh/disrupted")),
		drainPod("static", ownedBy("Node")),
	}
	want := []string{
		"evict app; wait for logging cluster-critical node-critical-daemon",
		"evict logging; wait for cluster-critical node-critical-daemon",
		"evict cluster-critical; wait for node-critical-daemon",
		"evict node-critical-daemon",
		"drained",
	}
	var got []string
	for range want {
		d := NextDrain(deletedNode(0), pods, t0.Add(time.Minute))
		got = append(got, line(d))
		pods = slices.DeleteFunc(pods, func(p *cluster.Pod) bool { return slices.Contains(d.Evict, p) })
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatComesNextInADrain(t *testing.T) {
	hour := time.Hour
	tests := []struct {
		name  string
		tgp   time.Duration
		after time.Duration
		pods  []*cluster.Pod
		want  string
	}{
		{"an empty node is not drained before five seconds", 0, 5*time.Second - 1, nil, "until +5s"},
		{"and is then", 0, 5 * time.Second, nil, "drained"},
		{"pods are evicted at once", 0, 0, []*cluster.Pod{drainPod("a"), drainPod("b")}, "evict a b; until +5s"},
		{"a pod that ends is waited for and holds up the next tier", 0, time.Minute,
			[]*cluster.Pod{drainPod("a", endingAt(90*time.Second)), drainPod("log", ownedBy("DaemonSet"))}, "wait for a log; until +2m30s"},
		{"a pod that ends is waited for until a minute after its time", 0, 2*time.Minute - 1,
			[]*cluster.Pod{drainPod("a", endingAt(time.Minute))}, "wait for a; until +2m0s"},
		{"and then forgotten", 0, 2 * time.Minute, []*cluster.Pod{drainPod("a", endingAt(time.Minute))}, "drained"},
		{"a pod that ends at an unknown time is waited for", 0, hour,
			[]*cluster.Pod{drainPod("a", func(p *cluster.Pod) { p.Terminating = true })}, "wait for a"},
		{"a protected pod is waited for and holds up the next tier", 0, hour,
			[]*cluster.Pod{drainPod("a", protected("true")), drainPod("b"), drainPod("log", ownedBy("DaemonSet"))}, "evict b; wait for a log"},
		{"a pod that is protected for a while is evicted after it", 0, 30 * time.Minute,
			[]*cluster.Pod{drainPod("a", protected("2h"))}, "wait for a; until +1h0m0s"},
		{"when that while is over", 0, hour, []*cluster.Pod{drainPod("a", protected("2h"))}, "evict a"},
		{"a pod that has not started is protected for longer", 0, hour,
			[]*cluster.Pod{drainPod("a", protected("1s"), func(p *cluster.Pod) { p.Started = time.Time{} })}, "wait for a"},
		{"a word protects nothing", 0, hour, []*cluster.Pod{drainPod("a", protected("forever"))}, "evict a"},
		{"a pod that tolerates everything stays", 0, hour, []*cluster.Pod{drainPod("a", tolerating(""))}, "drained"},
		{"a pod that tolerates another taint leaves", 0, hour, []*cluster.Pod{drainPod("a", tolerating("x"))}, "evict a"},
		{"a pod that room is made for is not on the node", 0, hour,
			[]*cluster.Pod{drainPod("a", func(p *cluster.Pod) { p.Preempting = true })}, "drained"},

		// Case D6: with a grace of 30 s the pod goes half a minute before the hour.
		{"until its own grace is left a pod is only evicted", hour, hour - 30*time.Second - 1,
			[]*cluster.Pod{drainPod("a")}, "evict a; until +59m30s"},
		{"then it is deleted whatever its budget says", hour, hour - 30*time.Second,
			[]*cluster.Pod{drainPod("a")}, "delete a with 30s; until +1h0m0s"},
		{"and whatever protects it", hour, hour - 30*time.Second,
			[]*cluster.Pod{drainPod("a", protected("true"))}, "delete a with 30s; until +1h0m0s"},
		{"across all tiers", hour, 50 * time.Minute,
			[]*cluster.Pod{drainPod("a"), drainPod("crit", class("system-node-critical"), grace(900))}, "evict a; delete crit with 10m0s; until +59m30s"},
		{"a tier that is being deleted is not gone", hour, 50 * time.Minute,
			[]*cluster.Pod{drainPod("a", grace(900)), drainPod("log", ownedBy("DaemonSet"))}, "delete a with 10m0s; wait for log; until +59m30s"},
		{"one with more grace than the node is deleted at once", time.Minute, 10 * time.Second,
			[]*cluster.Pod{drainPod("a", grace(3600))}, "delete a with 50s; until +1m0s"},
		{"a pod without grace of its own gets the default", hour, hour - 30*time.Second,
			[]*cluster.Pod{drainPod("a", func(p *cluster.Pod) { p.Shape.GracePeriodSeconds = nil })}, "delete a with 30s; until +1h0m0s"},
		{"grace is in whole seconds", hour, hour - 30*time.Second + 400*time.Millisecond,
			[]*cluster.Pod{drainPod("a")}, "delete a with 29s; until +1h0m0s"},
		{"grace is a second at least", hour, hour - 400*time.Millisecond,
			[]*cluster.Pod{drainPod("a")}, "delete a with 1s; until +1h0m0s"},
		{"a pod that ends in time is left to", hour, hour - 20*time.Second,
			[]*cluster.Pod{drainPod("a", endingAt(hour))}, "wait for a; until +1h0m0s"},
		{"a pod that would outlive the node is cut short", hour, 30 * time.Minute,
			[]*cluster.Pod{drainPod("a", grace(7200), endingAt(2*hour))}, "delete a with 30m0s; until +1h0m0s"},
		{"after the deadline the node is drained, and what is left is ended", hour, hour,
			[]*cluster.Pod{drainPod("a", protected("true")), drainPod("b", endingAt(hour))}, "delete a with 1s; drained"},
		{"though not within five seconds", time.Second, 2 * time.Second, []*cluster.Pod{drainPod("a")}, "delete a with 1s; until +5s"},
		{"static pods stay even then", hour, 2 * hour, []*cluster.Pod{drainPod("s", ownedBy("Node")), drainPod("t", tolerating(""))}, "drained"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := line(NextDrain(deletedNode(tc.tgp), tc.pods, t0.Add(tc.after))); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestNodesThatAreDrainedDifferently(t *testing.T) {
	noNode := claimed(launched, deleting)
	notYet := claimed(registered)
	inherited := deletedNode(time.Hour)
	inherited.Claim.Annotations = map[string]string{karpv1.NodeClaimTerminationTimestampAnnotationKey: t0.Add(time.Minute).Format(time.RFC3339)}
	garbled := deletedNode(time.Hour)
	garbled.Claim.Annotations = map[string]string{karpv1.NodeClaimTerminationTimestampAnnotationKey: "soon"}
	foreign := &cluster.Node{Name: "managed", DeletedAt: t0}
	pods := []*cluster.Pod{drainPod("a")}
	tests := []struct {
		name string
		node *cluster.Node
		want string
	}{
		{"without node there is nothing to drain", noNode, "drained"},
		{"a node that is deleted only now is drained from now", notYet, "evict a; until +2m5s"},
		{"the deadline that Karpenter promised holds", inherited, "delete a with 1s; drained"},
		{"one that does not parse does not", garbled, "evict a; until +59m30s"},
		{"a node without claim has no deadline", foreign, "evict a"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := line(NextDrain(tc.node, pods, t0.Add(2*time.Minute))); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// randomPods are pods of every sort.
func randomPods(r *rand.Rand) []*cluster.Pod {
	sometimes := func(n int, e func(*cluster.Pod)) func(*cluster.Pod) {
		if r.IntN(n) == 0 {
			return e
		}
		return func(*cluster.Pod) {}
	}
	seconds := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Second }
	pods := make([]*cluster.Pod, r.IntN(8))
	for i := range pods {
		pods[i] = drainPod(fmt.Sprintf("p%d", i), grace(r.Int64N(400)),
			sometimes(3, ownedBy("DaemonSet")), sometimes(9, ownedBy("Node")), sometimes(4, class("system-cluster-critical")),
			sometimes(8, tolerating("")), sometimes(4, protected("true")), sometimes(4, protected("1h5m")),
			sometimes(4, endingAt(seconds(1200))), sometimes(9, func(p *cluster.Pod) { p.Preempting = true }))
	}
	return pods
}

func TestEveryPodIsInOnePlace(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		node := deletedNode(time.Duration(r.IntN(3)) * 5 * time.Minute)
		pods := randomPods(r)
		now := t0.Add(time.Duration(r.IntN(1300)) * time.Second)
		d := NextDrain(node, pods, now)
		where := map[*cluster.Pod]string{}
		put := func(p *cluster.Pod, list string) {
			if where[p] != "" {
				t.Fatalf("%s is in %s and in %s", p.Name, where[p], list)
			}
			where[p] = list
		}
		for _, p := range d.Evict {
			put(p, "evict")
		}
		for _, f := range d.Delete {
			put(f.Pod, "delete")
		}
		for _, p := range d.Waiting {
			put(p, "wait")
		}
		deadline := TerminationDeadline(node)
		over := !deadline.IsZero() && !now.Before(deadline)
		evicting := -1
		for _, p := range pods {
			active, _ := p.DoNotDisrupt(now)
			stays := p.Preempting || p.Static() || len(p.Shape.Tolerations) > 0
			stuck := p.Terminating && (now.Sub(p.Deadline) >= time.Minute || over)
			late := !deadline.IsZero() && !now.Before(deadline.Add(-time.Duration(*p.Shape.GracePeriodSeconds)*time.Second))
			switch got := where[p]; {
			case (got == "") != (stays || stuck):
				t.Fatalf("%s (%+v, %+v) at %s is %q", p.Name, p, p.Shape, now.Sub(t0), got)
			case got == "evict" && (active || p.Terminating || late):
				t.Fatalf("%s is evicted", p.Name)
			case got == "delete" && !late:
				t.Fatalf("%s is deleted too early", p.Name)
			case got == "wait" && late && (!p.Terminating || p.Deadline.After(deadline)):
				t.Fatalf("%s is waited for and would outlive the node", p.Name)
			case got == "evict" && evicting >= 0 && evicting != tier(p):
				t.Fatal("two tiers are evicted at once")
			case got == "evict":
				evicting = tier(p)
			}
		}
		for p, list := range where {
			if evicting > tier(p) {
				t.Fatalf("tier %d is evicted while %s of an earlier one is there (%s)", evicting, p.Name, list)
			}
		}
		if want := (len(where) == 0 || over) && now.Sub(t0) >= MinDrainTime; d.Drained != want {
			t.Fatalf("drained %v, want %v: %s", d.Drained, want, line(d))
		}
	}
}

// TestNothingChangesBeforeItsTime: until Until the same pods get the same
// answer, so that a pass that sleeps for so long misses nothing.
func TestNothingChangesBeforeItsTime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	names := func(d Drain) string {
		d.Until = time.Time{}
		for i := range d.Delete {
			d.Delete[i].Grace = 0
		}
		return line(d)
	}
	changed := 0
	for range 3000 {
		node := deletedNode(time.Duration(r.IntN(3)) * 5 * time.Minute)
		pods := randomPods(r)
		now := t0.Add(time.Duration(r.IntN(1300)) * time.Second)
		first := NextDrain(node, pods, now)
		end := first.Until
		if end.IsZero() {
			end = now.Add(24 * time.Hour)
		}
		want := names(first)
		for _, at := range []time.Time{end.Add(-1), now.Add(end.Sub(now) / 2), now.Add(1)} {
			if got := names(NextDrain(node, pods, at)); at.Before(end) && got != want {
				t.Fatalf("at %s it was %s until %s, and at %s it is %s", now.Sub(t0), want, end.Sub(t0), at.Sub(t0), got)
			}
		}
		if !first.Until.IsZero() && names(NextDrain(node, pods, end)) != want {
			changed++
		}
	}
	if changed < 300 {
		t.Errorf("only %d answers changed at all", changed)
	}
}

// A grace period that no duration can hold is a very long one, and not one that
// has passed.
func TestAGracePeriodBeyondAnyDurationIsLong(t *testing.T) {
	for _, s := range []int64{math.MaxInt64, math.MaxInt64/int64(time.Second) + 1} {
		if got := gracePeriod(drainPod("a", grace(s))); got < 100*365*24*time.Hour {
			t.Errorf("%d seconds are %s", s, got)
		}
	}
	if got := gracePeriod(drainPod("a", grace(-1))); got != 0 {
		t.Errorf("a negative one is %s", got)
	}
}
