package dump

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func read(text string) (*Dump, error) {
	return Read(Source{Name: "x.yaml", Reader: strings.NewReader(text)})
}

// summary is what a test looks at.
type summary struct {
	Pods, Nodes, Claims, Sets, Budgets, Classes, Priorities int
	Manifests                                               []string
	Unused                                                  []Count
	Twice                                                   int
}

func summaryOf(d *Dump) summary {
	o := &d.Objects
	return summary{len(o.Pods), len(o.Nodes), len(o.NodeClaims), len(o.DaemonSets), len(o.Budgets), len(d.NodeClasses), len(o.PriorityClasses),
		d.Manifests, d.Unused, d.Twice}
}

const (
	podA = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default", "uid": "1"}}`
	podB = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": "default", "uid": "2"}}`
)

func TestEveryFormThatKubectlPrintsIsRead(t *testing.T) {
	two := summary{Pods: 2}
	tests := []struct {
		name, text string
		want       summary
	}{
		{"a JSON list", `{"apiVersion": "v1", "items": [` + podA + "," + podB + `], "kind": "List"}`, two},
		{"a JSON list with kind before items", `{"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [` + podA + "," + podB + `]}`, two},
		{"two JSON documents", podA + "\n" + podB, two},
		{"two JSON documents with a separator", podA + "\n---\n" + podB, two},
		{"a typed list whose items have no kind", `{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a", "uid": "1"}}, {"metadata": {"name": "b", "uid": "2"}}]}`, two},
		{"a YAML list with kind after items", "apiVersion: v1\nitems:\n- " + podA + "\n- " + podB + "\nkind: List\n", two},
		{"YAML documents, of which some are empty", "---\n---\n" + podA + "\n---\n# nothing\n---\n" + podB + "\n...\n", two},
		{"a byte order mark and CRLF", "\xef\xbb\xbfapiVersion: v1\r\nkind: Pod\r\nmetadata:\r\n  name: a\r\n  uid: \"1\"\r\n", summary{Pods: 1}},
		{"an empty list and something", `{"kind": "List", "apiVersion": "v1", "items": null}` + podA, summary{Pods: 1}},
		{"an empty YAML list and something", "kind: List\napiVersion: v1\nitems:\n---\n" + podA, summary{Pods: 1}},
		{"unquoted times, numbers and truths", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: x, creationTimestamp: 2026-04-06T12:00:00Z}\n" +
			"spec: {priority: 0x10, hostNetwork: true, containers: [{name: c, resources: {requests: {cpu: 0.5, memory: 1e3, ephemeral-storage: ~}}}]}\n", summary{Pods: 1}},
		{"a name that is given twice counts once", podA + podB + podA, summary{Pods: 2, Twice: 1}},
		{"every kind that is looked at", `
{apiVersion: v1, kind: Node, metadata: {name: a}}
---
{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: a}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}}
---
{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: a}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}}
`, summary{Nodes: 1, Claims: 1, Sets: 1, Budgets: 1, Classes: 1, Priorities: 1}},
		{"kinds and versions that are not are counted", podA + `{"apiVersion": "v1", "kind": "Secret"}{"apiVersion": "v1", "kind": "Secret"}{"apiVersion": "karpenter.sh/v1beta1", "kind": "NodeClaim"}`,
			summary{Pods: 1, Unused: []Count{{"NodeClaim karpenter.sh/v1beta1", 1}, {"Secret v1", 2}}}},
		{"a pod that nobody has seen is taken for pending", "{apiVersion: v1, kind: Pod, metadata: {name: a}}", summary{Pods: 1, Manifests: []string{"default/a"}}},
		{"a label may look like a huge number", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "1", "labels": {"commit": "12e34567"}}}`, summary{Pods: 1}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			d, err := read(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, summaryOf(d)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFaultNamesFileLineAndObject(t *testing.T) {
	pod := func(spec string) string {
		return "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a, namespace: n}\n  spec: " + spec + "\n"
	}
	tests := []struct{ name, text, want string }{
		{"YAML that does not parse", "a: b\n\tc: d\n", "x.yaml:2: it is not YAML: found a tab character that violates indentation"},
		{"JSON that does not parse", "{\n\"kind\": }\n", "x.yaml:2: it is not JSON: invalid character '}' looking for beginning of value"},
		{"JSON that ends early", "{\n\"kind\":\n", "x.yaml:3: it is not JSON: unexpected EOF"},
		{"a scalar", "hello\n", "x.yaml:1: it is not an object of Kubernetes, which is a mapping with apiVersion and kind"},
		{"an object without a kind", "a: b\n", "x.yaml:1: an object has no kind: give what kubectl -o yaml or -o json prints"},
		{"an item without a kind", "kind: List\nitems:\n- {}\n- a: b\n", "x.yaml:3: an object has no kind: give what kubectl -o yaml or -o json prints"},
		{"a kind that is no word", `{"kind": 7}`, "x.yaml:1: it is not an object of Kubernetes: json: cannot unmarshal number into Go struct field head.kind of type string"},
		{"items that are no list", "kind: List\nitems: {}\n", "x.yaml:2: items of a List is not a list"},
		{"items that are no list in JSON", "{\"kind\": \"List\",\n\"items\": {}}", "x.yaml:2: items of a List is not a list"},
		{"no name", "apiVersion: v1\nkind: Pod\n", "x.yaml:1: a Pod has no metadata.name"},
		{"a field of another type", pod("{containers: {}}"), "x.yaml:4: Pod n/a cannot be read: json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"},
		{"a quantity that is none", pod("{containers: [{resources: {requests: {cpu: much}}}]}"),
			"x.yaml:4: Pod n/a cannot be read: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
		{"a quantity that never ends", pod("{overhead: {cpu: 1e999999999}}"), "x.yaml:4: Pod n/a: spec.overhead.cpu: the exponent of 1e999999999 is beyond all reason"},
		{"a request below zero", pod("{containers: [{resources: {requests: {cpu: -1}}}]}"), "x.yaml:4: Pod n/a: spec.containers[0].resources.requests.cpu: -1 is below zero"},
		{"a limit beyond all machines", pod("{initContainers: [{resources: {limits: {memory: 1Ei}}}]}"),
			"x.yaml:4: Pod n/a: spec.initContainers[0].resources.limits.memory: 1Ei is more than any node has"},
		{"a pod request beyond all machines", pod("{resources: {requests: {cpu: 1e18}}}"), "x.yaml:4: Pod n/a: spec.resources.requests.cpu: 1e18 is more than any node has"},
		{"a node", "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: -1}}}", "x.yaml:1: Node a: status.allocatable.cpu: -1 is below zero"},
		{"a claim", "{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: a}, status: {capacity: {cpu: -1}}}", "x.yaml:1: NodeClaim a: status.capacity.cpu: -1 is below zero"},
		{"a daemonset", "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {template: {spec: {containers: [{resources: {limits: {cpu: -1}}}]}}}}",
			"x.yaml:1: DaemonSet default/a: spec.template.spec.containers[0].resources.limits.cpu: -1 is below zero"},
		{"a year that no format can write", "{apiVersion: v1, kind: Pod, metadata: {name: a, creationTimestamp: \"9999-12-31T23:59:59-23:00\"}}",
			"x.yaml:1: Pod default/a: metadata.creationTimestamp: 10000-01-01T22:59:59Z is not an instant that a cluster can tell of"},
		{"an alias", "a: &x {}\nb: *x\nkind: Pod\n", "x.yaml:2: an alias of YAML is not read here: kubectl writes none"},
		{"a merge key", "kind: Pod\n<<: {a: b}\n", "x.yaml:2: a merge key of YAML is not read here: kubectl writes none"},
		{"a key twice", "kind: Pod\na: 1\na: 2\n", "x.yaml:3: key \"a\" is given twice"},
		{"a key that is no word", "kind: Pod\n? [a]\n: b\n", "x.yaml:2: the key of a mapping is not a word"},
		{"a number that is none", "kind: Pod\na: .inf\n", "x.yaml:2: \".inf\" is not a number that an object can have"},
		{"a number of too many digits", "kind: Pod\na: 0xffffffffffffffff\n", "x.yaml:2: \"0xffffffffffffffff\" is not a number of 64 bits"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := read(tc.text)
			var at *Error
			if !errors.As(err, &at) || at.File != "x.yaml" || at.Line < 1 {
				t.Fatalf("%v is not an error with a place", err)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingToPlanOnIsAnError(t *testing.T) {
	for _, text := range []string{"", "---\n", "# a comment\n", `{"apiVersion": "v1", "kind": "Secret"}`} {
		if _, err := read(text); !errors.Is(err, ErrNothing) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Read(); !errors.Is(err, ErrNothing) {
		t.Errorf("no input: %v", err)
	}
	_, err := Read(Source{"gone", failing{}})
	if err == nil || err.Error() != "gone: out of order" {
		t.Errorf("an input that cannot be read: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("out of order") }

func TestTheNewestInstantIsThatOfAnyObject(t *testing.T) {
	d, err := read(`
{apiVersion: v1, kind: Node, metadata: {name: a, creationTimestamp: "2026-04-06T10:00:00Z"}, status: {conditions: [{type: Ready, lastHeartbeatTime: "2026-04-06T12:00:00Z"}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a, creationTimestamp: "2026-04-06T11:00:00Z", deletionTimestamp: "2026-04-06T13:00:00Z"}, status: {startTime: "2026-04-06T11:30:00Z"}}
---
{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: a}, status: {lastPodEventTime: "2026-04-06T12:10:00Z", conditions: [{type: Launched, lastTransitionTime: "2026-04-06T12:05:00Z"}]}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2026, 4, 6, 12, 10, 0, 0, time.UTC); !d.Newest.Equal(want) {
		t.Errorf("newest %s, want %s", d.Newest, want)
	}
}

