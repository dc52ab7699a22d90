package aws

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// tagFilters are filters for the tags; "*" stands for any value.
func tagFilters(tags map[string]string) []types.Filter {
	var out []types.Filter
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		if tags[k] == "*" {
			out = append(out, filter("tag-key", k))
			continue
		}
		out = append(out, filter("tag:"+k, tags[k]))
	}
	return out
}

// findSubnets are the subnets that any of the terms selects, those with the
// most free addresses first. Their zones are told to the catalog, and their
// addresses to the launches.
func (c *Cloud) findSubnets(ctx context.Context, terms []ec2v1.SubnetSelectorTerm) ([]ec2v1.Subnet, error) {
	found := map[string]types.Subnet{}
	for _, filters := range subnetQueries(terms) {
		pages := ec2.NewDescribeSubnetsPaginator(c.ec2, &ec2.DescribeSubnetsInput{Filters: filters, MaxResults: awssdk.Int32(500)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, kinded("ec2:DescribeSubnets", err)
			}
			for _, s := range page.Subnets {
				found[awssdk.ToString(s.SubnetId)] = s
			}
		}
	}
	if len(found) == 0 {
		return nil, &problem{reason: "SubnetsNotFound", message: fmt.Sprintf(
			"no subnet in region %s matches subnetSelectorTerms (%s): tag the subnets that nodes may use accordingly, or correct the terms",
			c.options.Region, describeTerms(terms, func(t ec2v1.SubnetSelectorTerm) string { return describeFields(t.Tags, "id", t.ID) }))}
	}
	list := slices.Collect(maps.Values(found))
	slices.SortFunc(list, func(a, b types.Subnet) int {
		return cmp.Or(cmp.Compare(awssdk.ToInt32(b.AvailableIpAddressCount), awssdk.ToInt32(a.AvailableIpAddressCount)),
			strings.Compare(awssdk.ToString(a.SubnetId), awssdk.ToString(b.SubnetId)))
	})
	out := make([]ec2v1.Subnet, len(list))
	for i, s := range list {
		out[i] = ec2v1.Subnet{ID: awssdk.ToString(s.SubnetId), Zone: awssdk.ToString(s.AvailabilityZone), ZoneID: awssdk.ToString(s.AvailabilityZoneId)}
		c.addresses.observe(out[i].ID, int64(awssdk.ToInt32(s.AvailableIpAddressCount)))
		c.market.noteZone(out[i].ZoneID, out[i].Zone)
	}
	return out, nil
}

// subnetQueries are the filters of the calls that the terms need: one for all
// ids, one for each other term. A term without a field selects nothing.
func subnetQueries(terms []ec2v1.SubnetSelectorTerm) [][]types.Filter {
	var ids []string
	var out [][]types.Filter
	for _, t := range terms {
		switch {
		case t.ID != "":
			ids = append(ids, t.ID)
		case len(t.Tags) > 0:
			out = append(out, tagFilters(t.Tags))
		}
	}
	if len(ids) > 0 {
		out = append(out, []types.Filter{filter("subnet-id", ids...)})
	}
	return out
}
