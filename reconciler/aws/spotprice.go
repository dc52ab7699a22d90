package aws

import (
	"context"
	"fmt"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// spotQuote is a spot price as EC2 lists it: the zone by id, or by name where
// the region does not tell the id.
type spotQuote struct {
	instanceType, zoneID, zoneName string
	price                          resources.Price
}

// listSpotPrices asks for the spot prices of now. EC2 lists the last change of
// each type and zone, the newest first.
func (c *Cloud) listSpotPrices(ctx context.Context) ([]spotQuote, error) {
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(c.ec2, &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"},
		StartTime:           awssdk.Time(c.clock.Now()),
		MaxResults:          awssdk.Int32(2000),
	})
	type place struct{ instanceType, zone string }
	newest := map[place]time.Time{}
	index := map[place]int{}
	var out []spotQuote
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("DescribeSpotPriceHistory: %w", err)
		}
		for _, p := range page.SpotPriceHistory {
			price, err := resources.ParsePrice(awssdk.ToString(p.SpotPrice))
			if err != nil || price <= 0 {
				continue // a type that is not sold has such entries
			}
			q := spotQuote{string(p.InstanceType), awssdk.ToString(p.AvailabilityZoneId), awssdk.ToString(p.AvailabilityZone), price}
			at, when := place{q.instanceType, q.zoneID + "/" + q.zoneName}, awssdk.ToTime(p.Timestamp)
			i, there := index[at]
			switch {
			case !there:
				index[at], newest[at] = len(out), when
				out = append(out, q)
			case when.After(newest[at]):
				out[i], newest[at] = q, when
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("DescribeSpotPriceHistory: it lists no price")
	}
	return out, nil
}
