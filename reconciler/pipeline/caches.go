package pipeline

import (
	"encoding/json"
	"fmt"
	"sync"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/policy"
)

// resolvedTypes are the instance types of an EC2NodeClass, and the same in the
// form that policies see.
type resolvedTypes struct {
	types  []*catalog.InstanceType
	judged *policy.Types
}

// caches keep what is costly to compute and depends only on catalog, class,
// settings and fleet. They are safe for concurrent use.
type caches struct {
	mu    sync.Mutex
	types map[string]*resolvedTypes
	fleet *fleet.Fleet
	specs *policy.Specs
}

func newCaches() *caches { return &caches{types: map[string]*resolvedTypes{}} }

// Classes and prices change rarely; a cache that has grown past this holds
// mostly what nobody asks for any more.
const maxTypes = 64

// resolve computes the types of a class whose status is filled in.
func (c *caches) resolve(data *catalog.Data, class *ec2v1.EC2NodeClass, s catalog.Settings) (*resolvedTypes, error) {
	key, err := json.Marshal([]any{data.TypesDigest(), data.PricesDigest(), class.Name, class.Spec, class.Status, s})
	if err != nil {
		return nil, fmt.Errorf("EC2NodeClass %s: %w", class.Name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if types, ok := c.types[string(key)]; ok {
		return types, nil
	}
	types, err := data.Resolve(class, s)
	if err != nil {
		return nil, err
	}
	judged, err := policy.NewTypes(policy.FromCatalog(types))
	if err != nil {
		return nil, err
	}
	if len(c.types) >= maxTypes {
		clear(c.types)
	}
	out := &resolvedTypes{types: types, judged: judged}
	c.types[string(key)] = out
	return out, nil
}

// specsOf are the objects of the fleet as the offering stage reads them.
func (c *caches) specsOf(f *fleet.Fleet) (*policy.Specs, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fleet == f {
		return c.specs, nil
	}
	specs, err := policy.NewSpecs(f)
	if err != nil {
		return nil, err
	}
	c.fleet, c.specs = f, specs
	return specs, nil
}
