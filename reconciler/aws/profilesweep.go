package aws

import (
	"context"
	"errors"
	"regexp"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// uid is what Karpenter names the folder of a class's profiles by. Those are
// not ours: a Karpenter that runs beside Reeve, or ran before, manages them.
var uid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// sweepProfiles empties and deletes the instance profiles that were made for
// classes that are not kept, and those for roles that a kept class had before.
// Profiles of running instances stay, and so do those that were in use within
// the last hour: an instance may be starting with one.
func (c *Cloud) sweepProfiles(ctx context.Context, keep []*ec2v1.EC2NodeClass) error {
	current, names := map[string]bool{}, map[string]bool{}
	for _, class := range keep {
		names[class.Name] = true
		current[c.profileName(class.Name, bareRole(class.Spec.Role))] = true
	}
	c.classes.forget(names)
	stale, err := c.staleProfiles(ctx, current, names)
	if err != nil || len(stale) == 0 {
		return err
	}
	inUse, err := c.profilesInUse(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range stale {
		name := awssdk.ToString(p.InstanceProfileName)
		if inUse[name] {
			continue
		}
		if err := c.deleteProfile(ctx, name, p.Roles); err != nil {
			errs = append(errs, err)
			continue
		}
		c.log.Info("instance profile deleted", "profile", name)
	}
	return errors.Join(errs...)
}

// staleProfiles are the profiles below our path that are neither current nor
// were so a short time ago.
func (c *Cloud) staleProfiles(ctx context.Context, current, kept map[string]bool) ([]types.InstanceProfile, error) {
	grace := c.clock.Now().Add(-profileGrace)
	pages := iam.NewListInstanceProfilesPaginator(c.iam, &iam.ListInstanceProfilesInput{PathPrefix: awssdk.String(c.profilePath())})
	var out []types.InstanceProfile
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kinded("iam:ListInstanceProfiles", err)
		}
		for _, p := range page.InstanceProfiles {
			name := awssdk.ToString(p.InstanceProfileName)
			class, ours := c.classOfProfile(awssdk.ToString(p.Path))
			switch {
			case !ours || current[name] || !strings.HasPrefix(name, c.options.Cluster+"_"):
			case kept[class] && (c.profiles.usedSince(name, grace) || awssdk.ToTime(p.CreateDate).After(grace)):
			default:
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// classOfProfile is the class that a path is for; false for a path that is not
// of this cluster, or is Karpenter's.
func (c *Cloud) classOfProfile(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, c.profilePath())
	class := strings.TrimSuffix(rest, "/")
	return class, ok && class != "" && !strings.Contains(class, "/") && !uid.MatchString(class)
}

// profilesInUse are the names of the profiles that instances of the cluster
// have.
func (c *Cloud) profilesInUse(ctx context.Context) (map[string]bool, error) {
	pages := ec2.NewDescribeInstancesPaginator(c.ec2, &ec2.DescribeInstancesInput{
		Filters:    append(tagFilters(map[string]string{ec2v1.EKSClusterNameTagKey: c.options.Cluster}), filter("instance-state-name", "pending", "running", "stopping", "stopped", "shutting-down")),
		MaxResults: awssdk.Int32(1000),
	})
	out := map[string]bool{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, kinded("ec2:DescribeInstances", err)
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				if i.IamInstanceProfile != nil {
					arn := awssdk.ToString(i.IamInstanceProfile.Arn)
					out[arn[strings.LastIndex(arn, "/")+1:]] = true
				}
			}
		}
	}
	return out, nil
}

// deleteProfile takes the roles out of the profile and deletes it. What is
// gone is success.
func (c *Cloud) deleteProfile(ctx context.Context, name string, roles []types.Role) error {
	for _, r := range roles {
		_, err := c.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name, RoleName: r.RoleName})
		if err != nil && !hasCode(err, codeNoEntity) {
			return kinded("iam:RemoveRoleFromInstanceProfile", err)
		}
	}
	_, err := c.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name})
	if err != nil && !hasCode(err, codeNoEntity) {
		return kinded("iam:DeleteInstanceProfile", err)
	}
	return nil
}
