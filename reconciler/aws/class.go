package aws

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

const (
	// subnetInterval is how long subnets are good for, groupInterval security
	// groups and amiInterval images (Karpenter, pkg/controllers/nodeclass).
	subnetInterval = time.Minute
	groupInterval  = 5 * time.Minute
	amiInterval    = 5 * time.Minute
	// missingInterval is how long it is believed that nothing matches.
	missingInterval = time.Minute
	// classRetry is how long to wait with what could not be read.
	classRetry = 15 * time.Second
)

// classBook is what is known of EC2NodeClasses, by name. Its zero value knows
// none.
type classBook struct {
	mu     sync.Mutex
	byName map[string]*classState
}

func (b *classBook) of(name string) *classState {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byName == nil {
		b.byName = map[string]*classState{}
	}
	s := b.byName[name]
	if s == nil {
		s = &classState{}
		b.byName[name] = s
	}
	return s
}

// forget drops the classes that are not kept.
func (b *classBook) forget(keep map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.byName, func(name string, _ *classState) bool { return !keep[name] })
}

// classState is what one EC2NodeClass resolved to.
type classState struct {
	mu         sync.Mutex
	subnets    resolved[[]ec2v1.Subnet]
	groups     resolved[[]ec2v1.SecurityGroup]
	amis       resolved[[]ec2v1.AMI]
	profile    resolved[string]
	validation resolved[struct{}]
	conditions map[string]condition
}

// problem is why a part of a class is not ready, and what to do about it.
type problem struct {
	reason, message string
	// again is when to look again.
	again time.Duration
}

func (p *problem) Error() string { return p.reason + ": " + p.message }

// resolved is one of the things that a class resolves to.
type resolved[T any] struct {
	// key is what it was resolved from.
	key   string
	value T
	// good says that the value may be used.
	good bool
	next time.Time
	// reason and message say why it is not good, or that the last question
	// failed.
	reason, message string
	trouble         string
}

// refresh resolves the part again if it is due, or if what it is resolved from
// has changed. A problem is an answer: the part is not ready. Any other error
// keeps a value that was good for the same key.
func (p *resolved[T]) refresh(now time.Time, key, failed string, good time.Duration, load func() (T, error)) (err error) {
	if p.key == key && now.Before(p.next) {
		return nil
	}
	value, err := load()
	why, isProblem := err.(*problem)
	switch {
	case err == nil:
		*p = resolved[T]{key: key, value: value, good: true, next: now.Add(good)}
		return nil
	case isProblem:
		*p = resolved[T]{key: key, next: now.Add(cmp.Or(why.again, missingInterval)), reason: why.reason, message: why.message}
		return nil
	case p.key == key && p.good:
		p.next = now.Add(classRetry)
	default:
		*p = resolved[T]{key: key, next: now.Add(classRetry), reason: failed, trouble: p.trouble, message: fmt.Sprintf("%v; it is asked for again in %s", err, classRetry)}
	}
	if p.trouble == err.Error() {
		return nil
	}
	p.trouble = err.Error()
	return err
}

// keyOf is what a part is resolved from, as text.
func keyOf(parts ...any) string {
	b, err := json.Marshal(parts)
	if err != nil {
		return fmt.Sprint(parts...)
	}
	return string(b)
}

// ResolveNodeClass finds subnets, security groups, images and the instance
// profile of the class, and checks with a dry run that the controller may
// launch with them. Whatever is missing or wrong is a condition that is not
// True and says what to do about it; an error is returned only for no class or
// an ended context, since one class must not stop the others.
//
// AWS is asked again after the intervals of Karpenter: subnets after a minute,
// security groups and images after five. What cannot be read keeps its last
// good value, and is logged.
func (c *Cloud) ResolveNodeClass(ctx context.Context, class *ec2v1.EC2NodeClass) (ec2v1.EC2NodeClassStatus, error) {
	if class == nil {
		return ec2v1.EC2NodeClassStatus{}, fmt.Errorf("resolve EC2NodeClass: none was given")
	}
	s := c.classes.of(class.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	spec, now := &class.Spec, c.clock.Now()
	c.report(ctx, class, "subnets", s.subnets.refresh(now, keyOf(spec.SubnetSelectorTerms), "SubnetsResolutionFailed", subnetInterval,
		func() ([]ec2v1.Subnet, error) { return c.findSubnets(ctx, spec.SubnetSelectorTerms) }))
	c.report(ctx, class, "security groups", s.groups.refresh(now, keyOf(spec.SecurityGroupSelectorTerms), "SecurityGroupsResolutionFailed", groupInterval,
		func() ([]ec2v1.SecurityGroup, error) { return c.findGroups(ctx, spec.SecurityGroupSelectorTerms) }))
	c.report(ctx, class, "images", s.amis.refresh(now, keyOf(spec.AMISelectorTerms), "AMIsResolutionFailed", amiInterval,
		func() ([]ec2v1.AMI, error) { return c.findImages(ctx, spec.AMISelectorTerms) }))
	c.report(ctx, class, "instance profile", s.profile.refresh(now, keyOf(spec.Role, spec.InstanceProfile), "InstanceProfileResolutionFailed", profileInterval,
		func() (string, error) { return c.findProfile(ctx, class) }))
	c.report(ctx, class, "validation", c.validate(ctx, class, s))
	if err := ctx.Err(); err != nil {
		// The next call asks again at once.
		s.expire()
		return ec2v1.EC2NodeClassStatus{}, fmt.Errorf("resolve EC2NodeClass %s: %w", class.Name, err)
	}
	return s.status(class, now), nil
}

// expire has everything that did not resolve asked for again.
func (s *classState) expire() {
	for _, p := range []struct {
		good bool
		next *time.Time
	}{{s.subnets.good, &s.subnets.next}, {s.groups.good, &s.groups.next}, {s.amis.good, &s.amis.next}, {s.profile.good, &s.profile.next}, {s.validation.good, &s.validation.next}} {
		if !p.good {
			*p.next = time.Time{}
		}
	}
}

// report logs an error that is not in the status because an older answer
// serves, or that is new.
func (c *Cloud) report(ctx context.Context, class *ec2v1.EC2NodeClass, what string, err error) {
	if err != nil && ctx.Err() == nil {
		c.log.Warn("EC2NodeClass cannot be resolved", "class", class.Name, "part", what, "error", err, "again", classRetry)
	}
}

// status is the class's status with copies of what is kept.
func (s *classState) status(class *ec2v1.EC2NodeClass, now time.Time) ec2v1.EC2NodeClassStatus {
	out := ec2v1.EC2NodeClassStatus{
		Subnets: slices.Clone(s.subnets.value), SecurityGroups: slices.Clone(s.groups.value), InstanceProfile: s.profile.value,
	}
	for i := range s.amis.value {
		out.AMIs = append(out.AMIs, *s.amis.value[i].DeepCopy())
	}
	out.Conditions = s.conditionsOf(class, now)
	return out
}

// describeTerms tells people what was looked for.
func describeTerms[T any](terms []T, describe func(T) string) string {
	var out []string
	for _, t := range terms {
		out = append(out, describe(t))
	}
	return strings.Join(out, "; ")
}

// describeFields is a term's fields that are set, in order: name, value, ….
func describeFields(tags map[string]string, pairs ...string) string {
	var out []string
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, pairs[i]+" "+pairs[i+1])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, "tag "+k+"="+tags[k])
	}
	return strings.Join(out, " and ")
}
