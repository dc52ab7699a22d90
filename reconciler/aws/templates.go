package aws

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/port"
)

// templateIdle is how long a launch template stays that nothing is launched
// from.
const templateIdle = time.Minute

// templateBook knows the launch templates of the cluster that are in EC2, by
// name, and when something was last launched from each. Its lock is held over
// calls, so that one template is made once.
type templateBook struct {
	mu       sync.Mutex
	hydrated bool
	used     map[string]time.Time
}

// ensureTemplates makes the templates that are not there.
func (c *Cloud) ensureTemplates(ctx context.Context, list []template) error {
	b := &c.templates
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := c.hydrate(ctx); err != nil {
		return err
	}
	for _, t := range list {
		if _, there := b.used[t.name]; !there {
			if err := c.createTemplate(ctx, t); err != nil {
				return err
			}
		}
		b.used[t.name] = c.clock.Now()
	}
	return nil
}

func (c *Cloud) createTemplate(ctx context.Context, t template) error {
	in := &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(t.name), LaunchTemplateData: t.data}
	if len(t.tags) > 0 {
		in.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: t.tags}}
	}
	_, err := c.ec2.CreateLaunchTemplate(ctx, in)
	if hasCode(err, codeTemplateThere) {
		// The name says what is in it.
		return nil
	}
	if err == nil {
		c.log.InfoContext(ctx, "launch template created", "name", t.name, "image", aws.ToString(t.data.ImageId))
	}
	return kinded("ec2:CreateLaunchTemplate", err)
}

// forgetTemplates makes the next launch create them again.
func (c *Cloud) forgetTemplates(list []template) {
	c.templates.mu.Lock()
	defer c.templates.mu.Unlock()
	for _, t := range list {
		delete(c.templates.used, t.name)
	}
}

// hydrate reads once which templates of the cluster are there that an earlier
// process has left. The lock is held.
func (c *Cloud) hydrate(ctx context.Context) error {
	b := &c.templates
	if b.hydrated {
		return nil
	}
	now := c.clock.Now()
	used := map[string]time.Time{}
	pages := ec2.NewDescribeLaunchTemplatesPaginator(c.ec2, &ec2.DescribeLaunchTemplatesInput{
		Filters:    []types.Filter{filter("tag:"+ec2v1.EKSClusterNameTagKey, c.options.Cluster)},
		MaxResults: aws.Int32(200),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return kinded("ec2:DescribeLaunchTemplates", err)
		}
		for _, t := range page.LaunchTemplates {
			if name := aws.ToString(t.LaunchTemplateName); c.ownsTemplate(name, tagMap(t.Tags)) {
				used[name] = now
			}
		}
	}
	b.used, b.hydrated = used, true
	return nil
}

// ownName is what contentName makes. Karpenter's names end in a decimal number
// (pkg/providers/launchtemplate): those are its to delete, since it may run beside
// Reeve and launch from them.
var ownName = regexp.MustCompile("^" + regexp.QuoteMeta(ec2v1.LaunchTemplateNamePrefix) + "/[0-9a-f]{32}$")

// ownsTemplate says whether the template was made for a node class of this
// cluster.
func (c *Cloud) ownsTemplate(name string, tags map[string]string) bool {
	_, class := tags[ec2v1.LabelNodeClass]
	return class && tags[ec2v1.EKSClusterNameTagKey] == c.options.Cluster && ownName.MatchString(name)
}

// sweepTemplates deletes templates that nothing was launched from for a while
// and that no open launch needs.
func (c *Cloud) sweepTemplates(ctx context.Context) error {
	b := &c.templates
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := c.hydrate(ctx); err != nil {
		return err
	}
	now := c.clock.Now()
	needed := c.launches.templates(now)
	var errs []error
	for _, name := range sortedKeys(b.used) {
		if needed[name] || now.Sub(b.used[name]) <= templateIdle {
			continue
		}
		_, err := c.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)})
		if err := kinded("ec2:DeleteLaunchTemplate", err); err != nil && !errors.Is(err, port.ErrNotFound) {
			errs = append(errs, err)
			continue
		}
		delete(b.used, name)
	}
	return errors.Join(errs...)
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}
