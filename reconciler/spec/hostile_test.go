package spec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostileCase is CUE that must neither hang nor crash anything. want is part
// of the message; limits lists the limits that may end it instead.
type hostileCase struct {
	cue    string
	want   string
	limits []Limit
	// mayPass is for CUE that a later version of the library may get right.
	mayPass bool
}

var hostile = map[string]hostileCase{
	"disjunctions that multiply": {cue: "package fleet\n_x: {\n" + disjunctions(24) + "}\npolicy: x: _x\n", limits: []Limit{LimitCPU, LimitTime, LimitMemory}},
	"a list of a billion numbers": {cue: `package fleet
import "list"
policy: x: list.Range(0, 1000000000, 1)
`, limits: []Limit{LimitMemory, LimitCPU, LimitTime}},
	"a list that doubles": {cue: "package fleet\n" + doubling(40) + "policy: x: _l40\n", limits: []Limit{LimitMemory, LimitCPU, LimitTime}},
	"strings that grow": {cue: `package fleet
import ("list", "strings")
policy: x: [for i in list.Range(0, 100000, 1) {strings.Repeat("x", 1000000) + "\(i)"}]
`, limits: []Limit{LimitMemory, LimitCPU, LimitTime}},
	"a string repeated beyond reason": {cue: `package fleet
import "strings"
policy: x: strings.Repeat("x", 1000000000000)
`, want: "clusters/blue/h.cue:3:"},
	"a quantity whose digits nobody can write": {cue: `package fleet
nodePools: big: spec: {
	limits: cpu: "1E-999999999"
	template: spec: {
		nodeClassRef: {group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default"}
		requirements: []
	}
}
`, want: `clusters/blue/h.cue:3:10: nodePools.big.spec.limits.cpu: "1E-999999999" is not a quantity`},
	"a structural cycle":     {cue: "package fleet\npolicy: x: {a: policy.x}\n", want: "structural cycle"},
	"a reference cycle":      {cue: "package fleet\n_a: _b + 1\n_b: _a + 1\npolicy: x: _a\n", want: "clusters/blue/h.cue:"},
	"a list of itself":       {cue: "package fleet\npolicy: x: [policy.x]\n", want: "clusters/blue/h.cue:"},
	"a definition of itself": {cue: "package fleet\n#L: {next: #L}\npolicy: x: #L\n", want: "clusters/blue/h.cue:2:6: #L.next: structural cycle"},
	"brackets without end": {cue: "package fleet\npolicy: x: " + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + "\n",
		want: "clusters/blue/h.cue:", limits: []Limit{LimitMemory, LimitCPU}},
	"structs without end": {cue: "package fleet\npolicy: x: " + strings.Repeat("{a:", 50_000) + "1" + strings.Repeat("}", 50_000) + "\n",
		want: "clusters/blue/h.cue:", limits: []Limit{LimitMemory, LimitCPU, LimitTime}},
	"a sum without end": {cue: "package fleet\npolicy: x: 1" + strings.Repeat("+1", 300_000) + "\n",
		limits: []Limit{LimitMemory, LimitCPU, LimitTime}, mayPass: true},
	"nested comprehensions": {cue: `package fleet
import "list"
_r: list.Range(0, 300, 1)
policy: x: [for a in _r for b in _r for c in _r for d in _r if a+b+c+d == 1 {a}]
`, limits: []Limit{LimitCPU, LimitTime, LimitMemory}},
	"a power tower": {cue: `package fleet
import "math"
policy: x: math.Pow(math.Pow(9, 99999), 99999)
`, want: "clusters/blue/h.cue:", limits: []Limit{LimitCPU, LimitMemory}},
	"a multiplication of large numbers": {cue: "package fleet\n_n0: " + strings.Repeat("9", 5000) + "\n" + squares(25) + "policy: x: _n25\n",
		want: "clusters/blue/h.cue:", limits: []Limit{LimitCPU, LimitMemory, LimitTime}},
	"a regular expression beyond reason": {cue: "package fleet\npolicy: x: \"" + strings.Repeat("a", 50000) + "b\" & =~\"^(((a{1,1000}){1,1000}){1,1000})$\"\n", want: "clusters/blue/h.cue:"},
	"bytes that are no text":             {cue: "package fleet\n\xff\xfe\x00policy: x: 1\n", want: "clusters/blue/h.cue:"},
	"an import of the operating system":  {cue: "package fleet\nimport \"tool/exec\"\npolicy: x: exec.Run & {cmd: \"true\"}\n", want: "clusters/blue/h.cue:3:"},
	"an import from a registry":          {cue: "package fleet\nimport \"evil.example/pkg@v0\"\npolicy: x: pkg.y\n", want: `cannot find package "evil.example/pkg`},
	"an import of a file's path":         {cue: "package fleet\nimport \"/etc\"\npolicy: x: etc.y\n", want: "clusters/blue/h.cue:2:8"},
	"an embedded file":                   {cue: "@extern(embed)\n\npackage fleet\npolicy: x: _ @embed(file=/etc/passwd,type=text)\n", want: "clusters/blue/h.cue:1:1: files cannot be embedded"},
	"an embedded file of the tree":       {cue: "@extern(embed)\n\npackage fleet\npolicy: x: _ @embed(glob=*.cue,type=text)\n", want: "clusters/blue/h.cue:1:1: files cannot be embedded"},
}

func disjunctions(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\t({p%d: 1} | {p%d: 2} | {q%d: 3})\n", i, i, i)
	}
	return b.String()
}

func doubling(n int) string {
	var b strings.Builder
	b.WriteString("import \"list\"\n_l0: [1, 2]\n")
	for i := range n {
		fmt.Fprintf(&b, "_l%d: list.Concat([_l%d, _l%d])\n", i+1, i, i)
	}
	return b.String()
}

func squares(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "_n%d: _n%d * _n%d\n", i+1, i, i)
	}
	return b.String()
}

// testLimits keep the suite fast; the memory is what an ordinary fleet needs
// several times over.
var testLimits = Limits{CPU: time.Second, Memory: 256 << 20, Wall: 20 * time.Second}

func TestHostileCUEEndsInAClearError(t *testing.T) {
	for name, tc := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(context.Background(), fleetFS("blue", map[string]string{"clusters/blue/h.cue": tc.cue}), Options{Cluster: "blue", Limits: testLimits})
			if err == nil {
				if !tc.mayPass {
					t.Fatal("accepted")
				}
				return
			}
			t.Log(shortened(err))
			var limit *LimitError
			if errors.As(err, &limit) {
				for _, l := range tc.limits {
					if limit.Limit == l {
						return
					}
				}
				t.Fatalf("ended by %s, want %q or %v", limit.Limit, tc.want, tc.limits)
			}
			var specErr *Error
			if !errors.As(err, &specErr) {
				t.Fatalf("error of type %T: %s", err, shortened(err))
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %s, want %q in it", shortened(err), tc.want)
			}
		})
	}
}

func shortened(err error) string {
	s := err.Error()
	return s[:min(len(s), 300)]
}
