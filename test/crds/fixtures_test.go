package crds

import (
	"context"
	"strings"
	"testing"

	"github.com/reeve-project/reeve/test/fixtures/validation"
)

// refusals judges a fixture by the CRDs: all of its objects, or the second
// document of an update after the first.
func refusals(t *testing.T, j *Judge, c validation.Case) []string {
	t.Helper()
	ctx, data := context.Background(), c.Data
	var stored map[string]any
	if c.Layer == "update" {
		before, next := c.Update()
		objects, err := Objects(before)
		if err != nil || len(objects) != 1 {
			t.Fatalf("stored document: %d objects, %v", len(objects), err)
		}
		if bad := j.Refusals(ctx, objects[0], nil); len(bad) > 0 {
			t.Fatalf("the stored document is refused: %v", bad)
		}
		stored, data = objects[0], next
	}
	objects, err := Objects(data)
	if err != nil {
		return []string{"yaml: " + err.Error()}
	}
	if len(objects) == 0 {
		t.Fatal("no objects")
	}
	var out []string
	for _, o := range objects {
		out = append(out, j.Refusals(ctx, o, stored)...)
	}
	return out
}

func TestTheFixturesAgreeWithTheCRDs(t *testing.T) {
	cases, err := validation.Cases()
	if err != nil {
		t.Fatal(err)
	}
	j, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			got := refusals(t, j, c)
			want := c.Invalid && c.Layer != "own"
			if (len(got) > 0) != want {
				t.Fatalf("%s: refused %v, want %v: %v", c.Title, len(got) > 0, want, got)
			}
			compareLayer(t, c, got)
		})
	}
}

// compareLayer holds that it is the layer of the fixture that refuses.
func compareLayer(t *testing.T, c validation.Case, got []string) {
	t.Helper()
	by := map[string][]string{
		"yaml": {"yaml: "}, "schema": {"schema: ", "lists: ", "metadata: ", "no kind ", "strict: "}, "cel": {"cel: "},
		"update": {"cel: "}, "strict": {"strict: ", "yaml: "}, "runtime": {"controller: "},
	}[c.Layer]
	for _, g := range got {
		for _, prefix := range by {
			if strings.HasPrefix(g, prefix) {
				return
			}
		}
	}
	if len(got) > 0 {
		t.Errorf("%s: the layer is %s, but refused by %v", c.Title, c.Layer, got)
	}
}
