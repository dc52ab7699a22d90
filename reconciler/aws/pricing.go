package aws

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// hasPriceList says whether the region's partition has a price list.
func hasPriceList(region string) bool { return !strings.HasPrefix(region, "us-gov-") }

// listOnDemandPrices asks for the on-demand prices of Linux: those of shared
// tenancy, and of dedicated tenancy for bare metal. Both lists must be there:
// half of the prices would make the other half look as if it were not sold.
func (c *Cloud) listOnDemandPrices(ctx context.Context) (catalog.OnDemandPrices, error) {
	out := catalog.OnDemandPrices{}
	for _, product := range [][2]string{{"Dedicated", "Compute Instance (bare metal)"}, {"Shared", "Compute Instance"}} {
		n, err := c.addPrices(ctx, out, product[0], product[1])
		if err != nil {
			return nil, fmt.Errorf("pricing GetProducts, %s: %w", product[1], err)
		}
		if n == 0 {
			return nil, fmt.Errorf("pricing GetProducts, %s: it lists no price in region %s", product[1], c.options.Region)
		}
	}
	return out, nil
}

// addPrices adds the prices of one product and counts them.
func (c *Cloud) addPrices(ctx context.Context, into catalog.OnDemandPrices, tenancy, family string) (int, error) {
	in := &pricing.GetProductsInput{ServiceCode: awssdk.String("AmazonEC2"), MaxResults: awssdk.Int32(100)}
	for _, f := range [][2]string{
		{"regionCode", c.options.Region}, {"serviceCode", "AmazonEC2"}, {"preInstalledSw", "NA"}, {"operatingSystem", "Linux"},
		{"capacitystatus", "Used"}, {"marketoption", "OnDemand"}, {"tenancy", tenancy}, {"productFamily", family},
	} {
		in.Filters = append(in.Filters, types.Filter{Type: types.FilterTypeTermMatch, Field: awssdk.String(f[0]), Value: awssdk.String(f[1])})
	}
	pages, n := pricing.NewGetProductsPaginator(c.pricing, in), 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, err
		}
		for _, item := range page.PriceList {
			name, price, err := readPrice([]byte(item), c.currency())
			if err != nil {
				return 0, err
			}
			if price > 0 {
				into[name] = price
				n++
			}
		}
	}
	return n, nil
}

// currency of the region's price list. Prices in China are in yuan; they are
// taken as they are, since only their order and their sums matter.
func (c *Cloud) currency() string {
	if strings.HasPrefix(c.options.Region, "cn-") {
		return "CNY"
	}
	return "USD"
}

// priceItem is an entry of the price list, which the call gives as text.
type priceItem struct {
	Product struct {
		Attributes struct {
			InstanceType string `json:"instanceType"`
		} `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				PricePerUnit map[string]string `json:"pricePerUnit"`
			} `json:"priceDimensions"`
		} `json:"OnDemand"`
	} `json:"terms"`
}

// readPrice is the price of an entry; zero for one that has none in that
// currency, such as a type that is free in a trial.
func readPrice(item []byte, currency string) (string, resources.Price, error) {
	var p priceItem
	if err := json.Unmarshal(item, &p); err != nil {
		return "", 0, fmt.Errorf("an entry of the price list: %w", short(err))
	}
	name := p.Product.Attributes.InstanceType
	for _, term := range slices.Sorted(maps.Keys(p.Terms.OnDemand)) {
		dimensions := p.Terms.OnDemand[term].PriceDimensions
		for _, d := range slices.Sorted(maps.Keys(dimensions)) {
			text, ok := dimensions[d].PricePerUnit[currency]
			if !ok {
				continue
			}
			if price, err := resources.ParsePrice(text); err == nil && price > 0 && name != "" {
				return name, price, nil
			}
		}
	}
	return name, 0, nil
}
