package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/reeve-project/reeve/policies"
)

func TestPoliciesThatCannotBeUsedAreRefusedWithTheirPlace(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  []string // position: part of the message
	}{
		{"the network is out of reach", map[string]string{"policies/a.rego": "package reeve.spec\n\ndeny contains \"x\" if {\n\thttp.send({\"method\": \"get\", \"url\": \"http://example.com\"})\n}\n"},
			[]string{"policies/a.rego:4:2: undefined function http.send"}},
		{"the environment is out of reach", map[string]string{"policies/a.rego": "package reeve.decision\n\ndeny contains x if x := opa.runtime().env.TOKEN\n"},
			[]string{"policies/a.rego:3:25: undefined function opa.runtime"}},
		{"names are not looked up", map[string]string{"policies/a.rego": "package reeve.decision\n\ndeny contains x if some x in net.lookup_ip_addr(\"a\")\n"},
			[]string{"policies/a.rego:3:30: undefined function net.lookup_ip_addr"}},
		{"nothing is random", map[string]string{"policies/a.rego": "package reeve.spec\n\ndeny contains \"a\" if rand.intn(\"a\", 2) == 1\n\ndeny contains uuid.rfc4122(\"a\")\n"},
			[]string{"policies/a.rego:3:22: undefined function rand.intn", "policies/a.rego:5:15: undefined function uuid.rfc4122"}},
		{"the offering stage has no time", map[string]string{"policies/a.rego": "package reeve.offering\n\nexclude contains \"x\" if time.now_ns() > 0\n"},
			[]string{"policies/a.rego:3:25: time.now_ns may not be used by rule reeve.offering.exclude"}},
		{"not through a helper either", map[string]string{
			"policies/a.rego": "package reeve.offering\n\nimport data.lib.clock\n\nexclude contains \"x\" if clock.late\n",
			"policies/b.rego": "package lib.clock\n\nlate if hour > 18\n\nhour := time.clock(time.now_ns())[0]\n"},
			[]string{"policies/b.rego:5:9: time.clock may not be used by rule reeve.offering.exclude", "policies/b.rego:5:20: time.now_ns may not"}},
		{"recursion", map[string]string{"policies/a.rego": "package reeve.spec\n\ndeny contains x if some x in more\n\nmore contains x if some x in deny\n"},
			[]string{"policies/a.rego:3:1: rule data.reeve.spec.deny is recursive", "policies/a.rego:5:1: rule data.reeve.spec.more is recursive"}},
		{"strict mode", map[string]string{"policies/a.rego": "package reeve.spec\n\ndeny contains \"x\" if {\n\ty := 1\n}\n"},
			[]string{"policies/a.rego:4:2: assigned var y unused"}},
		{"a syntax error is that of Rego v1", map[string]string{"policies/a.rego": "package reeve.spec\n\ndeny contains x if {\n"},
			[]string{"policies/a.rego:4:1: unexpected eof token"}},
		{"types are checked in every package of a stage", map[string]string{
			"policies/a.rego":   "package reeve.spec\n\ndeny contains \"x\" if input.flete.cluster.name == \"blue\"\n",
			"policies/b.rego":   "# METADATA\n# title: B\npackage reeve.decision.b\n\ndeny contains \"x\" if input.kind == 5\n",
			"policies/d.rego":   "package reeve.decision.b\n\nlate if input.proposal.reasons\n",
			"policies/lib.rego": "package lib\n\nx := input.whatever\n"},
			[]string{"policies/a.rego:3:22: undefined ref: input.flete.cluster.name: have: \"flete\" want (one of): [\"diff\" \"fleet\" \"now\" \"previous\"]",
				"policies/b.rego:5:22: match error",
				"policies/d.rego:3:9: undefined ref: input.proposal.reasons"}},
		{"types are checked where a file asks for it", map[string]string{"policies/a.rego": "# METADATA\n# schemas:\n#   - input: schema.decision\npackage reeve.decision\n\ndeny contains \"x\" if input.proposal.clams\n"},
			[]string{"policies/a.rego:6:22: undefined ref: input.proposal.clams: have: \"clams\" want (one of): ["}},
		{"a number is no set", map[string]string{"policies/a.rego": "package reeve.decision\n\ndeny := 5\n"},
			[]string{"policies/a.rego:3:1: rule deny is the number 5"}},
		{"a condition is no set", map[string]string{"policies/a.rego": "package reeve.decision\n\ndeny if input.kind == \"drift\"\n"},
			[]string{"policies/a.rego:3:1: rule deny is the boolean true"}},
		{"an object is no set", map[string]string{"policies/a.rego": "package reeve.spec\n\nwarn[x] := 1 if some x in [1]\n\ndeny[x] if some x in [1]\n"},
			[]string{"policies/a.rego:3:1: rule warn is an object", "policies/a.rego:5:1: rule deny is an object"}},
		{"a function is no set", map[string]string{"policies/a.rego": "package reeve.spec\n\ndeny(x) := {x}\n"},
			[]string{"policies/a.rego:3:1: rule deny is a function"}},
		{"a suffix is for conftest", map[string]string{"policies/a.rego": "package reeve.spec\n\ndeny_all contains \"x\"\n\nexclude contains \"x\"\n"},
			[]string{"policies/a.rego:3:1: rule deny_all would never be evaluated", "policies/a.rego:5:1: rule exclude would never be evaluated"}},
		{"a misspelled rule", map[string]string{"policies/a.rego": "package reeve.spec\n\ndney contains \"x\"\n\nwarning contains 1\n", "policies/b.rego": "package reeve.offering.b\n\nexlcude contains \"x\"\n"},
			[]string{"policies/a.rego:3:1: rule dney would never be evaluated and nothing refers to it: did you mean deny?", "policies/b.rego:3:1: rule exlcude would never"}},
		{"a severity that nobody knows", map[string]string{"policies/a.rego": "# METADATA\n# custom:\n#   severity: fatal\npackage reeve.spec\n\ndeny contains \"x\"\n"},
			[]string{"policies/a.rego:6:1: severity \"fatal\" of rule reeve.spec.deny is not known: write error or warning"}},
		{"a misspelled stage", map[string]string{"policies/a.rego": "package reeve.decisions\n\ndeny contains \"x\"\n"},
			[]string{"policies/a.rego:1:1: package reeve.decisions: nothing below reeve is evaluated but"}},
		{"the names of data and results are taken", map[string]string{"policies/a.rego": "package policy.amiPinning\n\nenabled := false\n", "policies/b.rego": "package reeve_findings.spec\n\nfound := {}\n"},
			[]string{"policies/a.rego:1:1: package policy.amiPinning: the name is taken", "policies/b.rego:1:1: package reeve_findings.spec: the name is reserved"}},
		{"a shipped package cannot be added to", map[string]string{"policies/a.rego": "package reeve.spec.ami_pinning\n\npinned(_) := true\n"},
			[]string{"policies/a.rego:3:1: rule pinned would change the shipped package reeve.spec.ami_pinning"}},
		{"nor from above", map[string]string{"policies/a.rego": "package reeve.spec\n\nami_pinning.on := false\n\nx contains 1\n"},
			[]string{"policies/a.rego:3:1: rule ami_pinning.on would change the shipped package"}},
		{"generated names cannot be declared", map[string]string{"policies/a.rego": "package reeve.spec\n\n__reeve_0001 contains \"x\"\n"},
			[]string{"policies/a.rego:3:1: rule __reeve_0001: names that begin with __reeve_ are reserved"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := New(bundle(tc.files), Options{})
			var le *LoadError
			if !errors.As(err, &le) {
				t.Fatalf("got %v, want a LoadError", err)
			}
			if len(le.Findings()) != len(tc.want) {
				t.Fatalf("got %d findings:\n%v\nwant %q", len(le.Findings()), err, tc.want)
			}
			for i, f := range le.Findings() {
				if got := f.Position.String() + ": " + f.Message; !strings.HasPrefix(got, tc.want[i]) {
					t.Errorf("got  %s\nwant %s", got, tc.want[i])
				}
				if f.Rule != RuleCompile || f.Severity != "error" {
					t.Errorf("finding %+v", f)
				}
			}
			if !strings.Contains(err.Error(), le.Findings()[0].Message) {
				t.Errorf("the text lacks the finding: %v", err)
			}
		})
	}
}

