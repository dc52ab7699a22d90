package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// converter turns objects of older versions into those of v1, field by field.
// What the versions mean is in Karpenter's upgrade guides (v0.32 for v1beta1,
// v1.0 for v1) and, for v1alpha5, in the defaults of its webhooks.
type converter struct {
	report  *Report
	role    string // for classes that name neither role nor instance profile
	objects []*object
}

// changed reports a field that moved, was renamed or got its default written
// out.
func (c *converter) changed(o *object, at fleet.Position, field, was, is, why string) {
	c.report.add(Entry{Position: at, Class: Changed, Object: o.label, Field: field, Was: was, Is: is, Why: why})
}

func (c *converter) incomplete(o *object, at fleet.Position, field, why string) {
	c.report.add(Entry{Position: at, Class: Incomplete, Object: o.label, Field: field, Why: why})
}

// run converts all objects. Classes come first, because NodePools of older
// versions bring parts of them.
func (c *converter) run() {
	for _, o := range slices.Clone(c.objects) {
		switch o.version {
		case groupAWS + "/v1beta1":
			c.classBeta(o)
		case groupAWS + "/v1alpha1":
			c.classAlpha(o)
		}
	}
	for _, o := range slices.Clone(c.objects) {
		switch o.version {
		case groupCore + "/v1":
			c.reference(o)
		case groupCore + "/v1beta1":
			c.poolBeta(o)
		case groupCore + "/v1alpha5":
			c.poolAlpha(o)
		}
	}
	c.foreignPools()
	c.kubelets()
	c.objects = slices.DeleteFunc(c.objects, func(o *object) bool { return o.defunct })
}

var refPath = []string{"template", "spec", "nodeClassRef"}

// reference completes nodeClassRef of v1.
func (c *converter) reference(o *object) {
	ref := o.spec.get(refPath...)
	if ref == nil || ref.kind != mapping || ref.str("name") == "" {
		return
	}
	defer orderFields(ref, "group", "kind", "name")
	for _, f := range []struct{ name, value string }{{"group", groupAWS}, {"kind", kindClass}} {
		if ref.str(f.name) != "" || ref.str("group") != "" && ref.str("group") != groupAWS {
			continue
		}
		c.changed(o, ref.at, "spec.template.spec.nodeClassRef."+f.name, "nothing", quoteBrief(f.value), "v1 requires the field, and without it the API server refuses the NodePool")
		ref.put(newText(f.name, f.value, ref.at))
	}
}

// foreignPools takes out the NodePools whose class is of another provider.
func (c *converter) foreignPools() {
	for _, o := range c.objects {
		ref := o.spec.get(refPath...)
		if o.kind != kindPool || ref == nil {
			continue
		}
		group, kind := ref.str("group"), ref.str("kind")
		if (group == "" || group == groupAWS) && (kind == "" || kind == kindClass) {
			continue
		}
		o.defunct = true
		c.report.add(Entry{
			Position: ref.at, Class: Foreign, Object: o.label, Field: "spec.template.spec.nodeClassRef", Was: strings.TrimPrefix(group+"/"+kind, "/"),
			Why: "the NodePool is for another provider: Reeve launches EC2 instances of an EC2NodeClass only",
		})
	}
}

// poolBeta converts a NodePool of v1beta1.
func (c *converter) poolBeta(o *object) {
	c.referenceBeta(o)
	c.expireBeta(o)
	c.disruptionBeta(o)
	o.kubelet = o.spec.takeAt("template", "spec", "kubelet")
}

// referenceBeta turns apiVersion of nodeClassRef into group.
func (c *converter) referenceBeta(o *object) {
	ref := o.spec.get(refPath...)
	if ref == nil || ref.kind != mapping {
		return
	}
	defer orderFields(ref, "group", "kind", "name")
	group, at := groupAWS, ref.at
	was := "nothing"
	if f := ref.take("apiVersion"); f != nil {
		group, _, _ = strings.Cut(f.value.value, "/")
		was, at = "apiVersion "+f.value.brief(), f.at
		o.notes = append(o.notes, f.notes.lines()...)
	}
	if ref.find("group") == nil {
		c.changed(o, at, "spec.template.spec.nodeClassRef", was, "group "+quoteBrief(group), "v1 names the group without a version")
		ref.put(newText("group", group, at))
	}
	if ref.find("kind") == nil && group == groupAWS {
		c.changed(o, ref.at, "spec.template.spec.nodeClassRef.kind", "nothing", quoteBrief(kindClass), "v1 requires the field")
		ref.put(newText("kind", kindClass, ref.at))
	}
}

const forceful = "since v1 an expired node is drained at once: neither budgets hold it back nor is its replacement awaited"

// expireBeta moves expireAfter to the template.
func (c *converter) expireBeta(o *object) {
	f := o.spec.takeAt("disruption", "expireAfter")
	if f == nil {
		c.changed(o, o.nameAt, "spec.disruption.expireAfter", `"720h" by default`, `spec.template.spec.expireAfter "720h" by default`, forceful)
		return
	}
	why := "the field moved; " + forceful
	if f.value.value == "Never" {
		why = "the field moved"
	}
	c.changed(o, f.at, "spec.disruption.expireAfter", f.value.brief(), "spec.template.spec.expireAfter "+f.value.brief(), why)
	if o.spec.get("template", "spec", "expireAfter") == nil {
		o.spec.put(f, "template", "spec")
	}
}

