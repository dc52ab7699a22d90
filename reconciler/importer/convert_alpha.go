package importer

import (
	"slices"
	"strconv"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// poolAlpha converts a Provisioner of v1alpha5.
func (c *converter) poolAlpha(o *object) {
	c.requirementsAlpha(o)
	c.classOf(o)
	for _, m := range []struct {
		from string
		to   []string
	}{
		{"labels", []string{"template", "metadata"}}, {"annotations", []string{"template", "metadata"}},
		{"requirements", []string{"template", "spec"}}, {"taints", []string{"template", "spec"}}, {"startupTaints", []string{"template", "spec"}},
	} {
		if f := o.spec.take(m.from); f != nil {
			o.spec.put(f, m.to...)
		}
	}
	if f := o.spec.take("kubeletConfiguration"); f != nil {
		f.name = "kubelet"
		o.kubelet = f
	}
	c.limitsAlpha(o)
	c.expireAlpha(o)
	c.disruptionAlpha(o)
	c.changed(o, o.at, "", "Provisioner", "NodePool "+o.name, "the label of nodes is karpenter.sh/nodepool instead of karpenter.sh/provisioner-name; drift is always acted on; at most 10% of the nodes are disrupted at once unless budgets say otherwise")
	orderFields(o.spec.get("template"), "metadata", "spec")
	orderFields(o.spec, "template", "disruption", "limits", "weight")
}

// alphaDefaults are the requirements that the webhook of v1alpha5 added where
// none of the keys was asked for.
var alphaDefaults = []struct {
	unless []string
	rows   [][]string // key, operator, values
}{
	{[]string{"kubernetes.io/os", "beta.kubernetes.io/os"}, [][]string{{"kubernetes.io/os", "In", "linux"}}},
	{[]string{"kubernetes.io/arch", "beta.kubernetes.io/arch"}, [][]string{{"kubernetes.io/arch", "In", "amd64"}}},
	{[]string{"karpenter.sh/capacity-type"}, [][]string{{"karpenter.sh/capacity-type", "In", "on-demand"}}},
	{
		[]string{
			"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type", "karpenter.k8s.aws/instance-family",
			"karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-generation",
		},
		[][]string{{"karpenter.k8s.aws/instance-category", "In", "c", "m", "r"}, {"karpenter.k8s.aws/instance-generation", "Gt", "2"}},
	},
}

// requirementsAlpha writes out the requirements that were there by default.
func (c *converter) requirementsAlpha(o *object) {
	f := o.spec.find("requirements")
	if f == nil || f.value.kind == null {
		at := o.nameAt
		f = &field{name: "requirements", at: at, value: &node{kind: sequence, at: at}}
		o.spec.put(f)
	}
	if f.value.kind != sequence {
		return
	}
	asked := map[string]bool{}
	for _, r := range f.value.items {
		asked[r.str("key")] = true
	}
	for _, d := range alphaDefaults {
		if slices.ContainsFunc(d.unless, func(key string) bool { return asked[key] }) {
			continue
		}
		for _, row := range d.rows {
			f.value.items = append(f.value.items, requirement(row, f.at))
			c.changed(o, f.at, "spec.requirements", "nothing", row[0]+" "+row[1]+" "+join(row[2:]), "v1alpha5 added this requirement by itself; it is written out, since v1 has no such defaults")
		}
	}
}

func join(values []string) string {
	out := "["
	for i, v := range values {
		if i > 0 {
			out += ", "
		}
		out += v
	}
	return out + "]"
}

func requirement(row []string, at fleet.Position) *node {
	r := &node{kind: mapping, at: at}
	r.put(newText("key", row[0], at))
	r.put(newText("operator", row[1], at))
	values := &node{kind: sequence, at: at}
	for _, v := range row[2:] {
		values.items = append(values.items, &node{kind: text, value: v, at: at})
	}
	r.put(&field{name: "values", at: at, value: values})
	return r
}

// classOf turns providerRef or an inline provider into nodeClassRef.
func (c *converter) classOf(o *object) {
	if ref := o.spec.take("providerRef"); ref != nil {
		c.changed(o, ref.at, "spec.providerRef", ref.value.brief(), "spec.template.spec.nodeClassRef", "the reference was renamed; AWSNodeTemplates are EC2NodeClasses since v1beta1")
		c.refer(o, ref.value.str("name"), ref)
		if kind := ref.value.str("kind"); kind != "" && kind != alphaClass {
			o.spec.get(refPath...).put(newText("kind", kind, ref.at))
		}
		return
	}
	inline := o.spec.take("provider")
	if inline == nil || inline.value.kind != mapping {
		c.incomplete(o, o.nameAt, "spec.providerRef", "the Provisioner names no AWSNodeTemplate: add nodeClassRef")
		return
	}
	name := o.name
	for c.class(name) != nil {
		name += "-provider"
	}
	class := &object{
		kind: kindClass, name: name, label: o.label, version: groupAWS + "/v1alpha1", at: inline.at, nameAt: inline.at,
		spec: inline.value, notes: inline.notes.lines(),
	}
	for _, f := range []string{"apiVersion", "kind"} {
		inline.value.take(f)
	}
	c.changed(o, inline.at, "spec.provider", "{…}", "EC2NodeClass "+name, "what a provider says is an object of its own since v1beta1")
	c.objects = append(c.objects, class)
	c.classAlpha(class)
	c.refer(o, name, inline)
}

func (c *converter) refer(o *object, name string, from *field) {
	ref := &field{name: "nodeClassRef", at: from.at, value: &node{kind: mapping, at: from.value.at}}
	if from.name == "providerRef" {
		ref.notes = from.notes
		ref.notes.above = append(ref.notes.above, from.value.remarks()...)
	}
	for _, f := range [][2]string{{"group", groupAWS}, {"kind", kindClass}, {"name", name}} {
		ref.value.put(newText(f[0], f[1], from.value.at))
	}
	o.spec.put(ref, "template", "spec")
}

// limitsAlpha removes the level resources.
func (c *converter) limitsAlpha(o *object) {
	limits := o.spec.find("limits")
	if limits == nil {
		return
	}
	if f := limits.value.takeSafe("resources"); f != nil {
		limits.notes.above = append(limits.notes.above, f.notes.lines()...)
		rest := limits.value.fields
		limits.value = f.value
		if f.value.kind == mapping {
			limits.value.fields = append(limits.value.fields, rest...)
		}
	}
}

// expireAlpha turns seconds into a duration.
func (c *converter) expireAlpha(o *object) {
	f := o.spec.take("ttlSecondsUntilExpired")
	if f == nil || f.value.kind == null {
		c.changed(o, o.nameAt, "spec.ttlSecondsUntilExpired", "nothing: nodes never expire", `spec.template.spec.expireAfter "Never"`, "v1 expires nodes after 720h by default; the old behaviour is kept")
		o.spec.put(newText("expireAfter", "Never", o.nameAt), "template", "spec")
		return
	}
	value := seconds(f.value)
	c.changed(o, f.at, "spec.ttlSecondsUntilExpired", f.value.brief(), "spec.template.spec.expireAfter "+quoteBrief(value), "seconds are a duration now; "+forceful)
	o.spec.put(&field{name: "expireAfter", at: f.at, notes: f.notes, value: &node{kind: text, value: value, at: f.value.at}}, "template", "spec")
}

// seconds is a number of seconds as a duration: in hours or minutes where that
// comes out even.
func seconds(n *node) string {
	s, err := strconv.ParseInt(n.value, 10, 64)
	switch {
	case err != nil:
		return n.value
	case s != 0 && s%3600 == 0:
		return strconv.FormatInt(s/3600, 10) + "h"
	case s != 0 && s%60 == 0:
		return strconv.FormatInt(s/60, 10) + "m"
	}
	return strconv.FormatInt(s, 10) + "s"
}

// disruptionAlpha turns consolidation and ttlSecondsAfterEmpty into disruption.
func (c *converter) disruptionAlpha(o *object) {
	consolidation, empty := o.spec.take("consolidation"), o.spec.take("ttlSecondsAfterEmpty")
	enabled := consolidation != nil && consolidation.value.str("enabled") == "true"
	d := &field{name: "disruption", at: o.nameAt, value: &node{kind: mapping, at: o.nameAt}}
	if consolidation != nil {
		d.notes = consolidation.notes
		d.notes.above = append(d.notes.above, consolidation.value.remarks()...)
	}
	policy, after := "WhenEmptyOrUnderutilized", "0s"
	switch {
	case enabled:
		c.changed(o, consolidation.at, "spec.consolidation.enabled", "true", `spec.disruption {consolidationPolicy: "WhenEmptyOrUnderutilized", consolidateAfter: "0s"}`, "consolidation is a policy since v1beta1; a longer consolidateAfter makes it calmer")
	case empty != nil && empty.value.kind != null:
		policy, after = "WhenEmpty", seconds(empty.value)
		c.changed(o, empty.at, "spec.ttlSecondsAfterEmpty", empty.value.brief(), `spec.disruption {consolidationPolicy: "WhenEmpty", consolidateAfter: `+quoteBrief(after)+"}", "the time is counted since a pod last came or went")
	default:
		policy, after = "WhenEmpty", "Never"
		c.changed(o, o.nameAt, "spec.consolidation", "nothing: nodes stay when they are empty", `spec.disruption {consolidationPolicy: "WhenEmpty", consolidateAfter: "Never"}`, "v1 consolidates by default; the old behaviour is kept")
	}
	if enabled && empty != nil {
		c.report.add(Entry{Position: empty.at, Class: Lost, Object: o.label, Field: "spec.ttlSecondsAfterEmpty", Was: empty.value.brief(), Why: "v1alpha5 does not allow it beside consolidation"})
	}
	d.value.put(newText("consolidationPolicy", policy, d.at))
	delay := newText("consolidateAfter", after, d.at)
	if empty != nil {
		delay.notes = empty.notes
	}
	d.value.put(delay)
	o.spec.put(d)
}