func TestWhatMayBeNullCanBeComparedWithNull(t *testing.T) {
	engine(t, map[string]string{
		"policies/a.rego": "package reeve.spec.a\n\ndeny contains \"first\" if input.previous == null\n\ndeny contains \"moved\" if input.previous.cluster.region != input.fleet.cluster.region\n",
		"policies/b.rego": "package reeve.offering.b\n\ndeny contains \"unresolved\" if input.status == null\n",
	})
}

func TestABundleHasBoundsAndDataOfTheRightKind(t *testing.T) {
	big := NewBundle(map[string][]byte{"a.rego": make([]byte, maxBundle+1)}, nil)
	if _, err := New(big, Options{}); err == nil || !strings.Contains(err.Error(), "are read") {
		t.Errorf("a huge bundle: %v", err)
	}
	for _, data := range []string{`[]`, `5`, `{`} {
		if _, err := New(NewBundle(nil, []byte(data)), Options{}); err == nil || !strings.Contains(err.Error(), "not a JSON object") {
			t.Errorf("data %s: %v", data, err)
		}
	}
	for _, data := range []string{``, `null`, `{}`} {
		if _, err := New(NewBundle(nil, []byte(data)), Options{}); err != nil {
			t.Errorf("data %q: %v", data, err)
		}
	}
}

