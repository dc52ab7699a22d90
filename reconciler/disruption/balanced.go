package disruption

import (
	"fmt"
	"math/big"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// balance is what NodePools of policy Balanced weigh: a move is worth it when
// its share of the pool's price that is saved is at least half its share of the
// pool's disruption (Karpenter: balanced.go, BalancedK).
type balance struct {
	price map[string]resources.Price
	cost  map[string]int64
}

// newBalance sums over all nodes of each pool, candidates or not.
func (p *pass) newBalance() *balance {
	b := &balance{price: map[string]resources.Price{}, cost: map[string]int64{}}
	for _, n := range p.in.Snapshot.Nodes {
		if n.Claim == nil {
			continue
		}
		pool := n.Claim.NodePool
		for _, it := range p.typesOf(p.in.Fleet.NodePool(pool)) {
			if it.Name == n.Claim.InstanceType {
				b.price[pool] += priceOf(n.Claim, it)
			}
		}
		cost := int64(baseCost)
		for _, pod := range n.Pods {
			if reschedulable(pod) {
				cost += max(evictionCost(pod.Shape), 0)
			}
		}
		b.cost[pool] += cost
	}
	return b
}

func isBalanced(np *karpv1.NodePool) bool { return np.Spec.Disruption.ConsolidationPolicy.IsBalanced() }

// approves says whether the pool agrees to save so much (a fraction of, as
// share of whole) at so much disruption: savings x share/whole / price of the
// pool / (cost / cost of the pool) >= 1/2.
func (b *balance) approves(pool string, savings, share, whole resources.Price, cost int64) bool {
	if b.price[pool] <= 0 || b.cost[pool] <= 0 || whole <= 0 {
		return false
	}
	gain := product(int64(karpv1.BalancedK), int64(savings), int64(share), b.cost[pool])
	loss := product(cost, int64(b.price[pool]), int64(whole))
	return gain.Cmp(loss) >= 0
}

func product(factors ...int64) *big.Int {
	out := big.NewInt(1)
	for _, f := range factors {
		out.Mul(out, big.NewInt(f))
	}
	return out
}

// refuses says which pool of policy Balanced does not agree to the move, or is
// empty. Savings are split over pools by the price of their nodes in it.
func (b *balance) refuses(m *move) string {
	whole := priceOfAll(m.nodes)
	for _, first := range m.nodes {
		if !isBalanced(first.NodePool) {
			continue
		}
		pool := first.NodePool.Name
		var share resources.Price
		var cost int64
		for _, c := range m.nodes {
			if c.NodePool.Name == pool {
				share += c.Price
				cost += c.CostMilli
			}
		}
		if !b.approves(pool, m.savings, share, whole, cost) {
			return b.words(pool, m.savings, cost)
		}
	}
	return ""
}

// hopeless says of a node of a Balanced pool that not even its deletion would
// save enough, or is empty.
func (b *balance) hopeless(c *Candidate) string {
	pool := c.NodePool.Name
	if !isBalanced(c.NodePool) || b.price[pool] <= 0 || b.approves(pool, c.Price, 1, 1, c.CostMilli) {
		return ""
	}
	return b.words(pool, c.Price, c.CostMilli)
}

func (b *balance) words(pool string, savings resources.Price, cost int64) string {
	return fmt.Sprintf("NodePool %q has consolidation policy Balanced: saving %s of %s is not worth disrupting %d of %d thousandths", pool, savings, b.price[pool], cost, b.cost[pool])
}
