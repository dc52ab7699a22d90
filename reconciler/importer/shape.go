package importer

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// shape is what a field of Karpenter's API may hold.
type shape struct {
	kind   kind // mapping, sequence, text, boolean, integer
	amount bool // a quantity: a string or a number
	fields map[string]*shape
	values *shape // of a map
	items  *shape
}

// shapes are those of the specs of v1, taken from Karpenter's own types, so
// that a field that Karpenter adds is known here without further work.
var shapes = sync.OnceValue(func() map[string]*shape {
	return map[string]*shape{
		kindPool:  shapeOf(reflect.TypeFor[karpv1.NodePoolSpec]()),
		kindClass: shapeOf(reflect.TypeFor[ec2v1.EC2NodeClassSpec]()),
	}
})

var (
	quantityType    = reflect.TypeFor[resource.Quantity]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

func shapeOf(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == quantityType:
		return &shape{kind: text, amount: true}
	case reflect.PointerTo(t).Implements(unmarshalerType):
		return &shape{kind: text} // durations and times, which are written as strings
	}
	switch t.Kind() {
	case reflect.Struct:
		s := &shape{kind: mapping, fields: map[string]*shape{}}
		s.addFields(t)
		return s
	case reflect.Map:
		return &shape{kind: mapping, values: shapeOf(t.Elem())}
	case reflect.Slice:
		return &shape{kind: sequence, items: shapeOf(t.Elem())}
	case reflect.Bool:
		return &shape{kind: boolean}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return &shape{kind: integer}
	default:
		return &shape{kind: text}
	}
}

func (s *shape) addFields(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
			s.addFields(f.Type)
		case name != "":
			s.fields[name] = shapeOf(f.Type)
		}
	}
}

// fitter makes a spec fit its shape and reports what does not.
type fitter struct {
	report *Report
	object string
}

// fit looks at a value and everything in it. The error is a *fault: the value
// can be nothing that the field may hold.
func (f *fitter) fit(n *node, s *shape, path fleet.Path) error {
	switch {
	case s.kind == mapping && n.kind == mapping:
		return f.fitFields(n, s, path)
	case s.kind == sequence && n.kind == sequence:
		for i, item := range n.items {
			if err := f.fit(item, s.items, append(slices.Clip(path), strconv.Itoa(i))); err != nil {
				return err
			}
		}
		return nil
	case s.kind == mapping, s.kind == sequence, n.kind == mapping, n.kind == sequence, n.kind == null:
		return f.misfit(n, s, path)
	}
	return f.fitScalar(n, s, path)
}

func (f *fitter) misfit(n *node, s *shape, path fleet.Path) error {
	hint := ""
	if n.kind == mapping && s.kind != sequence {
		hint = templateHint
	}
	what := string(n.kind)
	if n.kind == text || n.kind == integer || n.kind == boolean || n.kind == fraction {
		what += " " + n.brief()
	}
	return &fault{at: n.at, why: path.String() + " is a " + what + ", want a " + string(s.kind), hint: hint}
}

func (f *fitter) fitFields(n *node, s *shape, path fleet.Path) error {
	kept := n.fields[:0]
	for _, fd := range n.fields {
		at := append(slices.Clip(path), fd.name)
		sub := s.fields[fd.name]
		if sub == nil {
			sub = s.values
		}
		switch {
		case sub == nil:
			f.report.add(Entry{Position: fd.at, Class: Lost, Object: f.object, Field: at.String(), Was: fd.value.brief(), Why: f.unknown(at)})
			continue
		case fd.value.kind == null:
			f.report.add(Entry{Position: fd.at, Class: Dropped, Object: f.object, Field: at.String(), Was: "null", Why: "null means the same as leaving the field out"})
			continue
		}
		if err := f.fit(fd.value, sub, at); err != nil {
			return err
		}
		kept = append(kept, fd)
	}
	n.fields = kept
	return nil
}

// fitScalar turns a scalar of a kind that the API server would refuse into what
// it was meant to be, where that is beyond doubt.
func (f *fitter) fitScalar(n *node, s *shape, path fleet.Path) error {
	was := n.brief()
	why := ""
	switch {
	case s.kind == n.kind, s.amount && n.kind == integer:
		return nil
	case s.amount && n.kind == fraction, s.kind == text:
		n.kind, n.value = text, n.written
		why = "the field is a string; without quotes kubectl reads a " + string(kindOf(was)) + " and the API server refuses it"
	case s.kind == integer && n.kind == text:
		if _, err := strconv.ParseInt(n.value, 10, 64); err != nil {
			return f.misfit(n, s, path)
		}
		n.kind, n.written = integer, n.value
		why = "the field is a number, which the API server does not take in quotes"
	case s.kind == boolean && n.kind == text && (n.value == "true" || n.value == "false"):
		n.kind = boolean
		why = "the field is a boolean, which the API server does not take in quotes"
	default:
		return f.misfit(n, s, path)
	}
	f.report.add(Entry{Position: n.at, Class: Changed, Object: f.object, Field: path.String(), Was: was, Is: n.brief(), Why: why})
	return nil
}

// kindOf is the kind of a scalar in its brief form.
func kindOf(brief string) kind {
	if brief == "true" || brief == "false" {
		return boolean
	}
	return fraction
}

// moved are fields that people know from other versions.
var moved = map[string]string{
	"spec.template.spec.kubelet":      "kubelet settings belong to the EC2NodeClass since v1 (spec.kubelet)",
	"spec.disruption.expireAfter":     "expireAfter belongs to spec.template.spec since v1",
	"spec.template.spec.resources":    "resources of a NodeClaim come from pods and cannot be set",
	"spec.kubelet.containerRuntime":   "containerd is the only runtime since Kubernetes 1.24",
	"spec.launchTemplate":             "launch templates of your own are not supported since v1beta1: say in the EC2NodeClass what the template says",
	"spec.subnetSelector":             "it is called subnetSelectorTerms since v1beta1",
	"spec.securityGroupSelector":      "it is called securityGroupSelectorTerms since v1beta1",
	"spec.amiSelector":                "it is called amiSelectorTerms since v1beta1",
	"spec.limits.resources":           "limits have no level resources since v1beta1",
	"spec.ttlSecondsAfterEmpty":       "use spec.disruption since v1beta1",
	"spec.ttlSecondsUntilExpired":     "use spec.template.spec.expireAfter since v1",
	"spec.template.spec.startupTaint": "it is called startupTaints",
}

func (f *fitter) unknown(path fleet.Path) string {
	if why := moved[path.String()]; why != "" {
		return why
	}
	return "no field of this name in Karpenter's v1; the API server drops it without a word"
}
