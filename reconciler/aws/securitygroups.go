package aws

import (
	"context"
	"fmt"
	"maps"
	"slices"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// findGroups are the security groups that any of the terms selects, by id.
func (c *Cloud) findGroups(ctx context.Context, terms []ec2v1.SecurityGroupSelectorTerm) ([]ec2v1.SecurityGroup, error) {
	names := map[string]string{}
	for _, filters := range groupQueries(terms) {
		pages := ec2.NewDescribeSecurityGroupsPaginator(c.ec2, &ec2.DescribeSecurityGroupsInput{Filters: filters, MaxResults: awssdk.Int32(500)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, kinded("ec2:DescribeSecurityGroups", err)
			}
			for _, g := range page.SecurityGroups {
				names[awssdk.ToString(g.GroupId)] = awssdk.ToString(g.GroupName)
			}
		}
	}
	if len(names) == 0 {
		return nil, &problem{reason: "SecurityGroupsNotFound", message: fmt.Sprintf(
			"no security group in region %s matches securityGroupSelectorTerms (%s): tag the groups that nodes need accordingly, or correct the terms",
			c.options.Region, describeTerms(terms, func(t ec2v1.SecurityGroupSelectorTerm) string {
				return describeFields(t.Tags, "id", t.ID, "name", t.Name)
			}))}
	}
	var out []ec2v1.SecurityGroup
	for _, id := range slices.Sorted(maps.Keys(names)) {
		out = append(out, ec2v1.SecurityGroup{ID: id, Name: names[id]})
	}
	return out, nil
}

// groupQueries are the filters of the calls that the terms need: one for all
// ids, one for each other term, whose fields all have to match.
func groupQueries(terms []ec2v1.SecurityGroupSelectorTerm) [][]types.Filter {
	var ids []string
	var out [][]types.Filter
	for _, t := range terms {
		filters := tagFilters(t.Tags)
		if t.Name != "" {
			filters = append(filters, filter("group-name", t.Name))
		}
		switch {
		case t.ID != "":
			ids = append(ids, t.ID)
		case len(filters) > 0:
			out = append(out, filters)
		}
	}
	if len(ids) > 0 {
		out = append(out, []types.Filter{filter("group-id", ids...)})
	}
	return out
}
