package ledger

import (
	"slices"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
)

// inputs proves that what the decisions of the commit name is in its tree.
func (w *verifier) inputs(v *View, added []*decision.Decision) error {
	spec := slices.IndexFunc(added, func(d *decision.Decision) bool { return d.Kind == decision.Accept || d.Kind == decision.Reject })
	_, there, err := v.tree(proposedDir)
	if err != nil {
		return err
	}
	if there != (spec >= 0) && (there || added[spec].Proposal.Spec != nil && added[spec].Proposal.Spec.Tree != "") {
		w.problem(proposedDir, "a proposed commit is kept in the commit of its accept or reject, and nowhere else")
	}
	if err := w.fleets(v, added, spec); err != nil {
		return err
	}
	for _, d := range added {
		if err := w.digests(v, d); err != nil {
			return err
		}
	}
	return nil
}

// fleets proves that the fleet in force changes by an accept only, and to what
// was accepted.
func (w *verifier) fleets(v *View, added []*decision.Decision, spec int) error {
	fleet, _, err := v.tree(fleetDir)
	if err != nil {
		return err
	}
	before := ""
	if w.prev != nil {
		if before, _, err = w.prev.tree(fleetDir); err != nil {
			return err
		}
	}
	if spec >= 0 && added[spec].Kind == decision.Accept && added[spec].Verdict.Allowed {
		s := added[spec].Proposal.Spec
		if s == nil || s.Tree != fleet {
			w.problem(fleetDir, "the fleet in force is not the tree that decision %s accepted", added[spec].ID)
		} else {
			w.accepted = s.Commit
		}
		return nil
	}
	if fleet != before {
		w.problem(fleetDir, "the fleet in force changed from %q to %q without an accept", before, fleet)
	}
	for _, d := range added {
		if c := d.Inputs.SpecCommit; spec < 0 && c != "" && c != w.accepted {
			w.problem(w.seen[d.ID].path, "spec commit %s was not in force, %q was", c, w.accepted)
		}
	}
	return nil
}

// digests proves types and prices by their bytes. How the policies' digest is
// made is not the ledger's to know: here it must stand for one set of files,
// and that set for it; a Check computes it.
func (w *verifier) digests(v *View, d *decision.Decision) error {
	at := w.seen[d.ID].path
	if d.Inputs.Types != "" || d.Inputs.Prices != "" {
		types, prices, err := w.catalog(v)
		if err != nil {
			w.problem(at, "the catalog of the decision is not recorded: %v", err)
		} else if d.Inputs.Types != "" && types != d.Inputs.Types || d.Inputs.Prices != "" && prices != d.Inputs.Prices {
			w.problem(at, "the catalog has types %s and prices %s, the decision names %s and %s", types, prices, d.Inputs.Types, d.Inputs.Prices)
		}
	}
	if d.Inputs.Policies == "" || d.Kind == decision.Accept || d.Kind == decision.Reject {
		return nil
	}
	policies, _, err := v.tree(policiesDir)
	if err != nil {
		return err
	}
	fleet, _, err := v.tree(fleetDir)
	if err != nil {
		return err
	}
	w.same(at, "policies "+d.Inputs.Policies, "files "+policies)
	w.same(at, "files "+policies+" of fleet "+fleet, "policies "+d.Inputs.Policies)
	return nil
}

// catalog computes the digests of types and prices, once for each catalog.
func (w *verifier) catalog(v *View) (types, prices string, err error) {
	tree, _, err := v.tree(CatalogDir)
	if err != nil {
		return "", "", err
	}
	if known, ok := w.catalogs[tree]; ok {
		return known[0], known[1], nil
	}
	var parts [][]byte
	for _, name := range []string{catalog.TypesFile, catalog.OnDemandFile, catalog.SpotFile} {
		b, err := v.read(CatalogDir + "/" + name)
		if err != nil {
			return "", "", err
		}
		parts = append(parts, b)
	}
	digests := [2]string{decision.Digest(parts[0]), decision.Digest(slices.Concat(parts[1:]...))}
	w.catalogs[tree] = digests
	return digests[0], digests[1], nil
}

func (w *verifier) same(at, key, value string) {
	if old, ok := w.policies[key]; ok && old != value {
		w.problem(at, "%s stood for %s and now for %s", key, old, value)
		return
	}
	w.policies[key] = value
}
