package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"cuelang.org/go/mod/module"
	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/spec/start"

	"github.com/reeve-project/reeve/schemas"
)

const (
	testModule = "module: \"example.com/fleet@v0\"\nlanguage: version: \"v0.17.0\"\ndeps: \"reeve.dev/fleet@v1\": {v: \"v1.0.0\", default: true}\n"
	testLocal  = "deps: \"reeve.dev/fleet@v1\": {v: \"v1.0.0\", default: true, replaceWith: \"./cue.mod/reeve\"}\n"
	testFleet  = `package fleet

import "reeve.dev/fleet"

cluster: fleet.#Cluster & {name: "blue", region: "eu-central-1", kubernetesVersion: "1.34", environment: "test"}
nodePools: fleet.#NodePools
nodePools: default: spec: template: spec: {
	nodeClassRef: {group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default"}
	requirements: []
}
`
)

// testRequest asks for a valid package plus a file more.cue.
func testRequest(more string, files map[string]string) Request {
	all := map[string]string{
		"cue.mod/module.cue": testModule, "cue.mod/local-module.cue": testLocal,
		"clusters/blue/fleet.cue": testFleet, "clusters/blue/more.cue": more,
	}
	maps.Copy(all, files)
	req := Request{Dir: "clusters/blue", Limits: Limits{OutputBytes: 1 << 20}}
	for name, text := range all {
		if text != "" {
			req.Files = append(req.Files, File{Name: name, Data: []byte(text)})
		}
	}
	return req
}

