package importer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pool is a NodePool with more lines in its spec.
func pool(name string, lines ...string) string {
	out := "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata:\n  name: " + name + "\nspec:\n" +
		"  template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: []}}\n"
	for _, l := range lines {
		out += "  " + l + "\n"
	}
	return out
}

// imported is what an import of one stream says: the names of what was
// imported and the lines of the report.
func imported(text string) (names, lines []string) {
	res := Import([]Input{{Name: "in.yaml", Data: []byte(text)}}, Options{})
	for _, i := range res.Report.Imported {
		names = append(names, i.Kind+"/"+i.Name)
	}
	for _, e := range res.Report.Entries {
		lines = append(lines, e.String())
	}
	return names, lines
}

func TestBadInputIsImportedOrRefusedWithItsPlace(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 8 {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", 'b'+i, 'b'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i, 'a'+i)
	}
	tests := []struct {
		name, text string
		imported   []string
		report     []string // the beginnings of its lines
	}{
		{"nothing is nothing", "", nil, nil},
		{"comments alone are nothing", "# only\n---\n# comments\n", nil, nil},
		{"a good one is imported", pool("a"), []string{"NodePool/a"}, nil},
		{"several documents are separate", pool("a") + "---\n" + pool("b") + "...\n---\n", []string{"NodePool/a", "NodePool/b"}, nil},
		{"a broken document leaves the others alone", pool("a") + "---\nkind: [\n---\n" + pool("b"), []string{"NodePool/a", "NodePool/b"}, []string{"in.yaml:8:1: refused: this is not YAML: "}},
		{"CRLF counts lines as LF does", strings.ReplaceAll(pool("a", "wieght: 1"), "\n", "\r\n"), []string{"NodePool/a"}, []string{"in.yaml:7:3: lost: NodePool/a spec.wieght 1:"}},
		{"a BOM is skipped, in each document", "\ufeff" + pool("a") + "---\n\ufeff" + pool("b"), []string{"NodePool/a", "NodePool/b"}, nil},
		{"a YAML directive is skipped", "%YAML 1.1\n---\n" + pool("a"), []string{"NodePool/a"}, nil},
		{"JSON with tabs is YAML", "{\n\t\"apiVersion\": \"karpenter.sh/v1\",\n\t\"kind\": \"NodePool\",\n\t\"metadata\": {\"name\": \"a\"},\n\t\"spec\": {\"weight\": 1}\n}\n", []string{"NodePool/a"}, nil},
		{"kind after items is a list", "items:\n- " + strings.ReplaceAll(strings.TrimSpace(pool("a")), "\n", "\n  ") + "\nkind: List\napiVersion: v1\n", []string{"NodePool/a"}, nil},
		{"items of a list are refused one by one", "apiVersion: v1\nkind: List\nitems:\n- 5\n- kind: NodePool\n", nil, []string{"in.yaml:4:3: refused: a document must be an object", "in.yaml:5:3: refused: the NodePool has no apiVersion"}},
		{"a list without items is nothing", "apiVersion: v1\nkind: List\nitems:\n", nil, nil},
		{"a list whose items are none is refused", "apiVersion: v1\nkind: List\nitems: 5\n", nil, []string{"in.yaml:3:8: refused: items of a List is a whole number, want a list"}},

		{"Helm is refused", "{{- range .Values.pools }}\nkind: NodePool\n{{- end }}\n", nil, []string{"in.yaml:1:1: refused: a Helm template ({{ … }}) that was not rendered"}},
		{"a template in place of a value is refused", pool("a", "weight: {{ .Values.weight }}"), nil, []string{"in.yaml:7:12: refused: a mapping stands where a key or a value is expected"}},
		{"Terraform directives are refused", "spec:\n  a:\n%{~ for x in y ~}\n  - b\n", nil, []string{"in.yaml:3:1: refused: a Terraform template directive"}},
		{"typographic quotes are refused where they break", "kind: NodePool\nspec: {a: \"x“}\n", nil, []string{"in.yaml:2:13: refused: a typographic quote"}},
		{"a typographic quote inside a text is a text", pool("a", "limits: {cpu: “5”}"), []string{"NodePool/a"}, nil},
		{"Markdown links are refused", "apiVersion: [karpenter.sh/v1](http://karpenter.sh/v1)\nkind: NodePool\n", nil, []string{"in.yaml:1:29: refused: a Markdown link"}},
		{"kubectl describe is refused", "Name: default\nAnnotations: a: b\nAPI Version:  karpenter.sh/v1\n", nil, []string{"in.yaml:3:1: refused: this is what kubectl describe prints"}},
		{"a tab is refused", "kind: NodePool\nspec:\n\tweight: 1\n", nil, []string{"in.yaml:3:1: refused: a tab in the indentation"}},
		{"bytes that are no text are refused", "kind: NodePool\nname: \xff\n", nil, []string{"in.yaml:2:7: refused: the text is not UTF-8"}},
		{"a scalar is no object", "just words\n", nil, []string{"in.yaml:1:1: refused: a document must be an object with apiVersion and kind, and this is a string"}},

		{"a key twice is refused", pool("a", "weight: 1", "weight: 2"), nil, []string{`in.yaml:8:3: refused: the key "weight" is there twice, first in line 7`}},
		{"deep nesting is refused", "a: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), nil, []string{"in.yaml:1:67: refused: nested more than 64 levels deep"}},
		{"an alias bomb is refused", bomb, nil, []string{"in.yaml:1:32: refused: more than 100000 values"}},
		{"an alias of itself is refused", "a: &a [*a]\n", nil, []string{"in.yaml:1:8: refused: nested more than 64"}},
		{"an unknown anchor is refused", "a: *nobody\n", nil, []string{"in.yaml:1:1: refused: this is not YAML: unknown anchor 'nobody' referenced"}},
		{"anchors and merge keys are replaced", pool("a", "limits: &l {cpu: 1}") + "---\n" + pool("b", "limits: {<<: {cpu: 1, memory: 1Gi}, cpu: 2}"), []string{"NodePool/a", "NodePool/b"}, nil},
		{"a merge of something else is refused", pool("a", "limits: {<<: 5}"), nil, []string{"in.yaml:7:16: refused: a merge key (<<) names a whole number"}},
		{"a tag of another tool is refused", pool("a", "weight: !Ref Weight"), nil, []string{"in.yaml:7:11: refused: the tag !Ref is not one of Kubernetes manifests"}},
		{"tags of YAML are taken", pool("a", "weight: !!int \"5\"", "limits: {cpu: !!str 5}"), []string{"NodePool/a"}, nil},
		{"a list as key is refused", "? [a]\n: b\n", nil, []string{"in.yaml:1:3: refused: a key that is not a word"}},

		{"a number in quotes becomes one", pool("a", `weight: "10"`), []string{"NodePool/a"}, []string{`in.yaml:7:11: changed: NodePool/a spec.weight "10" -> 10: the field is a number`}},
		{"a number without quotes becomes a string", pool("a", "disruption: {consolidateAfter: 30}"), []string{"NodePool/a"}, []string{`in.yaml:7:34: changed: NodePool/a spec.disruption.consolidateAfter 30 -> "30": the field is a string`}},
		{"a YAML 1.1 boolean where a word belongs is that word", pool("a", "disruption: {consolidationPolicy: on, consolidateAfter: 1s}"), []string{"NodePool/a"}, []string{`in.yaml:7:37: changed: NodePool/a spec.disruption.consolidationPolicy true -> "on"`}},
		{"octal is read as kubectl reads it", pool("a", "weight: 010"), []string{"NodePool/a"}, nil},
		{"amounts keep their form", pool("a", "limits: {cpu: 1000, memory: 1.5Ti, pods: 1e3, a.b/c: 0.5}"), []string{"NodePool/a"}, []string{`in.yaml:7:56: changed: NodePool/a spec.limits["a.b/c"] 0.5 -> "0.5"`}},
		{"words are no numbers", pool("a", "weight: ${WEIGHT}"), nil, []string{`in.yaml:7:11: refused: NodePool/a: spec.weight is a string "${WEIGHT}", want a whole number`}},
		{"a list is no mapping", pool("a", "limits: [cpu]"), nil, []string{"in.yaml:7:11: refused: NodePool/a: spec.limits is a list, want a mapping"}},
		{"null is as good as nothing", pool("a", "weight:", "limits: ~"), []string{"NodePool/a"}, []string{"in.yaml:7:3: dropped: NodePool/a spec.weight null", "in.yaml:8:3: dropped: NodePool/a spec.limits null"}},
		{"placeholders are named, each once", pool("a", "limits: {cpu: \"${CPU}\", memory: \"${CPU}Gi\"}"), []string{"NodePool/a"}, []string{`in.yaml:7:17: placeholder: NodePool/a spec.limits.cpu "${CPU}": nothing has filled in ${CPU}; it is imported as it stands, here and in 1 more field`}},

		{"no apiVersion and no kind", "spec: {}\n", nil, []string{"in.yaml:1:1: refused: the document has neither apiVersion nor kind"}},
		{"a misspelled apiVersion is seen", "appVersion: karpenter.sh/v1\nkind: NodePool\n", nil, []string{`in.yaml:1:1: refused: the NodePool has no apiVersion (is "appVersion" meant?); write apiVersion: karpenter.sh/v1`}},
		{"no kind", "apiVersion: karpenter.sh/v1\n", nil, []string{"in.yaml:1:1: refused: the object of karpenter.sh/v1 has no kind"}},
		{"a wrong group", "apiVersion: karpenter.sh/v1beta1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec: {}\n", nil, []string{"in.yaml:1:1: refused: there is no EC2NodeClass in karpenter.sh/v1beta1; reeve imports karpenter.k8s.aws/v1"}},
		{"the oldest API", "apiVersion: provisioning.karpenter.sh/v1alpha2\nkind: Provisioner\n", nil, []string{"in.yaml:1:1: refused: there is no Provisioner in provisioning.karpenter.sh/v1alpha2"}},
		{"no name", "apiVersion: karpenter.sh/v1\nkind: NodePool\nspec: {}\n", nil, []string{"in.yaml:1:1: refused: the NodePool has no metadata.name"}},
		{"a generated name", "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {generateName: a-}\nspec: {}\n", nil, []string{"in.yaml:3:12: refused: a NodePool of a fleet needs a name"}},
		{"no spec", "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\n", nil, []string{"in.yaml:1:1: refused: NodePool/a has no spec"}},
		{"a spec that is none", "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: x\n", nil, []string{"in.yaml:4:7: refused: spec is a string, want a mapping"}},
		{"metadata that is none", "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: x\nspec: {}\n", nil, []string{"in.yaml:3:11: refused: metadata is a string, want a mapping"}},
		{"other metadata and other fields are lost aloud", "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a, colour: red, labels: [x], namespace: y}\nspec: {weight: 1}\ndata: {}\n", []string{"NodePool/a"}, []string{
			"in.yaml:3:21: lost: NodePool/a metadata.colour", "in.yaml:3:42: lost: NodePool/a metadata.labels", "in.yaml:3:47: dropped: NodePool/a metadata.namespace", "in.yaml:5:1: lost: NodePool/a data",
		}},
		{"the same twice is one", pool("a") + "---\n" + pool("a"), []string{"NodePool/a"}, []string{"in.yaml:8:1: dropped: NodePool/a: says the same as in.yaml:1:1"}},
		{"another of the same name is refused", pool("a") + "---\n" + pool("a", "weight: 1"), []string{"NodePool/a"}, []string{"in.yaml:8:1: refused: NodePool/a: another NodePool of this name is in in.yaml:1:1"}},

		{"other providers are foreign", strings.ReplaceAll(pool("a"), "karpenter.k8s.aws", "karpenter.kwok.sh"), nil, []string{"in.yaml:6:35: foreign: NodePool/a spec.template.spec.nodeClassRef karpenter.kwok.sh/EC2NodeClass:"}},
		{"other providers of v1beta1 are foreign", "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: a}\nspec: {template: {spec: {nodeClassRef: {apiVersion: karpenter.cluster.x-k8s.io/v1alpha1, kind: ClusterAPINodeClass, name: a}}}}\n", nil, []string{
			"in.yaml:3:18: changed: NodePool/a spec.disruption.expireAfter", "in.yaml:4:40: foreign: NodePool/a spec.template.spec.nodeClassRef karpenter.cluster.x-k8s.io/ClusterAPINodeClass", "in.yaml:4:41: changed:",
		}},
		{"classes of other providers are foreign", "apiVersion: karpenter.azure.com/v1beta1\nkind: AKSNodeClass\nmetadata: {name: a}\n", nil, []string{"in.yaml:1:1: foreign: AKSNodeClass/a karpenter.azure.com/v1beta1: a node class of another provider"}},
		{"a NodeOverlay has no place yet", "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: a}\n", nil, []string{"in.yaml:1:1: foreign: NodeOverlay/a karpenter.sh/v1alpha1: not imported: a fleet has no place"}},
		{"a NodeClaim is not imported", "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: a}\n", nil, []string{"in.yaml:1:1: foreign: NodeClaim/a"}},
		{"a kustomization is to be built", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", nil, []string{"in.yaml:1:1: foreign: Kustomization kustomize.config.k8s.io/v1beta1: not a manifest"}},
		{"a reference of v1 is completed", strings.ReplaceAll(pool("a"), "group: karpenter.k8s.aws, kind: EC2NodeClass, ", ""), []string{"NodePool/a"}, []string{
			`in.yaml:6:35: changed: NodePool/a spec.template.spec.nodeClassRef.group nothing -> "karpenter.k8s.aws"`, `in.yaml:6:35: changed: NodePool/a spec.template.spec.nodeClassRef.kind nothing -> "EC2NodeClass"`,
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			names, lines := imported(tc.text)
			if diff := cmp.Diff(tc.imported, names); diff != "" {
				t.Errorf("imported (-want +got):\n%s", diff)
			}
			if len(lines) != len(tc.report) {
				t.Fatalf("the report has %d lines, want %d:\n%s", len(lines), len(tc.report), strings.Join(lines, "\n"))
			}
			for i, want := range tc.report {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("line %d is\n%s\nwant\n%s", i, lines[i], want)
				}
			}
		})
	}
}
