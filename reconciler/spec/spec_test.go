package spec

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

func load(t *testing.T, fsys fs.FS) (*fleet.Fleet, error) {
	t.Helper()
	return Load(context.Background(), fsys, Options{Cluster: "blue", Commit: "abc123"})
}

const wantDocument = `{"cluster":{"engine":{"batchIdle":"1s","batchMax":"10s","nodeFee":0,"reservedENIs":0,"vmMemoryOverheadPercent":0.075},"environment":"production",` +
	`"judge":{"deadline":"5s","failOpen":["interrupt","reclaim"]},"kubernetesVersion":"1.34",` +
	`"ledger":{"branch":"reeve/blue","durability":"ahead","pushInterval":"10s","skipCI":true,"window":"168h"},` +
	`"mode":"enforce","name":"blue","region":"eu-central-1"},"exceptions":[],` +
	`"nodeClasses":{"default":{"apiVersion":"karpenter.k8s.aws/v1","kind":"EC2NodeClass","metadata":{"name":"default"},"spec":{"amiSelectorTerms":[{"alias":"al2023@v20260318"}],` +
	`"metadataOptions":{"httpEndpoint":"enabled","httpProtocolIPv6":"disabled","httpPutResponseHopLimit":1,"httpTokens":"required"},"role":"nodes",` +
	`"securityGroupSelectorTerms":[{"tags":{"karpenter.sh/discovery":"blue"}}],"subnetSelectorTerms":[{"tags":{"karpenter.sh/discovery":"blue"}}]}}},` +
	`"nodePools":{"default":{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"default"},` +
	`"spec":{"disruption":{"budgets":[{"nodes":"10%"}],"consolidateAfter":"0s","consolidationPolicy":"WhenEmptyOrUnderutilized"},` +
	`"template":{"spec":{"expireAfter":"720h","nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"default"},` +
	`"requirements":[{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}]}}}}},` +
	`"policy":{"amiPinning":{"allow":[],"enabled":true,"environments":["production"]},` +
	`"controllerPlacement":{"enabled":true,"labels":{"app.kubernetes.io/name":"reeve"},"namespace":"kube-system"},` +
	`"instanceTypes":{"enabled":true,"exclude":[],"excludeFamilies":[],"excludeSizes":[],"gpu":"on-request"}}}`

