package schemas

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
)

// Defaults is a tree of default values in the form of an OpenAPI schema, as
// Kubernetes' structural schemas use it: a field that is absent gets its
// default; what is there afterwards is looked at by properties, by
// additionalProperties and by items.
//
// Defaults are no part of the CUE schemas: two defaults for one field cancel
// out in CUE, so a default in the schema would forbid users their own.
type Defaults struct {
	// Default is the JSON of the value, or nothing.
	Default json.RawMessage `json:"default,omitempty"`
	// Properties are the fields of a struct.
	Properties map[string]*Defaults `json:"properties,omitempty"`
	// AdditionalProperties is for all values of a map.
	AdditionalProperties *Defaults `json:"additionalProperties,omitempty"`
	// Items is for all elements of a list.
	Items *Defaults `json:"items,omitempty"`
}

//go:embed defaults.json
var ownDefaults []byte

// Made from the CRDs: a Defaults for each kind.
//
//go:embed defaults_gen.json
var crdDefaults []byte

// KindDefaults are the defaults of single objects by kind, as Karpenter's CRDs
// have them. The result is shared and must not be changed.
var KindDefaults = sync.OnceValues(func() (map[string]*Defaults, error) {
	var kinds map[string]*Defaults
	if err := json.Unmarshal(crdDefaults, &kinds); err != nil {
		return nil, fmt.Errorf("defaults of the CRDs: %w", err)
	}
	return kinds, nil
})

// FleetDefaults are the defaults of a whole fleet: those of Reeve's settings
// and, for each NodePool and EC2NodeClass, those of Karpenter's CRDs. The
// result is shared and must not be changed.
var FleetDefaults = sync.OnceValues(func() (*Defaults, error) {
	fleet := &Defaults{}
	if err := json.Unmarshal(ownDefaults, fleet); err != nil {
		return nil, fmt.Errorf("defaults of the settings: %w", err)
	}
	kinds, err := KindDefaults()
	if err != nil {
		return nil, err
	}
	fleet.Properties["nodePools"].AdditionalProperties = kinds["NodePool"]
	fleet.Properties["nodeClasses"].AdditionalProperties = kinds["EC2NodeClass"]
	return fleet, nil
})
