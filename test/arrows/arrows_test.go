package arrows

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThePackagesOfThisModuleKeepToTheArrows(t *testing.T) {
	g := load(t)
	for _, finding := range Check(Table(), g) {
		t.Error(finding)
	}
	if !slices.Contains(g[Module+"/reconciler/decision"], Module+"/reconciler/resources") {
		t.Error("the graph does not show that decision imports resources: it was not read correctly")
	}
}

func TestTheTableIsSound(t *testing.T) {
	rows := map[string]Row{}
	for _, r := range Table() {
		if _, twice := rows[r.Package]; twice {
			t.Errorf("%s has two rows", r.Package)
		}
		rows[r.Package] = r
	}
	for _, r := range Table() {
		for _, may := range r.May {
			if _, ok := rows[may]; !ok {
				t.Errorf("%s may import %s, which has no row", r.Package, may)
			}
			if strings.HasPrefix(may, "cmd/") {
				t.Errorf("%s may import %s: a command cannot be imported", r.Package, may)
			}
		}
	}
	c := checker{rows: map[string]Row{}}
	for _, r := range Table() {
		c.rows[Module+"/"+r.Package] = r
	}
	for _, p := range core {
		for path := range c.allowed(Module + "/" + p) {
			if !slices.Contains(core, short(path)) {
				t.Errorf("%s is core and may import %s, which is not", p, short(path))
			}
		}
		if len(rows[p].SDKs) > 0 {
			t.Errorf("%s is core and may import %s", p, rows[p].SDKs)
		}
	}
	for _, p := range []string{"reconciler/sim", "reconciler/sim/awsapi", "reconciler/demo"} {
		if c.allowed(Module + "/cmd/reeve-controller")[Module+"/"+p] {
			t.Errorf("cmd/reeve-controller may import %s, which has no place in a cluster", p)
		}
	}
	if c.allowed(Module + "/reconciler/sim")[Module+"/reconciler/scheduling"] {
		t.Error("the simulator may import the engine that it is to judge")
	}
}

func TestBrokenArrowsAreFound(t *testing.T) {
	table := []Row{
		{Package: "reconciler/resources"},
		{Package: "reconciler/a", May: []string{"reconciler/b"}},
		{Package: "reconciler/b", May: []string{"reconciler/c"}},
		{Package: "reconciler/c"},
		{Package: "reconciler/kube", SDKs: []SDK{Kubernetes}},
		{Package: "cmd/reeve", May: []string{"reconciler/a"}},
	}
	tests := []struct {
		name  string
		graph map[string]string
		want  []string
	}{
		{"arrows that the table has", map[string]string{"reconciler/a": "reconciler/b fmt", "reconciler/b": "reconciler/c"}, nil},
		{"an arrow that follows from others", map[string]string{"reconciler/a": "reconciler/c"}, nil},
		{"the leaf package", map[string]string{"reconciler/c": "reconciler/resources"}, nil},
		{"the leaf package importing", map[string]string{"reconciler/resources": "reconciler/c"},
			[]string{"reconciler/resources may not import reconciler/c: reconciler/resources -> reconciler/c"}},
		{"an arrow backwards", map[string]string{"reconciler/c": "reconciler/a"},
			[]string{"reconciler/c may not import reconciler/a: reconciler/c -> reconciler/a"}},
		{"an arrow backwards through another package", map[string]string{"reconciler/b": "reconciler/c", "reconciler/c": "reconciler/kube"},
			[]string{
				"reconciler/b may not import reconciler/kube: reconciler/b -> reconciler/c -> reconciler/kube",
				"reconciler/c may not import reconciler/kube: reconciler/c -> reconciler/kube",
			}},
		{"a package without a row", map[string]string{"reconciler/new": "fmt"},
			[]string{"reconciler/new is not in the table of test/arrows: say there what it may import"}},
		{"a package below one with a row", map[string]string{"reconciler/a/sub": ""},
			[]string{"reconciler/a/sub is not in the table of test/arrows: say there what it may import"}},
		{"an internal part of a package", map[string]string{"reconciler/a": "reconciler/a/internal/x", "reconciler/a/internal/x": "reconciler/b"}, nil},
		{"an internal part that breaks its package's row", map[string]string{"reconciler/c": "reconciler/c/internal/x", "reconciler/c/internal/x": "reconciler/a"},
			[]string{
				"reconciler/c may not import reconciler/a: reconciler/c -> reconciler/c/internal/x -> reconciler/a",
				"reconciler/c/internal/x may not import reconciler/a: reconciler/c/internal/x -> reconciler/a",
			}},
		{"a command imported", map[string]string{"reconciler/a": "cmd/reeve"},
			[]string{"reconciler/a may not import cmd/reeve: reconciler/a -> cmd/reeve"}},
		{"a tool imported", map[string]string{"cmd/reeve": "test/tools/x", "test/tools/x": "reconciler/a", "test/y": "test/tools/x"},
			[]string{"cmd/reeve may not import test/tools/x: cmd/reeve -> test/tools/x"}},
		{"clients where they may be", map[string]string{"reconciler/kube": "k8s.io/client-go/rest sigs.k8s.io/controller-runtime/pkg/client"}, nil},
		{"types that are no clients", map[string]string{
			"reconciler/a": "k8s.io/client-go/kubernetes/scheme github.com/aws/aws-sdk-go-v2/service/ec2/types sigs.k8s.io/karpenter/pkg/apis/v1",
		}, nil},
		{"clients where they may not be", map[string]string{
			"reconciler/a":    "k8s.io/client-go/kubernetes k8s.io/client-go/kubernetes/typed/core/v1 k8s.io/client-go/tools/cache sigs.k8s.io/karpenter/pkg/scheduling",
			"reconciler/kube": "github.com/aws/aws-sdk-go-v2/service/ec2",
		}, []string{
			"reconciler/a may not import k8s.io/client-go/kubernetes: a client of the Kubernetes API; take what you need through a port",
			"reconciler/a may not import k8s.io/client-go/kubernetes/typed/core/v1: a client of the Kubernetes API; take what you need through a port",
			"reconciler/a may not import k8s.io/client-go/tools/cache: a client of the Kubernetes API; take what you need through a port",
			"reconciler/a may not import sigs.k8s.io/karpenter/pkg/scheduling: Karpenter's implementation; take what you need through a port",
			"reconciler/kube may not import github.com/aws/aws-sdk-go-v2/service/ec2: a client of an AWS service; take what you need through a port",
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Check(table, graph(tc.graph))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// graph reads "importer: imported imported" with paths below the module.
func graph(in map[string]string) Graph {
	full := func(p string) string {
		for _, dir := range []string{"reconciler/", "cmd/", "test/"} {
			if strings.HasPrefix(p, dir) {
				return Module + "/" + p
			}
		}
		return p
	}
	g := Graph{}
	for from, to := range in {
		g[full(from)] = nil
		for _, p := range strings.Fields(to) {
			g[full(from)] = append(g[full(from)], full(p))
		}
	}
	return g
}

// load reads the imports of all packages of the module from the go command.
func load(t *testing.T) Graph {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	g := Graph{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			return g
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		g[pkg.ImportPath] = pkg.Imports
	}
}
