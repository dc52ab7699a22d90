package eval

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// misfit says that a value does not satisfy a bound.
func misfit(value, constraint string) string {
	words := bound(constraint)
	if strings.HasPrefix(constraint, "=~") && !strings.HasPrefix(value, `"`) && !strings.Contains(words, "in quotes") {
		words += ", in quotes"
	}
	return fmt.Sprintf("invalid value %s: %s", value, words)
}

// bound says in words what CUE writes as an operator.
func bound(b string) string {
	if rest, ok := strings.CutPrefix(b, "=~"); ok {
		return "it must " + pattern(rest)
	}
	if words, ok := exclusions[b]; ok {
		return words
	}
	for _, op := range []struct{ sign, words string }{
		{"!~", "it must not match "}, {"!=", "it must not be "},
		{">=", "it must be at least "}, {"<=", "it must be at most "}, {">", "it must be more than "}, {"<", "it must be less than "},
	} {
		if rest, ok := strings.CutPrefix(b, op.sign); ok {
			return op.words + rest
		}
	}
	return "it must be " + b
}

// exclusions are the values that the schemas take out.
var exclusions = map[string]string{
	`!=""`:                       "it must not be empty",
	`!~"^-"`:                     "it must not be negative",
	`!="kubernetes.io/hostname"`: "this label is restricted, as the provisioner sets it; use one of your own",
	`!="karpenter.sh/nodepool"`:  "this label is restricted, as the provisioner sets it; use one of your own",
}

// pattern says in words what a regular expression of the schemas accepts.
func pattern(quoted string) string {
	re, err := strconv.Unquote(quoted)
	if err != nil {
		return "match " + quoted
	}
	if words, ok := patterns[re]; ok {
		return "be " + words
	}
	return "match " + re
}

var (
	lengths    = regexp.MustCompile(`^incompatible list lengths \((\d+) and (\d+)\)$`)
	validator  = regexp.MustCompile(`(?s)does not satisfy (list|strings|struct)\.(\w+)(?:\((\d*)\))?\)(?:.*\((\d+) [<>] \d+\))?`)
	mismatch   = regexp.MustCompile(`(?s)^conflicting values (.*) and (.*) \(mismatched types (\w+) and (\w+)\)$`)
	literal    = regexp.MustCompile(`^("|-?[0-9]|(true|false|null)$)`)
	constraint = regexp.MustCompile(`^(string|bool|number|u?int[0-9]*|(strings|struct|list)\.\w+\(.*\))$`)
)

// plainer rewrites those messages of CUE that name functions or types of CUE.
func plainer(text string) string {
	if m := lengths.FindStringSubmatch(text); m != nil && (m[1] == "0" || m[2] == "0") {
		return "the list is empty, it must have at least one element"
	}
	if m := validator.FindStringSubmatch(text); m != nil {
		if words := unsatisfied(m[2], m[3], m[4]); words != "" {
			return words
		}
	}
	if m := mismatch.FindStringSubmatch(text); m != nil {
		return mismatched(text, m)
	}
	return text
}

// unsatisfied says what one of CUE's validators wants, if it is one that the
// schemas use.
func unsatisfied(name, limit, got string) string {
	has := ""
	if got != "" {
		has = ", not " + got
	}
	switch name {
	case "MaxItems":
		return "at most " + limit + " elements are allowed" + has
	case "MinItems":
		return "at least " + limit + " elements are needed" + has
	case "MaxFields":
		return "at most " + limit + " fields are allowed" + has
	case "UniqueItems":
		return "an element is in the list twice, each may be there once"
	case "MaxRunes":
		return "the text is too long, at most " + limit + " characters are allowed"
	case "MinRunes":
		return "the text is too short, at least " + limit + " characters are needed"
	}
	return ""
}

// mismatched says of which type a value is and of which it must be, where one
// side is a value and the other a type; the user's values may also clash with
// each other.
func mismatched(text string, m []string) string {
	value, is, want := m[1], m[3], m[4]
	other := m[2]
	if constraint.MatchString(value) || strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[") {
		value, other, is, want = m[2], m[1], m[4], m[3]
	}
	simple := constraint.MatchString(other)
	compound := strings.HasPrefix(other, "{") || strings.HasPrefix(other, "[")
	switch {
	case literal.MatchString(value) && (simple || compound):
		return fmt.Sprintf("%s is %s, it must be %s", value, types(is), types(want))
	case strings.HasPrefix(value, "{") && simple, strings.HasPrefix(value, "[") && simple:
		return fmt.Sprintf("%s does not fit here, it must be %s", types(is), types(want))
	case compound && (strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[")):
		return fmt.Sprintf("%s does not fit %s", types(is), types(want))
	}
	return text
}

// types names a type of CUE.
func types(name string) string {
	if words, ok := map[string]string{
		"string": "text in quotes", "int": "a whole number", "float": "a number with decimals", "number": "a number",
		"bool": "true or false", "struct": "a struct of fields", "list": "a list", "null": "null",
	}[name]; ok {
		return words
	}
	return name
}

// patterns are the regular expressions of the schemas that people meet most.
var patterns = map[string]string{
	`^(([0-9]+(s|m|h))+|Never)$`:                                        `a duration such as "30s", "5m" or "720h", or "Never"`,
	`^([0-9]+(s|m|h))+$`:                                                `a duration such as "30s", "5m" or "720h"`,
	`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`:                            `a duration such as "250ms", "10s" or "168h"`,
	`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`:                         `hours and minutes such as "8h" or "1h30m"`,
	`^((100|[0-9]{1,2})%|[0-9]+)$`:                                      `a whole number or a percentage such as "10%", in quotes`,
	`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`:                     `a label value: letters, digits, "-", "_" and "."`,
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`: `a name in lower case: letters, digits, "-" and "."`,
	`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$`:                                                                                       `a cron line of five fields, or @daily and the like`,
	`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`:                                                                `a quantity such as "500m", "10Gi" or 1000`,
	`^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$`: `a size of a volume such as "100Gi", at most "59000Gi", "64000G", "64T" or "58Ti" (of Ti, not 18, 19, 28, 29 and so on)`,
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`:                                                                 `a name such as "team" or "example.com/team": letters, digits, "-", "_" and ".", and before them a domain in lower case with one "/"`,
	`^[^/]*$`:          `a group such as "karpenter.k8s.aws", without "/"`,
	`^[0-9]{12}$`:      `an account of 12 digits`,
	`^cr-[0-9a-z]+$`:   `the id of a capacity reservation such as "cr-0123456789abcdef0"`,
	`^pg-[0-9a-z]+$`:   `the id of a placement group such as "pg-0123456789abcdef0"`,
	`ami-[0-9a-z]+`:    `the id of an image such as "ami-0123456789abcdef0"`,
	`sg-[0-9a-z]+`:     `the id of a security group such as "sg-0123456789abcdef0"`,
	`subnet-[0-9a-z]+`: `the id of a subnet such as "subnet-0123456789abcdef0"`,
	`^(al2|al2023|bottlerocket)@.+$|^windows(2019|2022|2025)@latest$`:                                                                                            `family@version such as "al2023@v20260318": the families are al2, al2023, bottlerocket, windows2019, windows2022 and windows2025, and those of Windows have the version latest only`,
	`^((\d{1,2}(\.\d{1,2})?|100(\.0{1,2})?)%||(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?)$`: `an amount such as "500Mi" or a percentage such as "5%", at most "100%"`,
}
