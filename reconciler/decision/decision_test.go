package decision

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

var noon = time.Date(2026, 4, 6, 12, 24, 2, 547_900_000, time.FixedZone("KST", 9*3600))

func sample(t *testing.T) *Decision {
	t.Helper()
	d := &Decision{
		Kind: Provision, Cluster: "myeks", Mode: fleet.Enforce, Time: noon,
		Summary: "provision(default): 1 × c5a.2xlarge <ap-northeast-2a>",
		Verdict: Verdict{Allowed: true, Warnings: []Finding{{Rule: "R1", Message: "hm", Path: fleet.Path{"nodePools", "default"}}}},
		Proposal: Proposal{
			NodePool: "default", Reason: "5 pods pending", Cost: 344_000_000,
			Claims: []Claim{{
				NodePool: "default", NodeClass: "default", InstanceType: "c5a.2xlarge", Zone: "ap-northeast-2a",
				CapacityType: "on-demand", Price: 344_000_000, Launchable: TypeSet{Count: 1, Names: []string{"c5a.2xlarge"}},
				Requirements: requirements.FromLabels(map[string]string{"kubernetes.io/arch": "amd64"}),
				Requests:     resources.List{"cpu": 5150, "memory": 1 << 30},
				Pods:         []PodGroup{{Shape: "inflate-x", Namespace: "default", Names: []string{"a", "b"}}},
			}},
		},
		Inputs: Inputs{SpecCommit: "abc"},
		Engine: Engine{Version: EngineVersion, OPA: "1", CUE: "0"},
	}
	if err := d.Seal(); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSealedDecisionsSurviveTheirEncoding(t *testing.T) {
	d := sample(t)
	b, err := Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.VerifyID(); err != nil {
		t.Error(err)
	}
	again, err := Encode(got)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, again) {
		t.Errorf("encoding changed (-first +again):\n%s", cmp.Diff(string(b), string(again)))
	}
	if !strings.Contains(string(b), "<ap-northeast-2a>") {
		t.Error("text is escaped for HTML, which nobody can read in a diff")
	}
}

func TestIDsFollowFromContentAlone(t *testing.T) {
	a, b := sample(t), sample(t)
	if a.ID != b.ID || !strings.HasPrefix(a.ID, "20260406T032402.547Z-") {
		t.Errorf("ids %q and %q: want equal ones that begin with the time in UTC", a.ID, b.ID)
	}
	if a.Proposal.Claims[0].Name != ClaimName("default", a.ID, 0) || len(a.Proposal.Claims[0].Name) != len("default-")+claimHash {
		t.Errorf("claim name %q", a.Proposal.Claims[0].Name)
	}
	c := sample(t)
	c.Proposal.Cost++
	if err := c.Seal(); err != nil {
		t.Fatal(err)
	}
	if c.ID == a.ID {
		t.Error("another cost has the same id")
	}
	if at, hash, err := ParseID(a.ID); err != nil || !at.Equal(a.Time) || len(hash) != idHash {
		t.Errorf("ParseID(%q) = %v, %q, %v", a.ID, at, hash, err)
	}
	for _, bad := range []string{"", "x", "20260406T032402.547Z-short", "20260406T032402.547Z-ABCDEFGHIJKLMNOP", "2026-abcdefghijklmnop"} {
		if _, _, err := ParseID(bad); err == nil {
			t.Errorf("ParseID(%q) is accepted", bad)
		}
	}
}

func TestTamperedRecordsAreFound(t *testing.T) {
	d := sample(t)
	d.Proposal.Claims[0].Price--
	if err := d.VerifyID(); err == nil {
		t.Error("a changed price is not found")
	}
	d = sample(t)
	d.Proposal.Claims[0].Name = "default-aaaaaaaa"
	if err := d.VerifyID(); err == nil {
		t.Error("a changed claim name is not found")
	}
}

