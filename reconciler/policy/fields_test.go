package policy

import (
	"encoding/json"
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
	got := fields.Changes(fleet.Path{"nodePools", "a"})
	want := []FieldChange{
		{fleet.Path{"nodePools", "a", "spec", "budgets", "1", "nodes"}, json.RawMessage(`"2"`), json.RawMessage(`"3"`)},
		{fleet.Path{"nodePools", "a", "spec", "taints"}, json.RawMessage(`[{"key":"x"}]`), json.RawMessage(`[]`)},
		{fleet.Path{"nodePools", "a", "spec", "weight"}, json.RawMessage(`1`), nil},
		{fleet.Path{"nodePools", "a", "spec", "x.y"}, nil, json.RawMessage(`7.50`)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
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
