package spec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// adder reports a fault at a path of the document.
type adder func(at fleet.Path, message, hint string)

// checkFleet applies the rules that compare fields: those of Karpenter's CRDs
// that are written in CEL, what its controller checks at run time, and what
// only Reeve can know. Rules about a single value are in the schemas.
//
// Rules work on the JSON document, so that "is set" means what has() means in
// CEL: an empty list is set.
func checkFleet(root node, cluster string, add adder) {
	checkCluster(root.get("cluster"), cluster, add)
	classes := root.get("nodeClasses")
	for _, p := range root.get("nodePools").fields() {
		checkNodePool(p, add)
		checkReference(p.get("spec", "template", "spec", "nodeClassRef"), classes, add)
	}
	for _, c := range classes.fields() {
		checkNodeClass(c.get("spec"), add)
	}
	checkPolicy(root.get("policy"), add)
	checkExceptions(root.get("exceptions"), add)
}

func checkCluster(c node, directory string, add adder) {
	if name := c.get("name"); name.str() != directory {
		add(name.path, fmt.Sprintf("the cluster is called %q but its directory is %s/%s", name.str(), clustersDir, directory), "make them the same")
	}
	for _, d := range []node{
		c.get("ledger", "pushInterval"), c.get("ledger", "window"),
		c.get("engine", "batchIdle"), c.get("engine", "batchMax"), c.get("judge", "deadline"),
	} {
		checkDuration(d, add)
	}
	checkBranch(c.get("ledger", "branch"), add)
	checkEngine(c.get("engine"), add)
}

// checkBranch holds that Git takes the name, and that it is that of a branch.
func checkBranch(n node, add adder) {
	if !n.exists() {
		return
	}
	name := n.str()
	bad := name == "HEAD" || strings.HasPrefix(name, "refs/") || strings.Contains(name, "..")
	for part := range strings.SplitSeq(name, "/") {
		bad = bad || strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock")
	}
	if bad {
		add(n.path, fmt.Sprintf("%q is not the name of a branch", name), "write one such as reeve/blue, without refs/heads/")
	}
}

// checkEngine holds that the numbers of the engine are exact: money is counted
// in billionths of a dollar and the memory overhead in millionths.
func checkEngine(e node, add adder) {
	if fee := e.get("nodeFee"); fee.exists() {
		if _, err := resources.ParsePrice(fee.text()); err != nil {
			add(fee.path, fmt.Sprintf("%s is not an amount of money: %v", fee.text(), err), "write USD per hour with at most nine decimals, such as 0.01")
		}
	}
	share := e.get("vmMemoryOverheadPercent")
	if !share.exists() {
		return
	}
	if _, err := catalog.SettingsOf(fleet.EngineSettings{VMMemoryOverheadPercent: json.Number(share.text())}); err != nil {
		add(share.path, share.text()+" is not a share from 0 to below 1 with at most six decimals", "write one such as 0.075")
	}
}

// checkReference holds that the class of a pool is in the same fleet.
func checkReference(ref, classes node, add adder) {
	if !ref.exists() {
		return
	}
	const group, kind = "karpenter.k8s.aws", "EC2NodeClass"
	if ref.get("group").str() != group || ref.get("kind").str() != kind {
		add(ref.path, fmt.Sprintf("nodeClassRef names a %s of %s", ref.get("kind").str(), ref.get("group").str()),
			fmt.Sprintf("Reeve launches nodes of an EC2NodeClass: group %q, kind %q", group, kind))
		return
	}
	name := ref.get("name")
	if classes.has(name.str()) {
		return
	}
	var known []string
	for k := range classes.fields() {
		known = append(known, k)
	}
	hint := "add it under nodeClasses"
	if len(known) > 0 {
		hint += ", or name one of " + strings.Join(known, ", ")
	}
	add(name.path, fmt.Sprintf("there is no EC2NodeClass %q in this fleet", name.str()), hint)
}

func checkExceptions(list node, add adder) {
	seen := map[[2]string]node{}
	for _, e := range list.items() {
		key := [2]string{e.get("rule").str(), e.get("resource").str()}
		if _, twice := seen[key]; twice {
			add(e.path, fmt.Sprintf("a second exception of %s for %s", key[0], key[1]), "keep one of them")
		}
		seen[key] = e
	}
}

// checkDuration holds that a string that exists is a length of time that fits.
func checkDuration(n node, add adder) {
	if !n.exists() || n.str() == "Never" {
		return
	}
	if _, err := time.ParseDuration(n.str()); err != nil {
		add(n.path, fmt.Sprintf("%q is not a duration", n.text()), "write it as 30s, 5m or 720h; the longest is about 292 years")
	}
}

// checkQuantity holds that a value that exists is a Kubernetes quantity.
func checkQuantity(n node, add adder) {
	if !n.exists() {
		return
	}
	if _, err := resources.ParseQuantity(n.text()); err != nil {
		add(n.path, fmt.Sprintf("%.60q is not a quantity", n.text()), "write it as 1000, 500m, 10Gi or 20G")
	}
}

// count is how many elements a condition holds for.
func count(list []node, holds func(node) bool) int {
	n := 0
	for _, e := range list {
		if holds(e) {
			n++
		}
	}
	return n
}

// all says whether there are elements and the condition holds for each.
func all(list []node, holds func(node) bool) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(n node) bool { return !holds(n) })
}