func TestASmallFleetIsRenderedWithAllDefaults(t *testing.T) {
	f, err := load(t, fleetFS("blue", nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantDocument, string(f.Document)); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	if !strings.Contains(wantDocument, `"policy":`+string(f.Policy)+`}`) {
		t.Errorf("policy is no part of the document: %s", f.Policy)
	}
	wantCluster := fleet.Cluster{
		Name: "blue", Region: "eu-central-1", KubernetesVersion: "1.34", Environment: "production", Mode: fleet.Enforce,
		Ledger: fleet.LedgerSettings{
			Branch: "reeve/blue", PushInterval: fleet.Duration(10 * time.Second), Durability: fleet.Ahead,
			Window: fleet.Duration(168 * time.Hour), SkipCI: true,
		},
		Engine: fleet.EngineSettings{
			NodeFee: "0", VMMemoryOverheadPercent: "0.075",
			BatchIdle: fleet.Duration(time.Second), BatchMax: fleet.Duration(10 * time.Second),
		},
		Judge: fleet.JudgeSettings{Deadline: fleet.Duration(5 * time.Second), FailOpen: []string{"interrupt", "reclaim"}},
	}
	if diff := cmp.Diff(wantCluster, f.Cluster); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
	p, c := f.NodePool("default"), f.NodeClass("default")
	if p == nil || c == nil {
		t.Fatalf("NodePool %v, EC2NodeClass %v", p, c)
	}
	got := map[string]string{
		"commit":       f.Commit,
		"expireAfter":  p.Spec.Template.Spec.ExpireAfter.String(),
		"nodes":        p.Spec.Disruption.Budgets[0].Nodes,
		"alias":        c.Spec.AMISelectorTerms[0].Alias,
		"api versions": p.APIVersion + " " + c.APIVersion,
	}
	want := map[string]string{
		"commit": "abc123", "expireAfter": "720h0m0s", "nodes": "10%", "alias": "al2023@v20260318",
		"api versions": "karpenter.sh/v1 karpenter.k8s.aws/v1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// The rendered document is CUE too. Reading it again shows that defaults
// satisfy the schemas and that they are applied once.
func TestARenderedFleetRendersToItself(t *testing.T) {
	first, err := load(t, manyPools(3))
	if err != nil {
		t.Fatal(err)
	}
	second, err := load(t, fleetFS("blue", map[string]string{
		"clusters/blue/cluster.cue":     "package fleet\n" + string(first.Document),
		"clusters/blue/nodeclasses.cue": "", "clusters/blue/nodepools.cue": "",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(first.Document), string(second.Document)); diff != "" {
		t.Errorf("second rendering (-first +second):\n%s", diff)
	}
}

func TestPositionsNameTheClusterBeforeSharedPackages(t *testing.T) {
	f, err := load(t, fleetFS("blue", map[string]string{
		"clusters/blue/nodepools.cue": `package fleet

import (
	"example.com/fleet/shared"
	"reeve.dev/fleet"
)

nodePools: fleet.#NodePools
nodePools: {
	for team in ["a", "b"] {
		"team-\(team)": spec: shared.general & {
			limits: cpu: "10"
		}
	}
	fast: spec: shared.general & {
		disruption: consolidateAfter: "30s"
		weight: 10
	}
}
`,
		"shared/general.cue": `package shared

general: {
	disruption: consolidateAfter: *"5m" | string
	template: spec: {
		nodeClassRef: {group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default"}
		requirements: [{key: "kubernetes.io/os", operator: "In", values: ["linux"]}]
	}
}
`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		path fleet.Path
		want string
	}{
		{"a plain value", fleet.Path{"nodePools", "fast", "spec", "weight"}, "clusters/blue/nodepools.cue:17:3"},
		{"an override of a template's default", fleet.Path{"nodePools", "fast", "spec", "disruption", "consolidateAfter"}, "clusters/blue/nodepools.cue:16:15"},
		{"a template's default", fleet.Path{"nodePools", "team-a", "spec", "disruption", "consolidateAfter"}, "shared/general.cue:4:14"},
		{"a value in a comprehension", fleet.Path{"nodePools", "team-b", "spec", "limits", "cpu"}, "clusters/blue/nodepools.cue:12:12"},
		{"an element of a list in a template", fleet.Path{"nodePools", "fast", "spec", "template", "spec", "requirements", "0", "values", "0"}, "shared/general.cue:7:69"},
		{"a default of the CRD is at its nearest parent", fleet.Path{"nodePools", "fast", "spec", "disruption", "budgets"}, "clusters/blue/nodepools.cue:16:3"},
		{"a name that the schema fills in is at the object", fleet.Path{"nodePools", "fast", "metadata", "name"}, "clusters/blue/nodepools.cue:15:2"},
		{"a key with slashes", fleet.Path{"nodeClasses", "default", "spec", "subnetSelectorTerms", "0", "tags", "karpenter.sh/discovery"}, "clusters/blue/nodeclasses.cue:9:31"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := f.Positions.Find(tc.path)
			if !ok || got.String() != tc.want {
				t.Errorf("%s is at %s (%v), want %s", tc.path, got, ok, tc.want)
			}
		})
	}
	for key, at := range f.Positions {
		for _, p := range at {
			if strings.HasPrefix(p.File, "cue.mod/") {
				t.Errorf("%s has a position in the schemas: %s", key, p)
			}
		}
	}
}

func TestTwoLoadsGiveTheSameBytes(t *testing.T) {
	var docs [2][]byte
	for i := range docs {
		f, err := load(t, manyPools(20))
		if err != nil {
			t.Fatal(err)
		}
		positions, err := json.Marshal(f.Positions)
		if err != nil {
			t.Fatal(err)
		}
		docs[i] = append(f.Document, positions...)
	}
	if diff := cmp.Diff(string(docs[0]), string(docs[1])); diff != "" {
		t.Errorf("loads differ:\n%s", diff)
	}
}

func TestExceptionsEndAtInstants(t *testing.T) {
	f, err := load(t, fleetFS("blue", map[string]string{"clusters/blue/exceptions.cue": `package fleet

exceptions: [
	{rule: "R-1", resource: "NodePool/default", reason: "test", owner: "ops", expires: "2026-05-01"},
	{rule: "R-2", resource: "NodePool/default", reason: "test", owner: "ops", expires: "2026-05-01T12:00:00+02:00"},
]
`}))
	if err != nil {
		t.Fatal(err)
	}
	want := []fleet.Exception{
		{Rule: "R-1", Resource: "NodePool/default", Reason: "test", Owner: "ops", Expires: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)},
		{Rule: "R-2", Resource: "NodePool/default", Reason: "test", Owner: "ops", Expires: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)},
	}
	if diff := cmp.Diff(want, f.Exceptions); diff != "" {
		t.Errorf("exceptions (-want +got):\n%s", diff)
	}
}

func TestVendoredSchemasComeFromTheBinary(t *testing.T) {
	fsys := fleetFS("blue", map[string]string{
		"cue.mod/reeve/cue.mod/module.cue": "module: \"reeve.dev/fleet@v1\"\nlanguage: version: \"v0.15.0\"\n",
		"cue.mod/reeve/fleet.cue":          "package fleet\n#NodePools: _\n#NodeClasses: _\n#Cluster: _\n#Policy: _\n#Fleet: _\n",
		"clusters/blue/more.cue":           "package fleet\nnodePools: default: spec: wieght: 1\n",
	})
	_, err := load(t, fsys)
	if err == nil || !strings.Contains(err.Error(), `clusters/blue/more.cue:2:27: nodePools.default.spec.wieght: field "wieght" is not allowed (did you mean weight?)`) {
		t.Errorf("a weakened schema was used: %v", err)
	}
}

func TestFaultsOfTheRepositoryHavePositions(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no such cluster", map[string]string{
			"clusters/blue/cluster.cue": "", "clusters/blue/nodepools.cue": "", "clusters/blue/nodeclasses.cue": "",
			"clusters/green/a.cue": "package fleet\n", "clusters/red/a.cue": "package fleet\n", "clusters/empty/README.md": "x",
		}, "clusters/blue:1:1: there is no such cluster (clusters here: green, red)"},
		{"no cluster at all", map[string]string{
			"clusters/blue/cluster.cue": "", "clusters/blue/nodepools.cue": "", "clusters/blue/nodeclasses.cue": "",
		}, "clusters/blue:1:1: there is no such cluster, and none else (add files of package fleet to clusters/blue)"},
		{"no module file", map[string]string{"cue.mod/module.cue": ""},
			"cue.mod/module.cue:1:1: this file is missing, so the tree is not a fleet repository (reeve init writes a new one; check that the path points to the root of the repository)"},
		{"no local module file", map[string]string{"cue.mod/local-module.cue": ""},
			`cue.mod/local-module.cue:1:1: this file is missing, so reeve.dev/fleet@v1 cannot be found (restore it with: deps: "reeve.dev/fleet@v1": {v: "v1.0.0", default: true, replaceWith: "./cue.mod/reeve"})`},
		{"another name than the directory's", map[string]string{"clusters/blue/cluster.cue": strings.Replace(testCluster, `"blue"`, `"green"`, 1)},
			`clusters/blue/cluster.cue:6:2: cluster.name: the cluster is called "green" but its directory is clusters/blue (make them the same)`},
		{"a class that does not exist", map[string]string{"clusters/blue/nodepools.cue": strings.Replace(testPools, `name: "default"`, `name: "gone"`, 1)},
			`clusters/blue/nodepools.cue:7:67: nodePools.default.spec.template.spec.nodeClassRef.name: there is no EC2NodeClass "gone" in this fleet (add it under nodeClasses, or name one of default)`},
		{"a class of another provider", map[string]string{"clusters/blue/nodepools.cue": strings.Replace(testPools, `"karpenter.k8s.aws"`, `"eks.amazonaws.com"`, 1)},
			`clusters/blue/nodepools.cue:7:2: nodePools.default.spec.template.spec.nodeClassRef: nodeClassRef names a EC2NodeClass of eks.amazonaws.com (Reeve launches nodes of an EC2NodeClass: group "karpenter.k8s.aws", kind "EC2NodeClass")`},
		{"no package fleet", map[string]string{
			"clusters/blue/cluster.cue": "package other\n", "clusters/blue/nodepools.cue": "", "clusters/blue/nodeclasses.cue": "",
		}, `clusters/blue/cluster.cue:1:1: build constraints exclude all CUE files in ./clusters/blue:`},
		{"a file of no package", map[string]string{"clusters/blue/x.cue": "nodePools: {}\n", "clusters/blue/x_tool.cue": "package x\n"},
			"clusters/blue/x.cue:1:1: this file is not part of package fleet, so nothing in it has any effect (start it with: package fleet)"},
		{"no language version", map[string]string{"cue.mod/module.cue": "module: \"example.com/fleet@v0\"\n"},
			"cue.mod/module.cue:1:1: no language version declared in module.cue"},
		{"a module file with a fault", map[string]string{"cue.mod/module.cue": testModule + "\nnope: 1\n"}, "cue.mod/module.cue:5:1: nope: field not allowed"},
		{"a local module file without the schemas", map[string]string{"cue.mod/local-module.cue": "\n"},
			`clusters/blue/cluster.cue:3:8: import failed: cannot find package "reeve.dev/fleet": cannot find module providing package reeve.dev/fleet (cue.mod/local-module.cue must say where it is: deps: "reeve.dev/fleet@v1":`},
		{"a date that does not exist", map[string]string{"clusters/blue/e.cue": `package fleet
exceptions: [{rule: "R-1", resource: "NodePool/a", reason: "r", owner: "o", expires: "2026-02-30"}]
`}, `clusters/blue/e.cue:2:77: exceptions.0.expires: "2026-02-30" is neither a date nor an instant (write a date such as 2026-05-01 or an instant such as 2026-05-01T12:00:00Z)`},
		{"an instant in a year without a name", map[string]string{"clusters/blue/e.cue": `package fleet
exceptions: [{rule: "R-1", resource: "NodePool/a", reason: "r", owner: "o", expires: "9999-12-31T23:59:59-12:00"}]
`}, `clusters/blue/e.cue:2:77: exceptions.0.expires: "9999-12-31T23:59:59-12:00" is not in the years 0000 to 9999 of UTC (write a date such as 2026-05-01 or an instant such as 2026-05-01T12:00:00Z)`},
		{"two exceptions for the same", map[string]string{"clusters/blue/e.cue": `package fleet
_e: {rule: "R-1", resource: "NodePool/a", reason: "r", owner: "o", expires: "2026-02-03"}
exceptions: [_e, _e]
`}, `clusters/blue/e.cue:3:18: exceptions.1: a second exception of R-1 for NodePool/a (keep one of them)`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(t, fleetFS("blue", tc.files))
			var specErr *Error
			if !errors.As(err, &specErr) {
				t.Fatalf("error %v, want *Error", err)
			}
			if !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error\n%v\nwant\n%s", err, tc.want)
			}
		})
	}
}

