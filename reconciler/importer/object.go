package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// The kinds of a fleet and the groups of Karpenter.
const (
	kindPool   = "NodePool"
	kindClass  = "EC2NodeClass"
	groupCore  = "karpenter.sh"
	groupAWS   = "karpenter.k8s.aws"
	alphaPool  = "Provisioner"
	alphaClass = "AWSNodeTemplate"
)

// object is a NodePool or EC2NodeClass on its way into the fleet.
type object struct {
	kind    string // in the fleet
	name    string
	label   string // in the document: "Provisioner/default"
	version string // in the document: "karpenter.sh/v1alpha5"
	at      fleet.Position
	nameAt  fleet.Position
	spec    *node
	labels  *field // of the object itself
	remarks *field // its annotations
	notes   []string
	notesOf comments // of the field spec
	kubelet *field   // what an older NodePool says of kubelet
	defunct bool     // refused after all
}

// collector sorts documents into what a fleet holds and what it does not.
type collector struct {
	report  *Report
	objects []*object
	pending []string // comments of documents without a value
}

// document takes one document of a stream.
func (c *collector) document(file string, ch chunk) {
	tree, remarks, err := read(file, ch, c.report)
	switch {
	case err != nil:
		c.refuse(err, "")
		c.pending = nil
	case tree == nil:
		c.pending = append(c.pending, remarks...)
	default:
		notes := append(c.pending, tree.notes.lines()...)
		c.pending = nil
		if err := c.take(tree, notes); err != nil {
			c.refuse(err, "")
		}
	}
}

func (c *collector) refuse(err error, object string) {
	f, ok := err.(*fault)
	if !ok {
		f = &fault{why: err.Error()}
	}
	why := f.why
	if f.hint != "" {
		why += "; " + f.hint
	}
	c.report.add(Entry{Position: f.at, Class: Refused, Object: object, Why: why})
}

// take takes a value that should be an object or a list of objects.
func (c *collector) take(tree *node, notes []string) error {
	if tree.kind != mapping {
		return &fault{at: tree.at, why: fmt.Sprintf("a document must be an object with apiVersion and kind, and this is a %s", tree.kind)}
	}
	kind, version := tree.str("kind"), tree.str("apiVersion")
	if items := tree.find("items"); strings.HasSuffix(kind, "List") && version != "" && items != nil {
		return c.list(tree, items.value, notes)
	}
	switch {
	case kind == "" && version == "":
		return &fault{at: tree.at, why: "the document has neither apiVersion nor kind" + misspelled(tree), hint: "write whole manifests, as kubectl get -o yaml prints them"}
	case version == "":
		return &fault{at: tree.at, why: fmt.Sprintf("the %s has no apiVersion%s", kind, misspelled(tree)), hint: "write apiVersion: " + versionOf(kind)}
	case kind == "":
		return &fault{at: tree.at, why: "the object of " + version + " has no kind" + misspelled(tree), hint: "write the kind: NodePool or EC2NodeClass"}
	}
	return c.object(tree, kind, version, notes)
}

// versionOf is what to write for a kind.
func versionOf(kind string) string {
	switch kind {
	case kindPool:
		return groupCore + "/v1"
	case kindClass:
		return groupAWS + "/v1"
	}
	return "GROUP/VERSION"
}

// misspelled names a key that looks like one that lacks.
func misspelled(tree *node) string {
	for _, f := range tree.fields {
		low := strings.ToLower(f.name)
		if low != "kind" && low != "apiversion" && (strings.HasSuffix(low, "version") || low == "knd" || low == "kinds") ||
			(low == "kind" || low == "apiversion") && f.name != "kind" && f.name != "apiVersion" {
			return fmt.Sprintf(" (is %q meant?)", f.name)
		}
	}
	return ""
}

func (c *collector) list(tree, items *node, notes []string) error {
	if items.kind == null {
		return nil
	}
	if items.kind != sequence {
		return &fault{at: items.at, why: fmt.Sprintf("items of a %s is a %s, want a list", tree.str("kind"), items.kind)}
	}
	for i, item := range items.items {
		own := item.notes.lines()
		if i == 0 {
			own = append(slices.Clone(notes), own...)
		}
		if err := c.take(item, own); err != nil {
			c.refuse(err, "")
		}
	}
	return nil
}

// object takes one object: imported, foreign or refused.
func (c *collector) object(tree *node, kind, version string, notes []string) error {
	group, v, _ := strings.Cut(version, "/")
	name := tree.str("metadata", "name")
	label := kind
	if name != "" {
		label += "/" + name
	}
	target := ""
	switch {
	case group == groupCore && kind == kindPool && (v == "v1" || v == "v1beta1"), group == groupCore && kind == alphaPool && v == "v1alpha5":
		target = kindPool
	case group == groupAWS && kind == kindClass && (v == "v1" || v == "v1beta1"), group == groupAWS && kind == alphaClass && v == "v1alpha1":
		target = kindClass
	case slices.Contains([]string{kindPool, kindClass, alphaPool, alphaClass}, kind):
		return &fault{at: tree.at, why: fmt.Sprintf("there is no %s in %s", kind, version), hint: known(kind)}
	default:
		c.report.add(Entry{Position: tree.at, Class: Foreign, Object: label, Was: version, Why: foreign(group, kind)})
		return nil
	}
	return c.keep(tree, &object{kind: target, name: name, label: label, version: version, at: tree.at, notes: notes})
}

func known(kind string) string {
	switch kind {
	case kindPool:
		return "reeve imports karpenter.sh/v1 and karpenter.sh/v1beta1"
	case kindClass:
		return "reeve imports karpenter.k8s.aws/v1 and karpenter.k8s.aws/v1beta1"
	case alphaPool:
		return "reeve imports karpenter.sh/v1alpha5"
	}
	return "reeve imports karpenter.k8s.aws/v1alpha1"
}