// FuzzRead proves that nothing that is read panics, and that what is accepted
// makes a snapshot that can be recorded.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		podA, `{"kind": "List", "items": [` + podA + `]}`, "kind: List\nitems:\n- " + podA,
		"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n, containers: [{resources: {requests: {cpu: 1e3}}}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}}",
		"{apiVersion: v1, kind: Node, metadata: {name: n}, spec: {unschedulable: true, providerID: x}, status: {capacity: {cpu: 4}}}\n---\n{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: c}, status: {providerID: x, conditions: [{type: Launched, status: 'True'}]}}",
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {selector: {matchExpressions: [{key: a, operator: Foo}]}}}",
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {template: {spec: {containers: [{resources: {limits: {cpu: 1}}}]}}}}",
		"a: &x [*x]\n", "? {}\n: b\n", "1e99999", "{apiVersion: v1, kind: Pod, metadata: {name: a, creationTimestamp: \"0000-01-01T00:00:00+23:59\"}}",
	} {
		f.Add(text)
	}
	at := time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := read(text)
		if err != nil {
			var at *Error
			if !errors.As(err, &at) && !errors.Is(err, ErrNothing) {
				t.Errorf("%v has no place", err)
			}
			return
		}
		s := d.Objects.Snapshot(at)
		if s.Digest() == "" || len(s.Nodes) > len(d.Objects.Nodes)+len(d.Objects.NodeClaims) {
			t.Errorf("%d nodes of %d and %d claims", len(s.Nodes), len(d.Objects.Nodes), len(d.Objects.NodeClaims))
		}
		for _, b := range s.Budgets {
			for _, p := range s.Pending {
				b.Covers(p)
			}
		}
	})
}
