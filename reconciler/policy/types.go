package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"sync"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/open-policy-agent/opa/v1/ast"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// InstanceType is an instance type as policies see it.
type InstanceType struct {
	// Name such as "c5a.2xlarge".
	Name string `json:"name"`
	// Labels are those that a node of the type has whatever the offering:
	// "karpenter.k8s.aws/instance-family" and so on. Zone and capacity type are
	// in the offerings.
	Labels map[string]string `json:"labels"`
	// Capacity and Allocatable are amounts as Kubernetes quantities.
	Capacity    resources.List `json:"capacity"`
	Allocatable resources.List `json:"allocatable"`
	// Prices are the bounds of what the offerings cost, by capacity type, so that
	// a rule need not look at each offering. NewTypes fills them in.
	Prices map[string]PriceRange `json:"prices"`
	// Offerings are sorted by zone and capacity type.
	Offerings []Offering `json:"offerings"`
}

// PriceRange is the lowest and the highest price of some offerings.
type PriceRange struct {
	// Min and Max are USD per hour.
	Min resources.Price `json:"min"`
	Max resources.Price `json:"max"`
}

// bounded is the type with the bounds of its prices.
func (it InstanceType) bounded() InstanceType {
	it.Prices = map[string]PriceRange{}
	for _, o := range it.Offerings {
		r, ok := it.Prices[o.CapacityType]
		if !ok {
			r = PriceRange{o.Price, o.Price}
		}
		it.Prices[o.CapacityType] = PriceRange{min(r.Min, o.Price), max(r.Max, o.Price)}
	}
	return it
}

// Offering is where and how a type can be had, and for how much. Whether EC2
// has it at the moment is no part of it.
type Offering struct {
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	// Price in USD per hour.
	Price resources.Price `json:"price"`
}

// Types are instance types in the form that policies read. Make them once for
// each set of types and prices: that costs as much as several evaluations. They
// are safe for use by several goroutines.
type Types struct {
	digest string
	names  []string
	list   map[string]InstanceType
	term   *ast.Term

	mu     sync.Mutex
	prices map[string]*ast.Term
}

// FromCatalog are the types as policies see them. Offerings that cannot be had
// at the moment are among them: an answer is kept longer than that lasts.
func FromCatalog(types []*catalog.InstanceType) []InstanceType {
	out := make([]InstanceType, len(types))
	for i, it := range types {
		t := InstanceType{
			Name: it.Name, Labels: it.Requirements.Labels(), Capacity: it.Capacity, Allocatable: it.Allocatable,
			Offerings: make([]Offering, len(it.Offerings)),
		}
		// Zone and capacity type are fixed by the offering, even where there is
		// only one.
		for _, key := range perOffering {
			delete(t.Labels, key)
		}
		for j, o := range it.Offerings {
			t.Offerings[j] = Offering{Zone: o.Zone, CapacityType: o.CapacityType, Price: o.Price}
		}
		slices.SortFunc(t.Offerings, func(a, b Offering) int {
			return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
		})
		out[i] = t
	}
	return out
}

var perOffering = []string{corev1.LabelTopologyZone, ec2v1.LabelTopologyZoneID, karpv1.CapacityTypeLabelKey}

// NewTypes converts the instance types, which must have different names.
func NewTypes(list []InstanceType) (*Types, error) {
	t := &Types{list: make(map[string]InstanceType, len(list)), prices: map[string]*ast.Term{}}
	for _, it := range list {
		if _, twice := t.list[it.Name]; twice {
			return nil, fmt.Errorf("instance type %s is given twice", it.Name)
		}
		t.list[it.Name] = it.bounded()
		t.names = append(t.names, it.Name)
	}
	slices.Sort(t.names)
	c := &converter{words: map[string]*ast.Term{}, amounts: map[amount]*ast.Term{}, sum: sha256.New()}
	items := make([][2]*ast.Term, 0, len(list))
	for _, name := range t.names {
		it := t.list[name]
		items = append(items, ast.Item(ast.StringTerm(name), c.instanceType(&it)))
	}
	t.term = ast.NewTerm(ast.NewObject(items...))
	t.digest = "sha256:" + hex.EncodeToString(c.sum.Sum(nil))
	return t, nil
}

// Digest is the SHA-256 of the types and prices.
func (t *Types) Digest() string { return t.digest }

// converter makes of types what toValue would make of their JSON, without the
// detour, and sums up all that it converts. Words and amounts come again and
// again: each becomes one term.
type converter struct {
	words   map[string]*ast.Term
	amounts map[amount]*ast.Term
	sum     hash.Hash
	buf     []byte
}

// amount is one of a resource.
type amount struct {
	name corev1.ResourceName
	n    int64
}

func (c *converter) instanceType(it *InstanceType) *ast.Term {
	c.buf = c.buf[:0]
	out := ast.ObjectTerm(
		ast.Item(ast.InternedTerm("name"), c.word(it.Name)),
		ast.Item(ast.InternedTerm("labels"), c.labels(it.Labels)),
		ast.Item(ast.InternedTerm("capacity"), c.list(it.Capacity)),
		ast.Item(ast.InternedTerm("allocatable"), c.list(it.Allocatable)),
		ast.Item(ast.InternedTerm("prices"), rangeTerms(it.Prices)),
		ast.Item(ast.InternedTerm("offerings"), c.offerings(it.Offerings)),
	)
	c.sum.Write(c.buf)
	return out
}

