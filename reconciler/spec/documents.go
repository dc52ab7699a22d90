package spec

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"cuelang.org/go/cue/ast"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"go.yaml.in/yaml/v3"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/spec/eval"
	"github.com/reeve-project/reeve/schemas"
)

// Source is a file of YAML or JSON documents.
type Source struct {
	// Name of the file, for findings.
	Name string
	// Data is its content.
	Data []byte
}

// JudgeDocuments judges NodePools, EC2NodeClasses and NodeClaims that are YAML or
// JSON as the API server and Karpenter's controller would, strictly: the schema,
// the rules of the CRDs that compare fields, unknown and repeated fields, and
// what only the controller notices. Other than in a fleet, a class that an
// object refers to need not be there, and may be another provider's.
//
// A file may hold several documents and lists of objects. An object that is also
// in previous is judged as its successor. Findings of severity "error" are what
// is refused, "warning" what is accepted and likely a mistake; they carry the
// place in the file and paths within the object. An error means that the
// documents could not be judged.
func JudgeDocuments(ctx context.Context, docs, previous []Source) ([]decision.Finding, error) {
	kinds, err := newDocumentKinds()
	if err != nil {
		return nil, err
	}
	before := &documentJudge{kinds: kinds, objects: map[string]*document{}}
	if err := before.judge(ctx, previous); err != nil {
		return nil, err
	}
	j := &documentJudge{kinds: kinds, objects: map[string]*document{}, previous: before.objects}
	if err := j.judge(ctx, docs); err != nil {
		return nil, err
	}
	return j.findings(), nil
}

// documentKinds are the schemas and the defaults of objects.
type documentKinds struct {
	schemas  *eval.Documents
	defaults map[string]*schemas.Defaults
}

func newDocumentKinds() (*documentKinds, error) {
	s, err := eval.NewDocuments()
	if err != nil {
		return nil, err
	}
	d, err := schemas.KindDefaults()
	return &documentKinds{schemas: s, defaults: d}, err
}

// apiVersions are the kinds that are judged.
var apiVersions = map[string]string{
	"NodePool":     "karpenter.sh/v1",
	"NodeClaim":    "karpenter.sh/v1",
	"EC2NodeClass": "karpenter.k8s.aws/v1",
}

// documentJudge judges a set of files.
type documentJudge struct {
	kinds    *documentKinds
	previous map[string]*document
	objects  map[string]*document // what was accepted, by resource
	errors   []documentFinding
	warnings []documentFinding
}

// documentFinding is a diagnostic about an object.
type documentFinding struct {
	Diagnostic
	resource string
}

// document is one object of a file.
type document struct {
	file     *yamlFile
	resource string // "NodePool/default"
	kind     string
	root     node
	places   fleet.Positions
	judge    *documentJudge
	pool     *karpv1.NodePool
}

func (j *documentJudge) judge(ctx context.Context, sources []Source) error {
	for _, s := range sources {
		data, f := readYAML(s.Name, s.Data)
		for _, d := range f.found {
			j.errors = append(j.errors, documentFinding{Diagnostic: d})
		}
		for _, d := range data {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("judge documents: %w", err)
			}
			if err := j.objectsOf(f, d); err != nil {
				return fmt.Errorf("judge documents: %w", err)
			}
		}
	}
	return nil
}

// objectsOf judges an object, or those of a list.
func (j *documentJudge) objectsOf(f *yamlFile, d *datum) error {
	kind := d.str("kind")
	if items := d.get("items"); strings.HasSuffix(kind, "List") && items != nil && items.kind == yaml.SequenceNode {
		for _, item := range items.items {
			if err := j.objectsOf(f, item); err != nil {
				return err
			}
		}
		return nil
	}
	if message, hint := foreign(d); message != "" {
		j.errors = append(j.errors, documentFinding{Diagnostic: Diagnostic{Position: f.position(placeOf(d, "apiVersion", "kind")), Message: message, Hint: hint}})
		return nil
	}
	o := &document{file: f, kind: kind, judge: j, places: fleet.Positions{}}
	o.resource = kind + "/" + d.get("metadata").str("name")
	return o.check(d)
}

// placeOf is where the first of some fields stands, or the object itself.
func placeOf(d *datum, names ...string) int {
	for _, name := range names {
		for _, k := range d.keys {
			if k.name == name {
				return k.at
			}
		}
	}
	return d.at
}