func TestAllFaultsAreListed(t *testing.T) {
	_, err := load(t, fleetFS("blue", map[string]string{"clusters/blue/more.cue": `package fleet

nodePools: default: spec: weigth: 1
nodePools: default: spec: template: spec: expireAfter: "1hr"
nodePools: Upper: spec: weight: 0
nodeClasses: default: spec: metadataOptions: httpTokens: "test"
cluster: mode: "forced"
helper: 1
`}))
	want := `clusters/blue/more.cue:3:27: nodePools.default.spec.weigth: field "weigth" is not allowed (did you mean weight?)
clusters/blue/more.cue:4:43: nodePools.default.spec.template.spec.expireAfter: invalid value "1hr": it must be a duration such as "30s", "5m" or "720h", or "Never"
clusters/blue/more.cue:5:12: nodePools.Upper: field "Upper" is not allowed (the name of a NodePool is lower case letters, digits, '-' and '.', at most 63 characters)
clusters/blue/more.cue:6:46: nodeClasses.default.spec.metadataOptions.httpTokens: "test" is not one of "optional", "required"
clusters/blue/more.cue:7:10: cluster.mode: "forced" is not one of "enforce", "observe"
clusters/blue/more.cue:8:1: helper: field "helper" is not allowed (the fields at the top are cluster, nodePools, nodeClasses, policy, exceptions; start the names of helpers with _)`
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

// oddFS adds to a file system entries that fstest.MapFS cannot hold.
type oddFS struct {
	fs.FS
	extra map[string][]fs.DirEntry
	fail  string
}

func (o oddFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == o.fail {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrPermission}
	}
	entries, err := fs.ReadDir(o.FS, name)
	return append(entries, o.extra[name]...), err
}

