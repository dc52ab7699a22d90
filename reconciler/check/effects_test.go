package check

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/report"
)

// leaf is a field of an API type that can be changed by itself.
type leaf struct {
	path   fleet.Path
	change func()
}

// leaves fills a value with something in every field and returns its fields by
// their paths in JSON.
func leaves(t *testing.T, v reflect.Value, at fleet.Path) []leaf {
	t.Helper()
	one := func(change func()) []leaf { return []leaf{{append(fleet.Path{}, at...), change}} }
	switch x := v.Addr().Interface().(type) {
	case *karpv1.NillableDuration:
		d := time.Hour
		x.Duration = &d
		return one(func() { *x.Duration = 2 * time.Hour })
	case *metav1.Duration:
		x.Duration = time.Hour
		return one(func() { x.Duration = 2 * time.Hour })
	case *metav1.Time:
		x.Time = time.Unix(1, 0)
		return one(func() { x.Time = time.Unix(2, 0) })
	case *resource.Quantity:
		*x = resource.MustParse("1")
		return one(func() { *x = resource.MustParse("2") })
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return leaves(t, v.Elem(), at)
	case reflect.Struct:
		return structLeaves(t, v, at)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return leaves(t, v.Index(0), append(at, "0"))
	case reflect.Map:
		return mapLeaves(t, v, at)
	case reflect.String:
		v.SetString("a")
		return one(func() { v.SetString("b") })
	case reflect.Bool:
		v.SetBool(true)
		return one(func() { v.SetBool(false) })
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
		return one(func() { v.SetInt(2) })
	default:
		t.Fatalf("%s: a field of kind %s is not known here", at, v.Kind())
		return nil
	}
}

func structLeaves(t *testing.T, v reflect.Value, at fleet.Path) []leaf {
	t.Helper()
	var out []leaf
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		inner := at
		if !strings.Contains(options, "inline") && name != "" {
			inner = append(append(fleet.Path{}, at...), name)
		}
		out = append(out, leaves(t, v.Field(i), inner)...)
	}
	return out
}

// mapLeaves is a map with one member, which is written back after each change
// since it cannot be addressed.
func mapLeaves(t *testing.T, v reflect.Value, at fleet.Path) []leaf {
	t.Helper()
	key := reflect.ValueOf("k").Convert(v.Type().Key())
	member := reflect.New(v.Type().Elem()).Elem()
	v.Set(reflect.MakeMap(v.Type()))
	out := leaves(t, member, append(append(fleet.Path{}, at...), "k"))
	v.SetMapIndex(key, member)
	for i := range out {
		change := out[i].change
		out[i].change = func() { change(); v.SetMapIndex(key, member) }
	}
	return out
}

// TestEffectsAreThoseOfKarpentersHash changes every field of the API types by
// itself: a field replaces nodes by hash exactly when Karpenter's hash moves.
func TestEffectsAreThoseOfKarpentersHash(t *testing.T) {
	kinds := []struct {
		kind  string
		build func() (spec reflect.Value, hash func() string)
	}{
		{"NodePool", func() (reflect.Value, func() string) {
			np := &karpv1.NodePool{}
			return reflect.ValueOf(&np.Spec).Elem(), np.Hash
		}},
		{"EC2NodeClass", func() (reflect.Value, func() string) {
			class := &ec2v1.EC2NodeClass{}
			return reflect.ValueOf(&class.Spec).Elem(), func() string { return class.Hash(nil) }
		}},
	}
	for _, k := range kinds {
		spec, _ := k.build()
		n := len(leaves(t, spec, fleet.Path{"spec"}))
		if n < 20 {
			t.Fatalf("%s has %d fields", k.kind, n)
		}
		for i := range n {
			spec, hash := k.build()
			l := leaves(t, spec, fleet.Path{"spec"})[i]
			before := hash()
			l.change()
			moves := hash() != before
			e := effectOf(k.kind, l.path)
			if byHash := e.class == report.Replaces; byHash != moves || byHash != e.hash {
				t.Errorf("%s %s: the table says %q (by hash: %v), and the hash moves: %v", k.kind, l.path, e.class, e.hash, moves)
			}
		}
	}
}

