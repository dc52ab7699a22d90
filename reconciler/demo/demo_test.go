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
	"testing"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/resources"
)

func play(t *testing.T, replicas ...int) (repo, out string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	var buf bytes.Buffer
	if err := Run(context.Background(), Options{Dir: dir, Replicas: replicas, Out: &buf}); err != nil {
		t.Fatalf("%v\n%s", err, buf.String())
	}
	return filepath.Join(dir, "fleet.git"), buf.String()
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

func TestTheStoryIsTheSameEveryTime(t *testing.T) {
	repo, out := play(t)
	again, _ := play(t)
	if a, b := git(t, repo, "rev-parse", Branch), git(t, again, "rev-parse", Branch); a != b {
		t.Errorf("two runs end at commits %s and %s", a, b)
	}
	git(t, repo, "fsck", "--strict")
	if open := git(t, repo, "ls-tree", "-r", "--name-only", Branch, "open"); open != "" {
		t.Errorf("decisions are open at the end:\n%s", open)
	}
	for _, want := range []string{
		"REEVE-AMI-001 at clusters/myeks/nodeclasses.cue:9:22",
		"REEVE-TYPE-001 keeps m6g.16xlarge out",
		"1 pod stays pending: REEVE-CTRL-001",
		"provision(default): 1 × c5a.2xlarge ap-northeast-2a for 5 pods, $0.344/h",
		"for 23 pods, $1.118/h",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not say %q:\n%s", want, out)
		}
	}
	subjects := git(t, repo, "log", "--format=%s", Branch)
	for _, want := range []string{"handover", "accept(", "reject(", "provision(default): 1 × c5a.2xlarge", "provision(graviton)", "provision: 1 pod stays pending"} {
		if !strings.Contains(subjects, want) {
			t.Errorf("no commit begins with %q:\n%s", want, subjects)
		}
	}
}

// The demo is no script: whatever the replicas, the nodes cost what an
// independent covering program finds.
func TestReplicasEndAtTheOptimum(t *testing.T) {
	for _, replicas := range [][]int{{7, 41}, {1}, {5, 30}, {3, 4, 9, 64}} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			_, out := play(t, replicas...)
			want := optimum(t, replicas)
			if !strings.Contains(out, fmt.Sprintf("%d replicas run; the nodes of NodePool default cost %s\n", replicas[len(replicas)-1], want)) {
				t.Errorf("the optimum is %s:\n%s", want, out)
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

// optimum buys nodes for each step: what is there is filled first, and the
// rest is covered at the least price, with the fewest nodes where prices are
// equal. It is written from the story and shares no code with the engine.
func optimum(t *testing.T, replicas []int) resources.Price {
	t.Helper()
	offers := storyNodes(t)
	var total resources.Price
	room := 0
	have := 0
	for _, n := range replicas {
		need := n - have - room
		if need <= 0 {
			room -= n - have
			have = n
			continue
		}
		price, bought := cover(offers, need)
		total += price
		room = bought - need
		have = n
	}
	return total
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
