package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

func TestFieldChangesHaveTheValuesBeforeAndAfter(t *testing.T) {
	previous := &fleet.Fleet{Document: json.RawMessage(`{"nodePools":{"a":{"spec":{"weight":1,"taints":[{"key":"x"}],"budgets":[{"nodes":"1"},{"nodes":"2"}]}},"b":{"spec":{}}}}`)}
	next := &fleet.Fleet{Document: json.RawMessage(`{"nodePools":{"a":{"spec":{"taints":[],"budgets":[{"nodes":"1"},{"nodes":"3"}],"x.y":7.50}},"b":{"spec":{"weight":1}}}}`)}
	fields, err := NewFields(previous, next)
	if err != nil {
		t.Fatal(err)
	}
	type change struct{ path, name, from, to string }
	var got []change
	for _, c := range fields.Changes(fleet.Path{"nodePools", "a"}) {
		got = append(got, change{c.Path[2:].String(), c.Name[2:].String(), string(c.From), string(c.To)})
	}
	want := []change{
		{"spec.budgets.1.nodes", "spec.budgets.1.nodes", `"2"`, `"3"`},
		{"spec.taints", "spec.taints.x", `{"key":"x"}`, ``},
		{"spec.weight", "spec.weight", `1`, ``},
		{`spec["x.y"]`, `spec["x.y"]`, ``, `7.50`},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(change{})); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	broken := &fleet.Fleet{Document: json.RawMessage(`{`)}
	if _, err := NewFields(broken, next); err == nil {
		t.Error("a broken document is no error")
	}
	if _, err := NewFields(next, broken); err == nil {
		t.Error("a broken document is no error")
	}
}

func TestElementsOfListsAreHeldAgainstThoseOfTheSameKey(t *testing.T) {
	tests := []struct{ name, from, to, want string }{
		{"one that is put in front", `[{"key":"a"},{"key":"b"}]`, `[{"key":"c"},{"key":"a"},{"key":"b"}]`, `l.c@l.0: -> {"key":"c"}`},
		{"one that goes", `[{"key":"a"},{"key":"b","n":1}]`, `[{"key":"b","n":2}]`, `l.b.n@l.0.n: 1 -> 2; l.a@l: {"key":"a"} -> `},
		{"another order", `[{"key":"a"},{"key":"b"}]`, `[{"key":"b"},{"key":"a"}]`, ``},
		{"two of one key", `[{"key":"a","operator":"Gt","v":1},{"key":"a","operator":"Lt","v":9}]`, `[{"key":"a","operator":"Gt","v":1},{"key":"a","operator":"Lt","v":8}]`, `l["a Lt"].v@l.1.v: 9 -> 8`},
		{"another operator", `[{"key":"a","operator":"In"}]`, `[{"key":"a","operator":"Exists"}]`, `l.a.operator@l.0.operator: "In" -> "Exists"`},
		{"another key", `[{"key":"a"}]`, `[{"key":"b"}]`, `l.b@l.0: -> {"key":"b"}; l.a@l: {"key":"a"} -> `},
		{"no key, and one more", `[{"n":1}]`, `[{"n":2},{"n":1}]`, `l.0@l.0: -> {"n":2}`},
		{"no key, and another value", `[{"n":1},{"n":3}]`, `[{"n":2},{"n":1}]`, `l.0.n@l.0.n: 3 -> 2`},
		{"a device", `[{"deviceName":"/dev/xvda","n":1}]`, `[{"deviceName":"/dev/xvda","n":2}]`, `l["/dev/xvda"].n@l.0.n: 1 -> 2`},
		{"words", `["a","b"]`, `["a","c"]`, `l@l: ["a","b"] -> ["a","c"]`},
		{"nothing", `[]`, `[]`, ``},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			doc := func(list string) *fleet.Fleet { return &fleet.Fleet{Document: json.RawMessage(`{"l":` + list + `}`)} }
			fields, err := NewFields(doc(tc.from), doc(tc.to))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range fields.Changes(nil) {
				got = append(got, fmt.Sprintf("%s@%s: %s", c.Name, c.Path, strings.TrimPrefix(string(c.From)+" -> "+string(c.To), " ")))
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}
