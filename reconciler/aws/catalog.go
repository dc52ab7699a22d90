package aws

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/resources"
)

const (
	// marketInterval is how long types, offerings and prices are good for, as in
	// Karpenter.
	marketInterval = 12 * time.Hour
	// marketRetry is how long to wait with what could not be read.
	marketRetry = time.Minute
	// otherRegion has the built-in tables that stand in for those of a region
	// that has none.
	otherRegion = "us-east-1"
)

// marketBook is what AWS says is sold in the region. Its zero value has asked
// for nothing.
type marketBook struct {
	mu        sync.Mutex
	types     source[[]catalog.Type]
	offerings source[map[string][]string]
	zones     source[map[string]string]
	onDemand  source[catalog.OnDemandPrices]
	spot      source[[]spotQuote]
	data      *catalog.Data
	dirty     bool

	// names of zones by id, as class resolution has seen them. It has a mutex
	// of its own: classes must not wait for the market.
	seenMu sync.Mutex
	seen   map[string]string
}

// Catalog is what can be bought in the region, and its prices. AWS is asked
// again after twelve hours; until then, and when the answers say the same, it
// is the same pointer. What cannot be read keeps its last answer, before the
// first one the built-in tables stand in. It fails only if there is neither: a
// region without built-in tables whose zones cannot be read, or an ended
// context before the first answer.
func (c *Cloud) Catalog(ctx context.Context) (*catalog.Data, error) {
	b := &c.market
	b.mu.Lock()
	defer b.mu.Unlock()
	c.refreshMarket(ctx)
	if b.data == nil && ctx.Err() != nil {
		return nil, fmt.Errorf("catalog of region %s: %w", c.options.Region, ctx.Err())
	}
	if !b.dirty && b.data != nil {
		return b.data, nil
	}
	next, err := c.assemble()
	switch {
	case err != nil && b.data != nil:
		c.log.Warn("catalog is kept", "error", err)
	case err != nil:
		return nil, err
	case b.data == nil || !sameData(b.data, next):
		b.data = next
	}
	b.dirty = false
	return b.data, nil
}

func sameData(a, b *catalog.Data) bool {
	return a.TypesDigest() == b.TypesDigest() && a.PricesDigest() == b.PricesDigest()
}

// refreshMarket asks for all that is due at the same time. What an ended
// context left unanswered is still due.
func (c *Cloud) refreshMarket(ctx context.Context) {
	b, now := &c.market, c.clock.Now()
	var wg sync.WaitGroup
	var apply []func()
	question(ctx, c, &wg, &apply, &b.types, c.listTypes, now, "list of instance types")
	question(ctx, c, &wg, &apply, &b.offerings, c.listOfferings, now, "list of zones that offer instance types")
	question(ctx, c, &wg, &apply, &b.zones, c.listZones, now, "list of zones")
	if hasPriceList(c.options.Region) {
		question(ctx, c, &wg, &apply, &b.onDemand, c.listOnDemandPrices, now, "price list")
	}
	question(ctx, c, &wg, &apply, &b.spot, c.listSpotPrices, now, "list of spot prices")
	wg.Wait()
	if ctx.Err() == nil {
		for _, f := range apply {
			f()
		}
		b.dirty = b.dirty || len(apply) > 0
	}
	c.noteSeenZones()
}

// question asks if the source is due, and adds what notes its answer.
func question[T any](ctx context.Context, c *Cloud, wg *sync.WaitGroup, apply *[]func(), s *source[T], load func(context.Context) (T, error), now time.Time, what string) {
	if !s.due(now) {
		return
	}
	var value T
	var err error
	wg.Go(func() { value, err = load(ctx) })
	*apply = append(*apply, func() {
		s.take(now, value, err, marketInterval, marketRetry, c.log, what, "the built-in tables")
	})
}

// noteZone tells the market what the account calls a zone, as a subnet of it
// says.
func (b *marketBook) noteZone(id, name string) {
	b.seenMu.Lock()
	defer b.seenMu.Unlock()
	if b.seen == nil {
		b.seen = map[string]string{}
	}
	if id != "" && name != "" {
		b.seen[id] = name
	}
}

func (c *Cloud) noteSeenZones() {
	b := &c.market
	b.seenMu.Lock()
	defer b.seenMu.Unlock()
	for id, name := range b.seen {
		if b.zones.value[id] != name {
			b.zones.value = cloneInto(b.zones.value, id, name)
			b.dirty = true
		}
	}
}

func cloneInto(m map[string]string, k, v string) map[string]string {
	out := make(map[string]string, len(m)+1)
	maps.Copy(out, m)
	out[k] = v
	return out
}

