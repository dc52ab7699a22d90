package crds

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/reeve-project/reeve/reconciler/spec"
	"github.com/reeve-project/reeve/test/fixtures/validation"
)

// stricter are the words of what Reeve refuses and nobody else does, each with
// the reason why.
var stricter = []string{
	"list of reasons is empty", // limits nothing
	"date that never comes",    // holds at all times
	"is not an alias",          // Karpenter's types end the process
	"holds nothing",            // a unit without a number
	"is not a duration",        // Karpenter's types cannot hold it
	"is not a quantity",        // the same
}

// mutants is how many objects the test makes; REEVE_MUTANTS sets another number.
func mutants(t *testing.T) int {
	t.Helper()
	text := os.Getenv("REEVE_MUTANTS")
	if text == "" {
		return 3000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// seeds are the valid objects of the fixtures.
func seeds(t *testing.T) []map[string]any {
	t.Helper()
	cases, err := validation.Cases()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, c := range cases {
		objects, err := Objects(c.Data)
		if c.Invalid || err != nil {
			continue
		}
		for _, o := range objects {
			delete(o, "status")
			out = append(out, o)
		}
	}
	return out
}

func TestMutantsAreJudgedAlike(t *testing.T) {
	j, err := New()
	if err != nil {
		t.Fatal(err)
	}
	sources := seeds(t)
	r := rand.New(rand.NewPCG(1, 2))
	refused, total := 0, mutants(t)
	for done := 0; done < total; {
		batch := make([]mutation, min(200, total-done))
		for i := range batch {
			batch[i] = mutant(r, sources)
		}
		done += len(batch)
		refused += compareMutants(t, j, batch)
	}
	if refused < total/4 || refused > total*19/20 {
		t.Errorf("%d of %d are refused: the mutants do not tell much", refused, total)
	}
}

// mutant changes one of the objects in one place or more.
func mutant(r *rand.Rand, sources []map[string]any) mutation {
	m := mutate(r, sources[r.IntN(len(sources))])
	for r.IntN(3) == 0 {
		next := mutate(r, m.object)
		m = mutation{next.object, m.what + "; " + next.what}
	}
	return m
}

// compareMutants judges objects twice and counts those that are refused.
func compareMutants(t *testing.T, j *Judge, batch []mutation) int {
	t.Helper()
	docs := make([]spec.Source, len(batch))
	for i, m := range batch {
		data, err := json.MarshalIndent(m.object, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		docs[i] = spec.Source{Name: strconv.Itoa(i) + ".json", Data: data}
	}
	found, err := spec.JudgeDocuments(context.Background(), docs, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, foreign := map[string][]string{}, map[string]bool{}
	for _, f := range found {
		if f.Severity == "error" {
			got[f.Position.File] = append(got[f.Position.File], f.Path.String()+": "+f.Message)
			foreign[f.Position.File] = foreign[f.Position.File] || !containsAny(f.Message, stricter)
		}
	}
	refused := 0
	for i, m := range batch {
		objects, err := Objects(docs[i].Data)
		if err != nil || len(objects) != 1 {
			t.Fatalf("%v\n%s", err, docs[i].Data)
		}
		want := j.Refusals(context.Background(), objects[0], nil)
		name := docs[i].Name
		switch {
		case len(got[name]) == 0 && len(want) > 0:
			t.Errorf("%s\nReeve accepts what is refused: %s", m.what, strings.Join(want, "\n"))
		case foreign[name] && len(want) == 0:
			t.Errorf("%s\nReeve refuses what is accepted: %s", m.what, strings.Join(got[name], "\n"))
		}
		refused += min(len(want), 1)
	}
	return refused
}

func containsAny(text string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