func (o oddFS) Open(name string) (fs.File, error) {
	if name == o.fail {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return o.FS.Open(name)
}

func entry(name string, mode fs.FileMode) fs.DirEntry {
	info, err := fs.Lstat(fstest.MapFS{"x": {Mode: mode}}, "x")
	if err != nil {
		panic(err)
	}
	return namedEntry{fs.FileInfoToDirEntry(info), name}
}

type namedEntry struct {
	fs.DirEntry
	name string
}

func (n namedEntry) Name() string { return n.name }

func TestOddTreesAreRefused(t *testing.T) {
	base := fleetFS("blue", nil)
	tests := []struct {
		name string
		fsys fs.FS
		want string
	}{
		{"a symbolic link among the cluster's files", oddFS{FS: base, extra: map[string][]fs.DirEntry{"clusters/blue": {entry("z.cue", fs.ModeSymlink)}}},
			"clusters/blue/z.cue:1:1: it is a symbolic link or a submodule, which Reeve does not follow"},
		{"a package that is a symbolic link", oddFS{FS: fleetFS("blue", map[string]string{"clusters/blue/x.cue": "package fleet\nimport \"example.com/fleet/shared\"\n_x: shared.y\n"}),
			extra: map[string][]fs.DirEntry{".": {entry("shared", fs.ModeSymlink)}}}, "clusters/blue/x.cue:2:8: import failed: cannot find package"},
		{"a name with a line feed", oddFS{FS: base, extra: map[string][]fs.DirEntry{"clusters/blue": {entry("a\nb.cue", 0)}}},
			`"clusters/blue/a\nb.cue":1:1: the name of this file has characters that cannot be printed (rename it)`},
		{"a name that is no UTF-8", oddFS{FS: base, extra: map[string][]fs.DirEntry{"shared": {}, ".": {entry("a\xff.cue", 0)}}},
			`"a\xff.cue":1:1: the name of this file has characters that cannot be printed (rename it)`},
		{"a file that cannot be read", oddFS{FS: base, fail: "clusters/blue/nodepools.cue"}, "load fleet: read clusters/blue/nodepools.cue: open clusters/blue/nodepools.cue: permission denied"},
		{"a directory that cannot be read", oddFS{FS: base, fail: "clusters/blue"}, "load fleet: list clusters/blue: readdir clusters/blue: permission denied"},
		{"the module's directory is a symbolic link", oddFS{FS: fleetFS("blue", map[string]string{"cue.mod/module.cue": "", "cue.mod/local-module.cue": ""}),
			extra: map[string][]fs.DirEntry{".": {entry("cue.mod", fs.ModeSymlink)}}}, "cue.mod:1:1: cannot be read: it is a symbolic link or a submodule"},
		{"directories without end", deepFS(maxTreeDepth + 3), "directories are nested deeper than 64"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(t, tc.fsys)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
		})
	}
}