func TestUnreadableRecordsAreRefused(t *testing.T) {
	b, _ := Encode(sample(t))
	swap := func(old, new string) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
	for name, in := range map[string][]byte{
		"an unknown field":   swap(`"kind"`, `"extra": 1, "kind"`),
		"an unknown kind":    swap(`"provision"`, `"imagine"`),
		"two values":         append(bytes.Clone(b), b...),
		"no JSON":            []byte("x"),
		"a price with an e":  swap(`0.344`, `3.44e-1`),
		"an unreadable time": swap(`2026-04-06T`, `2026-13-06T`),
	} {
		if _, err := Decode(in); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := Decode(swap(Version, "ledger.reeve.dev/v9")); !errors.Is(err, ErrVersion) {
		t.Errorf("a later format: %v, want ErrVersion", err)
	}
}

func TestNothingRecordedIsAFloat(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(ty reflect.Type, path string)
	walk = func(ty reflect.Type, path string) {
		if seen[ty] {
			return
		}
		seen[ty] = true
		switch ty.Kind() {
		case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128, reflect.Interface:
			t.Errorf("%s is a %s: its encoding may differ between machines", path, ty)
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(ty.Elem(), path+"[]")
		case reflect.Struct:
			if ty == reflect.TypeFor[time.Time]() || ty == reflect.TypeFor[requirements.Set]() {
				return
			}
			for f := range ty.NumField() {
				walk(ty.Field(f).Type, path+"."+ty.Field(f).Name)
			}
		}
	}
	walk(reflect.TypeFor[Decision](), "Decision")
	walk(reflect.TypeFor[Outcome](), "Outcome")
}

func TestFingerprintsTellRepeatsFromNews(t *testing.T) {
	a, b := sample(t), sample(t)
	b.Time = b.Time.Add(time.Minute)
	b.Proposal.Cost++ // a price that moved is no news
	if err := b.Seal(); err != nil {
		t.Fatal(err)
	}
	if a.Fingerprint != b.Fingerprint {
		t.Error("the same proposal a minute later is news")
	}
	change := map[string]func(*Decision){
		"another pod":     func(d *Decision) { d.Proposal.Claims[0].Pods[0].Names[0] = "z" },
		"another rule":    func(d *Decision) { d.Verdict.Violations = []Finding{{Rule: "R2"}} },
		"another verdict": func(d *Decision) { d.Verdict.Allowed = false },
		"another commit":  func(d *Decision) { d.Inputs.SpecCommit = "def" },
		"other policies":  func(d *Decision) { d.Inputs.Policies = "p" },
		"another node":    func(d *Decision) { d.Proposal.Nodes = []Node{{Name: "n"}} },
		"unplaced pods":   func(d *Decision) { d.Proposal.Unplaced = []Unplaced{{Reason: "r"}} },
		"an instance":     func(d *Decision) { d.Proposal.Instances = []Instance{{ID: "i"}} },
		"a spec":          func(d *Decision) { d.Proposal.Spec = &SpecChange{Commit: "c"} },
		"a leader":        func(d *Decision) { d.Proposal.Handover = &Leader{Epoch: 2} },
	}
	for name, f := range change {
		c := sample(t)
		f(c)
		if err := c.Seal(); err != nil {
			t.Fatal(err)
		}
		if c.Fingerprint == a.Fingerprint {
			t.Errorf("%s is no news", name)
		}
	}
}

func TestOutcomesAreAsFarAsTheSlowestSubject(t *testing.T) {
	tests := []struct {
		name  string
		steps []Step
		want  State
		final bool
	}{
		{"nothing has happened", nil, "", false},
		{"one of two is launched", []Step{{Claim: "a", State: Claimed}, {Claim: "b", State: Claimed}, {Claim: "a", State: Launched}}, Claimed, false},
		{"one of two is done", []Step{{Claim: "a", State: Initialized}, {Claim: "b", State: Registered}}, Registered, false},
		{"both are done", []Step{{Claim: "a", State: Initialized}, {Claim: "b", State: Initialized}}, Initialized, true},
		{"one failed, one is on its way", []Step{{Claim: "a", State: Failed}, {Claim: "b", State: Launched}}, Launched, false},
		{"one failed, one is done", []Step{{Claim: "a", State: Failed}, {Claim: "b", State: Initialized}}, Initialized, true},
		{"one of two has begun", []Step{{Claim: "b", State: Tainted}}, Tainted, false},
		{"one of two has not begun, the other failed", []Step{{Claim: "b", State: Failed}}, Failed, false},
		{"both failed", []Step{{Claim: "a", State: Failed}, {Claim: "b", State: Failed}}, Failed, true},
		{"the whole was abandoned", []Step{{State: Abandoned}}, Abandoned, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			o := NewOutcome("x")
			o.Advance([]string{"a", "b"}, tc.steps...)
			if o.State != tc.want || o.Final != tc.final {
				t.Errorf("got %q final %v, want %q final %v", o.State, o.Final, tc.want, tc.final)
			}
			b, err := EncodeOutcome(o)
			if err != nil {
				t.Fatal(err)
			}
			back, err := DecodeOutcome(b)
			if err != nil {
				t.Fatal(err)
			}
			if len(back.Steps) != len(o.Steps) {
				t.Errorf("%d steps came back of %d", len(back.Steps), len(o.Steps))
			}
		})
	}
	o := NewOutcome("x")
	o.Advance([]string{"a"}, Step{Claim: "a", State: Claimed})
	c := o.Clone()
	c.Advance([]string{"a"}, Step{Claim: "a", State: Launched})
	if c.Advance([]string{"a"}, Step{Claim: "a", State: Failed}); !c.Ended("a") || o.Ended("a") || c.Ended("b") {
		t.Error("Ended")
	}
	if !c.Has("a", Launched) || o.Has("a", Launched) || o.Has("b", Claimed) {
		t.Error("a clone shares its steps, or Has is wrong")
	}
	if _, err := DecodeOutcome([]byte(`{"version":"` + Version + `","steps":[{"state":"imagined"}]}`)); err == nil {
		t.Error("an unknown state is accepted")
	}
}

