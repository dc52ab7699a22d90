package awsapi

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// attributes are the values of what can be filtered by, by the filter's name.
// A filter that is not there is one that the action does not have.
type attributes map[string][]string

// one is the attribute of a single value.
func one[T ~string](v T) []string { return []string{string(v)} }

// matches says whether the thing passes all filters. Values of one filter are
// alternatives; "*" and "?" stand for any text and any character.
func matches(filters []types.Filter, attrs attributes, tags map[string]string) (bool, error) {
	all := true
	for _, f := range filters {
		have, err := lookup(deref(f.Name), attrs, tags)
		if err != nil {
			return false, err
		}
		all = all && slices.ContainsFunc(f.Values, func(want string) bool {
			return slices.ContainsFunc(have, func(v string) bool { return like(want, v) })
		})
	}
	return all, nil
}

func lookup(name string, attrs attributes, tags map[string]string) ([]string, error) {
	if key, ok := strings.CutPrefix(name, "tag:"); ok {
		if v, ok := tags[key]; ok {
			return []string{v}, nil
		}
		return nil, nil
	}
	var out []string
	switch name {
	case "tag-key":
		for k := range tags {
			out = append(out, k)
		}
		return out, nil
	case "tag-value":
		for _, v := range tags {
			out = append(out, v)
		}
		return out, nil
	}
	have, ok := attrs[name]
	if !ok {
		return nil, errorf("InvalidParameterValue", "The filter '%s' is invalid", name)
	}
	return have, nil
}

// like says whether the value is what the pattern asks for.
func like(pattern, v string) bool {
	if !strings.ContainsAny(pattern, "*?") {
		return pattern == v
	}
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(quoted)
	ok, err := regexp.MatchString("(?s)^"+quoted+"$", v)
	return err == nil && ok
}

// selected are the things that pass all filters. The sample is any thing: with
// it filters that the action does not have are refused even if the list is
// empty.
func selected[T any](list []T, filters []types.Filter, sample T, of func(T) (attributes, map[string]string)) ([]T, error) {
	attrs, tags := of(sample)
	if _, err := matches(filters, attrs, tags); err != nil {
		return nil, err
	}
	var out []T
	for _, x := range list {
		attrs, tags := of(x)
		ok, err := matches(filters, attrs, tags)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, x)
		}
	}
	return out, nil
}

// bounds are how many entries a page may be asked to have. EC2 gives all when
// not asked, but for some actions.
type bounds struct{ least, most, unasked int }

// page is one page of the list, and the token of the next one.
func page[T any](list []T, size *int32, token *string, b bounds) ([]T, *string, error) {
	n := b.unasked
	if size != nil {
		n = int(*size)
		if n < b.least || n > b.most {
			return nil, nil, errorf("InvalidParameterValue", "Value ( %d ) for parameter maxResults is invalid. Expecting a value between %d and %d.", n, b.least, b.most)
		}
	}
	from := 0
	if token != nil {
		raw, err := base64.RawURLEncoding.DecodeString(*token)
		if err == nil {
			from, err = strconv.Atoi(string(raw))
		}
		if err != nil || from < 0 {
			return nil, nil, errorf("InvalidNextToken", "The token '%s' is invalid", *token)
		}
	}
	from = min(from, len(list))
	end := min(from+n, len(list))
	if end == len(list) {
		return list[from:], nil, nil
	}
	return list[from:end], new(base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(end)))), nil
}

// deref is the value, or none of its type.
func deref[T any](p *T) T {
	var none T
	if p == nil {
		return none
	}
	return *p
}