// disruptionBeta renames the policy and says the delay that v1 requires.
func (c *converter) disruptionBeta(o *object) {
	d := o.spec.find("disruption")
	if d == nil || d.value.kind != mapping {
		return
	}
	policy := d.value.find("consolidationPolicy")
	if policy != nil && policy.value.value == "WhenUnderutilized" {
		c.changed(o, policy.at, "spec.disruption.consolidationPolicy", `"WhenUnderutilized"`, `"WhenEmptyOrUnderutilized"`, "the value was renamed")
		policy.value.value = "WhenEmptyOrUnderutilized"
	}
	if len(d.value.fields) == 0 {
		o.notes = append(o.notes, d.notes.lines()...)
		o.spec.take("disruption")
		return
	}
	after := d.value.find("consolidateAfter")
	switch {
	case after == nil:
		c.changed(o, d.at, "spec.disruption.consolidateAfter", "nothing", `"0s"`, "v1 requires the field; v1beta1 waited 15 seconds, and raising it now calms consolidation of underused nodes as well")
		d.value.put(newText("consolidateAfter", "0s", d.at))
	case policy != nil && policy.value.value == "WhenEmpty" && after.value.value != "Never":
		c.changed(o, after.at, "spec.disruption.consolidateAfter", "time since the node is empty", "time since a pod last came or went", "the field keeps its value and is counted anew with every pod")
	}
}

// kubelets puts what older NodePools say of kubelet into their classes. A class
// whose NodePools disagree is copied, one for each opinion.
func (c *converter) kubelets() {
	users := map[string][]*object{}
	var names []string
	for _, o := range c.objects {
		if o.kind != kindPool || o.defunct {
			continue
		}
		name := o.spec.str(append(slices.Clone(refPath), "name")...)
		if users[name] == nil {
			names = append(names, name)
		}
		users[name] = append(users[name], o)
	}
	for _, name := range names {
		if slices.ContainsFunc(users[name], func(o *object) bool { return o.kubelet != nil }) {
			c.kubeletOf(c.class(name), users[name])
		}
	}
}

func (c *converter) class(name string) *object {
	for _, o := range c.objects {
		if o.kind == kindClass && o.name == name && name != "" {
			return o
		}
	}
	return nil
}

// kubeletOf settles the kubelet of one class.
func (c *converter) kubeletOf(class *object, pools []*object) {
	if class == nil {
		for _, p := range pools {
			if p.kubelet != nil {
				c.report.add(Entry{Position: p.kubelet.at, Class: Lost, Object: p.label, Field: "spec.template.spec.kubelet", Was: "{…}",
					Why: "kubelet belongs to the EC2NodeClass since v1, and the class of this NodePool is not among what was imported: import both together"})
			}
		}
		return
	}
	// The class itself takes the first opinion, unless somebody uses it as it is.
	free := class.spec.find("kubelet") == nil && !slices.ContainsFunc(pools, func(p *object) bool { return p.kubelet == nil })
	var opinions [][]*object
	for _, p := range pools {
		if p.kubelet == nil {
			continue
		}
		i := slices.IndexFunc(opinions, func(g []*object) bool { return same(g[0].kubelet.value, p.kubelet.value) })
		if i < 0 {
			i, opinions = len(opinions), append(opinions, nil)
		}
		opinions[i] = append(opinions[i], p)
	}
	targets := make([]*object, len(opinions))
	for i, g := range opinions {
		if targets[i] = class; i > 0 || !free {
			targets[i] = c.copyClass(class, class.name+"-"+g[0].name)
		}
	}
	for i, g := range opinions {
		instead := class.name
		if targets[i] == class {
			instead = ""
		}
		c.kubeletInto(targets[i], g, instead)
	}
}

// copyClass makes another class of the same spec without its comments.
func (c *converter) copyClass(class *object, name string) *object {
	for c.class(name) != nil {
		name += "-kubelet"
	}
	k := *class
	k.name, k.spec, k.notes, k.notesOf = name, class.spec.bare(), []string{fmt.Sprintf("A copy of %s with another kubelet.", class.name)}, comments{}
	c.objects = append(c.objects, &k)
	return &k
}

// kubeletInto moves the kubelet that the NodePools share into a class.
func (c *converter) kubeletInto(class *object, pools []*object, instead string) {
	for i, p := range pools {
		is := "spec.kubelet of EC2NodeClass " + class.name
		why := "kubelet belongs to the class since v1"
		if instead != "" {
			why += "; other NodePools of the class " + instead + " say otherwise, so this is a copy of it, and nodes of the NodePool will be replaced"
			ref := p.spec.get(refPath...).find("name")
			ref.value = &node{kind: text, value: class.name, at: ref.value.at}
		}
		c.changed(p, p.kubelet.at, "spec.template.spec.kubelet", p.kubelet.value.brief(), is, why)
		if i == 0 {
			class.spec.put(p.kubelet)
		} else {
			p.notes = append(p.notes, append(p.kubelet.notes.lines(), p.kubelet.value.remarks()...)...)
		}
	}
}

// orderFields puts the named fields first, in that order.
func orderFields(n *node, names ...string) {
	rank := func(f *field) int {
		if i := slices.Index(names, f.name); i >= 0 {
			return i
		}
		return len(names)
	}
	slices.SortStableFunc(n.fields, func(a, b *field) int { return rank(a) - rank(b) })
}
