package main

import (
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/policy"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

const root = "../../.."

func TestThePublishedSchemasAreThoseOfTheTypes(t *testing.T) {
	files, err := generate(root, published)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, "docs/reference", name))
		if err != nil {
			t.Fatalf("%v: run make generate", err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is out of date: run make generate (-want +got):\n%s", name, diff)
		}
	}
	dir := t.TempDir()
	if err := run(root, filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, "new", name)); err != nil || string(got) != string(want) {
			t.Errorf("%s is not written: %v", name, err)
		}
	}
}

func TestWhatIsRecordedFitsTheSchema(t *testing.T) {
	schemas := resolved(t)
	for seed := range uint64(300) {
		f := filler{rand.New(rand.NewPCG(seed, 1))}
		for name, schema := range schemas {
			doc := documentOf(name)
			v := reflect.New(doc.value)
			f.fill(t, v.Elem(), 0)
			complete(t, v.Interface())
			b := encode(t, v.Interface())
			if err := schema.Validate(tree(t, b)); err != nil {
				t.Fatalf("seed %d: %s refuses a value of its type: %v\n%s", seed, name, err, b)
			}
		}
	}
}

func TestWhatIsNoRecordDoesNotFitTheSchema(t *testing.T) {
	schema := resolved(t)["decision.schema.json"]
	good := string(encode(t, sample()))
	if err := schema.Validate(tree(t, []byte(good))); err != nil {
		t.Fatalf("the sample does not fit: %v", err)
	}
	for name, swap := range map[string][2]string{
		"an unknown field":            {`"kind":`, `"extra":1,"kind":`},
		"an unknown kind":             {`"provision"`, `"imagine"`},
		"another version":             {decision.Version, "ledger.reeve.dev/v9"},
		"a missing verdict":           {`"verdict":{"allowed":true},`, ``},
		"a price in a string":         {`"cost":0.344`, `"cost":"0.344"`},
		"an amount without a string":  {`"cpu":"5150m"`, `"cpu":5150`},
		"an id of another form":       {`Z-`, `-`},
		"an operator nobody knows":    {`"operator":"In"`, `"operator":"Like"`},
		"a field deep in the record":  {`"zone":"z"`, `"zonne":"z"`},
		"an allowed that is no truth": {`"allowed":true`, `"allowed":"yes"`},
	} {
		if !strings.Contains(good, swap[0]) {
			t.Fatalf("%s: the sample has no %s:\n%s", name, swap[0], good)
		}
		if err := schema.Validate(tree(t, []byte(strings.Replace(good, swap[0], swap[1], 1)))); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestTheSchemaSpeaksTheWordsOfTheSource(t *testing.T) {
	files, err := generate(root, published)
	if err != nil {
		t.Fatal(err)
	}
	var got jsonschema.Schema
	if err := json.Unmarshal(files["decision.schema.json"], &got); err != nil {
		t.Fatal(err)
	}
	if want := "Rounds is how propose and judge came to an agreement"; !strings.HasPrefix(got.Properties["rounds"].Description, want) {
		t.Errorf("rounds: %q", got.Properties["rounds"].Description)
	}
	var kinds []any
	for _, k := range decision.Kinds() {
		kinds = append(kinds, string(k))
	}
	if diff := cmp.Diff(kinds, got.Defs["Kind"].Enum); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if want := `"provision": nodes for pending pods`; !strings.Contains(got.Defs["Kind"].Description, want) {
		t.Errorf("the kinds are not explained: %q", got.Defs["Kind"].Description)
	}
}

func TestTypesThatCannotBeDescribedAreRefused(t *testing.T) {
	for name, typ := range map[string]reflect.Type{
		"a type that encodes itself and is not in the table": reflect.TypeFor[selfEncoded](),
		"a field of such a type":                             reflect.TypeFor[struct{ D selfEncoded }](),
		"a foreign type that encodes itself":                 reflect.TypeFor[struct{ A big.Float }](),
		"a channel":                                          reflect.TypeFor[struct{ C chan int }](),
		"a map by number":                                    reflect.TypeFor[struct{ M map[int]string }](),
	} {
		if _, err := newGenerator(root, "", map[string]*comments{}).schema(typ); err == nil {
			t.Errorf("%s is described", name)
		}
	}
	if _, err := readComments(t.TempDir()); err == nil {
		t.Error("a directory without Go files has comments")
	}
}

type selfEncoded struct{}

// MarshalText makes the fields of the type say nothing about its JSON.
func (selfEncoded) MarshalText() ([]byte, error) { return nil, nil }

func sample() *decision.Decision {
	d := &decision.Decision{
		Kind: decision.Provision, Cluster: "c", Mode: fleet.Enforce, Time: time.Unix(1, 0), Verdict: decision.Verdict{Allowed: true},
		Proposal: decision.Proposal{Cost: 344_000_000, Claims: []decision.Claim{{
			NodePool: "p", Zone: "z", Requests: resources.List{"cpu": 5150},
			Requirements: requirements.FromLabels(map[string]string{"kubernetes.io/arch": "amd64"}),
		}}},
	}
	if err := d.Seal(); err != nil {
		panic(err)
	}
	return d
}

// complete sets what is never free.
func complete(t *testing.T, v any) {
	t.Helper()
	switch v := v.(type) {
	case *decision.Decision:
		if err := v.Seal(); err != nil {
			t.Fatal(err)
		}
	case *decision.Outcome:
		v.Version = decision.Version
	}
}

func resolved(t *testing.T) map[string]*jsonschema.Resolved {
	t.Helper()
	out := map[string]*jsonschema.Resolved{}
	files, err := generate(root, published)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		var s jsonschema.Schema
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if out[name], err = s.Resolve(nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return out
}

func documentOf(file string) document {
	for _, d := range published {
		if d.file == file {
			return d
		}
	}
	panic(file)
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func tree(t *testing.T, b []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return v
}

// filler makes values of any type at random; fields stay zero half of the
// time, so that optional and nil ones are covered.
type filler struct{ *rand.Rand }

// words are the values of the string types that are not free.
var words = map[reflect.Type][]string{
	reflect.TypeFor[decision.Kind]():         {"accept", "provision", "handover"},
	reflect.TypeFor[decision.State]():        {"claimed", "terminated", "applied"},
	reflect.TypeFor[decision.Cause]():        {"error", "deadline", "limit"},
	reflect.TypeFor[fleet.Mode]():            {"enforce", "observe"},
	reflect.TypeFor[json.RawMessage]():       {`{"a":[1,null]}`, `"x"`, `null`},
	reflect.TypeFor[policy.ObjectDocument](): {`{"spec":{}}`, `null`},
	reflect.TypeFor[policy.FleetDocument]():  {`{"nodePools":{"a":{}},"exceptions":[]}`, `null`},
	reflect.TypeFor[fleet.Durability]():      {"ahead", "strict", "async"},
	reflect.TypeFor[json.Number]():           {"0.02", "7"},
}

func (f filler) fill(t *testing.T, v reflect.Value, depth int) {
	t.Helper()
	if f.fillKnown(v) || depth > 12 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(f.Int64N(1 << 30))
	case reflect.String:
		v.SetString([]string{"", "a", "x/y <&> 한"}[f.IntN(3)])
	case reflect.Pointer:
		if f.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(t, v.Elem(), depth+1)
		}
	case reflect.Slice:
		for range f.IntN(3) {
			v.Set(reflect.Append(v, f.element(t, v.Type().Elem(), depth)))
		}
	case reflect.Map:
		f.fillMap(t, v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(t, v.Field(i), depth+1)
			}
		}
	case reflect.Interface:
	default:
		t.Fatalf("the test cannot fill a %s", v.Type())
	}
}

func (f filler) fillMap(t *testing.T, v reflect.Value, depth int) {
	t.Helper()
	if f.IntN(2) == 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	v.SetMapIndex(reflect.ValueOf("cpu").Convert(v.Type().Key()), f.element(t, v.Type().Elem(), depth))
}

// element is a value in a list or map; pointers and maps there are
// never nil.
func (f filler) element(t *testing.T, typ reflect.Type, depth int) reflect.Value {
	t.Helper()
	out := reflect.New(typ).Elem()
	if typ.Kind() == reflect.Pointer {
		out.Set(reflect.New(typ.Elem()))
		f.fill(t, out.Elem(), depth+1)
		return out
	}
	f.fill(t, out, depth+1)
	if typ.Kind() == reflect.Map && out.IsNil() {
		out.Set(reflect.MakeMap(typ))
	}
	return out
}

func (f filler) fillKnown(v reflect.Value) bool {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Unix(f.Int64N(1<<31), 0).UTC()
	case *requirements.Set:
		sets := []requirements.Set{{}, requirements.FromLabels(map[string]string{"a": "b"}),
			requirements.NewSet(requirements.Exists("k"), requirements.In("z", "1", "2"))}
		*p = sets[f.IntN(len(sets))]
	default:
		list, ok := words[v.Type()]
		if !ok {
			return false
		}
		word := reflect.ValueOf(list[f.IntN(len(list))])
		v.Set(word.Convert(v.Type()))
	}
	return true
}
