package aws

import (
	"sync"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// addressBook counts the free addresses of subnets: as EC2 last said, less what
// launches since then take. Its zero value knows nothing.
type addressBook struct {
	mu   sync.Mutex
	free map[string]int64
}

// observe notes how many addresses of the subnet EC2 says are free.
func (b *addressBook) observe(subnet string, free int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free == nil {
		b.free = map[string]int64{}
	}
	b.free[subnet] = free
}

// choose takes the subnet with the most free addresses in each zone and counts
// the addresses as taken. The first of the list is the one where nothing is
// known: the list comes with the most free first.
func (b *addressBook) choose(subnets []ec2v1.Subnet, addresses int64) map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]string{}
	for _, s := range subnets {
		best, have := out[s.Zone]
		if !have {
			out[s.Zone] = s.ID
			continue
		}
		if b.better(s.ID, best) {
			out[s.Zone] = s.ID
		}
	}
	for _, id := range out {
		b.add(id, -addresses)
	}
	return out
}

// better says whether the subnet is known to have more addresses than the one
// before it, or is not known to have none as that is.
func (b *addressBook) better(subnet, before string) bool {
	mine, known := b.free[subnet]
	theirs, knownToo := b.free[before]
	return knownToo && (known && mine > theirs || !known && theirs <= 0)
}

// release gives addresses back that a launch did not take after all.
func (b *addressBook) release(subnet string, addresses int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(subnet, addresses)
}

func (b *addressBook) add(subnet string, addresses int64) {
	if _, known := b.free[subnet]; known {
		b.free[subnet] += addresses
	}
}
