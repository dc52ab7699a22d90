package awsapi

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// iamRequest is the form of a request.
type iamRequest struct{ url.Values }

// list is the members of a list of strings.
func (in iamRequest) list(name string) []string {
	var out []string
	for i := 1; ; i++ {
		key := fmt.Sprintf("%s.member.%d", name, i)
		if !in.Has(key) {
			return out
		}
		out = append(out, in.Get(key))
	}
}

// tags are the members of the list of tags.
func (in iamRequest) tags() map[string]string {
	out := map[string]string{}
	for i := 1; ; i++ {
		key := fmt.Sprintf("Tags.member.%d.", i)
		if !in.Has(key + "Key") {
			return out
		}
		out[in.Get(key+"Key")] = in.Get(key + "Value")
	}
}

// The entities as IAM writes them.
type (
	xmlTag struct{ Key, Value string }

	xmlRole struct {
		Path, RoleName           string
		RoleID                   string `xml:"RoleId"`
		Arn, CreateDate          string
		AssumeRolePolicyDocument string
	}

	xmlProfile struct {
		Path, InstanceProfileName string
		InstanceProfileID         string `xml:"InstanceProfileId"`
		Arn, CreateDate           string
		Roles                     []xmlRole `xml:"Roles>member"`
		Tags                      []xmlTag  `xml:"Tags>member"`
	}
)

func xmlTags(tags map[string]string) []xmlTag {
	out := make([]xmlTag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, xmlTag{k, tags[k]})
	}
	return out
}

func (s *iamService) wire(p *profile) xmlProfile {
	out := xmlProfile{
		Path: p.Path, InstanceProfileName: p.Name, InstanceProfileID: iamID("AIPA", s.account, p.Name, p.Created.Format(time.RFC3339Nano)),
		Arn: "arn:aws:iam::" + s.account + ":instance-profile" + p.Path + p.Name, CreateDate: p.Created.Format(time.RFC3339), Tags: xmlTags(p.Tags),
	}
	if role, err := s.roleNamed(p.Role); err == nil {
		out.Roles = []xmlRole{role}
	}
	return out
}

func (s *iamService) profileResult(p *profile) any {
	return struct{ InstanceProfile xmlProfile }{s.wire(p)}
}

// iamID is an id in IAM's shape: a prefix for the kind, then seventeen letters
// and digits.
func iamID(prefix string, parts ...string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(uuidOf(parts...), "-", ""))[:17]
}

// pageOf is the page of a sorted list that the request asks for, and the marker
// of the next one: the key of its last element. IAM pages by a hundred.
func pageOf[T any](all []T, in iamRequest, key func(T) string) ([]T, string, error) {
	size, err := strconv.Atoi(cmp.Or(in.Get("MaxItems"), "100"))
	if err != nil || size < 1 || size > 1000 {
		return nil, "", errorf("ValidationError", "Value %q at 'maxItems' failed to satisfy constraint: it must be between 1 and 1000.", in.Get("MaxItems"))
	}
	if after := in.Get("Marker"); after != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(t T) bool { return key(t) <= after })
	}
	if len(all) <= size {
		return all, "", nil
	}
	return all[:size], key(all[size-1]), nil
}
