package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// endless is a policy that would run for hours.
const endless = `package reeve.decision

deny contains "never" if {
	some a in numbers.range(1, 100000)
	some b in numbers.range(1, 100000)
	a + b == -1
}
`

// query is a decision of that kind about one node.
func query(t *testing.T, f *fleet.Fleet, kind decision.Kind) DecisionQuery {
	t.Helper()
	q, err := NewDecisionQuery(DecisionParts{
		Kind: kind, Fleet: f, Snapshot: (&cluster.Snapshot{Time: noon}).Seal(),
		Proposal: decision.Proposal{NodePool: "default", Reason: "test", Nodes: []decision.Node{{Name: "ip-1", Claim: "default-a"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestAPolicyThatTakesTooLongDenies(t *testing.T) {
	f := newFleet(t, "al2023@v20260318")
	f.Cluster.Judge.Deadline = fleet.Duration(30 * time.Millisecond)
	e := engine(t, map[string]string{"policies/a.rego": endless})
	start := time.Now()
	r, err := e.Decision(context.Background(), Case{Fleet: f, Now: noon}, query(t, f, decision.Drift))
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if len(r.Violations) != 1 || r.Verdict().Allowed {
		t.Fatalf("violations %+v", r.Violations)
	}
	v := r.Violations[0]
	if v.Rule != RuleVerdict || v.Cause != decision.CauseDeadline || v.Message != "stage decision: no verdict within the deadline of 30ms" {
		t.Errorf("violation %+v", v)
	}
	if c := r.Evaluation.Custom; c.Cause != decision.CauseDeadline || c.Error != "no verdict within the deadline of 30ms" || r.Evaluation.Result != nil {
		t.Errorf("evaluation %+v", r.Evaluation)
	}
}

func TestARecordedDeadlineIsTakenWithoutEvaluating(t *testing.T) {
	f := newFleet(t, "al2023@v20260318")
	c := Case{Fleet: f, Now: noon}
	plain := engine(t, nil)
	allowed, err := plain.Decision(context.Background(), c, query(t, f, decision.Drift))
	if err != nil || !allowed.Verdict().Allowed {
		t.Fatalf("%+v, %v", allowed, err)
	}
	var asked []string
	e, err := New(plain.Bundle(), Options{Version: "v0.1.0", Given: func(id string) (Failure, bool) {
		asked = append(asked, id)
		return Failure{decision.CauseDeadline, "no verdict within the deadline of 5s"}, true
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Decision(context.Background(), c, query(t, f, decision.Drift))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Violations) != 1 || r.Violations[0].Message != "stage decision: no verdict within the deadline of 5s" || r.Violations[0].Cause != decision.CauseDeadline {
		t.Errorf("violations %+v", r.Violations)
	}
	if len(asked) != 1 || asked[0] != allowed.Evaluation.DecisionID || r.Evaluation.DecisionID != asked[0] {
		t.Errorf("asked for %q, want the id %s of the evaluation", asked, allowed.Evaluation.DecisionID)
	}
}

func TestAPolicyThatTakesTooMuchMemoryDenies(t *testing.T) {
	f := newFleet(t, "al2023@v20260318")
	f.Cluster.Judge.Deadline = fleet.Duration(time.Minute)
	b := bundle(map[string]string{"policies/a.rego": `package reeve.decision

deny contains "large" if {
	a := numbers.range(1, 20000)
	b := array.concat(a, a)
	c := array.concat(b, b)
	d := array.concat(c, c)
	count({array.concat(x, d) | some i in numbers.range(1, 10000); x := [i]}) == 0
}
`})
	e, err := New(b, Options{Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Decision(context.Background(), Case{Fleet: f, Now: noon}, query(t, f, decision.Drift))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Violations) != 1 || r.Violations[0].Cause != decision.CauseLimit || r.Violations[0].Message != "stage decision: the policies took more than 64 MiB of memory" {
		t.Errorf("violations %+v", r.Violations)
	}
}

// long is a rule with 2 MiB of text in the variable s16 and a list of it, twenty
// times, in many.
func long(last string) string {
	var b strings.Builder
	b.WriteString("package reeve.decision\n\ndeny contains \"never\" if {\n\ts0 := \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n")
	for i := range 16 {
		fmt.Fprintf(&b, "\ts%d := concat(\"\", [s%d, s%d])\n", i+1, i, i)
	}
	fmt.Fprintf(&b, "\tmany := [s16 | some _ in numbers.range(1, 20)]\n\tcount(many) == 20\n\tcount(%s) == 0\n}\n", last)
	return b.String()
}

func TestOneStepCannotAskForAllMemory(t *testing.T) {
	tests := []struct{ name, expression, want string }{
		{"a list is joined", `concat("", many)`, "concat"},
		{"a long text stands between many", `concat(s16, [sprintf("%d", [i]) | some i in numbers.range(1, 20)])`, "concat"},
		{"a format names a long text many times", `sprintf(concat("", ["%[1]s" | some _ in numbers.range(1, 20)]), [s16])`, "sprintf"},
		{"a list becomes JSON", `json.marshal(many)`, "json.marshal"},
		{"a list becomes indented JSON", `json.marshal_with_options({"x": many}, {"pretty": true})`, "json.marshal_with_options"},
		{"a list becomes YAML", `yaml.marshal({"x": many})`, "yaml.marshal"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFleet(t, "al2023@v20260318")
			f.Cluster.Judge.Deadline = fleet.Duration(time.Minute)
			r, err := engine(t, map[string]string{"policies/a.rego": long(tc.expression)}).
				Decision(context.Background(), Case{Fleet: f, Now: noon}, query(t, f, decision.Drift))
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Violations) != 1 || !strings.HasSuffix(r.Violations[0].Message, tc.want+": more than 32 MiB of text in one step") {
				t.Errorf("violations %+v", r.Violations)
			}
		})
	}
}

func TestTheCallersOwnEndIsNoVerdict(t *testing.T) {
	f := newFleet(t, "al2023@v20260318")
	e := engine(t, map[string]string{"policies/a.rego": endless})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if r, err := e.Decision(ctx, Case{Fleet: f, Now: noon}, query(t, f, decision.Drift)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestPoliciesThatFailDeny(t *testing.T) {
	tests := []struct{ name, rego, want string }{
		{"a builtin fails", "package reeve.decision\n\ndeny contains \"x\" if to_number(input.kind) == 1\n",
			`policies/a.rego:3: eval_builtin_error: to_number:`},
		{"the set is a number only when evaluated", "package reeve.decision\n\ndeny := count(input.proposal.nodes)\n",
			"policies/a.rego:3: rule reeve.decision.deny is the number 1: write it as a set"},
		{"the rule is undefined", "package reeve.decision\n\ndeny := {\"x\"} if input.kind == \"no such kind\"\n",
			"policies/a.rego:3: rule reeve.decision.deny is undefined"},
		{"an element is a number", "package reeve.decision\n\ndeny contains 5\n",
			"policies/a.rego:3: rule reeve.decision.deny: element 5: the number 5: an element is an object with msg, or a string"},
		{"msg is missing", "package reeve.decision\n\ndeny contains {\"message\": \"x\"}\n",
			`policies/a.rego:3: rule reeve.decision.deny: element {"message": "x"}: msg is empty`},
		{"msg is a number", "package reeve.decision\n\ndeny contains {\"msg\": 1}\n",
			`policies/a.rego:3: rule reeve.decision.deny: element {"msg": 1}: msg is the number 1, not a string`},
		{"path is an object", "package reeve.decision\n\ndeny contains {\"msg\": \"x\", \"path\": {}}\n",
			`policies/a.rego:3: rule reeve.decision.deny: element {"msg": "x", "path": {}}: path is the object {}`},
		{"path holds a set", "package reeve.decision\n\ndeny contains {\"msg\": \"x\", \"path\": [{1}]}\n",
			`policies/a.rego:3: rule reeve.decision.deny: element {"msg": "x", "path": [{1}]}: path has the set {1} in it`},
		{"types are numbers", "package reeve.decision\n\nexclude contains {\"msg\": \"x\", \"instanceTypes\": [1]}\n",
			`policies/a.rego:3: rule reeve.decision.exclude: element {"instanceTypes": [1], "msg": "x"}: instanceTypes has the number 1 in it`},
		{"types are no set", "package reeve.decision\n\nexclude contains {\"msg\": \"x\", \"instanceTypes\": \"a\"}\n",
			`policies/a.rego:3: rule reeve.decision.exclude: element {"instanceTypes": "a", "msg": "x"}: instanceTypes is the string "a"`},
		{"too many findings", "package reeve.decision\n\ndeny contains sprintf(\"%d\", [x]) if some x in numbers.range(1, 1001)\n",
			"policies/a.rego:3: rule reeve.decision.deny finds 1001 things, more than the 1000 that are read"},
		{"too many findings of all rules", "package reeve.decision\n\ndeny contains sprintf(\"%d\", [x]) if some x in numbers.range(1, 600)\n\nwarn contains x if some x in deny\n",
			"the policies find 1200 things, more than the 1000 that are read"},
		{"a huge message", "package reeve.decision\n\ndeny contains concat(\"\", [\"x\" | some _ in numbers.range(1, 5000)])\n",
			"policies/a.rego:3: rule reeve.decision.deny: element"},
		{"huge details", "package reeve.decision\n\nwarn contains {\"msg\": \"x\", \"details\": numbers.range(1, 60000)}\n",
			"the policies say"},
		{"two values for one rule", "package reeve.decision\n\ndeny := {\"a\"} if input.kind\n\ndeny := {\"b\"} if input.kind\n",
			`policies/a.rego:5: eval_conflict_error: rule data.reeve.decision.deny produced conflicting values: {"a"} at policies/a.rego:3 {"b"} at policies/a.rego:5`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFleet(t, "al2023@v20260318")
			e := engine(t, map[string]string{"policies/a.rego": tc.rego})
			r, err := e.Decision(context.Background(), Case{Fleet: f, Now: noon}, query(t, f, decision.Drift))
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Violations) != 1 || len(r.Exclusions) > 0 {
				t.Fatalf("violations %+v", r.Violations)
			}
			v := r.Violations[0]
			if v.Rule != RuleVerdict || v.Cause != decision.CauseError || !strings.HasPrefix(v.Message, "stage decision: "+tc.want) {
				t.Errorf("got  %s\nwant %s", v.Message, tc.want)
			}
			if len(v.Message) > maxMessage+100 {
				t.Errorf("the message has %d bytes", len(v.Message))
			}
		})
	}
}

func TestKindsThatAFleetChoosesGoAheadWithoutAVerdict(t *testing.T) {
	e := engine(t, map[string]string{"policies/a.rego": "package reeve.decision\n\ndeny contains \"x\" if to_number(input.kind) == 1\n"})
	tests := []struct {
		name     string
		failOpen []string
		kind     decision.Kind
		open     bool
	}{
		{"interrupt does by default", nil, decision.Interrupt, true},
		{"reclaim does by default", nil, decision.Reclaim, true},
		{"drift does not", nil, decision.Drift, false},
		{"a chosen kind does", []string{"drift"}, decision.Drift, true},
		{"one that was not chosen does not", []string{"drift"}, decision.Interrupt, false},
		{"none when none is chosen", []string{}, decision.Interrupt, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFleet(t, "al2023@v20260318")
			f.Cluster.Judge.FailOpen = tc.failOpen
			r, err := e.Decision(context.Background(), Case{Fleet: f, Now: noon}, query(t, f, tc.kind))
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict().Allowed != tc.open || len(r.Violations)+len(r.Warnings) != 1 {
				t.Fatalf("%+v", r)
			}
			if tc.open && (r.Warnings[0].Cause != decision.CauseError || !strings.Contains(r.Warnings[0].Message, "go ahead without one")) {
				t.Errorf("warning %+v", r.Warnings[0])
			}
		})
	}
}
