package check

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/pipeline"
	"github.com/reeve-project/reeve/reconciler/report"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/scheduling"
)

// The rules of what the check itself finds in the instance types.
const (
	// RuleNotChecked: the types that a NodePool can choose from are not known
	// here.
	RuleNotChecked = "REEVE-CATALOG"
	// RuleNoType: a NodePool is left without an instance type.
	RuleNoType = "REEVE-CATALOG-002"
	// RuleMinValues: a NodePool is left with less variety than its minValues.
	RuleMinValues = "REEVE-CATALOG-003"
	// RuleSpotTypes: policy leaves too few types to replace spot by spot.
	RuleSpotTypes = "REEVE-CATALOG-004"
)

// world is what the offering stage needs beside the policies. It does not wait
// for these: it is begun while the fleet is being judged.
type world struct {
	*pipeline.World
	// err is why there is none.
	err error
}

// newWorld is the fleet on the catalog that is built in, as if there were a
// subnet in every zone. What the base has worked out of the same classes is used
// again.
func newWorld(f *fleet.Fleet, now time.Time, base *judged) world {
	data, err := catalog.Embedded(f.Cluster.Region)
	if err != nil {
		return world{err: err}
	}
	w := pipeline.NewWorld(f, nil, data, everywhere(f, data, now))
	if base != nil && base.world != nil {
		w = base.world.With(f, nil, data, w.Snapshot)
	}
	go w.Prepare()
	return world{World: w}
}

// readCatalogs reads the catalogs of the regions that the files of a cluster name
// while these are being evaluated. Catalogs are kept, so a guess that is wrong
// costs some milliseconds and changes nothing.
func readCatalogs(texts [][]byte) {
	for _, region := range catalog.Regions() {
		quoted := []byte(strconv.Quote(region))
		if slices.ContainsFunc(texts, func(text []byte) bool { return bytes.Contains(text, quoted) }) {
			_, _ = catalog.Embedded(region)
		}
	}
}

// offerings adds what the offering stage says of each NodePool, and what it
// leaves to choose from.
func (j *judged) offerings(ctx context.Context, w world) error {
	f, out := j.fleet, &j.check
	if w.err != nil {
		out.Warnings = append(out.Warnings, at(f, decision.Finding{
			Rule: RuleNotChecked, Severity: "warning", Title: titleNotChecked,
			Resource: "Cluster/" + f.Cluster.Name, Path: fleet.Path{"cluster", "region"},
			Message:     "instance types were not checked: " + w.err.Error(),
			Remediation: "The reconciler reads types and prices from AWS; this check only knows the regions that are built in.",
		}))
		return nil
	}
	data := w.Catalog
	j.world = w.With(f, j.judge, data, w.Snapshot)
	found, err := j.world.Offerings(ctx)
	if err != nil {
		return err
	}
	j.data, j.found = data, found
	out.Exclusions = append(out.Exclusions, found.Exclusions...)
	out.Violations = append(out.Violations, found.Violations...)
	out.Warnings = append(out.Warnings, found.Warnings...)
	for i := range found.After {
		c := &choice{fleet: f, data: data, before: &found.Before[i], after: &found.After[i], rules: rulesFor(found.Exclusions, found.After[i].NodePool)}
		c.findings(out)
	}
	return nil
}

// everywhere is a snapshot in which each class has a subnet in every zone.
func everywhere(f *fleet.Fleet, data *catalog.Data, now time.Time) *cluster.Snapshot {
	snap := &cluster.Snapshot{Time: now}
	st := ec2v1.EC2NodeClassStatus{Subnets: data.Subnets()}
	for _, c := range f.NodeClasses {
		snap.NodeClasses = append(snap.NodeClasses, &cluster.NodeClassStatus{Name: c.Name, Status: st})
	}
	return snap.Seal()
}

