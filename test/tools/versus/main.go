// Command versus measures reeve check beside conftest, in turns and in one
// run: the same rules on the same NodePools, as CUE for the one and as YAML for
// the other. Both have to find the same breaches, or the comparison is void.
//
//	go run ./test/tools/versus                     # what "make bench-conftest" does
//	go run ./test/tools/versus -rounds 10 -pools 100
//
// reeve check has more to do: it evaluates CUE, validates the schema, and works
// out what instance types are left. It is measured with the three rules alone,
// for the ratio, and with every shipped policy beside them.
//
// It exits with 1 when a goal is missed and with 2 when it could not measure.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

// The goals of the project, on two cores of a small virtual machine.
const (
	// maxRatio is the time of reeve check over that of conftest.
	maxRatio = 1.5
	// maxCheck is for the NodePools of -pools.
	maxCheck = time.Second
	// maxLarge and maxLargeMemory (bytes) are for largeFleet NodePools.
	largeFleet     = 500
	maxLarge       = 3 * time.Second
	maxLargeMemory = 500 << 20
)

type options struct {
	root, out, goals string
	pools, rounds    int
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "directory of the module")
	flag.StringVar(&o.out, "o", "build/bench-conftest.json", "file to write the figures to")
	flag.StringVar(&o.goals, "goals", "fail", "what a missed goal does: fail or warn")
	flag.IntVar(&o.pools, "pools", 100, "NodePools of the compared fleet")
	flag.IntVar(&o.rounds, "rounds", 5, "runs of each command; the fastest counts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	f, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "versus:", err)
		os.Exit(2)
	}
	f.print(os.Stdout)
	missed := f.missed()
	for _, m := range missed {
		fmt.Fprintln(os.Stderr, "versus:", m)
	}
	if len(missed) > 0 && o.goals != "warn" {
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (*figures, error) {
	if o.goals != "fail" && o.goals != "warn" || o.rounds < 1 || o.pools < 1 {
		return nil, fmt.Errorf("-goals is fail or warn, -rounds and -pools are at least 1")
	}
	root, err := filepath.Abs(o.root)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "reeve-versus-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b := bench{root: root, dir: dir, rounds: o.rounds}
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	f, err := b.compare(ctx, o.pools)
	if err != nil {
		return nil, err
	}
	f.LargePools = largeFleet
	if f.Large, err = b.large(ctx); err != nil {
		return nil, err
	}
	return &f, f.write(filepath.Join(root, o.out))
}
