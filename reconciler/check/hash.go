package check

import (
	"encoding/json"
	"strconv"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// hasher says whether a change of a single field moves Karpenter's hash of an
// object, which is what nodes drift by.
type hasher struct {
	kind   string
	object json.RawMessage
	before string
}

// newHasher makes the hasher of the object of that name, which is in the fleet
// if its kind has a hash.
func newHasher(f *fleet.Fleet, kind, name string) (*hasher, error) {
	h := &hasher{kind: kind, object: json.RawMessage("{}")}
	var err error
	switch kind {
	case "NodePool":
		h.object, err = json.Marshal(f.NodePool(name))
	case "EC2NodeClass":
		h.object, err = json.Marshal(f.NodeClass(name))
	}
	if err != nil {
		return nil, err
	}
	h.before, err = h.hash(h.object)
	return h, err
}

// moves says whether the hash differs once the field has the value, nil for
// none.
func (h *hasher) moves(field fleet.Path, value json.RawMessage) (bool, error) {
	var object any
	if err := json.Unmarshal(h.object, &object); err != nil {
		return false, err
	}
	var v any
	if value != nil {
		if err := json.Unmarshal(value, &v); err != nil {
			return false, err
		}
	}
	changed, err := json.Marshal(with(object, field, v))
	if err != nil {
		return false, err
	}
	after, err := h.hash(changed)
	return after != h.before, err
}

// hash is the hash of an object of a kind that has one, and else empty.
func (h *hasher) hash(object json.RawMessage) (string, error) {
	switch h.kind {
	case "NodePool":
		var np karpv1.NodePool
		err := json.Unmarshal(object, &np)
		return np.Hash(), err
	case "EC2NodeClass":
		var class ec2v1.EC2NodeClass
		err := json.Unmarshal(object, &class)
		return class.Hash(nil), err
	default:
		return "", nil
	}
}

// with is the decoded document with another value at the path; nil removes it.
// Objects on the way that are missing are made.
func with(doc any, at fleet.Path, value any) any {
	if len(at) == 0 {
		return value
	}
	if list, ok := doc.([]any); ok {
		if i, err := strconv.Atoi(at[0]); err == nil && i >= 0 && i < len(list) {
			list[i] = with(list[i], at[1:], value)
		}
		return list
	}
	m, ok := doc.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	if len(at) == 1 && value == nil {
		delete(m, at[0])
		return m
	}
	m[at[0]] = with(m[at[0]], at[1:], value)
	return m
}
