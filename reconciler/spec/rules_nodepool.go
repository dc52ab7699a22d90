package spec

import (
	"fmt"
	"strconv"
	"strings"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Karpenter's registry of labels is filled when the provider's types are
// linked.
var _ = ec2v1.LabelInstanceCategory

func checkNodePool(p node, add adder) {
	spec := p.get("spec")
	template := spec.get("template")
	checkStatic(spec, add)
	checkDisruption(spec.get("disruption"), add)
	for _, l := range spec.get("limits").fields() {
		checkQuantity(l, add)
	}
	for key, l := range template.get("metadata", "labels").fields() {
		checkLabelKey(key, l, add)
	}
	checkDuration(template.get("spec", "expireAfter"), add)
	checkDuration(template.get("spec", "terminationGracePeriod"), add)
	checkTaints(template.get("spec"), add)
	for _, r := range template.get("spec", "requirements").items() {
		checkRequirement(r, add)
	}
}

// checkStatic: a pool with replicas takes no weight and no limit but nodes.
func checkStatic(spec node, add adder) {
	if !spec.has("replicas") {
		return
	}
	for name, l := range spec.get("limits").fields() {
		if name != "nodes" {
			add(l.path, "a pool with replicas can be limited by nodes only", "remove this limit or replicas")
		}
	}
	if spec.has("weight") {
		add(spec.at("weight"), "a pool with replicas has no weight", "remove weight or replicas")
	}
}

func checkDisruption(d node, add adder) {
	checkDuration(d.get("consolidateAfter"), add)
	for _, b := range d.get("budgets").items() {
		checkBudget(b, add)
	}
}

// checkLabelKey holds that Karpenter does not keep the key to itself.
func checkLabelKey(key string, at node, add adder) {
	if why := restricted(key); why != "" {
		add(at.path, why, "use a label of your own domain")
	}
}

// restricted says why a label cannot be set or required, or nothing. The CRD
// compares the end of the first segment, the controller whole domains; a key
// has to pass both.
func restricted(key string) string {
	if key == karpv1.NodePoolLabelKey {
		return fmt.Sprintf("the label %s is set by the provisioner", key)
	}
	if karpv1.WellKnownLabels.Has(key) {
		return ""
	}
	domain, _, _ := strings.Cut(key, "/")
	for _, d := range []string{"karpenter.sh", "karpenter.k8s.aws"} {
		if strings.HasSuffix(domain, d) {
			return fmt.Sprintf("the label %s is in the reserved domain %s and not one of its well-known labels", key, d)
		}
	}
	if karpv1.IsRestrictedLabel(key) != nil {
		return fmt.Sprintf("the label %s is reserved", key)
	}
	return ""
}

// checkTaints: a key has one taint of each effect, start-up taints included.
func checkTaints(spec node, add adder) {
	seen := map[[2]string]bool{}
	for _, list := range []string{"taints", "startupTaints"} {
		for _, t := range spec.get(list).items() {
			key := [2]string{t.get("key").str(), t.get("effect").str()}
			if seen[key] {
				add(t.path, fmt.Sprintf("a second taint %s with effect %s", key[0], key[1]), "keep one of them")
			}
			seen[key] = true
			for _, field := range []string{"key", "value"} {
				checkQualified(t.get(field), add)
			}
		}
	}
}

// checkQualified holds that a string that is not empty is a qualified name.
func checkQualified(n node, add adder) {
	if n.str() == "" {
		return
	}
	for _, why := range validation.IsQualifiedName(n.str()) {
		add(n.path, fmt.Sprintf("%q is not a qualified name: %s", n.str(), why), "")
	}
}

func checkRequirement(r node, add adder) {
	checkKey(r, add)
	checkValues(r, add)
}

// label is the label that a requirement is about, under its name of today.
func label(r node) string {
	name := r.get("key").str()
	if n, ok := karpv1.NormalizedLabels[name]; ok {
		return n
	}
	return name
}

func checkKey(r node, add adder) {
	key := r.get("key")
	if why := restricted(label(r)); why != "" {
		add(key.path, why, "")
	}
	checkQualified(key, add)
}

func checkValues(r node, add adder) {
	values := r.get("values").items()
	if !checkOperator(r, values, add) {
		return
	}
	for _, v := range values {
		for _, why := range validation.IsValidLabelValue(v.str()) {
			add(v.path, fmt.Sprintf("%q is not a label value: %s", v.str(), why), "")
		}
	}
	checkKnownValues(r, label(r), add)
}

// checkOperator holds that an operator has as many values as it needs, and
// says whether the values are worth a closer look.
func checkOperator(r node, values []node, add adder) bool {
	op := r.get("operator").str()
	switch op {
	case "In":
		if len(values) == 0 {
			add(r.path, "operator In needs at least one value", "")
		}
		if least, ok := r.get("minValues").integer(); ok && int64(len(values)) < least {
			add(r.at("minValues"), fmt.Sprintf("minValues is %d but there are %d values", least, len(values)), "add values or lower minValues")
		}
	case "Gt", "Lt", "Gte", "Lte":
		if len(values) != 1 {
			add(r.path, fmt.Sprintf("operator %s needs exactly one value, not %d", op, len(values)), "")
			return false
		}
		if n, err := strconv.Atoi(values[0].str()); err != nil || n < 0 {
			add(values[0].path, fmt.Sprintf("operator %s needs a whole number that is not negative, not %q", op, values[0].str()), "")
			return false
		}
	}
	return true
}

// checkKnownValues: where Karpenter knows all values of a label, one of them
// has to be among those asked for, and as many as minValues.
func checkKnownValues(r node, name string, add adder) {
	known, ok := karpv1.WellKnownValuesForRequirements[name]
	values := r.get("values").items()
	if !ok || r.get("operator").str() != "In" || len(values) == 0 {
		return
	}
	good := count(values, func(v node) bool { return known.Has(v.str()) })
	least, _ := r.get("minValues").integer()
	if good > 0 && int64(good) >= least {
		return
	}
	add(r.at("values"), fmt.Sprintf("%d of these values can ever match %s, at least %d must", good, name, max(least, 1)),
		"it takes "+enumerate(known))
}

// enumerate lists the members of a set in order.
func enumerate(set sets.Set[string]) string {
	return strings.Join(sets.List(set), ", ")
}
