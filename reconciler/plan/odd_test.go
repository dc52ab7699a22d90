package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reeve-project/reeve/reconciler/kube/dump"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/spec"
)

// newFleet is the directory of a new fleet.
func newFleet(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	_, err := spec.Init(dir, spec.InitOptions{Cluster: "blue", Region: "ap-northeast-2"})
	must(t, err)
	return dir
}

func planOf(t *testing.T, dir string, o Options, objects ...string) *report.Plan {
	t.Helper()
	o.Target, o.Present = Target{Path: dir}, noon
	for i, text := range objects {
		o.Objects = append(o.Objects, dump.Source{Name: fmt.Sprintf("%d.yaml", i), Reader: strings.NewReader(text)})
	}
	p, err := Of(ctx, o)
	must(t, err)
	return p
}

// What an API server would never hold must not stop a plan for the rest.
func TestOddObjectsDoNotStopAPlan(t *testing.T) {
	dir := newFleet(t)
	const good = "{apiVersion: v1, kind: Pod, metadata: {name: good}, spec: {containers: [{resources: {requests: {cpu: 1}}}]}}\n"
	pod := func(spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: odd}, spec: " + spec + "}"
	}
	affinity := func(expression string) string {
		return pod("{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [" + expression + "]}]}}}}")
	}
	tests := []struct{ name, object string }{
		{"no containers", pod("{}")},
		{"an empty node selector term", affinity("")},
		{"a bound without a number", affinity("{key: a, operator: Gt}")},
		{"a bound that is no number", affinity("{key: a, operator: Lt, values: [x]}")},
		{"an operator that there is not", affinity("{key: a, operator: Foo}")},
		{"an empty key", affinity("{key: '', operator: In, values: ['']}")},
		{"no node selector terms", pod("{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}}")},
		{"an anti-affinity over nothing", pod("{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}}")},
		{"a selector that does not parse", pod("{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchExpressions: [{key: a, operator: Foo}]}}]}}}")},
		{"a spread of no skew", pod("{topologySpreadConstraints: [{}]}")},
		{"a toleration of all", pod("{tolerations: [{operator: Exists}, {operator: Gt, key: a, value: x}, {}]}")},
		{"ports of no host", pod("{containers: [{ports: [{hostPort: -1}, {hostPort: 99999999}]}]}")},
		{"a resource that nobody has", pod("{containers: [{resources: {requests: {'': 1, 'example.com/gpu': 1}}}]}")},
		{"more than any machine", pod("{containers: [{resources: {requests: {cpu: 1e11, memory: 256Ti}}}]}")},
		{"a selector of hostile text", pod("{nodeSelector: {'a\\u0000b': '\\u001b[31m'}}")},
		{"a volume of nothing", pod("{volumes: [{}, {ephemeral: {}}, {persistentVolumeClaim: {}}]}")},
		{"a pod on a node and nominated to another", pod("{nodeName: nowhere}")},
		{"a node of nothing", "{apiVersion: v1, kind: Node, metadata: {name: odd}}"},
		{"a node with odd labels", "{apiVersion: v1, kind: Node, metadata: {name: odd, labels: {topology.kubernetes.io/zone: nowhere, karpenter.sh/nodepool: default}}, status: {allocatable: {cpu: 0, pods: 0}}}"},
		{"a claim of nothing", "{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: odd}}"},
		{"a claim of an unknown type", "{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: odd, labels: {karpenter.sh/nodepool: default, node.kubernetes.io/instance-type: z9.huge}, annotations: {reeve.dev/price: lots, reeve.dev/index: '-7'}}, status: {providerID: x, conditions: [{type: Launched, status: 'True'}]}}"},
		{"a claim of a NodePool that is not there", "{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: odd, deletionTimestamp: '2026-04-06T11:00:00Z', labels: {karpenter.sh/nodepool: gone}}}"},
		{"a daemonset of nothing", "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: odd}}"},
		{"a budget of nothing", "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: odd}}"},
		{"a class with conditions only", "{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: other}, status: {conditions: [{type: Ready, status: 'False'}]}}"},
	}
	var all strings.Builder
	for i, tc := range tests {
		fmt.Fprintf(&all, "# %s\n%s\n---\n", tc.name, strings.Replace(tc.object, "name: odd", fmt.Sprintf("name: odd-%d", i), 1))
	}
	p := planOf(t, dir, Options{AssumeIdle: true}, all.String()+good)
	for _, s := range p.Steps {
		for _, l := range s.Launches {
			for _, g := range l.Pods {
				if slices.Contains(g.Names, "good") {
					return
				}
			}
		}
	}
	t.Errorf("nothing is launched for the other pod: %+v", p.Steps)
}

func TestAssumptionsSayWhatWasNotGiven(t *testing.T) {
	dir := newFleet(t)
	const (
		pod   = "{apiVersion: v1, kind: Pod, metadata: {name: a, uid: x}, spec: {nodeName: gone}}\n---\n"
		node  = "{apiVersion: v1, kind: Node, metadata: {name: n, labels: {karpenter.sh/nodepool: default, topology.kubernetes.io/zone: ap-northeast-2b}}, status: {conditions: [{type: Ready, status: 'True', lastHeartbeatTime: '2026-04-06T12:30:00Z'}]}}\n---\n"
		set   = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}}\n---\n"
		pdb   = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}}\n---\n"
		class = "{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: default}, spec: {amiSelectorTerms: [{id: ami-1}]}, status: {subnets: [{id: s, zone: ap-northeast-2b, zoneID: apne2-az2}]}}\n---\n"
	)
	first := "Instance types and prices are those built in for ap-northeast-2."
	got := planOf(t, dir, Options{}, pod+node+set+pdb+pod)
	want := []string{
		first,
		"EC2NodeClass default is ready, has images for every architecture, and has subnets in ap-northeast-2b (where there are nodes).",
		"Nodes without a NodeClaim are never removed, though 1 of them carry the label of a NodePool: give what kubectl get nodeclaims prints too.",
		"Pods on nodes that were not given (1) are left out.",
		"Of objects that were given more than once (1) the first counts.",
	}
	if a := strings.Join(got.Assumptions, "\n"); a != strings.Join(want, "\n") {
		t.Errorf("assumed\n%s\nwant\n%s", a, strings.Join(want, "\n"))
	}
	if !got.Time.Equal(noon.Add(30 * 60 * 1e9)) {
		t.Errorf("planned for %s, and an object is newer than the present", got.Time)
	}
	got = planOf(t, dir, Options{Now: noon}, node+set+pdb+class)
	if a := got.Assumptions[1]; !strings.Contains(a, "though the fleet has other subnetSelectorTerms and securityGroupSelectorTerms and amiSelectorTerms") || !got.Time.Equal(noon) {
		t.Errorf("assumed %s at %s", a, got.Time)
	}
}

// A limit that somebody wrote into what kubectl printed counts as a request, and
// what the plan itself would launch is not told as a node that stays.
func TestLimitsCountAndLaunchesAreNotNodesThatStay(t *testing.T) {
	const object = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{resources: {limits: {cpu: 3}}}]}, status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}}"
	got := planOf(t, newFleet(t), Options{Now: noon}, object)
	if len(got.Steps) != 1 || len(got.Steps[0].Launches) != 1 {
		t.Fatalf("steps: %+v", got.Steps)
	}
	if cpu := got.Steps[0].Launches[0].Requests["cpu"]; cpu != 3000 {
		t.Errorf("the node is launched for %d millicores", cpu)
	}
	if len(got.Staying) > 0 {
		t.Errorf("nodes that stay: %+v", got.Staying)
	}
}