func TestNoBuiltinIsLeftThatReachesOutOrDiffersEachTime(t *testing.T) {
	kept := map[string]bool{}
	for _, b := range capabilities().Builtins {
		kept[b.Name] = true
		if b.Nondeterministic && b.Name != "time.now_ns" {
			t.Errorf("%s gives another answer each time", b.Name)
		}
	}
	for _, name := range []string{"http.send", "opa.runtime", "net.lookup_ip_addr", "net.cidr_expand", "rand.intn", "uuid.rfc4122", "io.jwt.encode_sign",
		"crypto.x509.parse_and_verify_certificates", "providers.aws.sign_req", "bits.lsh", "strings.render_template"} {
		if kept[name] {
			t.Errorf("%s is left", name)
		}
	}
	for _, name := range []string{"sprintf", "glob.match", "time.now_ns", "object.get", "regex.match", "walk"} {
		if !kept[name] {
			t.Errorf("%s is missing", name)
		}
	}
	if len(kept) < 150 || len(kept) >= len(ast.Builtins) {
		t.Errorf("%d of %d builtins are left", len(kept), len(ast.Builtins))
	}
}

func TestABundleIsKnownByItsContent(t *testing.T) {
	base := bundle(map[string]string{"policies/a.rego": "package a\n"})
	same := bundle(map[string]string{"policies/a.rego": "package a\n", "policies/a_test.rego": "package a_test\n", "README.md": "x"})
	if base.Digest() != same.Digest() {
		t.Error("tests and other files count")
	}
	again := RecordedBundle(base.Files(), base.Data())
	if base.Digest() != again.Digest() {
		t.Error("a recorded bundle differs")
	}
	seen := map[string]bool{base.Digest(): true}
	for _, b := range []Bundle{
		bundle(nil),
		bundle(map[string]string{"policies/a.rego": "package b\n"}),
		bundle(map[string]string{"policies/b.rego": "package a\n"}),
		NewBundle(map[string][]byte{"policies/a.rego": []byte("package a\n")}, []byte("{}")),
	} {
		if seen[b.Digest()] {
			t.Errorf("the digest of %v is not its own", b.names())
		}
		seen[b.Digest()] = true
	}
	want := []string{"fleet/policies/a.rego"}
	for _, name := range sortedKeys(policies.Files()) {
		want = append(want, ShippedDir+name)
	}
	if diff := cmp.Diff(want, base.names()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