// foreign says why something is no object that can be judged.
func foreign(d *datum) (message, hint string) {
	const known = "NodePool and NodeClaim of karpenter.sh/v1 and EC2NodeClass of karpenter.k8s.aws/v1 can be judged"
	kind, version := d.str("kind"), d.str("apiVersion")
	switch {
	case d.kind != yaml.MappingNode:
		return "this is no Kubernetes object", "a document has the fields apiVersion, kind, metadata and spec"
	case kind == "" || version == "":
		return "an object needs a kind and an apiVersion", known
	case apiVersions[kind] == "" || apiVersions[kind] != version:
		return fmt.Sprintf("%s of %s is not known", kind, version), known
	}
	return "", ""
}

// check judges one object and keeps it if it is accepted.
func (o *document) check(d *datum) error {
	o.places.Set(fleet.Path{}, o.file.position(d.at))
	o.root = node{value: d.plain(o.file, nil, o.places)}
	before := len(o.judge.errors)
	object, ok := d.expr(o.file.file).(*ast.StructLit)
	if !ok {
		return fmt.Errorf("%s is no struct", o.resource)
	}
	for _, found := range fromChild(o.judge.kinds.schemas.Judge(o.kind, o.file.name, object)) {
		o.judge.errors = append(o.judge.errors, documentFinding{found, o.resource})
	}
	if len(o.judge.errors) > before {
		return nil
	}
	if err := applyDefaults(o.root.value, o.judge.kinds.defaults[o.kind]); err != nil {
		return fmt.Errorf("defaults of a %s: %w", o.kind, err)
	}
	o.rules()
	if len(o.judge.errors) == before {
		o.decode()
	}
	if len(o.judge.errors) > before {
		return nil
	}
	if o.kind == "NodePool" {
		warnNodePool(o.root, o.warn)
	}
	o.transition(o.judge.previous[o.resource])
	o.judge.objects[o.resource] = o
	return nil
}

// rules applies what the schema cannot say.
func (o *document) rules() {
	if meta := o.root.get("metadata"); meta.get("name").str() == "" && meta.get("generateName").str() == "" {
		o.add(meta.at("name"), "the object has no name", "set metadata.name")
	}
	switch o.kind {
	case "NodePool":
		checkNodePool(o.root, o.add)
	case "EC2NodeClass":
		checkNodeClass(o.root.get("spec"), o.add)
	case "NodeClaim":
		checkNodeClaim(o.root, o.add)
	}
}

// decode finds the fields that Karpenter's types do not have. The status is
// not the author's.
func (o *document) decode() {
	o.pool = &karpv1.NodePool{}
	into := map[string]any{"NodePool": o.pool, "NodeClaim": &karpv1.NodeClaim{}, "EC2NodeClass": &ec2v1.EC2NodeClass{}}[o.kind]
	fields, _ := o.root.value.(map[string]any)
	delete(fields, "status")
	d := &decoder{positions: o.places, fallback: o.file.position(0)}
	strict(d, o.root, into)
	for _, found := range d.found {
		o.judge.errors = append(o.judge.errors, documentFinding{found, o.resource})
	}
}

// transition applies the rules that compare an object with the stored one.
func (o *document) transition(previous *document) {
	switch {
	case previous == nil:
	case o.kind == "NodePool":
		for _, r := range fleet.PoolTransition(previous.pool, o.pool, nil) {
			o.add(r.Path, r.Message, r.Hint)
		}
	case o.kind == "NodeClaim":
		if !reflect.DeepEqual(previous.root.get("spec").value, o.root.get("spec").value) {
			o.add(fleet.Path{"spec"}, "the spec of a NodeClaim is immutable", "delete the claim and make another one")
		}
	}
}

func (o *document) diagnostic(at fleet.Path, message, hint string) documentFinding {
	pos, _ := o.places.Find(at)
	return documentFinding{Diagnostic{Position: pos, Path: at, Message: message, Hint: hint}, o.resource}
}

func (o *document) add(at fleet.Path, message, hint string) {
	o.judge.errors = append(o.judge.errors, o.diagnostic(at, message, hint))
}

func (o *document) warn(at fleet.Path, message, hint string) {
	o.judge.warnings = append(o.judge.warnings, o.diagnostic(at, message, hint))
}

// findings are what was found, errors first.
func (j *documentJudge) findings() []decision.Finding {
	var out []decision.Finding
	for _, list := range []struct {
		found           []documentFinding
		severity, title string
	}{{j.errors, "error", "The specs cannot be used"}, {j.warnings, "warning", "The specs are likely not meant like this"}} {
		for _, d := range list.found {
			out = append(out, decision.Finding{
				Rule: RuleSpec, Severity: list.severity, Title: list.title, Message: d.Message,
				Resource: d.resource, Path: d.Path, Position: &d.Position, Remediation: d.Hint,
			})
		}
	}
	return out
}
