package main

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
)

// perOp is the unit of the time that one operation takes.
const perOp = "ns/op"

// sample is what one run of one benchmark shows, by unit.
type sample map[string]float64

// parse reads the output of a benchmark binary: the samples by benchmark
// without "Benchmark" and without the number of processors, and the names in
// their order. A benchmark that ran twice keeps its faster sample.
func parse(output string, procs int) (names []string, samples map[string]sample, err error) {
	samples = map[string]sample{}
	lines := bufio.NewScanner(strings.NewReader(output))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue // what the benchmark printed, or the frame around it
		}
		if _, err := strconv.Atoi(fields[1]); err != nil {
			continue
		}
		s, err := parseMetrics(fields[2:])
		if err != nil {
			return nil, nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(fields[0], "Benchmark"), fmt.Sprintf("-%d", procs))
		if samples[name] == nil {
			names = append(names, name)
		}
		samples[name] = faster(samples[name], s)
	}
	return names, samples, lines.Err()
}

func parseMetrics(fields []string) (sample, error) {
	if len(fields)%2 != 0 {
		return nil, fmt.Errorf("a value without a unit")
	}
	s := sample{}
	for i := 0; i < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return nil, err
		}
		s[fields[i+1]] = v
	}
	if s[perOp] <= 0 {
		return nil, fmt.Errorf("no %s", perOp)
	}
	return s, nil
}

// faster is the sample of the quicker run; what disturbs a run only ever makes
// it slower.
func faster(a, b sample) sample {
	if a == nil || b != nil && b[perOp] < a[perOp] {
		return b
	}
	return a
}
