package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
)

// result is what was measured of one benchmark.
type result struct {
	// name is the package and the benchmark: "scheduling.Shapes5000".
	name       string
	head, base sample
	goals      []goal
}

// ratio is the time of head in times of base, or zero without a base.
func (r result) ratio() float64 {
	if r.base == nil {
		return 0
	}
	return r.head[perOp] / r.base[perOp]
}

// bench measures two trees in turns, so that whatever else the machine does
// meets both.
type bench struct {
	head tree
	// base is nil when there is nothing to compare with.
	base *tree
	// rounds is how often each benchmark runs in each tree. While one looks
	// slower than the limit there are as many again, up to patience times, since
	// only the least of many runs is what the code can do.
	rounds int
	limit  float64
	log    io.Writer
}

const patience = 5

// measure builds and runs one entry.
func (b *bench) measure(ctx context.Context, e entry) ([]result, error) {
	switch err := b.head.build(ctx, e.dir); {
	case errors.Is(err, errNoPackage):
		fmt.Fprintf(b.log, "%s: the package is not there, left out\n", e.dir)
		return nil, nil
	case err != nil:
		return nil, err
	}
	withBase := b.base != nil
	if withBase {
		if err := b.base.build(ctx, e.dir); err != nil {
			withBase = false
			fmt.Fprintf(b.log, "%s: nothing to compare with: %v\n", e.dir, err)
		}
	}
	var s series
	for try := 0; try == 0 || try <= patience && s.slower(b.limit); try++ {
		for range b.rounds {
			if err := b.round(ctx, e, withBase, &s); err != nil {
				return nil, err
			}
		}
	}
	if len(s.names) == 0 {
		fmt.Fprintf(b.log, "%s: none of the benchmarks %v is there, left out\n", e.dir, e.benchmarks)
	}
	return s.results(e)
}

func (b *bench) round(ctx context.Context, e entry, withBase bool, s *series) error {
	if withBase {
		out, err := b.base.run(ctx, e)
		if err != nil {
			return fmt.Errorf("base: %w", err)
		}
		_, samples, err := parse(out, runtime.GOMAXPROCS(0))
		if err != nil {
			return fmt.Errorf("base: %s: %w", e.dir, err)
		}
		s.add(&s.base, samples)
	}
	out, err := b.head.run(ctx, e)
	if err != nil {
		return err
	}
	names, samples, err := parse(out, runtime.GOMAXPROCS(0))
	if err != nil {
		return fmt.Errorf("%s: %w", e.dir, err)
	}
	s.names = names
	s.add(&s.head, samples)
	return nil
}

// series is the fastest sample of each benchmark so far.
type series struct {
	names      []string
	head, base map[string]sample
}

func (s *series) add(to *map[string]sample, samples map[string]sample) {
	if *to == nil {
		*to = map[string]sample{}
	}
	for name, smp := range samples {
		(*to)[name] = faster((*to)[name], smp)
	}
}

func (s *series) slower(limit float64) bool {
	return slices.ContainsFunc(s.names, func(n string) bool { return result{head: s.head[n], base: s.base[n]}.ratio() > limit })
}

// results are in the order of the names. A goal of a benchmark that is not
// there is an error, or nobody would notice that it went.
func (s *series) results(e entry) ([]result, error) {
	for _, g := range e.goals {
		if len(s.names) > 0 && !slices.Contains(s.names, g.benchmark) {
			return nil, fmt.Errorf("%s has no Benchmark%s, which has a goal in test/tools/bench/table.go", e.dir, g.benchmark)
		}
	}
	var out []result
	for _, n := range s.names {
		r := result{name: packageName(e.dir) + "." + n, head: s.head[n], base: s.base[n]}
		for _, g := range e.goals {
			if g.benchmark == n {
				r.goals = append(r.goals, g)
			}
		}
		out = append(out, r)
	}
	return out, nil
}
