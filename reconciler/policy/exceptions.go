package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
)

// exceptionFor is the first exception in force for the rule and one of the
// resources.
func exceptionFor(c Case, rule string, resources ...string) *fleet.Exception {
	if c.Fleet == nil {
		return nil
	}
	for i := range c.Fleet.Exceptions {
		ex := &c.Fleet.Exceptions[i]
		if ex.Rule == rule && !ex.Expired(c.Now) && slices.Contains(resources, ex.Resource) {
			return ex
		}
	}
	return nil
}

// exceptionFindings are warnings about exceptions that lift nothing: those that
// have expired, and those to a rule or for an object that there is not. An
// exception that is wrong in several ways is named for the first.
func (e *Engine) exceptionFindings(c Case) []decision.Finding {
	if c.Fleet == nil || c.Former || len(c.Fleet.Exceptions) == 0 {
		return nil
	}
	rules := map[string]bool{}
	for _, r := range e.Rules() {
		rules[r.ID] = true
	}
	var out []decision.Finding
	for i := range c.Fleet.Exceptions {
		ex := &c.Fleet.Exceptions[i]
		var f decision.Finding
		switch {
		case ex.Expired(c.Now):
			f = expired(ex)
		case !rules[ex.Rule]:
			f = unknownRule(ex, rules)
		case !inFleet(c.Fleet, ex.Resource):
			f = unknownResource(c.Fleet, ex)
		default:
			continue
		}
		f.Severity, f.Resource = severityWarning, ex.Resource
		f.Path = fleet.Path{"exceptions", fmt.Sprint(i)}
		f.Position = find(c, f.Path)
		out = append(out, f)
	}
	return out
}

func expired(ex *fleet.Exception) decision.Finding {
	return decision.Finding{
		Rule: RuleException, Title: "An exception has expired",
		Message:     fmt.Sprintf("the exception to %s for %s expired on %s and no longer holds", ex.Rule, ex.Resource, ex.Expires.UTC().Format("2006-01-02 15:04 MST")),
		Remediation: fmt.Sprintf("Remove it, or ask %s whether it is still needed.", ex.Owner),
	}
}

// unknownRule names what may have been meant.
func unknownRule(ex *fleet.Exception, rules map[string]bool) decision.Finding {
	f := decision.Finding{
		Rule: RuleExceptionRule, Title: "An exception is to no rule",
		Message:     fmt.Sprintf("the exception for %s is to the rule %s, and no policy has a rule of that id", ex.Resource, ex.Rule),
		Remediation: "Write the id as findings print it (reeve policy docs lists them), or remove the exception.",
	}
	if near := nearest(ex.Rule, sortedKeys(rules)); near != "" {
		f.Message += fmt.Sprintf("; is it %s?", near)
	}
	return f
}

func unknownResource(fl *fleet.Fleet, ex *fleet.Exception) decision.Finding {
	kind, _, _ := strings.Cut(ex.Resource, "/")
	f := decision.Finding{
		Rule: RuleExceptionResource, Title: "An exception is for no object",
		Message:     fmt.Sprintf("the exception to %s is for %s, which is not in the fleet", ex.Rule, ex.Resource),
		Remediation: "Name the object as findings print it, or remove the exception.",
	}
	if near := nearest(ex.Resource, objectNames(fl, kind)); near != "" {
		f.Message += fmt.Sprintf("; is it %s?", near)
	}
	return f
}

// fleetKinds are the kinds of which a fleet says what there is. Nodes, pods and
// NodeClaims come and go, and other words belong to rules of the fleet's own.
var fleetKinds = []string{"NodePool", "EC2NodeClass", "Cluster"}

func inFleet(fl *fleet.Fleet, resource string) bool {
	kind, _, _ := strings.Cut(resource, "/")
	return !slices.Contains(fleetKinds, kind) || slices.Contains(objectNames(fl, kind), resource)
}

// objectNames are the objects of one kind as findings name them.
func objectNames(fl *fleet.Fleet, kind string) []string {
	var out []string
	switch kind {
	case "NodePool":
		for _, p := range fl.NodePools {
			out = append(out, kind+"/"+p.Name)
		}
	case "EC2NodeClass":
		for _, c := range fl.NodeClasses {
			out = append(out, kind+"/"+c.Name)
		}
	case "Cluster":
		out = append(out, kind+"/"+fl.Cluster.Name)
	}
	return out
}

// nearest is the word that differs least, if that is no more than a slip.
func nearest(word string, among []string) string {
	best, least := "", 3
	for _, w := range among {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(w)); d < least {
			best, least = w, d
		}
	}
	return best
}
