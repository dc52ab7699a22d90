package awsapi

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// tagged are the tags of a resource, which may be changed in place.
func (e *Endpoint) tagged(id string) (map[string]string, error) {
	switch {
	case strings.HasPrefix(id, "i-"):
		if in := e.ec2.instance(id); in != nil {
			return in.Tags, nil
		}
		return nil, errorf(noInstance, noInstanceMessage, id)
	case strings.HasPrefix(id, "lt-"):
		if i := slices.IndexFunc(e.ec2.templates, func(t *template) bool { return t.id == id }); i >= 0 {
			return e.ec2.templates[i].tags, nil
		}
		return nil, errorf(noTemplateID, "The specified launch template, with template ID %s, does not exist.", id)
	case strings.HasPrefix(id, "subnet-"):
		if s := e.ec2.subnet(id); s != nil {
			s.Tags = owned(s.Tags)
			return s.Tags, nil
		}
		return nil, errorf("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	}
	return nil, errorf("InvalidID", "The ID '%s' is not valid", id)
}

// owned is a copy that may be changed: the tags given in Options are shared.
func owned(tags map[string]string) map[string]string {
	if tags == nil {
		return map[string]string{}
	}
	return maps.Clone(tags)
}

// createTags tags all resources or, if one of them does not exist, none.
func (e *Endpoint) createTags(in *ec2.CreateTagsInput) (*ec2.CreateTagsOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	all, err := e.allTagged(in.Resources)
	if err != nil {
		return nil, err
	}
	for _, tags := range all {
		after := maps.Clone(tags)
		for _, t := range in.Tags {
			after[deref(t.Key)] = deref(t.Value)
		}
		maps.DeleteFunc(after, func(k, _ string) bool { return reserved.MatchString(k) })
		if len(after) > maxTags {
			return nil, errorf("TagLimitExceeded", "More than %d tags for one resource.", maxTags)
		}
	}
	for _, tags := range all {
		for _, t := range in.Tags {
			tags[deref(t.Key)] = deref(t.Value)
		}
	}
	return &ec2.CreateTagsOutput{}, nil
}

// deleteTags deletes tags by key or, where a value is given, only those that
// have it; without tags all but those of AWS.
func (e *Endpoint) deleteTags(in *ec2.DeleteTagsInput) (*ec2.DeleteTagsOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	all, err := e.allTagged(in.Resources)
	if err != nil {
		return nil, err
	}
	for _, tags := range all {
		maps.DeleteFunc(tags, func(k, v string) bool {
			return !reserved.MatchString(k) && (len(in.Tags) == 0 || slices.ContainsFunc(in.Tags, func(t types.Tag) bool {
				return deref(t.Key) == k && (t.Value == nil || *t.Value == v)
			}))
		})
	}
	return &ec2.DeleteTagsOutput{}, nil
}

func (e *Endpoint) allTagged(ids []string) ([]map[string]string, error) {
	if len(ids) == 0 {
		return nil, errorf("MissingParameter", "The request must contain the parameter resourceIdSet")
	}
	var out []map[string]string
	for _, id := range ids {
		tags, err := e.tagged(id)
		if err != nil {
			return nil, err
		}
		out = append(out, tags)
	}
	return out, nil
}
