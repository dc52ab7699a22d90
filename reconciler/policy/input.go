package policy

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// FleetDocument is a whole fleet as JSON: fleet.Fleet.Document. It has the
// fields cluster, nodePools, nodeClasses, policy and exceptions of the CUE
// package; NodePools and EC2NodeClasses are objects by name.
type FleetDocument json.RawMessage

// ObjectDocument is one NodePool, EC2NodeClass or status of one as JSON, as it
// stands in a fleet's document or in the Kubernetes API.
type ObjectDocument json.RawMessage

// MarshalJSON is the document itself; an empty one is null.
func (d FleetDocument) MarshalJSON() ([]byte, error) { return orNull(d), nil }

// MarshalJSON is the document itself; an empty one is null.
func (d ObjectDocument) MarshalJSON() ([]byte, error) { return orNull(d), nil }

func orNull(b []byte) []byte {
	if len(bytes.TrimSpace(b)) == 0 {
		return []byte("null")
	}
	return b
}

// encodeInput is the input as policies see it, with the digest of its canonical
// form.
func encodeInput(input any) (ast.Value, string, error) {
	b, err := canonical(input)
	if err != nil {
		return nil, "", fmt.Errorf("input: %w", err)
	}
	v, err := toValue(b)
	return v, decision.Digest(b), err
}

// toValue converts JSON with exact numbers.
func toValue(b []byte) (ast.Value, error) {
	var x any
	if err := util.UnmarshalJSON(b, &x); err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	v, err := ast.InterfaceToValue(x)
	if err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	return v, nil
}

// documents are the parts of a fleet's document.
type documents struct {
	NodePools   map[string]json.RawMessage `json:"nodePools"`
	NodeClasses map[string]json.RawMessage `json:"nodeClasses"`
}

func parseDocuments(f *fleet.Fleet) (documents, error) {
	var d documents
	if len(f.Document) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(f.Document, &d); err != nil {
		return d, fmt.Errorf("document of the fleet: %w", err)
	}
	return d, nil
}
