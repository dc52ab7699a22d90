package importer

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/reeve-project/reeve/reconciler/fleet"
)

const templateHint = "render it first: helm template, kustomize build, terraform output or envsubst, and pipe the result to reeve import -"

// culprit is something that is known to break manifests.
type culprit struct {
	pattern *regexp.Regexp // its last group is the place
	why     string
	hint    string
}

// culprits are looked for in this order in a document that does not parse.
var culprits = []culprit{
	{regexp.MustCompile(`(?m)^(API Version|Ami Selector Terms|Api Version):`), "this is what kubectl describe prints, not a manifest", "use kubectl get nodepools,ec2nodeclasses -o yaml"},
	{regexp.MustCompile(`(?m)(\{\{)`), "a Helm template ({{ … }}) that was not rendered", templateHint},
	{regexp.MustCompile(`(?m)(%\{)`), "a Terraform template directive (%{ … }) that was not rendered", templateHint},
	{regexp.MustCompile(`(?m)(\]\(https?:)`), "a Markdown link, as mail clients and chats make them", "take the manifest from its source"},
	{regexp.MustCompile(`(?m)([“”„‟‘’])`), "a typographic quote, which is no quote in YAML", `write " or '`},
	{regexp.MustCompile(`(?m)^ *(\t)`), "a tab in the indentation, which YAML does not allow", "indent with spaces"},
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// diagnose says where a document that does not parse is at fault and why. The
// parser knows the line only, and often one that comes after the fault.
func diagnose(file string, c chunk, err error) *fault {
	line, why := 1, err.Error()
	if m := yamlLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " ")); m != nil {
		why = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	lines := strings.Split(c.text, "\n")
	line = min(max(line, 1), len(lines))
	for _, k := range culprits {
		if i := k.pattern.FindStringSubmatchIndex(c.text); i != nil {
			return &fault{at: place(file, c, i[len(i)-2]), why: k.why + " (" + why + ")", hint: k.hint}
		}
	}
	text := lines[line-1]
	column := len(text) - len(strings.TrimLeft(text, " \t")) + 1
	return &fault{at: fleet.Position{File: file, Line: c.line + line - 1, Column: column}, why: "this is not YAML: " + why}
}