func TestAPackageIsRenderedWithSortedKeysAndPlaces(t *testing.T) {
	resp, err := evaluate(testRequest("", nil))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"cluster":{"environment":"test","kubernetesVersion":"1.34","name":"blue","region":"eu-central-1"},"exceptions":[],"nodeClasses":{},` +
		`"nodePools":{"default":{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"default"},` +
		`"spec":{"template":{"spec":{"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"default"},"requirements":[]}}}}},"policy":{}}`
	if diff := cmp.Diff(want, string(resp.Document)); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	places := map[string][][3]int{}
	for _, f := range resp.Positions.Fields {
		places[strings.Join(f.Path, ".")] = f.At
	}
	if diff := cmp.Diff([]string{"clusters/blue/fleet.cue"}, resp.Positions.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][3]int{{0, 8, 67}}, places["nodePools.default.spec.template.spec.nodeClassRef.name"]); diff != "" {
		t.Errorf("places of a value (-want +got):\n%s", diff)
	}
}

func TestAPackageThatImportsNoSchemaIsCheckedToo(t *testing.T) {
	plain := strings.NewReplacer("import \"reeve.dev/fleet\"\n", "", "fleet.#Cluster & ", "", "nodePools: fleet.#NodePools\n", "").Replace(testFleet)
	resp, err := evaluate(testRequest("", map[string]string{"clusters/blue/fleet.cue": plain}))
	if err != nil || resp.Document == nil {
		t.Fatalf("%v %v", err, resp.Diagnostics)
	}
	resp, err = evaluate(testRequest("package fleet\nnodePools: default: spec: weigth: 1\n", map[string]string{"clusters/blue/fleet.cue": plain}))
	if err != nil {
		t.Fatal(err)
	}
	want := []Diagnostic{{
		Position: Position{File: "clusters/blue/more.cue", Line: 2, Column: 27},
		Path:     Path{"nodePools", "default", "spec", "weigth"},
		Message:  `field "weigth" is not allowed`, Hint: "did you mean weight?",
	}}
	if diff := cmp.Diff(want, resp.Diagnostics); diff != "" {
		t.Errorf("diagnostics (-want +got):\n%s", diff)
	}
}

func TestMessagesSayWhatIsWrongAndWhere(t *testing.T) {
	const more = "clusters/blue/more.cue:"
	tests := []struct{ name, cue, want string }{
		{"a misspelled field", "nodePools: default: spec: weigth: 1", more + `2:27: nodePools.default.spec.weigth: field "weigth" is not allowed (did you mean weight?)`},
		{"a field that is like no other", "nodePools: default: spec: template: spec: zzzzzz: 1", more + `2:43: nodePools.default.spec.template.spec.zzzzzz: field "zzzzzz" is not allowed (allowed here: expireAfter, nodeClassRef, requirements, startupTaints, taints, terminationGracePeriod)`},
		{"a helper that is not hidden", "helper: 1", more + `2:1: helper: field "helper" is not allowed (the fields at the top are cluster, nodePools, nodeClasses, policy, exceptions; start the names of helpers with _)`},
		{"a misspelled field beside another fault", "nodePools: default: spec: {weight: 0, limitz: 1}", more + "2:28: nodePools.default.spec.weight: invalid value 0: it must be at least 1\n" + more + `2:39: nodePools.default.spec.limitz: field "limitz" is not allowed (did you mean limits?)`},
		{"a bad name is said once", "nodePools: Upper: spec: weight: 0", more + `2:12: nodePools.Upper: field "Upper" is not allowed (the name of a NodePool is lower case letters, digits, '-' and '.', at most 63 characters)`},
		{"a bad name of a class", "nodeClasses: Upper: {}", more + `2:14: nodeClasses.Upper: field "Upper" is not allowed (the name of an EC2NodeClass is lower case letters, digits, '-' and '.')`},
		{"a word that is not in the list", `cluster: mode: "forced"`, more + `2:10: cluster.mode: "forced" is not one of "enforce", "observe"`},
		{"a wrong type", `nodePools: default: spec: weight: "1"`, more + `2:27: nodePools.default.spec.weight: "1" is text in quotes, it must be a whole number`},
		{"a wrong type where a pattern is wanted", `nodePools: default: spec: template: spec: expireAfter: 5`, more + `2:43: nodePools.default.spec.template.spec.expireAfter: invalid value 5: it must be a duration such as "30s", "5m" or "720h", or "Never"`},
		{"a pattern without words of its own", `cluster: ledger: branch: "-x"`, more + `2:18: cluster.ledger.branch: invalid value "-x": it must match ^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`},
		{"a number that is too large", `nodePools: default: spec: weight: 101`, more + `2:27: nodePools.default.spec.weight: invalid value 101: it must be at most 100`},
		{"a number below an open bound", `cluster: engine: vmMemoryOverheadPercent: 1`, more + `2:18: cluster.engine.vmMemoryOverheadPercent: invalid value 1: it must be less than 1`},
		{"two values for one field", `cluster: region: "us-east-1"`, "clusters/blue/fleet.cue:5:42: cluster.region: conflicting values \"us-east-1\" and \"eu-central-1\""},
		{"another name than the key", `nodePools: default: metadata: name: "x"`, more + `2:31: nodePools.default.metadata.name: conflicting values "default" and "x" (the name is the key above; remove metadata.name)`},
		{"a missing field is placed at its parent", `nodePools: other: {}`, more + `2:12: nodePools.other.spec: field "spec" is required (add it)`},
		{"a key that must not be there", `nodePools: default: spec: template: metadata: labels: "kubernetes.io/hostname": "x"`, more + `2:55: nodePools.default.spec.template.metadata.labels["kubernetes.io/hostname"]: this label is set by the provisioner and cannot be set here`},
		{"an element of a list", `nodePools: default: spec: template: spec: taints: [{key: "a", effect: "x"}]`, more + `2:63: nodePools.default.spec.template.spec.taints.0.effect: "x" is not one of "NoExecute", "NoSchedule", "PreferNoSchedule"`},
		{"a list that is too long is not printed", `nodePools: default: spec: disruption: {consolidateAfter: "1m", budgets: [` + strings.Repeat(`{nodes: "0"},`, 51) + `]}`, more + `2:64: nodePools.default.spec.disruption.budgets: at most 50 elements are allowed, not 51`},
		{"two lists", "policy: x: [1]\npolicy: x: [1, 2]", more + `2:9: policy.x: incompatible list lengths (1 and 2) (there are two lists for one field)`},
		{"a reference to nothing", `policy: x: nothing`, more + `2:12: policy.x: reference "nothing" not found`},
		{"a value that is not known", `policy: x: string`, more + `2:9: policy.x: incomplete value string`},
		{"a cycle of hidden fields", "_a: _b + 1\n_b: _a + 1\npolicy: x: _a", more + "2:1: _a: cycle with field: _b (a value refers to itself without end)\n" + more + "3:1: _b: cycle with field: _a (a value refers to itself without end)"},
		{"a function that refuses", "import \"strings\"\npolicy: x: strings.Repeat(\"x\", -1)", more + "3:9: policy.x: error in call to strings.Repeat: "},
		{"syntax", "nodePools: {", more + "2:14: expected '}', found 'EOF'"},
		{"a package that is not there", `import "example.com/fleet/shared"`, more + `2:8: import failed: cannot find package "example.com/fleet/shared"`},
		{"a package from elsewhere", `import "corp.example/x@v1"`, more + `2:8: import failed: cannot find package "corp.example/x@v1": cannot find module providing package corp.example/x@v1 (packages come from this repository or from CUE itself; Reeve downloads none)`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			resp, err := evaluate(testRequest("package fleet\n"+tc.cue+"\n", nil))
			if err != nil {
				t.Fatal(err)
			}
			if got := render(resp.Diagnostics); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// render writes diagnostics as package spec does.
func render(ds []Diagnostic) string {
	var lines []string
	for _, d := range ds {
		var b strings.Builder
		b.WriteString(d.Position.File + ":" + itoa(d.Position.Line) + ":" + itoa(d.Position.Column) + ": ")
		for i, p := range d.Path {
			switch {
			case strings.ContainsAny(p, "./"):
				b.WriteString("[\"" + p + "\"]")
			case i > 0:
				b.WriteString("." + p)
			default:
				b.WriteString(p)
			}
		}
		if len(d.Path) > 0 {
			b.WriteString(": ")
		}
		b.WriteString(d.Message)
		if d.Hint != "" {
			b.WriteString(" (" + d.Hint + ")")
		}
		lines = append(lines, b.String())
	}
	return strings.Join(lines, "\n")
}

func itoa(n int) string {
	text, _ := json.Marshal(n)
	return string(text)
}

// A pattern that is no longer in the schemas would be explained to nobody.
func TestEveryExplainedPatternIsInTheSchemas(t *testing.T) {
	var all strings.Builder
	err := fs.WalkDir(schemas.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(schemas.FS(), name)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for re := range patterns {
		if !strings.Contains(all.String(), `=~"`+strings.ReplaceAll(re, `\`, `\\`)+`"`) {
			t.Errorf("no schema has the pattern %s", re)
		}
	}
}

func TestAPanicOfTheEvaluatorIsADiagnostic(t *testing.T) {
	d := brokenEvaluator(testRequest("", nil), "boom")
	if d.Position != (Position{File: "clusters/blue/fleet.cue", Line: 1, Column: 1}) || !strings.Contains(d.Message, "boom") {
		t.Errorf("diagnostic %+v", d)
	}
	if got := panicSite([]byte("goroutine 1\ncuelang.org/go/cue.Value.Expr({0x1})\n\t/x.go:1\n")); got != "cuelang.org/go/cue.Value.Expr" {
		t.Errorf("site %q", got)
	}
	if got := firstFile(Request{Dir: "clusters/none"}); got != "clusters/none" {
		t.Errorf("a package without files is placed at %q", got)
	}
}

func TestNoModuleIsEverFetched(t *testing.T) {
	r := noRegistry{}
	m := module.MustNewVersion("corp.example/x@v1", "v1.0.0")
	_, err1 := r.ModFile(context.Background(), m)
	_, err2 := r.Fetch(context.Background(), m)
	_, err3 := r.ModuleVersions(context.Background(), "corp.example/x@v1")
	for _, err := range []error{err1, err2, err3} {
		if err == nil || !strings.Contains(err.Error(), "Reeve downloads none") {
			t.Errorf("error %v", err)
		}
	}
}

func TestTheChildAnswers(t *testing.T) {
	noLimits := func(Limits) error { return nil }
	request := func(r Request) string {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	small := testRequest("", nil)
	small.Limits.OutputBytes = 10
	tests := []struct {
		name, in   string
		confine    func(Limits) error
		status     int
		out, stdin string
	}{
		{name: "with a fleet", in: request(testRequest("", nil)), confine: noLimits, out: Greeting + `{"document":{"cluster":`},
		{name: "with what is wrong", in: request(testRequest("package fleet\nx: 1\n", nil)), confine: noLimits, out: Greeting + `{"positions":{},"diagnostics":[{"position":{"file":"clusters/blue/more.cue","line":2,"column":1}`},
		{name: "that the fleet is too large", in: request(small), confine: noLimits, out: Greeting + `{"positions":{},"tooLarge":true}`},
		{name: "not to a request that it cannot read", in: "{", confine: noLimits, status: 1},
		{name: "not without limits", in: request(small), confine: func(Limits) error { return errors.New("no limits") }, status: 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if got := serve(strings.NewReader(tc.in), &out, &errs, tc.confine); got != tc.status {
				t.Errorf("status %d, want %d: %s", got, tc.status, errs.String())
			}
			if !strings.HasPrefix(out.String(), tc.out) || tc.status != 0 && (out.Len() > 0 || errs.Len() == 0) {
				t.Errorf("out %q, errors %q", out.String(), errs.String())
			}
		})
	}
	if got := serve(strings.NewReader(request(testRequest("", nil))), brokenPipe{}, &bytes.Buffer{}, noLimits); got != 1 {
		t.Errorf("status %d after a broken pipe", got)
	}
	if start.Requested() {
		t.Error("this process was not asked to evaluate")
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestTheTreeIsAFileSystem(t *testing.T) {
	tree, err := newTreeFS([]File{
		{Name: "a/b/c.cue", Data: []byte("c")}, {Name: "a/d.cue", Data: []byte("d")},
		{Name: "a/link.cue", Refused: "it is a link"}, {Name: "../up.cue", Data: []byte("x")},
		{Name: "cue.mod/reeve/fleet.cue", Data: []byte("tampered")}, {Name: "cue.mod/reeve/more.cue", Data: []byte("tampered")},
	})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"a/b/c.cue", "a/d.cue"}
	err = fs.WalkDir(schemas.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			names = append(names, "cue.mod/reeve/"+name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if text, err := fs.ReadFile(tree, name); err != nil || string(text) == "tampered" {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
	if _, err := tree.Open("a/link.cue"); err == nil || !strings.Contains(err.Error(), "it is a link") {
		t.Errorf("a link was opened: %v", err)
	}
	if _, err := fs.ReadFile(tree, "cue.mod/reeve/more.cue"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file beside the schemas: %v", err)
	}
	for _, name := range []string{"/a", "a/", ".."} {
		if _, err := tree.Stat(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := tree.ReadDir("a/d.cue"); err == nil {
		t.Error("a file was listed")
	}
	entries, err := tree.ReadDir("a")
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(entries))
	for i, e := range entries {
		got[i] = e.Name()
	}
	if diff := cmp.Diff([]string{"b", "d.cue", "link.cue"}, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	whole, err := newTreeFS([]File{{Name: "a/b/c.cue", Data: []byte("c")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(readable{whole}, "a/b/c.cue", "cue.mod/reeve/fleet.cue"); err != nil {
		t.Error(err)
	}
}

// readable gives open directories the method that fstest asks for; the loader
// lists by fs.ReadDirFS.
type readable struct{ *memFS }

func (r readable) Open(name string) (fs.File, error) {
	f, err := r.memFS.Open(name)
	if err != nil {
		return nil, err
	}
	if m := f.(*memFile); m.node.dir {
		entries, err := r.ReadDir(name)
		return &readableDir{memFile: m, left: entries}, err
	}
	return f, nil
}

type readableDir struct {
	*memFile
	left []fs.DirEntry
}

func (d *readableDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.left)
	} else if len(d.left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.left))
	out := d.left[:n]
	d.left = d.left[n:]
	return out, nil
}