// foreign says why an object is not imported.
func foreign(group, kind string) string {
	switch {
	case kind == "NodeOverlay":
		return "not imported: a fleet has no place for NodeOverlays yet"
	case kind == "NodeClaim" || kind == "Machine":
		return "not imported: controllers make these from NodePools"
	case kind == "Kustomization":
		return "not a manifest: pipe the output of kustomize build to reeve import -"
	case strings.Contains(kind, "NodeClass"):
		return "a node class of another provider: Reeve launches EC2 instances only"
	case group == groupCore || group == groupAWS:
		return "Karpenter's, but nothing that a fleet holds"
	}
	return "not an object of Karpenter's"
}

// keep takes the parts of an object that a fleet holds and reports the others.
func (c *collector) keep(tree *node, o *object) error {
	meta := tree.get("metadata")
	switch {
	case meta != nil && meta.kind != mapping && meta.kind != null:
		return &fault{at: meta.at, why: fmt.Sprintf("metadata is a %s, want a mapping", meta.kind)}
	case o.name == "" && meta.get("generateName") != nil:
		return &fault{at: meta.find("generateName").at, why: "a " + o.kind + " of a fleet needs a name, generateName makes a new one each time", hint: "write metadata.name"}
	case o.name == "":
		return &fault{at: tree.at, why: "the " + o.label + " has no metadata.name"}
	}
	o.nameAt = meta.find("name").value.at
	spec := tree.find("spec")
	if spec == nil || spec.value.kind == null {
		return &fault{at: tree.at, why: o.label + " has no spec"}
	}
	if spec.value.kind != mapping {
		return &fault{at: spec.value.at, why: fmt.Sprintf("spec is a %s, want a mapping", spec.value.kind)}
	}
	o.spec, o.notesOf = spec.value, spec.notes
	var server []string
	for _, f := range tree.fields {
		switch f.name {
		case "spec":
		case "apiVersion", "kind":
			o.notes = append(o.notes, f.notes.lines()...)
		case "metadata":
			o.notes = append(o.notes, f.notes.lines()...)
			server = append(server, c.metadata(f.value, o)...)
		case "status":
			server = append(server, "status")
		default:
			o.notes = append(o.notes, f.notes.lines()...)
			c.report.add(Entry{Position: f.at, Class: Lost, Object: o.label, Field: f.name, Was: f.value.brief(), Why: "an object has apiVersion, kind, metadata and spec only"})
		}
	}
	if len(server) > 0 {
		c.report.add(Entry{Position: o.at, Class: Dropped, Object: o.label, Field: strings.Join(server, ", "), Why: "written by the API server or a controller"})
	}
	c.objects = append(c.objects, o)
	return nil
}

// serverFields are metadata that users do not write.
var serverFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generation",
	"managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
}

// serverAnnotations are annotations that users do not write.
var serverAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"karpenter.sh/nodepool-hash", "karpenter.sh/nodepool-hash-version",
	"karpenter.sh/provisioner-hash",
	"karpenter.k8s.aws/ec2nodeclass-hash", "karpenter.k8s.aws/ec2nodeclass-hash-version",
	"karpenter.k8s.aws/nodetemplate-hash",
}

// metadata takes labels and annotations and returns the names of what the
// server wrote.
func (c *collector) metadata(meta *node, o *object) (server []string) {
	for _, f := range meta.fields {
		switch {
		case slices.Contains(serverFields, f.name):
			server = append(server, "metadata."+f.name)
		case f.name == "name":
			o.notes = append(o.notes, f.notes.lines()...)
		case f.name == "labels":
			o.labels = c.words(f, o, nil)
		case f.name == "annotations":
			o.remarks = c.words(f, o, &server)
		case f.name == "namespace":
			o.notes = append(o.notes, f.notes.lines()...)
			c.report.add(Entry{Position: f.at, Class: Dropped, Object: o.label, Field: "metadata.namespace", Was: f.value.brief(), Why: "the kind has no namespace"})
		case f.value.kind == null:
			o.notes = append(o.notes, f.notes.lines()...)
		default:
			o.notes = append(o.notes, f.notes.lines()...)
			c.report.add(Entry{Position: f.at, Class: Lost, Object: o.label, Field: "metadata." + f.name, Was: f.value.brief(), Why: "a fleet holds the name, labels and annotations of an object"})
		}
	}
	return server
}

// words takes the labels or annotations of an object.
func (c *collector) words(f *field, o *object, server *[]string) *field {
	if f.value.kind == null || f.value.kind == mapping && len(f.value.fields) == 0 {
		o.notes = append(o.notes, f.notes.lines()...)
		return nil
	}
	path := fleet.Path{"metadata", f.name}
	if server != nil && f.value.kind == mapping {
		f.value.fields = slices.DeleteFunc(f.value.fields, func(g *field) bool {
			if !slices.Contains(serverAnnotations, g.name) {
				return false
			}
			*server = append(*server, fleet.Path{"metadata", "annotations", g.name}.String())
			return true
		})
	}
	fit := fitter{report: c.report, object: o.label}
	if err := fit.fit(f.value, &shape{kind: mapping, values: &shape{kind: text}}, path); err != nil {
		why := err.(*fault)
		c.report.add(Entry{Position: why.at, Class: Lost, Object: o.label, Field: path.String(), Was: f.value.brief(), Why: why.why})
		return nil
	}
	if len(f.value.fields) == 0 {
		o.notes = append(o.notes, f.notes.lines()...)
		return nil
	}
	return f
}