func deepFS(depth int) fs.FS {
	fsys := fleetFS("blue", nil)
	fsys[strings.Repeat("d/", depth)+"x.cue"] = &fstest.MapFile{Data: []byte("package x\n")}
	return fsys
}

func TestOddNamesElsewhereDoNotMatter(t *testing.T) {
	fsys := oddFS{FS: fleetFS("blue", nil), extra: map[string][]fs.DirEntry{".": {
		entry("a\nb.txt", 0), entry("link", fs.ModeSymlink), entry("dir\n", fs.ModeDir), entry("l\n", fs.ModeSymlink),
	}}}
	if _, err := load(t, fsys); err != nil {
		t.Error(err)
	}
}

func TestAClusterNameIsNoPath(t *testing.T) {
	for _, name := range []string{"", "../x", "a/b", ".", "a b"} {
		if _, err := Load(context.Background(), fleetFS("blue", nil), Options{Cluster: name}); err == nil || !strings.Contains(err.Error(), "is not the name of a cluster") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestClustersAreListed(t *testing.T) {
	fsys := fleetFS("blue", map[string]string{"clusters/a/x.cue": "package fleet\n", "clusters/none/README.md": "x", "clusters/x.cue": "package x\n", "clusters/o dd/x.cue": "package fleet\n"})
	got, err := Clusters(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "blue"}, got); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if got, err := Clusters(fstest.MapFS{"README.md": {}}); err != nil || len(got) != 0 {
		t.Errorf("a repository without clusters: %v, %v", got, err)
	}
	for _, fail := range []string{"clusters", "clusters/blue"} {
		if _, err := Clusters(oddFS{FS: fsys, fail: fail}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("unreadable %s: %v", fail, err)
		}
	}
}

func TestLoadStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Load(ctx, fleetFS("blue", nil), Options{Cluster: "blue"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := Load(ctx, fleetFS("blue", map[string]string{"clusters/blue/h.cue": hostile["disjunctions that multiply"].cue}), Options{Cluster: "blue"})
	if !errors.Is(err, context.DeadlineExceeded) || IsLimit(err) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestABinaryThatDoesNotEvaluateIsNamed(t *testing.T) {
	for binary, want := range map[string]string{
		"/bin/echo":          "does not evaluate specs",
		"/bin/false":         "child ended with exit status 1",
		"/nonexistent/reeve": "start child",
	} {
		_, err := Load(context.Background(), fleetFS("blue", nil), Options{Cluster: "blue", Binary: binary})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", binary, err, want)
		}
	}
}

func TestLoadReadsADirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := Init(dir, InitOptions{Cluster: "blue"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../clusters/blue/cluster.cue", filepath.Join(dir, "policies", "link.txt")); err != nil {
		t.Fatal(err)
	}
	f, err := load(t, os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if f.Cluster.Mode != fleet.Observe || len(f.NodePools) != 1 || len(f.NodeClasses) != 1 {
		t.Errorf("new fleet: mode %s, %d NodePools, %d EC2NodeClasses", f.Cluster.Mode, len(f.NodePools), len(f.NodeClasses))
	}
}
