package spec

import (
	"encoding/json"
	"strings"

	"github.com/reeve-project/reeve/schemas"
)

// applyDefaults fills in what a value lacks, as the API server does with
// structural schemas: first the field, then what is in it. The value is
// changed in place and numbers stay as they were written.
func applyDefaults(value any, d *schemas.Defaults) error {
	if d == nil {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		for name, p := range d.Properties {
			if err := defaultField(v, name, p); err != nil {
				return err
			}
		}
		for name, child := range v {
			if d.Properties[name] != nil {
				continue
			}
			if err := applyDefaults(child, d.AdditionalProperties); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := applyDefaults(item, d.Items); err != nil {
				return err
			}
		}
	}
	return nil
}

func defaultField(in map[string]any, name string, d *schemas.Defaults) error {
	if _, ok := in[name]; !ok {
		if d.Default == nil {
			return nil
		}
		dec := json.NewDecoder(strings.NewReader(string(d.Default)))
		dec.UseNumber()
		var value any
		if err := dec.Decode(&value); err != nil {
			return err
		}
		in[name] = value
	}
	return applyDefaults(in[name], d)
}

// complete applies the defaults of a whole fleet, and the one that depends on
// another field: the branch is named after the cluster.
func complete(root node) error {
	defaults, err := schemas.FleetDefaults()
	if err != nil {
		return err
	}
	if err := applyDefaults(root.value, defaults); err != nil {
		return err
	}
	if ledger, ok := root.get("cluster", "ledger").value.(map[string]any); ok {
		if _, set := ledger["branch"]; !set {
			ledger["branch"] = "reeve/" + root.get("cluster", "name").str()
		}
	}
	return nil
}
