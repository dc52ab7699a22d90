package awsapi

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// wireField is how one field of an SDK type is called on the wire.
type wireField struct {
	name, wire string
	// item is the element around each entry of a list in answers.
	item string
}

// wireTables are the generated tables, read once.
var wireTables = sync.OnceValue(func() (t struct{ requests, responses map[string][]wireField }) {
	t.requests, t.responses = readWire(wireRequests), readWire(wireResponses)
	return t
})

func readWire(table map[string]string) map[string][]wireField {
	out := make(map[string][]wireField, len(table))
	for typ, list := range table {
		fields := []wireField{}
		for _, f := range strings.Fields(list) {
			name, wire, renamed := strings.Cut(f, ":")
			if !renamed {
				wire = name
			}
			wire, item, _ := strings.Cut(wire, "/")
			fields = append(fields, wireField{name: name, wire: wire, item: item})
		}
		out[typ] = fields
	}
	return out
}

// timeForm is how EC2 writes instants.
const timeForm = "2006-01-02T15:04:05.000Z"

// fieldsOf are the fields of the type in a table. A type that it does not have
// is a mistake of the generator's.
func fieldsOf(table map[string][]wireField, t reflect.Type) ([]wireField, error) {
	fields, ok := table[t.String()]
	if !ok {
		return nil, fmt.Errorf("the tables of wire names lack %s: generate them again", t)
	}
	return fields, nil
}
