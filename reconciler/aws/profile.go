package aws

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	// profileInterval is how long it is believed that a profile is as it was
	// made.
	profileInterval = 15 * time.Minute
	// roleInterval is how long a role that does not exist is not asked for
	// again: every attempt makes a profile and deletes it.
	roleInterval = time.Minute
	// profileGrace is how long a profile stays after it was last in use: an
	// instance may just be starting with it.
	profileGrace = time.Hour
)

// profileBook is the instance profiles that this process manages. Its zero
// value knows none.
type profileBook struct {
	mu sync.Mutex
	// used is when a profile was last the one of its class.
	used map[string]time.Time
	// missing is until when a role is taken not to exist.
	missing map[string]time.Time
}

func (b *profileBook) use(name string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used == nil {
		b.used = map[string]time.Time{}
	}
	b.used[name] = now
}

func (b *profileBook) usedSince(name string, since time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used[name].After(since)
}

func (b *profileBook) setMissing(role string, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.missing == nil {
		b.missing = map[string]time.Time{}
	}
	b.missing[role] = until
}

func (b *profileBook) isMissing(role string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(b.missing[role])
}

// findProfile is the name of the class's instance profile: the one that it
// names, or one that is made for its role.
func (c *Cloud) findProfile(ctx context.Context, class *ec2v1.EC2NodeClass) (string, error) {
	if p := awssdk.ToString(class.Spec.InstanceProfile); p != "" {
		return p, nil
	}
	role := bareRole(class.Spec.Role)
	if role == "" {
		return "", &problem{reason: "InstanceProfileNotFound", message: "neither spec.role nor spec.instanceProfile is set: nodes need one of them to join the cluster; set spec.role to the name of the nodes' IAM role"}
	}
	now := c.clock.Now()
	if c.profiles.isMissing(role, now) {
		return "", noRole(role)
	}
	name := c.profileName(class.Name, role)
	if err := c.ensureProfile(ctx, class, name, role); err != nil {
		return "", err
	}
	c.profiles.use(name, now)
	return name, nil
}

// bareRole is the role without its path: a profile is told the name only.
func bareRole(role string) string { return role[strings.LastIndex(role, "/")+1:] }

func noRole(role string) *problem {
	return &problem{reason: "RoleNotFound", again: roleInterval, message: fmt.Sprintf(
		"IAM role %q does not exist in this account: create it with the policies that nodes need, or correct spec.role", role)}
}

// profilePath is the path below which the profiles of the cluster are; a
// folder for each class follows.
func (c *Cloud) profilePath() string {
	return "/karpenter/" + c.options.Region + "/" + c.options.Cluster + "/"
}

// profileName is the name of the profile of a class for a role. It follows from
// both, so that no process makes a second one, and a class whose role changes
// gets another profile: running instances keep theirs, and with it their role.
// The form is Karpenter's, whose names come from a random number.
func (c *Cloud) profileName(class, role string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.options.Region + "/" + class + "/" + role))
	return fmt.Sprintf("%s_%d", c.options.Cluster, h.Sum64())
}

// ensureProfile makes the profile unless it is there, and puts the role into
// it unless it has it.
func (c *Cloud) ensureProfile(ctx context.Context, class *ec2v1.EC2NodeClass, name, role string) error {
	have, made, err := c.getOrCreateProfile(ctx, class, name)
	if err != nil {
		return err
	}
	for _, r := range have.Roles {
		if awssdk.ToString(r.RoleName) == role {
			return nil
		}
		// A profile has at most one role. This one was put there by somebody
		// else.
		_, err := c.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name, RoleName: r.RoleName})
		if err != nil && !hasCode(err, codeNoEntity) {
			return kinded("iam:RemoveRoleFromInstanceProfile", err)
		}
	}
	_, err = c.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: &role})
	if err == nil {
		return nil
	}
	if made {
		// Nothing else would ever delete it; the sweep does if this fails.
		if derr := c.deleteProfile(ctx, name, nil); derr != nil {
			c.log.Warn("instance profile without a role is left", "profile", name, "error", derr)
		}
	}
	if hasCode(err, codeNoEntity) && strings.Contains(strings.ToLower(messageOf(err)), "role") {
		c.profiles.setMissing(role, c.clock.Now().Add(roleInterval))
		return noRole(role)
	}
	return kinded("iam:AddRoleToInstanceProfile", err)
}

// codeNoEntity is IAM's code for what is not there, codeThere for what is there
// already.
const (
	codeNoEntity = "NoSuchEntity"
	codeThere    = "EntityAlreadyExists"
)

// getOrCreateProfile is the profile, and whether it was made now.
func (c *Cloud) getOrCreateProfile(ctx context.Context, class *ec2v1.EC2NodeClass, name string) (*types.InstanceProfile, bool, error) {
	have, err := c.getProfile(ctx, name)
	if err != nil || have != nil {
		return have, false, err
	}
	made, err := c.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
		InstanceProfileName: &name, Path: awssdk.String(c.profilePath() + class.Name + "/"), Tags: c.profileTags(class),
	})
	switch {
	case hasCode(err, codeThere):
		// IAM shows what was made with some delay.
		if have, err = c.getProfile(ctx, name); err == nil && have == nil {
			have = &types.InstanceProfile{InstanceProfileName: &name}
		}
		return have, false, err
	case err != nil:
		return nil, false, kinded("iam:CreateInstanceProfile", err)
	}
	c.log.Info("instance profile created", "class", class.Name, "profile", name)
	if made.InstanceProfile == nil {
		return &types.InstanceProfile{InstanceProfileName: &name}, true, nil
	}
	return made.InstanceProfile, true, nil
}

// getProfile is nil for a profile that is not there.
func (c *Cloud) getProfile(ctx context.Context, name string) (*types.InstanceProfile, error) {
	out, err := c.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if hasCode(err, codeNoEntity) {
		return nil, nil
	}
	if err != nil {
		return nil, kinded("iam:GetInstanceProfile", err)
	}
	return out.InstanceProfile, nil
}

// profileTags are Karpenter's, whose IAM policies ask for them.
func (c *Cloud) profileTags(class *ec2v1.EC2NodeClass) []types.Tag {
	tags := map[string]string{}
	for k, v := range class.Spec.Tags {
		tags[k] = v
	}
	tags["kubernetes.io/cluster/"+c.options.Cluster] = "owned"
	tags[ec2v1.EKSClusterNameTagKey] = c.options.Cluster
	tags[ec2v1.LabelNodeClass] = class.Name
	tags[corev1.LabelTopologyRegion] = c.options.Region
	var out []types.Tag
	for _, k := range sortedKeys(tags) {
		out = append(out, types.Tag{Key: awssdk.String(k), Value: awssdk.String(tags[k])})
	}
	return out
}
