package policy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"sync"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// OfferingInput is what policies of package reeve.offering see as input: one
// NodePool and all it could choose from. It has no time, since the result is
// kept until one of its parts changes.
type OfferingInput struct {
	// NodePool as the fleet renders it.
	NodePool ObjectDocument `json:"nodePool"`
	// NodeClass is the EC2NodeClass that the NodePool refers to.
	NodeClass ObjectDocument `json:"nodeClass"`
	// Status of the EC2NodeClass: subnets, security groups, AMIs, conditions.
	// Null before the cloud has resolved it.
	Status ObjectDocument `json:"status"`
	// InstanceTypes are all types of the region by name.
	InstanceTypes map[string]InstanceType `json:"instanceTypes"`
}

// Specs are the objects of a fleet prepared for the offering stage: make them
// once for each commit. They are safe for use by several goroutines.
type Specs struct {
	pools map[string]*specPool

	mu     sync.Mutex
	status map[string]classStatus
}

// specPool is a NodePool with its class.
type specPool struct {
	class           string
	pool, nodeClass *ast.Term
	digest          string
}

// classStatus is the last status of a class, with its digest.
type classStatus struct {
	status ec2v1.EC2NodeClassStatus
	term   *ast.Term
	digest string
}

// NewSpecs prepares the objects of a fleet.
func NewSpecs(f *fleet.Fleet) (*Specs, error) {
	docs, err := parseDocuments(f)
	if err != nil {
		return nil, err
	}
	s := &Specs{pools: map[string]*specPool{}, status: map[string]classStatus{}}
	for _, p := range f.NodePools {
		sp := &specPool{}
		if p.Spec.Template.Spec.NodeClassRef != nil {
			sp.class = p.Spec.Template.Spec.NodeClassRef.Name
		}
		pool, class := orNull(docs.NodePools[p.Name]), orNull(docs.NodeClasses[sp.class])
		sp.digest = digests(string(pool), string(class))
		if sp.pool, err = toTerm(pool); err != nil {
			return nil, fmt.Errorf("NodePool/%s: %w", p.Name, err)
		}
		if sp.nodeClass, err = toTerm(class); err != nil {
			return nil, fmt.Errorf("EC2NodeClass/%s: %w", sp.class, err)
		}
		s.pools[p.Name] = sp
	}
	return s, nil
}

func toTerm(b []byte) (*ast.Term, error) {
	v, err := toValue(b)
	return ast.NewTerm(v), err
}

// digests is the SHA-256 over several texts.
func digests(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d\n", len(t))
		h.Write([]byte(t))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// OfferingQuery is one NodePool to be judged, with the digest of all it depends
// on.
type OfferingQuery struct {
	nodePool string
	class    string
	pool     *specPool
	status   classStatus
	types    *Types
}

// Query prepares the question for a NodePool. The status is that of its class
// in the snapshot, or nil before there is one.
func (s *Specs) Query(nodePool string, status *cluster.NodeClassStatus, types *Types) (OfferingQuery, error) {
	pool := s.pools[nodePool]
	if pool == nil {
		return OfferingQuery{}, fmt.Errorf("NodePool/%s is not in the fleet", nodePool)
	}
	q := OfferingQuery{nodePool: nodePool, class: pool.class, pool: pool, types: types}
	var err error
	if q.status, err = s.classStatus(pool.class, status); err != nil {
		return OfferingQuery{}, fmt.Errorf("status of EC2NodeClass/%s: %w", pool.class, err)
	}
	return q, nil
}

// classStatus encodes a status when it differs from the last one of the class:
// to compare costs far less, and it rarely changes.
func (s *Specs) classStatus(class string, status *cluster.NodeClassStatus) (classStatus, error) {
	if status == nil {
		return classStatus{term: ast.NullTerm()}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.status[class]; ok && reflect.DeepEqual(last.status, status.Status) {
		return last, nil
	}
	v, digest, err := encodeInput(status.Status)
	if err != nil {
		return classStatus{}, err
	}
	out := classStatus{status: *status.Status.DeepCopy(), term: ast.NewTerm(v), digest: digest}
	s.status[class] = out
	return out, nil
}

// offeringKey is all that an answer depends on beside the policies.
type offeringKey struct{ nodePool, spec, status, types string }

// offeringCache keeps answers. A fleet has few NodePools, so it is emptied
// rather than trimmed when many statuses or prices have gone by.
type offeringCache struct {
	mu      sync.Mutex
	answers map[offeringKey]*cached
}

type cached struct {
	question *question
	answer   *answer
}

const maxCached = 512

func (oc *offeringCache) get(k offeringKey) *cached {
	oc.mu.Lock()
	defer oc.mu.Unlock()
	return oc.answers[k]
}

func (oc *offeringCache) put(k offeringKey, v *cached) {
	oc.mu.Lock()
	defer oc.mu.Unlock()
	if oc.answers == nil || len(oc.answers) >= maxCached {
		oc.answers = map[offeringKey]*cached{}
	}
	oc.answers[k] = v
}

// Offering says which offerings a NodePool may not use. Answers are kept: they
// depend on the NodePool, its class and status, the types with their prices and
// the policies, and on nothing else. Exceptions and positions are those of the
// case. A violation means that the NodePool may not have new nodes at all. The
// error is that of ctx.
func (e *Engine) Offering(ctx context.Context, c Case, oq OfferingQuery) (Result, error) {
	key := offeringKey{oq.nodePool, oq.pool.digest, oq.status.digest, oq.types.digest}
	if hit := e.cache.get(key); hit != nil {
		return e.result(c, hit.question, hit.answer), nil
	}
	q := &question{
		stage: StageOffering, nodePool: oq.nodePool, scope: poolTypes{oq.nodePool, oq.types},
		digest:    digests(key.nodePool, key.spec, key.status, key.types),
		resources: []string{"NodePool/" + oq.nodePool, "EC2NodeClass/" + oq.class},
	}
	q.ask = func(ctx context.Context) ([]element, error) {
		input := ast.NewObject(
			ast.Item(ast.InternedTerm("nodePool"), oq.pool.pool),
			ast.Item(ast.InternedTerm("nodeClass"), oq.pool.nodeClass),
			ast.Item(ast.InternedTerm("status"), oq.status.term),
			ast.Item(ast.InternedTerm("instanceTypes"), oq.types.term),
		)
		els, err := e.offeringElements(ctx, input, map[string]string{"status": oq.status.digest, "instanceTypes": oq.types.digest})
		for i := range els {
			if els[i].resource == "" {
				els[i].resource = "NodePool/" + oq.nodePool
			}
		}
		return els, err
	}
	a, err := e.judge(ctx, c, q)
	if err != nil {
		return Result{}, err
	}
	q.ask = nil
	if a.reproducible() {
		e.cache.put(key, &cached{question: q, answer: a})
	}
	return e.result(c, q, a), nil
}

// offeringElements asks every part. The elements are the caller's to change.
func (e *Engine) offeringElements(ctx context.Context, input ast.Object, large map[string]string) ([]element, error) {
	var out []element
	for _, p := range e.parts {
		els, err := p.ask(ctx, input, large)
		if err != nil {
			return nil, err
		}
		out = append(out, els...)
	}
	// In the order of the rules, whatever package they are in.
	slices.SortStableFunc(out, func(a, b element) int { return cmp.Compare(a.body.key, b.body.key) })
	return out, nil
}
