// Command gen writes the generated part of the schemas: the specs of NodePool,
// EC2NodeClass and NodeClaim in CUE, and their defaults, as the CRDs of the
// Karpenter provider module in go.mod describe them.
//
// Run it from the root of the repository: go run ./schemas/internal/gen.
// With -check it writes nothing and fails when a file differs.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/karpenter-provider-aws/pkg/apis"
)

// target is one generated file.
type target struct {
	file       string // below the schemas directory
	pkg        string // its CUE package
	definition string // name of the CUE definition
	crd        []byte
}

var targets = []target{
	{"nodepool_gen.cue", "fleet", "#KarpenterNodePoolSpec", apis.NodePoolCRD},
	{"nodeclass_gen.cue", "fleet", "#KarpenterEC2NodeClassSpec", apis.EC2NodeClassCRD},
	{"document/nodeclaim_gen.cue", "document", "#KarpenterNodeClaimSpec", apis.NodeClaimCRD},
}

func main() {
	dir := flag.String("dir", "schemas", "directory of the schemas")
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	files := map[string][]byte{}
	for _, t := range targets {
		src, err := generate(t.pkg, t.definition, t.crd)
		if err != nil {
			return fmt.Errorf("%s: %w", t.file, err)
		}
		files[t.file] = src
	}
	defaults, err := generateDefaults()
	if err != nil {
		return err
	}
	files[defaultsFile] = defaults
	for name, want := range files {
		if err := writeOrCompare(filepath.Join(dir, name), want, check); err != nil {
			return err
		}
	}
	return nil
}

func writeOrCompare(path string, want []byte, check bool) error {
	if !check {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, want, 0o644)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s is not what the CRDs give: run go run ./schemas/internal/gen and commit the result", path)
	}
	return nil
}
