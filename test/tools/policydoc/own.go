package main

import (
	"github.com/reeve-project/reeve/reconciler/check"
	"github.com/reeve-project/reeve/reconciler/policy"
)

// ownRule is a finding that Reeve makes without a policy.
type ownRule struct{ id, where, kind, title, text string }

// own are those findings. A test finds ids that are missing here.
var own = []ownRule{
	{"REEVE-SPEC-001", "spec", "deny", "The fleet cannot be read",
		"CUE that does not evaluate, a value that the schema or a rule of Karpenter's CRDs refuses, a reference to an EC2NodeClass\n" +
			"that is not in the fleet, or a tree that is not a fleet repository. The message says what to do."},
	{check.RuleNotChecked, "check", "warn", "Instance types were not checked",
		"`reeve check` knows types and prices of the regions that are built in only. It says so when the fleet is in another one, and when a\n" +
			"NodePool asks for what differs from account to account, such as capacity reservations."},
	{check.RuleNoType, "check", "deny", "No instance type is left",
		"What the NodePool requires, what its EC2NodeClass supports and what policies exclude leave nothing to launch. The message\n" +
			"counts how many types pass each step."},
	{check.RuleMinValues, "check", "warn", "There are fewer values than minValues",
		"The instance types that are left for the NodePool are less various than its `minValues` ask for. Nothing can be launched\n" +
			"until they are."},
	{check.RuleSpotTypes, "check", "warn", "Too few spot types",
		"Policies leave fewer than the 15 instance types that it takes to replace a spot node by a cheaper spot node."},
	{check.RuleBase, "check", "warn", "The base cannot be compared with",
		"The fleet of the revision behind `reeve check --base` cannot be read. Its policies do not judge, and nothing is compared."},
	{policy.RuleCompile, "all", "deny", "The policies cannot be used",
		"Rego that does not compile, that uses a built-in function which is not allowed, that adds to a shipped package, or that\n" +
			"would never be evaluated. Nothing is judged by part of a bundle."},
	{policy.RuleVersion, "all", "warn", "The file is in the syntax before Rego v1",
		"It is taken as that. `reeve policy fmt --upgrade` brings it up to date."},
	{policy.RuleVerdict, "all", "deny", "A policy gave no verdict",
		"An evaluation failed, took longer than `cluster.judge.deadline` or too much memory, or was undefined. That denies, except for the kinds of\n" +
			"decision in `cluster.judge.failOpen`, for which it is a warning."},
	{policy.RuleStrict, "all", "warn", "Rules for conftest are written loosely",
		"OPA's strict mode refuses what conftest takes, such as a variable that is assigned and not used. In packages outside of\n" +
			"`reeve`, and in files in the syntax before Rego v1, it is a warning; everywhere else it is REEVE-REGO-001."},
	{policy.RuleNamespace, "spec", "warn", "A namespace of conftest has no rules",
		"`policy.conftest.namespaces` names a package that no file below policies/ is of, so that nothing is run. Most often the name is\n" +
			"misspelled."},
	{policy.RuleException, "spec", "warn", "An exception has expired",
		"It lifts nothing any more. Remove it, or renew it in a commit that says why."},
	{policy.RuleExceptionRule, "spec", "warn", "An exception is to no rule",
		"No policy of the fleet has a rule of that id, so the exception lifts nothing. Most often the id is misspelled, or the rule is gone."},
	{policy.RuleExceptionResource, "spec", "warn", "An exception is for no object",
		"The NodePool, EC2NodeClass or cluster that the exception names is not in the fleet. Nodes, NodeClaims and pods are not looked for:\n" +
			"they come and go."},
}
