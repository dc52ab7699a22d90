package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/requirements"
)

// book is a ledger that has the decisions of these ids.
type book map[string]bool

func (b book) Recorded(id string) bool { return b[id] }

func TestInvariantsHoldInAnOrderlyWorld(t *testing.T) {
	e := newEstate(t)
	inv := Watch(e.cluster, e.cloud, book{"d1": true})
	check(t, e.Apply(NewDaemonSet("proxy", amounts("cpu=150m"))))
	deploy(t, e, 9)
	for range 3 {
		e.provision(t, 40, "one", "two")
		inv.Check()
	}
	if got := inv.Found(); len(got) != 0 {
		t.Errorf("found %v", got)
	}
}

func TestInvariantsFindWhatIsWrong(t *testing.T) {
	bound := func(e *estate, t *testing.T, p *corev1.Pod) {
		check(t, e.API.Create("test", p))
	}
	small := func(e *estate, t *testing.T) { check(t, e.AddNode(machine("n", "cpu=1 memory=1Gi pods=5"))) }
	tests := []struct {
		name string
		do   func(*estate, *testing.T)
		want []string
	}{
		{"a claim without record", func(e *estate, t *testing.T) {
			check(t, e.cluster.CreateClaim(ctx, claimOf("c", "d9", "0")))
		}, []string{`claim-before-record: NodeClaim c is created for decision "d9", which is not recorded`}},
		{"a launch without record", func(e *estate, t *testing.T) {
			check(t, e.cluster.CreateClaim(ctx, claimOf("c", "d1", "0")))
			req := e.request(t, "t", "c")
			req.Decision = "d9"
			for range 2 {
				_, err := e.cloud.Launch(ctx, req)
				check(t, err)
			}
			e.cloud.Kill(e.cloud.list()[0].ID)
		}, []string{`launch-before-record: 1 instances are launched for decision "d9", which is not recorded`}},
		{"an instance whose claim is gone", func(e *estate, t *testing.T) {
			_, err := e.cloud.Launch(ctx, e.request(t, "t", "c"))
			check(t, err)
		}, []string{`orphan: instance ID of decision "d1" runs and no NodeClaim names it`, "node-without-claim: no NodeClaim names the instance PROVIDER of node NODE"}},
		{"a claim that was launched twice", func(e *estate, t *testing.T) {
			check(t, e.cluster.CreateClaim(ctx, claimOf("c", "d1", "0")))
			for _, token := range []string{"t1", "t2"} {
				_, err := e.cloud.Launch(ctx, e.request(t, token, "c"))
				check(t, err)
			}
		}, []string{`launched-twice: 2 instances run for the 1 claims of decision "d1", group ""`,
			`orphan: instance ID of decision "d1" runs and no NodeClaim names it`, "node-without-claim: no NodeClaim names the instance PROVIDER of node NODE"}},
		{"two claims with one instance, which never was", func(e *estate, t *testing.T) {
			for _, name := range []string{"c", "d"} {
				check(t, e.cluster.CreateClaim(ctx, claimOf(name, "d1", "0")))
				check(t, Update(e.API, "test", name, "", func(nc *karpv1.NodeClaim) error { nc.Status.ProviderID = "aws:///a/x"; return nil }))
			}
		}, []string{"instance-of-two-claims: c and d both have instance aws:///a/x",
			"claim-without-instance: NodeClaim c names instance aws:///a/x, which never was",
			"claim-without-instance: NodeClaim d names instance aws:///a/x, which never was"}},
		{"a node that holds more than it has", func(e *estate, t *testing.T) {
			small(e, t)
			bound(e, t, pod(on("n"), requests("cpu=2")))
		}, []string{"over-committed: node n offers cpu 1, memory 1Gi, pods 5 and its pods request cpu 2, pods 1"}},
		{"pods where they may not be", func(e *estate, t *testing.T) {
			small(e, t)
			bound(e, t, pod(named("a"), on("n"), requests(""), func(p *corev1.Pod) { p.Spec.NodeSelector = labelsOf("x=y") }))
			bound(e, t, pod(named("b"), on("n"), requests(""), port80("", "")))
			bound(e, t, pod(named("c"), on("n"), requests(""), port80("", "")))
			bound(e, t, pod(named("d"), on("n"), requests(""), affine(true, corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selectorOf("app=p")})))
		}, []string{
			"misplaced: pod default/a on node n: node(s) didn't match Pod's node affinity/selector",
			"misplaced: pod default/b on node n: host port 80 is taken twice",
			"misplaced: pod default/c on node n: host port 80 is taken twice",
			"misplaced: pod default/d on node n: node(s) didn't match pod anti-affinity rules",
		}},
		{"a cordon or taint that came later is no mistake", func(e *estate, t *testing.T) {
			small(e, t)
			bound(e, t, pod(on("n")))
			check(t, Update(e.API, "test", "n", "", func(n *corev1.Node) error {
				n.Spec.Unschedulable = true
				setTaint(n, taint("karpenter.sh/disrupted:NoSchedule"))
				return nil
			}))
			e.removing = map[string]bool{"n": true}
		}, nil},
		{"a daemon that finds no room", func(e *estate, t *testing.T) {
			small(e, t)
			bound(e, t, pod(on("n"), critical))
			check(t, Update(e.API, "test", "n", "", func(n *corev1.Node) error {
				n.Labels = with(n.Labels, karpv1.NodeInitializedLabelKey, "true")
				return nil
			}))
			check(t, e.Apply(NewDaemonSet("proxy", amounts("cpu=100m"))))
		}, []string{"daemon-without-room: daemon kube-system/NAME finds no room on its node n"}},
		{"a node whose claim was let go without it", func(e *estate, t *testing.T) {
			e.provision(t, 60, "c")
			e.cloud.Kill(e.cloud.list()[0].ID)
			check(t, e.Delete(KindNodeClaim, "c"))
			check(t, Update(e.API, "test", "c", "", func(nc *karpv1.NodeClaim) error { nc.Finalizers = nil; return nil }))
		}, []string{"node-without-claim: no NodeClaim names the instance PROVIDER of node NODE"}},
		{"a node that is tainted and removed by nobody", func(e *estate, t *testing.T) {
			e.provision(t, 60, "a", "b", "c")
			for _, n := range List[*corev1.Node](e.API) {
				check(t, e.cluster.Taint(ctx, n.Name, disruptedTaint))
			}
			e.removing = map[string]bool{"a": true, snapshot(t, e).Node("b").Name: true}
		}, []string{"tainted-for-nothing: node NODE is tainted karpenter.sh/disrupted and no open decision removes it"}},
		{"a pod that no node is made for", func(e *estate, t *testing.T) { check(t, e.Apply(pod())) },
			[]string{"pod-waits: pod default/p waits for a node for more than 5m0s"}},
		{"an eviction past what protects a pod", func(e *estate, t *testing.T) {
			small(e, t)
			check(t, e.Apply(pod(annotated("karpenter.sh/do-not-disrupt", "1h"), requests(""))))
			pass(t, e.World, 10*time.Second)
			pods, err := e.cluster.Pods(ctx, "n")
			check(t, err)
			check(t, e.cluster.Evict(ctx, pods[0]))
		}, []string{"evicted-protected: pod default/p is evicted, though karpenter.sh/do-not-disrupt protects it"}},
		{"deletions that the grace period of no node asks for", func(e *estate, t *testing.T) {
			small(e, t)
			check(t, e.Apply(pod(requests(""))))
			pass(t, e.World, 10*time.Second)
			pods, err := e.cluster.Pods(ctx, "n")
			check(t, err)
			check(t, e.cluster.DeletePod(ctx, pods[0], 0))
		}, []string{"deleted-without-grace: pod default/p is deleted with a grace of 0s",
			"deleted-too-early: pod default/p is deleted past its budgets, and its node n has more time than its grace of 30s"}},
		{"an instance that is terminated under a pod", func(e *estate, t *testing.T) {
			check(t, e.Apply(pod()))
			e.provision(t, 60, "c")
			check(t, e.cluster.DeleteClaim(ctx, "c"))
			check(t, e.cloud.Terminate(ctx, []string{e.cloud.list()[0].ID}))
			pass(t, e.World, time.Minute)
			check(t, e.cluster.Finalize(ctx, "c"))
		}, []string{"terminated-with-pods: instance ID is terminated while pod default/p is on its node NODE"}},
		{"a mistake of the simulation itself", func(e *estate, t *testing.T) {
			e.must(errTest)
		}, []string{"simulation: mistake"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			e := newEstate(t)
			inv := Watch(e.cluster, e.cloud, book{"d1": true})
			inv.PodGrace = 5 * time.Minute
			tc.do(e, t)
			inv.Removing = func() map[string]bool { return e.removing }
			for range 4 {
				check(t, e.Clock.Advance(2*time.Minute))
				inv.Check()
			}
			var got []string
			for _, v := range inv.Found() {
				_, text, _ := strings.Cut(v.String(), " ")
				words := strings.Fields(text)
				for i, w := range words {
					if strings.HasPrefix(w, "i-0") {
						words[i] = "ID"
					}
					if strings.HasPrefix(w, "aws:///ap-") {
						words[i] = "PROVIDER"
					}
					if strings.HasPrefix(w, "ip-10-0-0-") {
						words[i] = "NODE"
					}
					if strings.HasPrefix(w, "kube-system/proxy-") {
						words[i] = "kube-system/NAME"
					}
				}
				got = append(got, strings.Join(words, " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type testError struct{}

func (testError) Error() string { return "mistake" }

var errTest = testError{}

// plan is a claim for the pods on c5a.2xlarge, which m5.2xlarge may replace.
func plan(t *testing.T, e *estate, pods []string) *decision.Proposal {
	t.Helper()
	reqs, err := requirements.FromKarpenter([]karpv1.NodeSelectorRequirementWithMinValues{
		{Key: karpv1.CapacityTypeLabelKey, Operator: "In", Values: []string{"on-demand"}},
	})
	check(t, err)
	slices.Sort(pods)
	return &decision.Proposal{NodePool: "default", Claims: []decision.Claim{{
		NodePool: "default", NodeClass: "default", InstanceType: "c5a.2xlarge", Zone: zoneA, CapacityType: "on-demand", Price: 344_000_000,
		Launchable: decision.TypeSet{Count: 2, Names: []string{"c5a.2xlarge", "m5.2xlarge"}}, Requirements: reqs,
		Pods: []decision.PodGroup{{Namespace: "default", Names: pods}},
	}}}
}

func pendingNames(e *estate) []string {
	var out []string
	for _, p := range List[*corev1.Pod](e.API) {
		if p.Spec.NodeName == "" && p.Namespace == "default" {
			out = append(out, p.Name)
		}
	}
	return out
}

func TestAPlanIsCheckedByTheBinder(t *testing.T) {
	tests := []struct {
		name string
		edit func(*estate, *decision.Proposal)
		want []string
	}{
		{"a plan that fits", func(*estate, *decision.Proposal) {}, nil},
		{"a list of types by digest", func(_ *estate, p *decision.Proposal) {
			p.Lists = map[string][]string{"sha256:x": p.Claims[0].Launchable.Names}
			p.Claims[0].Launchable = decision.TypeSet{Count: 2, List: "sha256:x"}
		}, nil},
		{"a type that may be launched and is too small", func(_ *estate, p *decision.Proposal) {
			p.Claims[0].Launchable.Names = []string{"c5a.2xlarge", "m5.xlarge"}
		}, []string{"on node claim-0-as-m5-xlarge: Insufficient cpu"}},
		{"daemons that were forgotten", func(e *estate, _ *decision.Proposal) {
			big := NewDaemonSet("big", amounts("cpu=2"))
			if err := e.Apply(big); err != nil {
				panic(err)
			}
		}, []string{"on node claim-0-as-c5a-2xlarge: Insufficient cpu", "on node claim-0-as-m5-2xlarge: Insufficient cpu"}},
		{"a taint that was forgotten", func(e *estate, _ *decision.Proposal) {
			e.fleet.NodePools[0].Spec.Template.Spec.Taints = []corev1.Taint{taint("a=b:NoSchedule")}
		}, []string{"on node claim-0-as-c5a-2xlarge: node(s) had untolerated taint {a: b}", "on node claim-0-as-m5-2xlarge: node(s) had untolerated taint {a: b}"}},
		{"a type that is not launchable", func(_ *estate, p *decision.Proposal) { p.Claims[0].InstanceType = "c5.2xlarge" },
			[]string{"claim 0: c5.2xlarge, which the plan counts on, is not among the launchable types"}},
		{"a type that is none", func(_ *estate, p *decision.Proposal) {
			p.Claims[0].Launchable.Names = append(p.Claims[0].Launchable.Names, "m0.large")
		}, []string{`claim 0: there is no launchable type "m0.large"`}},
		{"a type that is not sold that way", func(_ *estate, p *decision.Proposal) {
			reqs, err := requirements.FromKarpenter([]karpv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelTopologyZone, Operator: "In", Values: []string{"elsewhere"}}})
			if err != nil {
				panic(err)
			}
			p.Claims[0].Requirements = reqs
		}, []string{"claim 0: the plan counts on on-demand c5a.2xlarge in ap-northeast-2a, which is not sold or not allowed", "claim 0: launchable type m5.2xlarge has no offering that the claim allows"}},
		{"another price", func(_ *estate, p *decision.Proposal) { p.Claims[0].Price++ },
			[]string{"claim 0: the plan counts on $0.344000001/h for c5a.2xlarge in ap-northeast-2a, which costs $0.344/h"}},
		{"a pool that is not in the fleet", func(_ *estate, p *decision.Proposal) { p.Claims[0].NodePool = "x" },
			[]string{`claim 0: the fleet has no NodePool "x" or no EC2NodeClass "default"`}},
		{"a pod that is not there", func(_ *estate, p *decision.Proposal) { p.Claims[0].Pods[0].Names = []string{"ghost"} },
			[]string{`Pod "default/ghost" not found`}},
		{"pods planned twice over one node", func(e *estate, p *decision.Proposal) {
			p.Placements = []decision.Placement{{Node: "n", Pods: p.Claims[0].Pods}}
			if err := e.AddNode(machine("n", "cpu=900m memory=8Gi pods=9")); err != nil {
				panic(err)
			}
		}, []string{"on node n: Insufficient cpu"}},
		{"a node that is not there", func(e *estate, p *decision.Proposal) { p.Placements = []decision.Placement{{Node: "x"}} },
			[]string{`Node "x" not found`}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			e := newEstate(t)
			check(t, e.Apply(NewDaemonSet("proxy", amounts("cpu=150m"))))
			deploy(t, e, 7)
			pass(t, e.World, time.Second)
			p := plan(t, e, pendingNames(e))
			tc.edit(e, p)
			var got []string
			if err := e.cloud.CheckPlan(p, e.fleet); err != nil {
				for line := range strings.SplitSeq(err.Error(), "\n") {
					if _, where, ok := strings.Cut(line, " on node "); ok {
						line = "on node " + where
					}
					got = append(got, line)
				}
				got = slices.Compact(got)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlacementsOnNodesThatAreOnTheirWay(t *testing.T) {
	e := newEstate(t)
	check(t, e.Apply(NewDaemonSet("proxy", amounts("cpu=150m"))))
	deploy(t, e, 8)
	pass(t, e.World, time.Second)
	check(t, e.cluster.CreateClaim(ctx, claimOf("c", "d1", "0")))
	names := pendingNames(e)
	fits := &decision.Proposal{Placements: []decision.Placement{{Node: "c", Pods: []decision.PodGroup{{Namespace: "default", Names: names[:7]}}}}}
	tooMany := &decision.Proposal{Placements: []decision.Placement{{Node: "c", Pods: []decision.PodGroup{{Namespace: "default", Names: names}}}}}
	judge := func(stage string, wantRefusal bool) {
		t.Helper()
		if err := e.cloud.CheckPlan(fits, e.fleet); err != nil {
			t.Errorf("%s: %v", stage, err)
		}
		if err := e.cloud.CheckPlan(tooMany, e.fleet); (err != nil) != wantRefusal {
			t.Errorf("%s, one pod too many: %v", stage, err)
		}
	}
	judge("before the launch nothing is known", false)
	e.drive(t, "c")
	e.drive(t, "c")
	judge("launched", true)
	pass(t, e.World, 30*time.Second)
	judge("joined", true)
	e.drive(t, "c")
	pass(t, e.World, 0)
	judge("registered", true)
	pass(t, e.World, 5*time.Second)
	judge("with its daemons", true)
}

// The removal of a claim as it ought to be violates nothing, and ends.
func TestInvariantsAllowAnOrderlyRemoval(t *testing.T) {
	tests := []struct {
		name string
		pods []*corev1.Pod
		tgp  time.Duration
		wait time.Duration
	}{
		{"of a node whose pods leave", []*corev1.Pod{pod(named("a")), pod(named("b"), annotated(AnnotationStopAfter, "20s"))}, 0, time.Minute},
		{"of a node whose pod stays until it has to go", []*corev1.Pod{pod(annotated("karpenter.sh/do-not-disrupt", "true"), annotated(AnnotationStopAfter, "25s"))}, 10 * time.Minute, 11 * time.Minute},
		{"with a pod that has more grace than the node", []*corev1.Pod{pod(annotated(AnnotationStopAfter, "1h"), func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(7200)) })}, 10 * time.Minute, 11 * time.Minute},
		{"under pods that stay wherever they are", []*corev1.Pod{pod(tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists}))}, 0, time.Minute},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			e := newEstate(t)
			inv := Watch(e.cluster, e.cloud, book{"d1": true})
			inv.Removing = func() map[string]bool { return e.removing }
			for _, p := range tc.pods {
				check(t, e.Apply(p))
			}
			e.tgp = tc.tgp
			e.provision(t, 60, "c")
			e.removing = map[string]bool{"c": true}
			check(t, e.cluster.Taint(ctx, snapshot(t, e).Node("c").Name, disruptedTaint))
			check(t, e.cluster.DeleteClaim(ctx, "c"))
			for end := e.Now().Add(tc.wait); e.Now().Before(end); {
				e.remove(t, "c")
				inv.Check()
				pass(t, e.World, time.Second)
			}
			if n := len(List[*karpv1.NodeClaim](e.API)); n != 0 {
				t.Errorf("%d claims are left", n)
			}
			if got := inv.Found(); len(got) != 0 {
				t.Errorf("found %v", got)
			}
		})
	}
}
