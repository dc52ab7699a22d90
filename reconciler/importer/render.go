package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	kyaml "sigs.k8s.io/yaml"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

// Kinds are the kinds that Render knows, in the order in which it writes them:
// what is referred to comes first.
var Kinds = []string{kindClass, kindPool}

// Render writes the NodePools and EC2NodeClasses of a fleet as YAML that
// kubectl applies and Karpenter understands: the objects that Reeve itself
// works with, defaults filled in, sorted by kind and name. No kinds means all.
func Render(f *fleet.Fleet, kinds []string) ([]byte, error) {
	objects, err := objectsOf(f, kinds)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for i, o := range objects {
		y, err := kyaml.JSONToYAML(o)
		if err != nil {
			return nil, fmt.Errorf("render: %w", err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(y)
	}
	return out.Bytes(), nil
}

// RenderJSON writes the same objects as one List in JSON.
func RenderJSON(f *fleet.Fleet, kinds []string) ([]byte, error) {
	objects, err := objectsOf(f, kinds)
	if err != nil {
		return nil, err
	}
	if objects == nil {
		objects = []json.RawMessage{}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(struct {
		Version string            `json:"apiVersion"`
		Kind    string            `json:"kind"`
		Items   []json.RawMessage `json:"items"`
	}{"v1", "List", objects})
	if err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	return out.Bytes(), nil
}

func objectsOf(f *fleet.Fleet, kinds []string) ([]json.RawMessage, error) {
	for _, k := range kinds {
		if !slices.Contains(Kinds, k) {
			return nil, fmt.Errorf("render: there is no kind %q in a fleet: it has %s", k, strings.Join(Kinds, " and "))
		}
	}
	var doc struct {
		NodeClasses map[string]json.RawMessage `json:"nodeClasses"`
		NodePools   map[string]json.RawMessage `json:"nodePools"`
	}
	if err := json.Unmarshal(f.Document, &doc); err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	var out []json.RawMessage
	for _, k := range Kinds {
		if len(kinds) > 0 && !slices.Contains(kinds, k) {
			continue
		}
		all := doc.NodePools
		if k == kindClass {
			all = doc.NodeClasses
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			out = append(out, all[name])
		}
	}
	return out, nil
}
