package report

import (
	"cmp"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"
)

// The parts of SARIF 2.1.0 that a check fills in
// (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		Language   string        `json:"language"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Language       string      `json:"language"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string      `json:"id"`
		ShortDescription     sarifText   `json:"shortDescription"`
		FullDescription      *sarifText  `json:"fullDescription,omitempty"`
		Help                 *sarifText  `json:"help,omitempty"`
		HelpURI              string      `json:"helpUri,omitempty"`
		DefaultConfiguration sarifConfig `json:"defaultConfiguration"`
	}
	sarifConfig struct {
		Level level `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID              string             `json:"ruleId"`
		RuleIndex           int                `json:"ruleIndex"`
		Level               level              `json:"level"`
		Message             sarifText          `json:"message"`
		Locations           []sarifLocation    `json:"locations"`
		PartialFingerprints map[string]string  `json:"partialFingerprints"`
		BaselineState       string             `json:"baselineState,omitempty"`
		Suppressions        []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
)

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	language    = "en-US"
	homepage    = "https://github.com/reeve-project/reeve"
	rulesPage   = homepage + "/blob/main/docs/reference/policy-rules.md"
	// fingerprintKey names the way in which a fingerprint is made, so that
	// another way will never be taken for it.
	fingerprintKey = "reeve/v1"
)

// CheckSARIF writes the check as SARIF 2.1.0, with one SARIF rule for each rule
// that found something. Files are relative to the root of the Git repository. A
// finding that an exception lets pass is suppressed.
func CheckSARIF(w io.Writer, c *Check) error {
	all := c.findings()
	run := sarifRun{
		Tool:     sarifTool{sarifDriver{Name: "reeve", InformationURI: homepage, Language: language, Rules: []sarifRule{}}},
		Language: language, ColumnKind: "unicodeCodePoints", Results: []sarifResult{},
	}
	var ids []string
	for i := range all {
		ids = append(ids, all[i].Rule)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for _, id := range ids {
		first := slices.IndexFunc(all, func(f found) bool { return f.Rule == id })
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, c.sarifRule(&all[first]))
	}
	for i := range all {
		r := c.sarifResult(&all[i])
		r.RuleIndex, _ = slices.BinarySearch(ids, r.RuleID)
		run.Results = append(run.Results, r)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

func (c *Check) sarifRule(f *found) sarifRule {
	r := c.ruleOf(f.Finding)
	out := sarifRule{
		ID: r.ID, ShortDescription: sarifText{clean(cmp.Or(r.Title, r.ID))},
		DefaultConfiguration: sarifConfig{levelError},
	}
	if r.Severity == "warning" {
		out.DefaultConfiguration.Level = levelWarning
	}
	if r.Description != "" {
		out.FullDescription = &sarifText{clean(r.Description)}
	}
	if r.Remediation != "" {
		out.Help = &sarifText{clean(r.Remediation)}
	}
	if strings.HasPrefix(r.ID, "REEVE-") {
		out.HelpURI = rulesPage + "#" + strings.ToLower(r.ID)
	}
	return out
}

func (c *Check) sarifResult(f *found) sarifResult {
	r := sarifResult{
		RuleID: f.Rule, Level: f.level, Message: sarifText{strings.Join(append([]string{f.text()}, f.lines()...), "\n")},
		Locations: []sarifLocation{{Physical: sarifPhysical{
			Artifact: sarifArtifact{(&url.URL{Path: f.file}).String()},
			Region:   sarifRegion{f.line, f.column},
		}}},
		PartialFingerprints: map[string]string{fingerprintKey: Fingerprint(f.cluster, f.Finding)},
	}
	if f.Resource != "" {
		r.Locations[0].Logical = []sarifLogical{{clean(f.cluster + "/" + f.Resource)}}
	}
	if c.Base != nil {
		r.BaselineState = "new"
	}
	if e := f.Exception; e != nil {
		r.Suppressions = []sarifSuppression{{Kind: "external", Status: "accepted", Justification: clean(e.Owner + ": " + e.Reason)}}
	}
	return r
}
