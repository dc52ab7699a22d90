package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// choice is the exclusions of one rule for one reason.
type choice struct {
	body         *body
	msg          string
	nodePool     string
	zone         string
	capacityType string
	path         fleet.Path
	// types are sorted; set is how a verdict holds them, under digest when there
	// are many. Both are shared by all results that the answer leads to.
	types []string
	set   decision.TypeSet
}

// choices join elements that differ only in the instance type. Types that are
// not in question are left out.
func choices(els []element, q *question) []choice {
	byKey := map[string]*choice{}
	for _, el := range els {
		pool := cmp.Or(el.nodePool, q.nodePool)
		types := el.within(q.scope, pool)
		if len(types) == 0 {
			continue
		}
		key := strings.Join([]string{el.body.key, el.msg, pool, el.zone, el.capacityType, el.path.String()}, "\x00")
		ch := byKey[key]
		if ch == nil {
			ch = &choice{body: el.body, msg: el.msg, nodePool: pool, zone: el.zone, capacityType: el.capacityType, path: el.path}
			byKey[key] = ch
		}
		ch.types = append(ch.types, types...)
	}
	out := make([]choice, 0, len(byKey))
	for _, key := range sortedKeys(byKey) {
		ch := byKey[key]
		slices.Sort(ch.types)
		ch.types = slices.Compact(ch.types)
		ch.set = decision.NewTypeSet(ch.types, map[string][]string{})
		out = append(out, *ch)
	}
	slices.SortStableFunc(out, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.body.ID, b.body.ID), cmp.Compare(a.msg, b.msg))
	})
	return out
}

// within are the types of the element that are in question.
func (el *element) within(s scope, nodePool string) []string {
	if el.allTypes {
		return s.all(nodePool, el.zone, el.capacityType)
	}
	var out []string
	for _, name := range el.types {
		if s.has(name, nodePool, el.zone, el.capacityType) {
			out = append(out, name)
		}
	}
	return out
}

// record is the result of an evaluation as it is kept.
type record struct {
	result json.RawMessage
	erased []string
}

// recorded is the shape of the result.
type recorded struct {
	Deny    []recordedFinding `json:"deny"`
	Warn    []recordedFinding `json:"warn"`
	Exclude []recordedChoice  `json:"exclude,omitempty"`
}

type recordedFinding struct {
	Rule  string `json:"rule"`
	Value any    `json:"value"`
}

type recordedChoice struct {
	Rule         string           `json:"rule"`
	Message      string           `json:"msg,omitempty"`
	Zone         string           `json:"zone,omitempty"`
	CapacityType string           `json:"capacityType,omitempty"`
	Types        decision.TypeSet `json:"types"`
}

// newRecord encodes what was found. Exclusions that would fill the record are
// kept as one count for each rule; the types themselves are in the verdict.
func newRecord(a *answer) (record, error) {
	deny, err := recordFindings(a.deny)
	if err != nil {
		return record{}, err
	}
	warn, err := recordFindings(a.warn)
	if err != nil {
		return record{}, err
	}
	r := recorded{Deny: deny, Warn: warn}
	b, err := canonical(r)
	if err != nil {
		return record{}, err
	}
	if len(b) > maxResult {
		return record{}, fmt.Errorf("the policies say %d bytes, more than the %d that are kept", len(b), maxResult)
	}
	out := record{erased: []string{"/input"}}
	r.Exclude = recordChoices(a.exclude)
	if out.result, err = canonical(r); err != nil || len(out.result) <= maxResult {
		return out, err
	}
	r.Exclude = recordCounts(a.exclude)
	out.erased = append(out.erased, "/result/exclude")
	out.result, err = canonical(r)
	return out, err
}

func recordFindings(els []element) ([]recordedFinding, error) {
	out := make([]recordedFinding, 0, len(els))
	for _, el := range els {
		v, err := ast.JSONWithOpt(el.value, ast.JSONOpt{SortSets: true})
		if err != nil {
			return nil, fmt.Errorf("%s: rule %s: %w", el.body.source(), el.body.ID, err)
		}
		out = append(out, recordedFinding{Rule: el.body.ID, Value: v})
	}
	return out, nil
}

func recordChoices(list []choice) []recordedChoice {
	var out []recordedChoice
	for _, ch := range list {
		out = append(out, recordedChoice{
			Rule: ch.body.ID, Message: ch.msg, Zone: ch.zone, CapacityType: ch.capacityType,
			Types: ch.set,
		})
	}
	return out
}

func recordCounts(list []choice) []recordedChoice {
	counts := map[string]int{}
	for _, ch := range list {
		counts[ch.body.ID] += len(ch.types)
	}
	var out []recordedChoice
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, recordedChoice{Rule: id, Types: decision.TypeSet{Count: counts[id]}})
	}
	return out
}

// canonical is JSON without spaces and with sorted keys of maps.
func canonical(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// evaluation is the record of a question in the shape of OPA's decision log.
func (e *Engine) evaluation(c Case, q *question, a *answer) decision.Evaluation {
	ev := decision.Evaluation{
		Labels:     e.labels,
		DecisionID: q.id,
		Bundles:    map[string]decision.Bundle{"reeve": {Revision: e.digest}},
		Path:       "reeve/" + string(q.stage),
		Result:     a.record.result,
		Erased:     a.record.erased,
		Timestamp:  decision.Milliseconds(c.Now),
		Custom:     decision.EvaluationCustom{Stage: string(q.stage), Round: c.Round, InputDigest: q.digest},
	}
	if q.stage == StageOffering {
		ev.Custom.NodePool = q.nodePool
	}
	if a.failure != nil {
		ev.Erased = []string{"/input"}
		ev.Custom.Cause, ev.Custom.Error = a.failure.Cause, a.failure.Error
	}
	return ev
}