// rangeTerms follow from the offerings, so they do not count for the digest.
func rangeTerms(ranges map[string]PriceRange) *ast.Term {
	out := ast.NewObject()
	for _, kind := range sortedKeys(ranges) {
		out.Insert(ast.StringTerm(kind), ast.ObjectTerm(
			ast.Item(ast.InternedTerm("min"), ast.NewTerm(ast.Number(ranges[kind].Min.Decimal()))),
			ast.Item(ast.InternedTerm("max"), ast.NewTerm(ast.Number(ranges[kind].Max.Decimal()))),
		))
	}
	return ast.NewTerm(out)
}

// word is a term for a text, which counts for the digest with its length.
func (c *converter) word(s string) *ast.Term {
	c.number(int64(len(s)))
	c.buf = append(c.buf, s...)
	t := c.words[s]
	if t == nil {
		t = ast.StringTerm(s)
		c.words[s] = t
	}
	return t
}

// number counts for the digest.
func (c *converter) number(n int64) { c.buf = binary.BigEndian.AppendUint64(c.buf, uint64(n)) }

func (c *converter) labels(labels map[string]string) *ast.Term {
	c.number(int64(len(labels)))
	items := make([][2]*ast.Term, 0, len(labels))
	for _, k := range sortedKeys(labels) {
		items = append(items, ast.Item(c.word(k), c.word(labels[k])))
	}
	return ast.NewTerm(ast.NewObject(items...))
}

func (c *converter) list(l resources.List) *ast.Term {
	c.number(int64(len(l)))
	items := make([][2]*ast.Term, 0, len(l))
	for _, name := range l.Names() {
		key := c.word(string(name))
		c.number(l[name])
		a := amount{name, l[name]}
		t := c.amounts[a]
		if t == nil {
			q := resources.Quantity(name, l[name])
			t = ast.StringTerm(q.String())
			c.amounts[a] = t
		}
		items = append(items, ast.Item(key, t))
	}
	return ast.NewTerm(ast.NewObject(items...))
}

func (c *converter) offerings(list []Offering) *ast.Term {
	c.number(int64(len(list)))
	out := make([]*ast.Term, len(list))
	for i, o := range list {
		c.number(int64(o.Price))
		out[i] = ast.ObjectTerm(
			ast.Item(ast.InternedTerm("zone"), c.word(o.Zone)),
			ast.Item(ast.InternedTerm("capacityType"), c.word(o.CapacityType)),
			ast.Item(ast.InternedTerm("price"), ast.NewTerm(ast.Number(o.Price.Decimal()))),
		)
	}
	return ast.ArrayTerm(out...)
}

// Prices are those of the named types; names that are none are left out.
func (t *Types) Prices(names []string) Prices {
	out := Prices{}
	for _, name := range names {
		if it, ok := t.list[name]; ok {
			out[name] = it.prices()
		}
	}
	return out
}

// price is that of one offering; a nil Types has none.
func (t *Types) price(name, zone, capacityType string) (resources.Price, bool) {
	if t == nil {
		return 0, false
	}
	for _, o := range t.list[name].Offerings {
		if o.Zone == zone && o.CapacityType == capacityType {
			return o.Price, true
		}
	}
	return 0, false
}

func (it *InstanceType) prices() map[string]map[string]resources.Price {
	out := map[string]map[string]resources.Price{}
	for _, o := range it.Offerings {
		if out[o.Zone] == nil {
			out[o.Zone] = map[string]resources.Price{}
		}
		out[o.Zone][o.CapacityType] = o.Price
	}
	return out
}

// priceTerms is Prices as policies see them. The same types are asked for again
// and again, so what was converted once is kept.
func (t *Types) priceTerms(names []string) *ast.Term {
	t.mu.Lock()
	defer t.mu.Unlock()
	items := make([][2]*ast.Term, 0, len(names))
	for _, name := range names {
		it, ok := t.list[name]
		if !ok {
			continue
		}
		term := t.prices[name]
		if term == nil {
			term = it.priceTerm()
			t.prices[name] = term
		}
		items = append(items, ast.Item(ast.StringTerm(name), term))
	}
	return ast.ObjectTerm(items...)
}

func (it *InstanceType) priceTerm() *ast.Term {
	zones := ast.NewObject()
	for zone, byType := range it.prices() {
		prices := ast.NewObject()
		for capacityType, p := range byType {
			prices.Insert(ast.StringTerm(capacityType), ast.NewTerm(ast.Number(p.Decimal())))
		}
		zones.Insert(ast.StringTerm(zone), ast.NewTerm(prices))
	}
	return ast.NewTerm(zones)
}

// scope is what exclusions of one evaluation can be about.
type scope interface {
	// all are the names of the types that a NodePool could have in the zone and
	// of the capacity type, sorted; empty means any.
	all(nodePool, zone, capacityType string) []string
	// has says whether the type is one of those.
	has(name, nodePool, zone, capacityType string) bool
}

// noTypes is the scope of a stage without exclusions.
type noTypes struct{}

func (noTypes) all(_, _, _ string) []string { return nil }
func (noTypes) has(_, _, _, _ string) bool  { return false }

// poolTypes is all types for one NodePool.
type poolTypes struct {
	nodePool string
	types    *Types
}

func (p poolTypes) all(nodePool, zone, capacityType string) []string {
	if nodePool != p.nodePool {
		return nil
	}
	if zone == "" && capacityType == "" {
		return p.types.names
	}
	var out []string
	for _, name := range p.types.names {
		if p.has(name, nodePool, zone, capacityType) {
			out = append(out, name)
		}
	}
	return out
}

func (p poolTypes) has(name, nodePool, zone, capacityType string) bool {
	it, ok := p.types.list[name]
	if !ok || nodePool != p.nodePool {
		return false
	}
	return (zone == "" && capacityType == "") || slices.ContainsFunc(it.Offerings, func(o Offering) bool {
		return (zone == "" || o.Zone == zone) && (capacityType == "" || o.CapacityType == capacityType)
	})
}
