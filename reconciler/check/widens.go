package check

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/reeve-project/reeve/reconciler/policy"
)

// widens says whether every node that met a requirement of a NodePool still does
// after the change: the requirement is gone, or has the same operator and asks
// for less.
func widens(f *policy.FieldChange) bool {
	if f.Before != nil && f.After == nil {
		return true
	}
	if f.Before == nil || f.Path[len(f.Path)-1] != "values" || f.Before["operator"] != f.After["operator"] {
		return false
	}
	var from, to []string
	if json.Unmarshal(f.From, &from) != nil || json.Unmarshal(f.To, &to) != nil {
		return false
	}
	switch f.After["operator"] {
	case "In":
		return covers(to, from)
	case "NotIn":
		return covers(from, to)
	case "Gt", "Gte":
		a, b, ok := bounds(from, to)
		return ok && b <= a
	case "Lt", "Lte":
		a, b, ok := bounds(from, to)
		return ok && b >= a
	}
	return false
}

// covers says whether the first list has every value of the second.
func covers(all, some []string) bool {
	return !slices.ContainsFunc(some, func(v string) bool { return !slices.Contains(all, v) })
}

// bounds are the numbers of a requirement that takes one.
func bounds(from, to []string) (a, b int, ok bool) {
	if len(from) != 1 || len(to) != 1 {
		return 0, 0, false
	}
	a, err := strconv.Atoi(from[0])
	if err != nil {
		return 0, 0, false
	}
	b, err = strconv.Atoi(to[0])
	return a, b, err == nil
}
