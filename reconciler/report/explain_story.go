package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
)

// ExplainNode writes why a node came and why it went.
func ExplainNode(w io.Writer, s *NodeStory) error {
	p := &printer{w: w}
	p.nodeHead(s)
	p.line("")
	switch {
	case s.Came != nil:
		p.line("Why it came")
		p.act(&s.Came.Act, "")
		p.arrival(s.Came)
	case s.Claim == "":
		p.line("No decision made it: it has no NodeClaim, so it is not Reeve's.")
	default:
		p.line("No decision on the branch made it.")
	}
	if len(s.Joined) > 0 {
		p.line("")
		p.line("What was planned for it later")
	}
	for _, j := range s.Joined {
		p.wrap("  ", "%s  %s (%s)", j.Act.Time.Format(time.DateTime), j.Act.Decision, j.Act.Status)
		p.podLines("    ", j.Pods)
	}
	for i := range s.Decisions {
		p.departure(&s.Decisions[i])
	}
	if len(s.Decisions) == 0 && s.State != "removed" {
		p.line("")
		p.line("No decision removes it.")
	}
	p.searched(&s.Searched)
	return p.err
}

func (p *printer) nodeHead(s *NodeStory) {
	names := make([]string, 0, 2)
	for _, n := range []string{s.Name, s.Instance} {
		if n != "" && (s.Claim != "" || n != s.Name) {
			names = append(names, n)
		}
	}
	p.wrap("", "Node %s%s", cmp.Or(s.Claim, s.Name, s.Instance), suffix(" ", parenthesis(strings.Join(names, ", "))))
	if s.Offering.InstanceType != "" {
		p.wrap("  ", "%s%s", offeringText(s.Offering), suffix(", NodePool ", s.NodePool))
	}
	at := ""
	if !s.Searched.State.IsZero() {
		at = " in the last recorded state, " + s.Searched.State.Format(time.DateTime)
	}
	switch s.State {
	case "running":
		p.line("  there%s, with %s", at, count(len(s.Pods), "pod", "pods"))
	case "removing":
		p.line("  being removed%s, with %s", at, count(len(s.Pods), "pod", "pods"))
	case "removed":
		p.line("  removed")
	case "not launched":
		p.line("  never launched, as far as records tell")
	default:
		p.line("  not there%s", at)
	}
	if len(s.Others) > 0 {
		p.wrap("  ", "The name also was that of %s: ask for it by claim.", few(s.Others))
	}
}

// heading is what a decision about a node is called.
func heading(d *Departure) string {
	removes := !slices.Contains([]decision.Kind{decision.Adopt}, d.Act.Kind)
	switch {
	case !removes:
		return "How it was taken over"
	case d.Act.Status == "denied" || d.Second != nil && !d.Second.Allowed:
		return "Why it stayed"
	case d.Act.Status == "observed":
		return "Why it would have gone"
	case d.Act.Status == string(decision.Dropped) || d.Act.Status == string(decision.Abandoned) || d.Act.Status == string(decision.Failed):
		return "Why it was to go, and did not"
	default:
		return "Why it went"
	}
}

func (p *printer) departure(d *Departure) {
	p.line("")
	p.line("%s", heading(d))
	p.act(&d.Act, "")
	if d.Node.Detail != "" {
		p.wrap("  Why this     ", "%s", d.Node.Detail)
	}
	if c := d.Node.DisruptionCostMilli; c != 0 {
		p.line("  Disruption   cost %d.%03d", c/1000, c%1000)
	}
	p.podLines("  Pods         ", d.Node.Pods)
	p.effect(d, true)
	p.judged("Verdict, when it was proposed", "  ", &d.Verdict)
	p.second(d.Second)
	p.stepTable(d.Steps)
}

// ExplainPod writes where a pod stands and how it came there.
func ExplainPod(w io.Writer, s *PodStory) error {
	p := &printer{w: w}
	p.wrap("", "Pod %s", s.Pod)
	p.wrap("  ", "%s", standing(s))
	if !s.Created.IsZero() {
		p.line("  created %s", s.Created.Format(time.DateTime))
	}
	if len(s.Events) == 0 {
		p.line("  no decision was needed for it: it found room by itself, or waits for the next pass")
	}
	for i := range s.Events {
		p.podEvent(&s.Events[i])
	}
	if len(s.Nodes) > 0 {
		p.line("")
		p.line("What became of the nodes")
	}
	for i := range s.Nodes {
		p.fate(&s.Nodes[i])
	}
	p.needs(s.Needs)
	p.searched(&s.Searched)
	return p.err
}

// standing is where the pod is, in words.
func standing(s *PodStory) string {
	at := ""
	if !s.Searched.State.IsZero() {
		at = " in the last recorded state, " + s.Searched.State.Format(time.DateTime)
	}
	switch {
	case s.State == "running":
		return "on node " + s.Node + at
	case s.State == "pending" && s.Node != "":
		return "pending" + at + ", and planned for node " + s.Node
	case s.State == "pending":
		return "pending" + at
	case s.State == "gone":
		return "not there" + at + ": it ended, was moved under another name, or is newer"
	default:
		return "no state is recorded"
	}
}

func (p *printer) podEvent(ev *PodEvent) {
	p.line("")
	kind := string(ev.Act.Kind) + suffix(", ", ev.Act.Method)
	p.wrap("", "%s  %s  %s (%s)", ev.Act.Time.Format(time.DateTime), kind, ev.Act.Decision, ev.Act.Status)
	offer := ""
	if ev.Offering != nil {
		offer = offeringText(*ev.Offering)
	}
	planned := "planned for"
	if ev.Act.Status == "denied" || ev.Act.Status == "observed" {
		planned = "would be planned for"
	}
	switch ev.What {
	case PodClaim:
		p.wrap("  ", "%s the new node %s: %s", planned, ev.Node, offer)
	case PodNode:
		p.wrap("  ", "%s node %s, which has room", planned, ev.Node)
	case PodRemoved:
		p.wrap("  ", "is on node %s, which the decision is about: %s", ev.Node, offer)
		p.wrap("  ", "because: %s%s", ev.Act.Reason, suffix(": ", ev.Detail))
	case PodPending:
		p.wrap("  ", "stays pending: %s%s", ev.Unplaced.Reason, suffix(" by ", strings.Join(ev.Unplaced.Rules, ", ")))
		p.wrap("    ", "%s", ev.Unplaced.Message)
	}
	if ev.Repeats > 0 {
		p.line("  the same came again %s since it was last recorded", count(ev.Repeats, "time", "times"))
	}
	p.podLines("  with ", ev.Siblings)
	var refs []string
	if c := ev.Act.SpecCommit; c != "" {
		refs = append(refs, "spec commit "+c[:min(12, len(c))])
	}
	if d := ev.Act.Policies; d != "" {
		refs = append(refs, "policies "+d[:min(19, len(d))])
	}
	if len(refs) > 0 {
		p.line("  under %s", strings.Join(refs, ", "))
	}
}

func (p *printer) fate(f *Fate) {
	var steps []string
	for _, s := range f.Steps {
		steps = append(steps, strings.TrimSpace(fmt.Sprintf("%s %s %s", s.State, s.Time.Format(time.TimeOnly), s.Instance)))
	}
	if len(steps) == 0 {
		steps = []string{"nothing is recorded of its launch"}
	}
	p.wrap("  "+f.Node+"  ", "%s", strings.Join(steps, ", "))
	for _, a := range f.Removals {
		p.wrap("    ", "%s: %s (%s) %s", a.Kind, a.Reason, a.Status, a.Decision)
	}
}