func TestLongTypeListsAreKeptApart(t *testing.T) {
	lists := map[string][]string{}
	short := NewTypeSet([]string{"b", "a", "b"}, lists)
	if diff := cmp.Diff(TypeSet{Count: 2, Names: []string{"a", "b"}}, short); diff != "" || len(lists) != 0 {
		t.Errorf("short list (-want +got):\n%s lists %v", diff, lists)
	}
	var names []string
	for c := 'a'; c <= 'z'; c++ {
		names = append(names, string(c))
	}
	long := NewTypeSet(names, lists)
	got, err := long.Resolve(lists)
	if err != nil || len(got) != 26 || long.Names != nil || long.Count != 26 {
		t.Errorf("long list %+v resolves to %v, %v", long, got, err)
	}
	if _, err := long.Resolve(nil); err == nil {
		t.Error("a list that is not at hand resolves")
	}
	if got, err := short.Resolve(nil); err != nil || len(got) != 2 {
		t.Errorf("a short list needs no lists: %v %v", got, err)
	}
}

func TestSubjectsNameWhatADecisionIsAbout(t *testing.T) {
	tests := map[string]Decision{
		"default":  {Kind: Provision, Proposal: Proposal{NodePool: "default"}},
		"n1":       {Kind: Drift, Proposal: Proposal{NodePool: "default", Nodes: []Node{{Name: "n1"}}}},
		"c1":       {Kind: Drift, Proposal: Proposal{Nodes: []Node{{Name: "n1", Claim: "c1"}}}},
		"01234567": {Kind: Accept, Proposal: Proposal{Spec: &SpecChange{Commit: "0123456789"}}},
		"epoch3":   {Kind: Handover, Proposal: Proposal{Handover: &Leader{Epoch: 3}}},
		"pending":  {Kind: Provision, Proposal: Proposal{Unplaced: []Unplaced{{Reason: "policy"}}}},
		"i-1":      {Kind: Reclaim, Proposal: Proposal{Instances: []Instance{{ID: "i-1"}}}},
		"revert":   {Kind: Revert},
	}
	for want, d := range tests {
		if got := d.Subject(); got != want {
			t.Errorf("subject %q, want %q", got, want)
		}
	}
	d := Decision{Proposal: Proposal{Claims: []Claim{{Name: "c"}}, Nodes: []Node{{Name: "n"}}, Instances: []Instance{{ID: "i"}}}}
	if diff := cmp.Diff([]string{"n", "c", "i"}, d.Subjects()); diff != "" {
		t.Error(diff)
	}
}

func TestClientTokensChangeWithTheAttempt(t *testing.T) {
	a, b := ClientToken("id", 0, 1), ClientToken("id", 0, 2)
	if a == b || a != ClientToken("id", 0, 1) || len(a) != 64 {
		t.Errorf("tokens %q and %q", a, b)
	}
}

func TestKindsAndStatesKnowWhatTheyMean(t *testing.T) {
	for _, k := range Kinds() {
		if !k.Valid() || k.HasOutcome() != (k != Reject) || k.FailsOpen() != (k == Interrupt || k == Reclaim) {
			t.Errorf("kind %s", k)
		}
	}
	if Kind("x").Valid() || State("x").Valid() || State("").Final() {
		t.Error("an unknown kind or state is known")
	}
	if CauseDeadline.Reproducible() || CauseLimit.Reproducible() || !CauseError.Reproducible() {
		t.Error("causes")
	}
}

func TestEvaluationsHaveTheShapeOfOPAsEvents(t *testing.T) {
	b, err := json.Marshal(Evaluation{Labels: map[string]string{"id": "x"}, Path: "reeve/decision", Timestamp: noon})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"labels", "decision_id", "path", "timestamp", "custom"} {
		if _, ok := got[key]; !ok {
			t.Errorf("no %q in %s", key, b)
		}
	}
}
