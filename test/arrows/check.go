package arrows

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Graph is the direct imports of packages by import path, without those of
// tests.
type Graph map[string][]string

// Check finds where the graph breaks the table: a package of the module that
// has no row, an arrow (direct or through others) that no row allows, a client
// library where none may be. Each finding is a line that says what to do; they
// are sorted.
func Check(table []Row, g Graph) []string {
	c := checker{rows: map[string]Row{}, graph: g}
	for _, r := range table {
		c.rows[Module+"/"+r.Package] = r
	}
	var out []string
	for _, pkg := range slices.Sorted(maps.Keys(g)) {
		if !ours(pkg) {
			continue
		}
		out = append(out, c.check(pkg)...)
	}
	return out
}

type checker struct {
	rows  map[string]Row
	graph Graph
}

func (c checker) check(pkg string) []string {
	row, ok := c.rows[owner(pkg)]
	switch {
	case ok:
		return append(c.checkArrows(pkg, c.allowed(owner(pkg))), c.checkSDKs(row, pkg)...)
	case strings.HasPrefix(pkg, Module+"/test/"):
		return nil // tools and tests may look at everything
	default:
		return []string{fmt.Sprintf("%s is not in the table of test/arrows: say there what it may import", short(pkg))}
	}
}

// owner is the package whose row holds: what is internal to a package is a part
// of it, since nothing else can import it.
func owner(pkg string) string {
	before, _, _ := strings.Cut(pkg, "/internal/")
	return before
}

// allowed is what a row allows, with what follows from the rows it names.
func (c checker) allowed(pkg string) map[string]bool {
	out := map[string]bool{pkg: true}
	todo := []string{pkg}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		for _, may := range c.rows[next].May {
			if path := Module + "/" + may; !out[path] {
				out[path] = true
				todo = append(todo, path)
			}
		}
	}
	out[Module+"/"+leaf] = true
	return out
}

// checkArrows reports each package of ours that is reached and not allowed,
// with the shortest way to it. It does not look behind a forbidden package:
// the arrow to it is the one to remove.
func (c checker) checkArrows(pkg string, allowed map[string]bool) []string {
	var out []string
	via := map[string]string{pkg: ""}
	todo := []string{pkg}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		for _, dep := range slices.Sorted(slices.Values(c.graph[next])) {
			if _, seen := via[dep]; seen || !ours(dep) {
				continue
			}
			via[dep] = next
			if !allowed[owner(dep)] {
				out = append(out, fmt.Sprintf("%s may not import %s: %s", short(pkg), short(dep), way(via, dep)))
				continue
			}
			todo = append(todo, dep)
		}
	}
	slices.Sort(out)
	return out
}

// checkSDKs looks at direct imports only: Karpenter's API types link parts of
// the clients, which is accepted.
func (c checker) checkSDKs(row Row, pkg string) []string {
	var out []string
	for _, dep := range slices.Sorted(slices.Values(c.graph[pkg])) {
		if sdk := family(dep); sdk != "" && !slices.Contains(row.SDKs, sdk) {
			out = append(out, fmt.Sprintf("%s may not import %s: %s; take what you need through a port", short(pkg), dep, sdk))
		}
	}
	return out
}

// family is the family of client libraries that the import path belongs to,
// or "".
func family(path string) SDK {
	switch {
	case below(path, "k8s.io/client-go/rest", "k8s.io/client-go/tools", "k8s.io/client-go/dynamic", "k8s.io/client-go/discovery",
		"k8s.io/client-go/informers", "k8s.io/client-go/kubernetes/typed", "sigs.k8s.io/controller-runtime"),
		path == "k8s.io/client-go/kubernetes":
		return Kubernetes
	case below(path, "github.com/aws/aws-sdk-go-v2/service") && !strings.HasSuffix(path, "/types"):
		return AWS
	case below(path, "sigs.k8s.io/karpenter", "github.com/aws/karpenter-provider-aws") && !strings.Contains(path, "/pkg/apis"):
		return KarpenterInternals
	}
	return ""
}

func below(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return path == r || strings.HasPrefix(path, r+"/") })
}

func ours(path string) bool { return below(path, Module) }

func short(path string) string { return strings.TrimPrefix(path, Module+"/") }

func way(via map[string]string, to string) string {
	var steps []string
	for at := to; at != ""; at = via[at] {
		steps = append(steps, short(at))
	}
	slices.Reverse(steps)
	return strings.Join(steps, " -> ")
}
