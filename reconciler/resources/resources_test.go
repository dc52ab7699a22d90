package resources

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestPricesAreExact(t *testing.T) {
	tests := []struct {
		in   string
		want Price
		out  string
	}{
		{"0", 0, "0"},
		{"0.344", 344_000_000, "0.344"},
		{"1.376", 1_376_000_000, "1.376"},
		{"10", 10 * USD, "10"},
		{"10.50", 10_500_000_000, "10.5"},
		{"-0.1", -100_000_000, "-0.1"},
		{"0.000000001", 1, "0.000000001"},
		{"0.0255", 25_500_000, "0.0255"},
	}
	for _, tc := range tests {
		got, err := ParsePrice(tc.in)
		if err != nil || got != tc.want || got.Decimal() != tc.out {
			t.Errorf("ParsePrice(%q) = %d (%s), %v; want %d (%s)", tc.in, got, got.Decimal(), err, tc.want, tc.out)
		}
		b, err := json.Marshal(got)
		if err != nil || string(b) != tc.out {
			t.Errorf("JSON of %q is %s, %v", tc.in, b, err)
		}
		var back Price
		if err := json.Unmarshal(b, &back); err != nil || back != got {
			t.Errorf("JSON %s comes back as %d, %v", b, back, err)
		}
	}
	if got := Price(344_000_000).String() + " " + Price(-1*USD).String(); got != "$0.344/h -$1/h" {
		t.Errorf("for people: %s", got)
	}
	if got := Price(math.MinInt64).Decimal(); got != "-9223372036.854775808" {
		t.Errorf("the least price: %s", got)
	}
}

func TestWhatIsNoPriceIsRefused(t *testing.T) {
	for _, in := range []string{"", ".", "-", "1e3", "0.0000000001", "x", "1.2.3", "99999999999999", "1,5", "+1", "--1", "1.-5"} {
		if got, err := ParsePrice(in); err == nil {
			t.Errorf("ParsePrice(%q) = %d", in, got)
		}
	}
	var p Price
	if err := json.Unmarshal([]byte(`"0.1"`), &p); err == nil {
		t.Error("a string is taken for a price")
	}
}

func TestListsAddAndCompare(t *testing.T) {
	a := From(corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")})
	b := List{"cpu": 500, "pods": 1}
	tests := []struct {
		name      string
		got, want List
	}{
		{"from", a, List{"cpu": 1500, "memory": 1 << 30}},
		{"plus", a.Plus(b), List{"cpu": 2000, "memory": 1 << 30, "pods": 1}},
		{"minus", b.Minus(a), List{"cpu": -1000, "memory": -(1 << 30), "pods": 1}},
		{"max", a.Max(b), List{"cpu": 1500, "memory": 1 << 30, "pods": 1}},
		{"times", b.Times(3), List{"cpu": 1500, "pods": 3}},
		{"plus nothing", List(nil).Plus(nil), List{}},
		{"rounded up", From(corev1.ResourceList{"cpu": resource.MustParse("1500u"), "memory": resource.MustParse("1500m")}), List{"cpu": 2, "memory": 2}},
	}
	for _, tc := range tests {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if a.Fits(b) || !b.Fits(List{"cpu": 500, "pods": 1}) || !(List{"gpu": 0}).Fits(nil) {
		t.Error("Fits")
	}
	if diff := cmp.Diff([]corev1.ResourceName{"cpu", "memory"}, a.Lacking(b)); diff != "" {
		t.Error(diff)
	}
	if !(List{"cpu": 0}).IsZero() || a.IsZero() {
		t.Error("IsZero")
	}
	if From(nil) != nil || List(nil).Kubernetes() != nil {
		t.Error("nothing is something")
	}
	if got := a.String(); got != "cpu 1500m, memory 1Gi" {
		t.Errorf("for people: %s", got)
	}
}

func TestListsKeepTheirAmountsInJSON(t *testing.T) {
	in := List{"cpu": 5150, "memory": 7577 << 20, "pods": 29, "ephemeral-storage": 17 << 30, "nvidia.com/gpu": 8, "hugepages-2Mi": 4 << 20}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"cpu":"5150m","ephemeral-storage":"17Gi","hugepages-2Mi":"4Mi","memory":"7577Mi","nvidia.com/gpu":"8","pods":"29"}`; string(b) != want {
		t.Errorf("got %s\nwant %s", b, want)
	}
	var back List
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, back); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(in, From(in.Kubernetes())); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{`{"cpu":"x"}`, `{"cpu":1}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
