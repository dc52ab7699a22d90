package aws

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
)

// imageQuery is one DescribeImages call.
type imageQuery struct {
	filters []types.Filter
	owners  []string
	// variants is what images are for, by id, where it is known from the
	// parameter that named them.
	variants map[string][]variant
}

// candidate is an image that a term selects.
type candidate struct {
	ami     ec2v1.AMI
	created time.Time
}

// findImages are the images that the terms select: of those that are for the
// same instance types the best one, the newest first.
func (c *Cloud) findImages(ctx context.Context, terms []ec2v1.AMISelectorTerm) ([]ec2v1.AMI, error) {
	queries, mutable, err := c.imageQueries(ctx, terms)
	if err != nil {
		return nil, err
	}
	best := map[string]candidate{}
	for _, q := range queries {
		if err := c.describeImages(ctx, q, best); err != nil {
			return nil, err
		}
	}
	if len(best) == 0 {
		return nil, &problem{reason: "AMINotFound", message: fmt.Sprintf(
			"no image in region %s matches amiSelectorTerms (%s): correct the terms, or share the image with this account", c.options.Region, describeTerms(terms, describeImageTerm))}
	}
	list := slices.SortedFunc(maps.Values(best), func(a, b candidate) int {
		return cmp.Or(b.created.Compare(a.created), strings.Compare(a.ami.ID, b.ami.ID), strings.Compare(keyOf(a.ami.Requirements), keyOf(b.ami.Requirements)))
	})
	out := make([]ec2v1.AMI, len(list))
	for i := range list {
		out[i] = list[i].ami
		if out[i].Deprecated {
			// "latest" has moved on.
			c.parameters.forget(mutable)
		}
	}
	return out, nil
}

func describeImageTerm(t ec2v1.AMISelectorTerm) string {
	return describeFields(t.Tags, "alias", t.Alias, "id", t.ID, "name", t.Name, "owner", t.Owner, "ssmParameter", t.SSMParameter)
}

// imageQueries are the calls that the terms need, and the parameters that stand
// for whatever is the latest.
func (c *Cloud) imageQueries(ctx context.Context, terms []ec2v1.AMISelectorTerm) (queries []imageQuery, mutable []string, err error) {
	alias, err := aliasOf(terms)
	if err != nil {
		return nil, nil, err
	}
	if alias != "" {
		return c.aliasQuery(ctx, alias)
	}
	var ids []string
	for _, t := range terms {
		switch {
		case t.ID != "":
			ids = append(ids, t.ID)
		case t.SSMParameter != "":
			id, found, err := c.parameter(ctx, t.SSMParameter, customParameterInterval)
			if err != nil {
				return nil, nil, err
			}
			if found && strings.HasPrefix(id, "ami-") {
				ids = append(ids, id)
			}
		case t.Name != "" || len(t.Tags) > 0 || t.Owner != "":
			queries = append(queries, termQuery(t))
		}
	}
	if len(ids) > 0 {
		queries = append(queries, imageQuery{filters: []types.Filter{filter("image-id", ids...)}})
	}
	return queries, nil, nil
}

// termQuery finds images by name and tags. By name only those of this account
// and of Amazon count unless the term names an owner: anybody can publish an
// image of any name.
func termQuery(t ec2v1.AMISelectorTerm) imageQuery {
	q := imageQuery{filters: tagFilters(t.Tags)}
	switch {
	case t.Owner != "":
		q.owners = []string{t.Owner}
	case t.Name != "":
		q.owners = []string{"self", "amazon"}
	}
	if t.Name != "" {
		q.filters = append(q.filters, filter("name", t.Name))
	}
	return q
}