// rulesFor are the rules that exclude types of the NodePool, sorted.
func rulesFor(xs []decision.Exclusion, pool string) []string {
	var out []string
	for _, x := range xs {
		if x.NodePool == pool {
			out = append(out, x.Rule)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// choice is what one NodePool can choose from, before and after policy.
type choice struct {
	fleet         *fleet.Fleet
	data          *catalog.Data
	before, after *scheduling.Choices
	rules         []string
}

// findings adds what is wrong with the choice, the worst only.
func (c *choice) findings(out *report.ClusterCheck) {
	account := c.ofTheAccount()
	switch {
	case len(c.after.Types) == 0 && account != "":
		out.Warnings = append(out.Warnings, c.finding(RuleNotChecked, "warning",
			"instance types were not checked: "+account, "What a single account has is only known to the reconciler."))
	case len(c.after.Types) == 0:
		out.Violations = append(out.Violations, c.finding(RuleNoType, "error", c.nothing(), c.remedy("Widen the requirements of the NodePool")))
	case len(c.after.Shortfalls) > 0:
		for _, s := range c.after.Shortfalls {
			f := c.finding(RuleMinValues, "warning", c.shortfall(s), c.remedy("Lower minValues, or widen the requirements of the NodePool"))
			f.Path = append(f.Path, c.minValues(s.Key)...)
			out.Warnings = append(out.Warnings, at(c.fleet, f))
		}
	case c.before.Spot >= report.SpotTypes && c.after.Spot < report.SpotTypes:
		out.Warnings = append(out.Warnings, c.finding(RuleSpotTypes, "warning",
			fmt.Sprintf("policy leaves %d of %d instance types that can be bought as spot: a spot node is only replaced by a cheaper one while there are %d to choose from",
				c.after.Spot, c.before.Spot, report.SpotTypes), c.remedy("Widen the requirements of the NodePool")))
	}
}

// ofTheAccount says what the NodePool asks for that differs from account to
// account, so that nobody can say here whether it exists.
func (c *choice) ofTheAccount() string {
	reqs := c.after.Requirements
	for r := range reqs.All() {
		if strings.HasPrefix(r.Key(), "karpenter.k8s.aws/capacity-reservation-") || strings.HasPrefix(r.Key(), "karpenter.k8s.aws/placement-group-") {
			if !r.AllowsAbsent() {
				return "the NodePool asks for " + r.Key()
			}
		}
	}
	if ct := reqs.Get(karpv1.CapacityTypeLabelKey); !ct.Has(karpv1.CapacityTypeOnDemand) && !ct.Has(karpv1.CapacityTypeSpot) {
		return "the NodePool asks for reserved capacity only"
	}
	zone, zoneID := reqs.Get(corev1.LabelTopologyZone), reqs.Get(ec2v1.LabelTopologyZoneID)
	if !slices.ContainsFunc(c.data.Subnets(), func(s ec2v1.Subnet) bool { return zone.Has(s.Zone) && zoneID.Has(s.ZoneID) }) {
		return "the NodePool asks for no zone that is built in"
	}
	return ""
}

func (c *choice) nothing() string {
	if c.after.NotReady != "" {
		return "no instance type can be launched: the NodePool " + c.after.NotReady
	}
	steps := make([]string, 0, len(c.after.Filters))
	for _, s := range c.after.Filters {
		steps = append(steps, fmt.Sprintf("%s: %d", s.By, s.Left))
	}
	return "no instance type is left to launch; left after " + strings.Join(steps, ", ")
}

func (c *choice) shortfall(s requirements.Shortfall) string {
	text := fmt.Sprintf("minValues asks for %d values of %s, and the instance types that are left have %d", s.Want, s.Key, s.Have)
	before := slices.IndexFunc(c.before.Shortfalls, func(b requirements.Shortfall) bool { return b.Key == s.Key })
	switch {
	case len(c.rules) == 0:
		return text
	case before < 0:
		return text + "; without policy they would be enough"
	default:
		return fmt.Sprintf("%s; without policy they would have %d", text, c.before.Shortfalls[before].Have)
	}
}

// remedy is what to do, and the rules that are the other way to do it.
func (c *choice) remedy(what string) string {
	if len(c.rules) == 0 {
		return what + "."
	}
	return what + ", or loosen what excludes types: " + strings.Join(c.rules, ", ") + "."
}

// minValues is the place of a minValues below the requirements of the NodePool.
func (c *choice) minValues(key string) fleet.Path {
	for i, r := range c.fleet.NodePool(c.after.NodePool).Spec.Template.Spec.Requirements {
		if r.Key == key && r.MinValues != nil {
			return fleet.Path{strconv.Itoa(i), "minValues"}
		}
	}
	return nil
}

// The titles of the rules, as the reference has them.
const titleNotChecked = "Instance types were not checked"

var titles = map[string]string{
	RuleNotChecked: titleNotChecked,
	RuleNoType:     "No instance type is left",
	RuleMinValues:  "There are fewer values than minValues",
	RuleSpotTypes:  "Too few spot types",
}

func (c *choice) finding(rule, severity, message, remediation string) decision.Finding {
	return at(c.fleet, decision.Finding{
		Rule: rule, Severity: severity, Title: titles[rule], Message: message, Remediation: remediation,
		Resource: "NodePool/" + c.after.NodePool,
		Path:     fleet.Path{"nodePools", c.after.NodePool, "spec", "template", "spec", "requirements"},
	})
}

// at fills in where the field of the finding was written.
func at(f *fleet.Fleet, finding decision.Finding) decision.Finding {
	if p, ok := f.Positions.Find(finding.Path); ok {
		finding.Position = &p
	}
	return finding
}
