package importer

import (
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// aliases are the image families that an alias stands for.
var aliases = map[string]string{
	"AL2": "al2", "AL2023": "al2023", "Bottlerocket": "bottlerocket",
	"Windows2019": "windows2019", "Windows2022": "windows2022",
}

// classBeta converts an EC2NodeClass of v1beta1.
func (c *converter) classBeta(o *object) {
	c.selectors(o)
	c.images(o, "")
	hops := o.spec.get("metadataOptions", "httpPutResponseHopLimit")
	if hops == nil && c.settable(o, "metadataOptions") {
		c.hopLimit(o, "v1beta1 defaults to 2 and v1 to 1, with which pods that are not in the host's network cannot reach instance metadata; the old value is kept")
	}
}

// settable says whether the field lacks or is a mapping.
func (c *converter) settable(o *object, name string) bool {
	v := o.spec.get(name)
	return v == nil || v.kind == mapping || v.kind == null
}

func (c *converter) hopLimit(o *object, why string) {
	at := o.nameAt
	if f := o.spec.find("metadataOptions"); f != nil {
		at = f.at
		if f.value.kind == null {
			f.value = &node{kind: mapping, at: f.at}
		}
	}
	c.changed(o, at, "spec.metadataOptions.httpPutResponseHopLimit", "2 by default", "2", why)
	o.spec.put(newInteger("httpPutResponseHopLimit", "2", at), "metadataOptions")
}

// classAlpha converts an AWSNodeTemplate of v1alpha1.
func (c *converter) classAlpha(o *object) {
	c.selectors(o)
	c.images(o, "AL2")
	switch options := o.spec.find("metadataOptions"); {
	case options == nil || options.value.kind == null:
		c.hopLimit(o, "without metadataOptions v1alpha1 allows 2 hops and v1 one; the old value is kept")
	case options.value.kind == mapping && options.value.find("httpTokens") == nil:
		c.changed(o, options.at, "spec.metadataOptions.httpTokens", `"optional" by default`, `"optional"`,
			"metadataOptions without httpTokens leave tokens optional in v1alpha1 and require them in v1; the old value is kept")
		options.value.put(newText("httpTokens", "optional", options.at))
	}
	if o.spec.find("role") != nil || o.spec.find("instanceProfile") != nil {
		return
	}
	if c.role != "" {
		c.changed(o, o.nameAt, "spec.role", "the default instance profile of Karpenter's settings", quoteBrief(c.role), "every class names the role of its nodes since v1beta1; this one comes from --role")
		o.spec.put(newText("role", c.role, o.nameAt))
		return
	}
	c.incomplete(o, o.nameAt, "spec.role", "every class names the role of its nodes, or an instance profile, since v1beta1: add role, or import with --role NAME; Karpenter's setting aws.defaultInstanceProfile tells which it was")
}

// images turns amiFamily without selector terms into an alias.
func (c *converter) images(o *object, byDefault string) {
	family, terms := o.spec.find("amiFamily"), o.spec.find("amiSelectorTerms")
	name, at := byDefault, o.nameAt
	if family != nil {
		name, at = family.value.value, family.at
	}
	if terms != nil && len(terms.value.items) > 0 {
		c.familyOfTerms(o, family, name)
		return
	}
	alias, known := aliases[name]
	if !known {
		why := "v1 has no images for " + quoteBrief(name) + " by itself: add amiSelectorTerms with the id, name or SSM parameter of the image"
		if name == "" {
			why = "neither amiFamily nor amiSelectorTerms say which image to use: add amiSelectorTerms"
		}
		c.incomplete(o, at, "spec.amiSelectorTerms", why)
		return
	}
	alias += "@latest"
	was := "amiFamily " + quoteBrief(name)
	if family == nil {
		was += " by default"
	}
	c.changed(o, at, "spec.amiSelectorTerms", was, `[{alias: "`+alias+`"}]`, "v1 requires the terms; @latest is what the family meant before: pin a version to decide yourself when nodes change")
	term := &node{kind: mapping, at: at}
	term.put(newText("alias", alias, at))
	o.spec.put(&field{name: "amiSelectorTerms", at: at, value: &node{kind: sequence, at: at, items: []*node{term}}})
}

// familyOfTerms completes amiFamily beside terms.
func (c *converter) familyOfTerms(o *object, family *field, name string) {
	switch {
	case family == nil && name != "":
		c.changed(o, o.nameAt, "spec.amiFamily", quoteBrief(name)+" by default", quoteBrief(name), "v1 requires amiFamily beside terms that are not an alias")
		o.spec.put(newText("amiFamily", name, o.nameAt))
	case name == "Ubuntu":
		c.changed(o, family.at, "spec.amiFamily", `"Ubuntu"`, `"AL2"`, "v1 has no Ubuntu family; the user data of AL2 has the same form. The volume that Ubuntu had by default is written out")
		family.value.value = "AL2"
		if o.spec.find("blockDeviceMappings") == nil {
			o.spec.put(&field{name: "blockDeviceMappings", at: family.at, value: ubuntuVolume(family.at)})
		}
	}
}

// ubuntuVolume is the root volume that Karpenter gave to Ubuntu.
func ubuntuVolume(at fleet.Position) *node {
	volume := &node{kind: mapping, at: at}
	volume.put(newText("deviceName", "/dev/sda1", at))
	volume.put(&field{name: "rootVolume", at: at, value: &node{kind: boolean, value: "true", written: "true", at: at}})
	volume.put(&field{name: "encrypted", at: at, value: &node{kind: boolean, value: "true", written: "true", at: at}}, "ebs")
	volume.put(newText("volumeType", "gp3", at), "ebs")
	volume.put(newText("volumeSize", "20Gi", at), "ebs")
	return &node{kind: sequence, at: at, items: []*node{volume}}
}

// selectors turns the selectors of v1alpha1, maps of tags with special keys and
// commas, into terms. They are found in v1beta1 documents too, whose authors
// meant the same.
func (c *converter) selectors(o *object) {
	for _, s := range []struct{ old, new string }{
		{"subnetSelector", "subnetSelectorTerms"}, {"securityGroupSelector", "securityGroupSelectorTerms"}, {"amiSelector", "amiSelectorTerms"},
	} {
		f := o.spec.find(s.old)
		if f == nil || f.value.kind != mapping || o.spec.find(s.new) != nil {
			continue
		}
		terms := &node{kind: sequence, at: f.value.at, items: termsOf(f.value)}
		why := "selectors are lists of terms since v1beta1"
		if len(terms.items) > 1 {
			why += "; what commas separated are terms of their own now"
		}
		c.changed(o, f.at, "spec."+s.old, selectorBrief(f.value), "spec."+s.new, why)
		f.notes.above = append(f.notes.above, f.value.remarks()...)
		f.name, f.value = s.new, terms
	}
}

func selectorBrief(n *node) string {
	parts := make([]string, len(n.fields))
	for i, f := range n.fields {
		parts[i] = f.name + "=" + f.value.value
	}
	return quoteBrief(strings.Join(parts, " "))
}

// selectorKeys are the keys of a selector that are no tags.
var selectorKeys = map[string]string{
	"aws-ids": "id", "aws::ids": "id", "aws::name": "name", "aws::owners": "owner",
}

// termsOf are the alternatives of a selector: one term for each combination of
// what commas separate.
func termsOf(selector *node) []*node {
	terms := []*node{{kind: mapping, at: selector.at}}
	for _, f := range selector.fields {
		var next []*node
		for _, value := range commas(f.value) {
			for _, t := range terms {
				t = t.bare()
				if name := selectorKeys[f.name]; name != "" {
					t.put(newText(name, value, f.at))
				} else {
					t.put(newText(f.name, value, f.at), "tags")
				}
				next = append(next, t)
			}
		}
		terms = next
	}
	// The field id or name comes before its owner and tags.
	for _, t := range terms {
		slices.SortStableFunc(t.fields, func(a, b *field) int { return strings.Compare(a.name, b.name) })
	}
	return terms
}

// commas are the alternatives of a value. An empty value was a wildcard.
func commas(n *node) []string {
	value := n.value
	if n.kind != text {
		value = n.written
	}
	if value == "" {
		return []string{"*"}
	}
	var out []string
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	if len(out) == 0 {
		return []string{value}
	}
	return out
}
