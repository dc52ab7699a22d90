// Package crds judges objects by the real CRDs of Karpenter, as an API server
// does with strict field validation, and by what Karpenter's controller checks
// afterwards. Tests hold Reeve's own schemas against it.
//
// It is a module of its own: the CEL library of the API server would more than
// double what the main module depends on.
package crds

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/aws/karpenter-provider-aws/pkg/apis"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/go-logr/logr"
	"github.com/robfig/cron/v3"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kyamlreader "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"
)

// The controller knows more labels once the provider's types are linked.
var _ = ec2v1.LabelInstanceCategory

// Judge holds the CRDs.
type Judge struct {
	kinds map[string]*kind
}

// kind is one CRD in the forms that the API server uses.
type kind struct {
	group, name string
	structural  *structural.Structural
	schema      validation.SchemaValidator
	cel         *cel.Validator
}

// New compiles the CRDs of NodePool, NodeClaim and EC2NodeClass, version v1.
func New() (*Judge, error) {
	j := &Judge{kinds: map[string]*kind{}}
	for _, data := range [][]byte{apis.NodePoolCRD, apis.NodeClaimCRD, apis.EC2NodeClassCRD} {
		k, err := newKind(data)
		if err != nil {
			return nil, err
		}
		j.kinds[k.name] = k
	}
	return j, nil
}

func newKind(data []byte) (*kind, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		return nil, fmt.Errorf("read CRD: %w", err)
	}
	k := &kind{group: crd.Spec.Group, name: crd.Spec.Names.Kind}
	for _, v := range crd.Spec.Versions {
		if v.Name != "v1" {
			continue
		}
		var schema apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &schema, nil); err != nil {
			return nil, fmt.Errorf("convert CRD of %s: %w", k.name, err)
		}
		var err error
		if k.structural, err = structural.NewStructural(&schema); err != nil {
			return nil, fmt.Errorf("structural schema of %s: %w", k.name, err)
		}
		if k.schema, _, err = validation.NewSchemaValidator(&schema); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", k.name, err)
		}
		k.cel = cel.NewValidator(k.structural, true, celconfig.PerCallLimit)
		return k, nil
	}
	return nil, fmt.Errorf("CRD of %s has no version v1", k.name)
}

// Objects reads the objects of a file as kubectl does, strictly: a field that is
// there twice is an error. Lists are taken apart.
func Objects(data []byte) ([]map[string]any, error) {
	var out []map[string]any
	for reader := kyamlreader.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		asJSON, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return nil, err
		}
		var obj map[string]any
		if err := kjson.Unmarshal(asJSON, &obj); err != nil {
			return nil, err
		}
		if obj == nil {
			continue
		}
		if items, ok := obj["items"].([]any); ok && strings.HasSuffix(fmt.Sprint(obj["kind"]), "List") {
			for _, item := range items {
				if o, ok := item.(map[string]any); ok {
					out = append(out, o)
				}
			}
			continue
		}
		out = append(out, obj)
	}
}

// Refusals are why an object is refused, by who refuses it; none if it is
// accepted. With a stored object it is judged as its successor. The object is
// pruned and defaulted in place, as it would be stored.
func (j *Judge) Refusals(ctx context.Context, obj, stored map[string]any) []string {
	name, _ := obj["kind"].(string)
	k := j.kinds[name]
	if k == nil || obj["apiVersion"] != k.group+"/v1" {
		return []string{fmt.Sprintf("no kind %q in %q", name, obj["apiVersion"])}
	}
	out := k.strict(obj)
	if out = append(out, k.admit(ctx, obj, stored)...); len(out) > 0 {
		return out
	}
	return controller(ctx, name, obj)
}

// strict prunes what the schema does not know and tells of it.
func (k *kind) strict(obj map[string]any) []string {
	var out []string
	unknown := pruning.PruneWithOptions(obj, k.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	err, paths := objectmeta.CoerceWithOptions(nil, obj, k.structural, true, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		out = append(out, "metadata: "+err.Error())
	}
	for _, p := range append(unknown, paths...) {
		out = append(out, "strict: unknown field "+p)
	}
	return out
}

// admit defaults and validates. A status is not the author's and is dropped.
func (k *kind) admit(ctx context.Context, obj, stored map[string]any) []string {
	delete(obj, "status")
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, k.structural)
	defaulting.Default(obj, k.structural)
	var old any
	if stored != nil {
		old = stored
	}
	var out []string
	add := func(by string, errs field.ErrorList) {
		for _, e := range errs {
			out = append(out, by+": "+e.Error())
		}
	}
	add("metadata", metadata(obj))
	add("schema", validation.ValidateCustomResource(nil, obj, k.schema))
	add("lists", listtype.ValidateListSetsAndMaps(nil, k.structural, obj))
	if replicas, _, _ := unstructured.NestedInt64(obj, "spec", "replicas"); k.name == "NodePool" && replicas > math.MaxInt32 {
		out = append(out, "scale: replicas are more than 32 bits hold")
	}
	if len(out) > 0 {
		return out // the API server runs no CEL over a broken object either
	}
	errs, _ := k.cel.Validate(ctx, nil, k.structural, obj, old, celconfig.RuntimeCELCostBudget)
	add("cel", errs)
	return out
}

// metadata validates the metadata of a cluster-scoped object. A generated name
// is made before it is looked at.
func metadata(obj map[string]any) field.ErrorList {
	u := &unstructured.Unstructured{Object: obj}
	if u.GetName() == "" && u.GetGenerateName() != "" {
		u = u.DeepCopy()
		u.SetName(u.GetGenerateName() + "abcde")
	}
	u.SetNamespace("")
	return metavalidation.ValidateObjectMetaAccessor(u, false, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// controller is what Karpenter checks once the API server has accepted a
// NodePool: labels, taints and requirements, and the schedules of its budgets.
func controller(ctx context.Context, kind string, obj map[string]any) []string {
	if kind != "NodePool" {
		return nil
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return []string{err.Error()}
	}
	pool := &karpv1.NodePool{}
	if err := json.Unmarshal(data, pool); err != nil {
		return []string{"decode: " + err.Error()}
	}
	var out []string
	if err := pool.RuntimeValidate(log.IntoContext(ctx, logr.Discard())); err != nil {
		out = append(out, "controller: "+err.Error())
	}
	for _, b := range pool.Spec.Disruption.Budgets {
		if b.Schedule == nil {
			continue
		}
		if _, err := cron.ParseStandard("TZ=UTC " + *b.Schedule); err != nil {
			out = append(out, "controller: "+err.Error())
		}
	}
	return out
}
