package main

// bugs are the mistakes that tests are named for.
var bugs = []bug{
	{
		name: "allocatable memory is off by 1 MiB",
		file: "reconciler/catalog/capacity.go",
		old:  "c.settings.VMMemoryOverheadPPM, million)) * mib",
		new:  "c.settings.VMMemoryOverheadPPM, million) + 1) * mib",
		pkg:  "./reconciler/catalog",
		test: "TestAllocatableOfAllTypesIsAsDocumented",
	},
	{
		name: "what policy says of a proposal is ignored",
		file: "reconciler/pipeline/negotiation.go",
		old:  "		d.Verdict.Warnings = res.Warnings\n",
		new:  "		res.Violations = nil\n		d.Verdict.Warnings = res.Warnings\n",
		pkg:  "./reconciler/pipeline",
		test: "TestADeniedPodStaysPendingWithTheRule",
	},
	{
		name: "a decision is acted on before it is recorded",
		file: "reconciler/pipeline/pipeline.go",
		old: `	if rerr := p.record(ctx, snap, decisions); rerr != nil {
		return errors.Join(err, fmt.Errorf("record: %w", rerr))
	}
`,
		new: `	p.recorded(decisions)
	if aerr := p.act(ctx, snap, decisions); aerr != nil {
		return aerr
	}
	p.open = p.open[:max(0, len(p.open)-len(decisions))]
	if rerr := p.record(ctx, snap, decisions); rerr != nil {
		return errors.Join(err, fmt.Errorf("record: %w", rerr))
	}
`,
		pkg:  "./reconciler/pipeline",
		test: "TestPodsGetNodesAndEveryStepIsRecorded",
	},
	{
		name: "an outcome is not written",
		file: "reconciler/pipeline/record.go",
		old:  "e.Outcomes = append(e.Outcomes, r.Outcome.Clone())",
		new:  "_ = r.Outcome.Clone()",
		pkg:  "./reconciler/pipeline",
		test: "TestPodsGetNodesAndEveryStepIsRecorded",
	},
	{
		name: "a push that is put on others' commits drops a decision",
		file: "reconciler/ledger/push.go",
		old:  "	moved := slices.Clone(l.unpushed)\n",
		new:  "	moved := slices.Clone(l.unpushed)[1:]\n",
		pkg:  "./reconciler/ledger",
		test: "TestCommitsThatLeaveOurFoldersAloneAreBuiltUpon",
	},
}
