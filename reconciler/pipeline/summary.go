package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// summarizeProvision is a provision in one line:
// "provision(default): 1 × c5a.2xlarge ap-northeast-2a for 5 pods, $0.344/h".
func summarizeProvision(d *decision.Decision) string {
	p := &d.Proposal
	name := string(d.Kind)
	if p.NodePool != "" {
		name += "(" + p.NodePool + ")"
	}
	if len(p.Claims) == 0 {
		return name + ": " + summarizeUnplaced(d)
	}
	pods := 0
	for i := range p.Claims {
		pods += p.Claims[i].PodCount()
	}
	s := fmt.Sprintf("%s: %s for %s, %s", name, countTypes(p.Claims), plural(pods, "pod"), p.Cost)
	if !d.Verdict.Allowed {
		s += ", denied by " + strings.Join(rules(d.Verdict.Violations), ", ")
	}
	return s
}

func summarizeUnplaced(d *decision.Decision) string {
	pods := 0
	var why []string
	for _, u := range d.Proposal.Unplaced {
		for _, g := range u.Pods {
			pods += len(g.Names)
		}
		why = append(why, cmp.Or(strings.Join(u.Rules, ", "), u.Reason))
	}
	slices.Sort(why)
	verb := "stay"
	if pods == 1 {
		verb = "stays"
	}
	return fmt.Sprintf("%s %s pending: %s", plural(pods, "pod"), verb, strings.Join(slices.Compact(why), "; "))
}

// countTypes is "2 × c5a.4xlarge, 1 × c5a.large ap-northeast-2a": the zone is
// named once if it is the same for all.
func countTypes(claims []decision.Claim) string {
	type key struct{ typ, zone string }
	counts := map[key]int{}
	zones := map[string]bool{}
	for i := range claims {
		counts[key{claims[i].InstanceType, claims[i].Zone}]++
		zones[claims[i].Zone] = true
	}
	keys := make([]key, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.typ, b.typ), cmp.Compare(a.zone, b.zone))
	})
	const most = 4
	var parts []string
	for i, k := range keys {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d more kinds", len(keys)-most))
			break
		}
		part := fmt.Sprintf("%d × %s", counts[k], k.typ)
		if len(zones) > 1 {
			part += " " + k.zone
		}
		parts = append(parts, part)
	}
	s := strings.Join(parts, ", ")
	if len(zones) == 1 {
		s += " " + keys[0].zone
	}
	return s
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// rules are the ids in the findings, sorted, each once.
func rules(fs []decision.Finding) []string {
	out := make([]string, 0, len(fs))
	for _, f := range fs {
		out = append(out, f.Rule)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// summarizeSpec is "reject(3f2a1b0c): al2023@latest … (clusters/myeks/…:12:5)".
func summarizeSpec(d *decision.Decision) string {
	sc := d.Proposal.Spec
	head := fmt.Sprintf("%s(%s): ", d.Kind, sc.Commit[:min(8, len(sc.Commit))])
	if d.Kind == decision.Accept {
		return head + fmt.Sprintf("%s, %s: %s", plural(sc.NodePools, "NodePool"), plural(sc.NodeClasses, "EC2NodeClass"), cmp.Or(oneLine(sc.Subject), "no subject"))
	}
	if len(d.Verdict.Violations) == 0 {
		return head + "refused"
	}
	v := d.Verdict.Violations[0]
	s := head + v.Rule + ": " + oneLine(v.Message)
	if v.Position != nil {
		s += " (" + v.Position.String() + ")"
	}
	if n := len(d.Verdict.Violations) - 1; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

// oneLine is the first line of a text, cut to what a subject can hold.
func oneLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	const most = 120
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