// aliasQuery finds the images of an alias by the parameters that AWS publishes.
// A parameter that is missing is a variant that the release does not have.
func (c *Cloud) aliasQuery(ctx context.Context, alias string) ([]imageQuery, []string, error) {
	family, version, err := splitAlias(alias)
	if err != nil {
		return nil, nil, err
	}
	kubernetes, err := c.kubernetesVersion(ctx)
	if err != nil {
		return nil, nil, err
	}
	parameters, err := aliasParameters(family, version, kubernetes)
	if err != nil {
		return nil, nil, err
	}
	q, mutable := imageQuery{variants: map[string][]variant{}}, []string(nil)
	for _, p := range parameters {
		id, found, err := c.parameter(ctx, p.name, aliasParameterInterval)
		if err != nil {
			return nil, nil, err
		}
		if found {
			q.variants[id] = append(q.variants[id], p.variants...)
		}
		if version == ec2v1.AliasVersionLatest || windowsBuilds[family] != "" {
			mutable = append(mutable, p.name)
		}
	}
	if len(q.variants) == 0 {
		return nil, nil, &problem{reason: "AMINotFound", message: fmt.Sprintf(
			"alias %s has no image for Kubernetes %s in region %s: choose a release that AWS has published for that version, or %s@latest", alias, kubernetes, c.options.Region, family)}
	}
	q.filters = []types.Filter{filter("image-id", slices.Sorted(maps.Keys(q.variants))...)}
	return []imageQuery{q}, mutable, nil
}

// describeImages puts the images of a query among the best.
func (c *Cloud) describeImages(ctx context.Context, q imageQuery, best map[string]candidate) error {
	now := c.clock.Now()
	pages := ec2.NewDescribeImagesPaginator(c.ec2, &ec2.DescribeImagesInput{
		Filters: append(q.filters, filter("state", string(types.ImageStateAvailable))), Owners: q.owners,
		IncludeDeprecated: awssdk.Bool(true), MaxResults: awssdk.Int32(1000),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return kinded("ec2:DescribeImages", err)
		}
		for i := range page.Images {
			for _, x := range candidates(&page.Images[i], q, now) {
				key := keyOf(x.ami.Requirements)
				if have, ok := best[key]; !ok || better(x, have) {
					best[key] = x
				}
			}
		}
	}
	return nil
}

// candidates are the uses of an image, none for one of an architecture that no
// node has.
func candidates(im *types.Image, q imageQuery, now time.Time) []candidate {
	arch := kubeArchitecture(string(im.Architecture))
	if arch == "" {
		return nil
	}
	variants := q.variants[awssdk.ToString(im.ImageId)]
	if len(variants) == 0 {
		variants = []variant{nil}
	}
	deprecated := imageTime(im.DeprecationTime)
	var out []candidate
	for _, v := range variants {
		// The order is Karpenter's.
		needs := slices.Concat([]corev1.NodeSelectorRequirement{in(corev1.LabelArchStable, arch)}, v)
		slices.SortFunc(needs, func(a, b corev1.NodeSelectorRequirement) int {
			return cmp.Or(cmp.Compare(len(a.Key), len(b.Key)), strings.Compare(a.Key, b.Key))
		})
		out = append(out, candidate{
			ami: ec2v1.AMI{
				ID: awssdk.ToString(im.ImageId), Name: awssdk.ToString(im.Name), Requirements: needs,
				Deprecated: !deprecated.IsZero() && !deprecated.After(now),
			},
			created: imageTime(im.CreationDate),
		})
	}
	return out
}

// imageTime is zero for a time that EC2 does not tell or that is none.
func imageTime(s *string) time.Time {
	t, err := time.Parse(time.RFC3339, awssdk.ToString(s))
	if err != nil {
		return time.Time{}
	}
	return t
}

// better orders images for the same instance types: those that are not
// deprecated first, then the newer, then the greater name, then the lower id.
func better(a, b candidate) bool {
	if a.ami.Deprecated != b.ami.Deprecated {
		return b.ami.Deprecated
	}
	return cmp.Or(a.created.Compare(b.created), strings.Compare(a.ami.Name, b.ami.Name), strings.Compare(b.ami.ID, a.ami.ID)) > 0
}
