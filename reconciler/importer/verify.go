package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// Verify compares the evaluated fleet with what was imported and reports the
// fields that did not arrive; there are none unless Reeve is at fault. Defaults
// may have been added, nothing may lack or differ.
func (res *Result) Verify(f *fleet.Fleet) error {
	dec := json.NewDecoder(bytes.NewReader(f.Document))
	dec.UseNumber()
	var doc map[string]any
	if err := dec.Decode(&doc); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	for _, o := range res.objects {
		top := "nodePools"
		if o.kind == kindClass {
			top = "nodeClasses"
		}
		all, _ := doc[top].(map[string]any)
		got, _ := all[o.name].(map[string]any)
		meta, _ := got["metadata"].(map[string]any)
		missing := differ(o.spec, got["spec"], fleet.Path{"spec"})
		for _, f := range []*field{o.labels, o.remarks} {
			if f != nil {
				missing = append(missing, differ(f.value, meta[f.name], fleet.Path{"metadata", f.name})...)
			}
		}
		for _, path := range missing {
			res.Report.Add(Entry{Position: o.at, Class: Lost, Object: o.label, Field: path, Why: "the CUE that was written does not say this: a fault of reeve, please report it"})
		}
	}
	return nil
}

// differ are the fields of want that got lacks or has otherwise.
func differ(want *node, got any, path fleet.Path) []string {
	var out []string
	switch want.kind {
	case mapping:
		m, ok := got.(map[string]any)
		if !ok {
			return []string{path.String()}
		}
		for _, f := range want.fields {
			out = append(out, differ(f.value, m[f.name], append(slices.Clip(path), f.name))...)
		}
		return out
	case sequence:
		list, ok := got.([]any)
		if !ok || len(list) != len(want.items) {
			return []string{path.String()}
		}
		for i, item := range want.items {
			out = append(out, differ(item, list[i], append(slices.Clip(path), strconv.Itoa(i)))...)
		}
		return out
	}
	if !equal(want, got) {
		return []string{path.String()}
	}
	return nil
}

func equal(want *node, got any) bool {
	switch v := got.(type) {
	case string:
		return want.kind == text && want.value == v
	case bool:
		return want.kind == boolean && want.value == strconv.FormatBool(v)
	case json.Number:
		a, errA := resources.ParseQuantity(want.value)
		b, errB := resources.ParseQuantity(v.String())
		return errA == nil && errB == nil && a.Cmp(b) == 0
	}
	return false
}
