// Package prs holds changes of example fleets that the shipped policies stop:
// one directory each, with the files that differ before and after the change,
// and the place of the finding.
package prs

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/reeve-project/reeve/examples"
)

//go:embed */before */after */at
var files embed.FS

// PR is a change of a fleet that one of the shipped policies stops.
type PR struct {
	// Name of the directory.
	Name string
	// Fleet is the example that it changes, and Cluster the cluster in it.
	Fleet, Cluster string
	// Base is the fleet repository before the change: the example with the
	// policy switched on. Head is that with the change. Files of the change
	// replace those of the same name.
	Base, Head fs.FS
	// Now is the instant at which the change is judged.
	Now time.Time
	// Rule is the id of the finding that stops it, and At its file, line and
	// column. The finding stops a pull request that is checked against Base;
	// NeedsBase says that it does not without.
	Rule, At  string
	NeedsBase bool
	// Excludes is the rule that takes instance types out of the choice, where
	// Rule says that none is left.
	Excludes string
}

// noon is when most changes are judged: Monday, 6 April 2026.
var noon = time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)

// list is the changes. Each has a directory with the files of before/ and of
// after/, both over the example fleet.
var list = []PR{
	{Name: "ami-pinning", Rule: "REEVE-AMI-001"},
	{Name: "ami-allow-list", Rule: "REEVE-AMI-002"},
	{Name: "ami-age", Rule: "REEVE-AMI-003"},
	{Name: "change-freeze", Rule: "REEVE-FREEZE-002", NeedsBase: true},
	{Name: "coexistence", Rule: "REEVE-COEX-003"},
	{Name: "controller-nodes", Rule: "REEVE-CTRL-003"},
	{Name: "cool-down", Rule: "REEVE-COOL-002"},
	{Name: "expire-after", Rule: "REEVE-EXP-001"},
	{Name: "instance-metadata", Rule: "REEVE-IMDS-001"},
	{Name: "instance-types", Rule: "REEVE-CATALOG-002", Excludes: "REEVE-TYPE-003"},
	{Name: "interruption-queue", Rule: "REEVE-SPOT-001"},
	{Name: "minimum-saving", Rule: "REEVE-GUARD-001", NeedsBase: true},
	{Name: "nodepool-limits", Rule: "REEVE-LIMIT-001"},
	{Name: "other-tools", Rule: "REEVE-COEX-001"},
	{Name: "policy-guard", Rule: "REEVE-GUARD-001", NeedsBase: true},
	{Name: "price-ceilings", Rule: "REEVE-CATALOG-002", Excludes: "REEVE-PRICE-001"},
	{Name: "required-tags", Rule: "REEVE-TAG-001"},
	{Name: "time-windows", Rule: "REEVE-WINDOW-002", NeedsBase: true},
	{Name: "volume-encryption", Rule: "REEVE-EBS-001"},
}

// All are the changes that the shipped policies stop, by name.
func All() ([]PR, error) {
	out := slices.Clone(list)
	for i := range out {
		p := &out[i]
		p.Fleet, p.Cluster, p.Now = "on-demand-basic", "on-demand-basic", noon
		base, err := examples.Fleet(p.Fleet)
		if err != nil {
			return nil, err
		}
		tree := fstest.MapFS{}
		if err := overlay(tree, base, "."); err != nil {
			return nil, err
		}
		// The example itself may have the policy on.
		if err := overlay(tree, files, path.Join(p.Name, "before")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		p.Base = maps.Clone(tree)
		if err := overlay(tree, files, path.Join(p.Name, "after")); err != nil {
			return nil, err
		}
		p.Head = tree
		at, err := fs.ReadFile(files, path.Join(p.Name, "at"))
		if err != nil {
			return nil, fmt.Errorf("example %s: %w", p.Name, err)
		}
		p.At = strings.TrimSpace(string(at))
	}
	return out, nil
}

// overlay puts the files below a directory into a tree.
func overlay(tree fstest.MapFS, from fs.FS, dir string) error {
	sub, err := fs.Sub(from, dir)
	if err != nil {
		return err
	}
	return fs.WalkDir(sub, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(sub, name)
		tree[name] = &fstest.MapFile{Data: text, Mode: 0o644}
		return err
	})
}