// assemble makes the catalog of the answers and, for those that are missing,
// of the built-in tables.
func (c *Cloud) assemble() (*catalog.Data, error) {
	b, region := &c.market, c.options.Region
	base, err := catalog.Embedded(region)
	own := err == nil
	if !own {
		if base, err = catalog.Embedded(otherRegion); err != nil {
			return nil, err
		}
	}
	if !own && !b.offerings.have {
		return nil, fmt.Errorf("catalog of region %s: it is not known where instance types are offered, and no tables of the region are built in: allow ec2:DescribeInstanceTypeOfferings to the controller's role: %s", region, b.offerings.trouble)
	}
	types := offered(b.types, b.offerings, b.zones.value, base)
	zones, names := c.zonesOf(types, base)
	known := map[string]bool{}
	for i := range types {
		known[types[i].Name] = true
	}
	onDemand := keepKnown(c.onDemandOr(base), known)
	var spot catalog.SpotPrices
	switch {
	case b.spot.have:
		spot = spotOf(b.spot.value, names, known)
	case own:
		spot = builtInSpot(base, types)
	default:
		spot = onDemandEverywhere(types, onDemand)
	}
	return catalog.New(region, zones, types, onDemand, spot)
}

// offered are the types with the zones that offer them. Local and Wavelength
// Zones count only where the account has a subnet.
func offered(types source[[]catalog.Type], offerings source[map[string][]string], names map[string]string, base *catalog.Data) []catalog.Type {
	list := types.value
	if !types.have {
		list = base.Types()
	}
	out := slices.Clone(list)
	for i := range out {
		out[i].Zones = nil
		if offerings.have {
			out[i].Zones = slices.DeleteFunc(slices.Clone(offerings.value[out[i].Name]), func(id string) bool {
				return localZone(id) && names[id] == ""
			})
		} else if t, ok := base.Type(out[i].Name); ok {
			out[i].Zones = t.Zones
		}
	}
	return out
}

// zonesOf are the zones in which something is offered, by the account's names,
// and their ids by name. A zone whose name is not known goes by its id: the
// account has no subnet there.
func (c *Cloud) zonesOf(types []catalog.Type, base *catalog.Data) ([]catalog.Zone, map[string]string) {
	name := map[string]string{}
	for i := range types {
		for _, id := range types[i].Zones {
			name[id] = id
		}
	}
	if !c.market.zones.have && base.Region() == c.options.Region {
		for _, z := range base.Zones() {
			name[z.ID] = z.Name
		}
	}
	for id, n := range c.market.zones.value {
		if _, ok := name[id]; ok {
			name[id] = n
		}
	}
	var zones []catalog.Zone
	ids := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(name)) {
		zones = append(zones, catalog.Zone{Name: name[id], ID: id})
		ids[name[id]] = id
	}
	return zones, ids
}

func (c *Cloud) onDemandOr(base *catalog.Data) catalog.OnDemandPrices {
	if c.market.onDemand.have {
		return c.market.onDemand.value
	}
	out := catalog.OnDemandPrices{}
	for _, t := range base.Types() {
		if p, ok := base.OnDemandPrice(t.Name); ok {
			out[t.Name] = p
		}
	}
	return out
}

func keepKnown(prices catalog.OnDemandPrices, known map[string]bool) catalog.OnDemandPrices {
	out := maps.Clone(prices)
	maps.DeleteFunc(out, func(name string, _ resources.Price) bool { return !known[name] })
	return out
}

// spotOf are the quotes of types and zones that are known, by zone id.
func spotOf(quotes []spotQuote, ids map[string]string, known map[string]bool) catalog.SpotPrices {
	zones := map[string]bool{}
	for _, id := range ids {
		zones[id] = true
	}
	out := catalog.SpotPrices{}
	for _, q := range quotes {
		zone := q.zoneID
		if zone == "" {
			zone = ids[q.zoneName]
		}
		if known[q.instanceType] && zones[zone] {
			setSpot(out, q.instanceType, zone, q.price)
		}
	}
	return out
}

func setSpot(prices catalog.SpotPrices, name, zone string, p resources.Price) {
	if prices[name] == nil {
		prices[name] = map[string]resources.Price{}
	}
	prices[name][zone] = p
}

// builtInSpot are the listed prices where the types are offered.
func builtInSpot(base *catalog.Data, types []catalog.Type) catalog.SpotPrices {
	out := catalog.SpotPrices{}
	for i := range types {
		for _, zone := range types[i].Zones {
			if p, ok := base.SpotPrice(types[i].Name, zone); ok {
				setSpot(out, types[i].Name, zone, p)
			}
		}
	}
	return out
}

// onDemandEverywhere takes the on-demand price for the spot price, as Karpenter
// does until it has read the first one.
func onDemandEverywhere(types []catalog.Type, onDemand catalog.OnDemandPrices) catalog.SpotPrices {
	out := catalog.SpotPrices{}
	for i := range types {
		p, ok := onDemand[types[i].Name]
		if !ok || !slices.Contains(types[i].Usage, "spot") {
			continue
		}
		for _, zone := range types[i].Zones {
			setSpot(out, types[i].Name, zone, p)
		}
	}
	return out
}
