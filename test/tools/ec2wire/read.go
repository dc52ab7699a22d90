package main

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// requestField is one field in a serializer: its value, and what is done
	// with it.
	requestField = regexp.MustCompile(`(?s)objectKey := object\.(?:Flat)?Key\("([^"]+)"\)\n(.*?)(?:\n\t}\n|$)`)
	// requestUse names the field within that.
	requestUse = regexp.MustCompile(`\bv\.([A-Z]\w*)`)
	// requestCall is the serializer of the field's own type.
	requestCall = regexp.MustCompile(`(awsEc2query_serializeDocument\w+)\(`)
	// responseField is one case of a deserializer.
	responseField = regexp.MustCompile(`(?s)case strings\.EqualFold\("([^"]+)", t\.Name\.Local\):\n(.*?)(?:\n\t\tcase |\n\t\tdefault:)`)
	responseUse   = regexp.MustCompile(`\bsv\.([A-Z]\w*)`)
	responseCall  = regexp.MustCompile(`(awsEc2query_deserializeDocument\w+)\(`)
	// signature is the type that a function is for.
	signature = regexp.MustCompile(`^\(v (\*{0,2})(\[\])?([\w.]+), `)
)

// source is the bodies of functions by name, with the signature in front.
type source map[string]string

func split(text, prefix string) source {
	out := source{}
	for _, part := range strings.Split(text, "\nfunc ")[1:] {
		name, rest, _ := strings.Cut(part, "(")
		if strings.HasPrefix(name, prefix) {
			body, _, _ := strings.Cut(rest, "\n}\n")
			out[name] = "(" + body
		}
	}
	return out
}

// typeOf is the type that the function is for, "types.Tag" or
// "ec2.CreateFleetInput", and whether it is for a list of them.
func (s source) typeOf(function string) (name string, list bool, err error) {
	m := signature.FindStringSubmatch(s[function])
	if m == nil {
		return "", false, fmt.Errorf("function %s is not there, or not as expected", function)
	}
	name = m[3]
	if !strings.Contains(name, ".") && strings.ToUpper(name[:1]) == name[:1] {
		name = "ec2." + name
	}
	return name, m[2] != "", nil
}

// read makes the tables of everything that the actions reach.
func read(requests, responses string, actions []string) (tables, error) {
	out := tables{actions: actions, requests: map[string][]field{}, responses: map[string][]field{}}
	in := split(requests, "awsEc2query_serialize")
	back := split(responses, "awsEc2query_deserialize")
	for _, a := range actions {
		if err := in.walkRequest("awsEc2query_serializeOpDocument"+a+"Input", out.requests); err != nil {
			return out, err
		}
		// An action whose answer says nothing but that it went well has none.
		answer := "awsEc2query_deserializeOpDocument" + a + "Output"
		if _, ok := back[answer]; !ok {
			out.responses["ec2."+a+"Output"] = nil
			continue
		}
		if err := back.walkResponse(answer, out.responses); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (s source) walkRequest(function string, into map[string][]field) error {
	name, list, err := s.typeOf(function)
	if err != nil {
		return err
	}
	if list {
		if call := requestCall.FindStringSubmatch(s[function]); call != nil {
			return s.walkRequest(call[1], into)
		}
		return nil
	}
	if _, seen := into[name]; seen {
		return nil
	}
	into[name] = []field{}
	for _, m := range requestField.FindAllStringSubmatch(s[function], -1) {
		use := requestUse.FindStringSubmatch(m[2])
		if use == nil {
			return fmt.Errorf("%s: no field stands behind parameter %s", function, m[1])
		}
		into[name] = append(into[name], field{name: use[1], wire: m[1]})
		if call := requestCall.FindStringSubmatch(m[2]); call != nil {
			if err := s.walkRequest(call[1], into); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s source) walkResponse(function string, into map[string][]field) error {
	name, list, err := s.typeOf(function)
	if err != nil {
		return err
	}
	if list {
		return fmt.Errorf("%s: a list where a structure was expected", function)
	}
	if _, seen := into[name]; seen {
		return nil
	}
	into[name] = []field{}
	for _, m := range responseField.FindAllStringSubmatch(overlap(s[function]), -1) {
		use := responseUse.FindStringSubmatch(m[2])
		if use == nil {
			return fmt.Errorf("%s: no field stands behind element %s", function, m[1])
		}
		f := field{name: use[1], wire: m[1]}
		next := ""
		if call := responseCall.FindStringSubmatch(m[2]); call != nil {
			if f.item, next, err = s.through(call[1]); err != nil {
				return err
			}
		}
		into[name] = append(into[name], f)
		if next != "" {
			if err := s.walkResponse(next, into); err != nil {
				return err
			}
		}
	}
	return nil
}

// through looks through a list: the element around its entries, and what reads
// an entry, "" if that is plain text.
func (s source) through(function string) (item, next string, err error) {
	_, list, err := s.typeOf(function)
	if err != nil || !list {
		return "", function, err
	}
	m := responseField.FindStringSubmatch(overlap(s[function]))
	if m == nil {
		return "", "", fmt.Errorf("%s: the entries have no element", function)
	}
	if call := responseCall.FindStringSubmatch(m[2]); call != nil {
		next = call[1]
	}
	return m[1], next, nil
}

// overlap doubles the starts of cases, so that the end of one can be matched
// and the start of the next one still be found.
func overlap(body string) string {
	return strings.ReplaceAll(body, "\t\tcase strings", "\t\tcase end\n\t\tcase strings")
}
