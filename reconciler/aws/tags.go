package aws

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/port"
)

// ownTags begin the tags that say which decision something is from. They differ
// from launch to launch, so what launches share does not have them.
const ownTags = "reeve.dev/"

// instanceTags are those of what one call launches.
func instanceTags(req port.LaunchRequest) map[string]string {
	out := maps.Clone(req.Tags)
	if out == nil {
		out = map[string]string{}
	}
	out[cluster.DecisionAnnotation] = req.Decision
	out[port.GroupTag] = strconv.Itoa(req.Group)
	return out
}

// sharedTags are those of the request that all launches of its NodePool share.
func sharedTags(req port.LaunchRequest) map[string]string {
	out := map[string]string{}
	for k, v := range req.Tags {
		if !strings.HasPrefix(k, ownTags) {
			out[k] = v
		}
	}
	return out
}

// ec2Tags are the tags as EC2 takes them, sorted.
func ec2Tags(tags map[string]string) []types.Tag {
	out := make([]types.Tag, 0, len(tags))
	for _, k := range sortedKeys(tags) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(tags[k])})
	}
	return out
}

// tagMap is the reverse of ec2Tags.
func tagMap(tags []types.Tag) map[string]string {
	out := make(map[string]string, len(tags))
	for _, t := range tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