func TestEffectsOfFieldsOutsideTheHash(t *testing.T) {
	tests := []struct {
		kind, path string
		want       report.Effect
	}{
		{"NodePool", "spec.weight", report.InPlace},
		{"NodePool", "spec.limits.cpu", report.InPlace},
		{"NodePool", "spec.replicas", report.InPlace},
		{"NodePool", "spec.disruption.consolidateAfter", report.InPlace},
		{"NodePool", "spec.disruption.budgets.0.nodes", report.InPlace},
		{"NodePool", "spec.template.spec.requirements", report.ReplacesOutside},
		{"NodePool", "spec.template.spec.requirements.0.values.1", report.ReplacesOutside},
		{"NodePool", "spec.template.spec.requirements.0.minValues", report.NewNodesOnly},
		{"EC2NodeClass", "spec.amiSelectorTerms.0.alias", report.ReplacesOutside},
		{"EC2NodeClass", "spec.subnetSelectorTerms", report.ReplacesOutside},
		{"EC2NodeClass", "spec.securityGroupSelectorTerms.0.id", report.ReplacesOutside},
		{"EC2NodeClass", "spec.capacityReservationSelectorTerms", report.ReplacesOutside},
		{"EC2NodeClass", "spec.ipPrefixCount", report.NewNodesOnly},
		{"Cluster", "kubernetesVersion", report.ReplacesOutside},
		{"Cluster", "engine.reservedENIs", report.NewNodesOnly},
		{"Cluster", "mode", report.InPlace},
	}
	for _, tc := range tests {
		if got := effectOf(tc.kind, strings.Split(tc.path, ".")); got.class != tc.want || got.why == "" || got.hash {
			t.Errorf("%s %s: %+v, want %q", tc.kind, tc.path, got, tc.want)
		}
	}
}

func TestAChangeThatTheHashDoesNotSeeReplacesNothing(t *testing.T) {
	np := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	read(t, `{"expireAfter":"24h","taints":[{"key":"x","effect":"NoSchedule"},{"key":"y","effect":"NoSchedule"}]}`, &np.Spec.Template.Spec)
	class := &ec2v1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	read(t, `{"amiFamily":"AL2023","amiSelectorTerms":[{"alias":"al2023@v1"}]}`, &class.Spec)
	f := &fleet.Fleet{NodePools: []*karpv1.NodePool{np}, NodeClasses: []*ec2v1.EC2NodeClass{class}}
	tests := []struct {
		name, kind, object, field, to string
		want                          bool
	}{
		{"another duration", "NodePool", "a", "expireAfter", `"25h"`, true},
		{"the same duration written otherwise", "NodePool", "a", "expireAfter", `"1440m"`, false},
		{"no duration any more", "NodePool", "a", "expireAfter", ``, true},
		{"the same taints in another order", "NodePool", "a", "taints", `[{"key":"y","effect":"NoSchedule"},{"key":"x","effect":"NoSchedule"}]`, false},
		{"another taint", "NodePool", "a", "taints.1.key", `"z"`, true},
		{"a field that was not there", "NodePool", "a", "terminationGracePeriod", `"1h"`, true},
		{"a family that the alias says already", "EC2NodeClass", "c", "amiFamily", ``, false},
		{"another family", "EC2NodeClass", "c", "amiFamily", `"Bottlerocket"`, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			prefix := fleet.Path{"spec", "template", "spec"}
			if tc.kind == "EC2NodeClass" {
				prefix = fleet.Path{"spec"}
			}
			h, err := newHasher(f, tc.kind, tc.object)
			if err != nil {
				t.Fatal(err)
			}
			var to json.RawMessage
			if tc.to != "" {
				to = json.RawMessage(tc.to)
			}
			got, err := h.moves(append(prefix, strings.Split(tc.field, ".")...), to)
			if err != nil || got != tc.want {
				t.Errorf("moves %v (%v), want %v", got, err, tc.want)
			}
		})
	}
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
