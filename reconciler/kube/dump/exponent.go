package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/reeve-project/reeve/reconciler/resources"
)

// A quantity such as 1e999999999 is parsed by writing all its digits, which
// never ends. It has to be found before the types of the API see it.
var hugeExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4,}`)

// wordy are fields below which stand words and no quantities: a label may well
// be 12e34567.
var wordy = map[string]bool{
	"labels": true, "annotations": true, "nodeSelector": true, "matchLabels": true, "values": true,
	"env": true, "args": true, "command": true, "managedFields": true,
	"name": true, "namespace": true, "uid": true, "resourceVersion": true,
}

// checkExponents finds a quantity whose exponent is beyond all reason.
func checkExponents(raw json.RawMessage) error {
	if !hugeExponent.Match(raw) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return err
	}
	return searchExponent("", v)
}

func searchExponent(field string, v any) error {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if wordy[key] {
				continue
			}
			if err := searchExponent(field+"."+key, v[key]); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range v {
			if err := searchExponent(fmt.Sprintf("%s[%d]", field, i), item); err != nil {
				return err
			}
		}
	case json.Number:
		return quantityOf(field, v.String())
	case string:
		return quantityOf(field, v)
	}
	return nil
}

func quantityOf(field, text string) error {
	if resources.HugeExponent(text) {
		return fmt.Errorf("%s: the exponent of %.40s is beyond all reason", field[min(1, len(field)):], text)
	}
	return nil
}
