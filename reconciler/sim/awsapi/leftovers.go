package awsapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// Leftovers are what costs money or clutters the account in the name of the
// cluster: instances that run, launch templates, and tags on what is not ours.
// Each is a line; they are sorted.
func (e *Endpoint) Leftovers() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	for _, in := range e.ec2.instances {
		if !in.Managed && in.State != string(types.InstanceStateNameTerminated) {
			out = append(out, fmt.Sprintf("instance %s (%s in %s) is %s", in.ID, in.Type, in.Zone, in.State))
		}
		if in.Managed {
			out = append(out, foreignTags("instance "+in.ID, in.Tags)...)
		}
	}
	for _, t := range e.ec2.templates {
		out = append(out, fmt.Sprintf("launch template %s (%s)", t.id, t.name))
	}
	for _, s := range e.ec2.subnets {
		out = append(out, foreignTags(s.ID, s.Tags)...)
	}
	for _, f := range e.ec2.leftovers {
		out = append(out, f()...)
	}
	slices.Sort(out)
	return out
}

// foreignTags are tags of ours on something that is not.
func foreignTags(what string, tags map[string]string) []string {
	var out []string
	for _, t := range tagList(tags) {
		if k := *t.Key; k == ec2v1.EKSClusterNameTagKey || k == "karpenter.sh/nodepool" || strings.HasPrefix(k, "reeve.dev/") {
			out = append(out, fmt.Sprintf("tag %s on %s", k, what))
		}
	}
	return out
}
