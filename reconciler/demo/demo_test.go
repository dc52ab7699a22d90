package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/ledger"
	"github.com/reeve-project/reeve/reconciler/replay"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// played is a scene as it was left.
type played struct {
	*stage
	out string
	err error
}

var (
	// stages are where every scene is played once, for all tests.
	stages string
	first  = sync.OnceValue(func() map[string]*played { return playAll(filepath.Join(stages, "first")) })
)

func TestMain(m *testing.M) {
	var err error
	if stages, err = os.MkdirTemp("", "demo"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(stages); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func playAll(dir string) map[string]*played {
	out := map[string]*played{}
	for _, sc := range all() {
		var buf bytes.Buffer
		s, err := sc.run(context.Background(), Options{Dir: dir, Out: &buf})
		out[sc.example] = &played{s, buf.String(), err}
	}
	return out
}

// left is a scene as it was left, once for all tests.
func left(t *testing.T, name string) *played {
	t.Helper()
	p := first()[name]
	if p.err != nil {
		t.Fatalf("%v\n%s", p.err, p.out)
	}
	return p
}

func git(t *testing.T, repo string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", repo}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestEverySceneIsTheSameEveryTime(t *testing.T) {
	dir := filepath.Join(stages, "again")
	var buf bytes.Buffer
	if err := Run(t.Context(), Options{Dir: dir, Out: &buf}); err != nil {
		t.Fatalf("%v\n%s", err, buf.String())
	}
	for _, name := range Scenes() {
		p := left(t, name)
		again := filepath.Join(dir, filepath.Base(p.repo))
		if a, b := git(t, p.repo, "rev-parse", p.branch), git(t, again, "rev-parse", p.branch); a != b {
			t.Errorf("%s: two runs end at commits %s and %s", name, a, b)
		}
		if !strings.Contains(buf.String(), p.out) {
			t.Errorf("%s: two runs print different things:\n%s\n%s", name, p.out, buf.String())
		}
	}
}

func TestOneSceneCanBePlayedByItself(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	var buf bytes.Buffer
	if err := Run(t.Context(), Options{Dir: dir, Only: "on-demand-basic", Out: &buf}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(buf.String(), "reeve log --repo "+filepath.Join(dir, "on-demand-basic.git")) {
		t.Errorf("it does not say where to look:\n%s", buf.String())
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Only: "nothing"}, `there is no scene "nothing": there are myeks, on-demand-basic`},
		{Options{Only: "myeks", Replicas: []int{1}}, "leave out either --replicas or --only"},
	} {
		c.o.Dir, c.o.Out = filepath.Join(t.TempDir(), "demo"), io.Discard
		if err := Run(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

func TestEveryRepositoryIsWholeAndReplays(t *testing.T) {
	for _, name := range Scenes() {
		t.Run(name, func(t *testing.T) {
			p := left(t, name)
			git(t, p.repo, "fsck", "--strict")
			src := ledger.Source{Repo: p.repo, Branch: p.branch}
			res, err := replay.Verify(t.Context(), src)
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Problems) > 0 || res.Foreign > 0 || res.Open > 0 || res.Decisions != len(p.decisions) {
				t.Errorf("%s, of %d decisions: %v", res, len(p.decisions), res.Problems)
			}
			sum, err := replay.Run(t.Context(), src, nil, func(r replay.Result) error {
				if r.Verdict != replay.Same {
					t.Errorf("%s: %+v", r.Verdict, r)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if sum.Same != len(p.decisions) {
				t.Errorf("%d of %d decisions are the same", sum.Same, len(p.decisions))
			}
		})
	}
}

// The demo is no script: whatever the replicas, the nodes at rest cost what an
// independent covering program finds for the last of them.
func TestReplicasEndAtTheOptimum(t *testing.T) {
	for _, c := range []struct {
		replicas []int
		want     resources.Price
	}{{[]int{7, 41, 3}, usd(172)}, {[]int{1}, 0}, {[]int{5, 30}, usd(1376)}, {[]int{3, 4, 9, 64}, 0}} {
		t.Run(fmt.Sprint(c.replicas), func(t *testing.T) {
			s, err := scaling(c.replicas).run(t.Context(), Options{Dir: t.TempDir(), Out: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			want, _ := cover(storyNodes(t), c.replicas[len(c.replicas)-1])
			if c.want != 0 && want != c.want {
				t.Errorf("the covering program finds %s, and the story says %s", want, c.want)
			}
			if got := s.cost(""); got != want {
				t.Errorf("the instances cost %s at rest, and %s would do", got, want)
			}
		})
	}
}

// node is what one instance type offers to pods of 1 CPU beside daemons of
// 150m: how many, and for how much.
type node struct {
	pods  int
	price resources.Price
}

// cover is the least price for at least need pods, and how many pods the nodes
// of that plan hold.
func cover(offers []node, need int) (resources.Price, int) {
	type plan struct {
		price       resources.Price
		nodes, pods int
	}
	best := make([]plan, need+1)
	for n := 1; n <= need; n++ {
		first := true
		for _, o := range offers {
			rest := best[max(0, n-o.pods)]
			p := plan{rest.price + o.price, rest.nodes + 1, rest.pods + o.pods}
			b := best[n]
			if first || p.price < b.price || p.price == b.price && p.nodes < b.nodes {
				best[n], first = p, false
			}
		}
	}
	return best[need].price, best[need].pods
}

func storyNodes(t *testing.T) []node {
	t.Helper()
	types, err := catalog.List("ap-northeast-2", nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []node
	for _, it := range types {
		l := it.Requirements.Labels()
		generation, err := strconv.Atoi(l["karpenter.k8s.aws/instance-generation"])
		if err != nil || generation <= 2 || !strings.Contains("cmr", l["karpenter.k8s.aws/instance-category"]) ||
			l["kubernetes.io/arch"] != "amd64" || strings.Contains(it.Name, "metal") || it.Allocatable["nvidia.com/gpu"] > 0 {
			continue
		}
		// Two daemons run on each node.
		pods := min((it.Allocatable["cpu"]-150)/1000, it.Allocatable["pods"]-2)
		for _, o := range it.Offerings {
			if o.CapacityType == "on-demand" && pods > 0 {
				out = append(out, node{int(pods), o.Price})
			}
		}
	}
	return out
}

func TestReplicasAreWithinBounds(t *testing.T) {
	for _, n := range []int{-1, maxReplicas + 1, 1 << 40} {
		dir := filepath.Join(t.TempDir(), "demo")
		err := Run(t.Context(), Options{Dir: dir, Replicas: []int{5, n}, Out: io.Discard})
		if err == nil || !strings.Contains(err.Error(), "is not a number from 0 to") {
			t.Errorf("%d replicas: %v", n, err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%d replicas: the directory was touched: %v", n, err)
		}
	}
}

func TestADirectoryThatIsNotTheDemosIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Run(context.Background(), Options{Dir: dir, Out: &bytes.Buffer{}})
	if err == nil || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("error %v, want one that says what to do", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}
