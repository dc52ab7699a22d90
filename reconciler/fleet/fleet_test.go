package fleet

import (
	"encoding/json"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

func pool(name string, weight int32) *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if weight > 0 {
		p.Spec.Weight = &weight
	}
	return p
}

func TestPoolsAreFoundByNameAndTriedByWeight(t *testing.T) {
	f := &Fleet{
		NodePools:   []*karpv1.NodePool{pool("a", 0), pool("b", 10), pool("c", 10), pool("d", 1)},
		NodeClasses: []*ec2v1.EC2NodeClass{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}},
	}
	var got []string
	for _, p := range f.ByWeight() {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff([]string{"b", "c", "d", "a"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if f.NodePool("c") == nil || f.NodePool("x") != nil || f.NodeClass("default") == nil || f.NodeClass("") != nil {
		t.Error("search by name")
	}
}

func TestPositionsFallBackToTheNearestParent(t *testing.T) {
	ps := Positions{}
	at := Position{"clusters/myeks/fleet.cue", 3, 5}
	ps.Set(Path{"nodePools", "a/b"}, at)
	root := Position{"clusters/myeks/cluster.cue", 1, 1}
	ps.Set(nil, root)
	for _, tc := range []struct {
		path Path
		want Position
	}{
		{Path{"nodePools", "a/b"}, at},
		{Path{"nodePools", "a/b", "spec", "weight"}, at},
		{Path{"nodePools", "a", "b"}, root},
		{Path{"other"}, root},
	} {
		if got, ok := ps.Find(tc.path); !ok || got != tc.want {
			t.Errorf("%s is at %s, %v; want %s", tc.path, got, ok, tc.want)
		}
	}
	if _, ok := (Positions{}).Find(Path{"x"}); ok {
		t.Error("nothing is somewhere")
	}
	if got := at.String(); got != "clusters/myeks/fleet.cue:3:5" {
		t.Errorf("for people: %s", got)
	}
}

func TestPathsReadAsCUEWritesThem(t *testing.T) {
	for want, p := range map[string]Path{
		"nodePools.default.spec.weight": {"nodePools", "default", "spec", "weight"},
		`labels["karpenter.sh/x"].0`:    {"labels", "karpenter.sh/x", "0"},
		"":                              {},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDurationsAreTextAndExceptionsEnd(t *testing.T) {
	var d Duration
	if err := json.Unmarshal([]byte(`"1m30s"`), &d); err != nil || time.Duration(d) != 90*time.Second {
		t.Errorf("%v %v", d, err)
	}
	if b, err := json.Marshal(d); err != nil || string(b) != `"1m30s"` {
		t.Errorf("%s %v", b, err)
	}
	for _, bad := range []string{`"x"`, `5`} {
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	end := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	e := Exception{Expires: end}
	if e.Expired(end.Add(-1)) || !e.Expired(end) {
		t.Error("an exception holds until the instant it expires and not at it")
	}
}
