// Command gen makes the embedded tables of the catalog from collected facts.
// Only maintainers run it, when the facts were collected anew:
//
//	go run ./internal/gen -data DIR -out data -expected testdata
//
// DIR holds JSON files with the facts of EC2 and of Karpenter's documentation.
// The output depends on nothing but those files.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// regions that get a table; adding one here and running the command is all it
// takes to support another region.
var regions = []string{
	"ap-northeast-1", "ap-northeast-2", "ap-southeast-1", "eu-central-1", "eu-west-1", "us-east-1", "us-east-2", "us-west-2",
}

func main() {
	data := flag.String("data", "", "directory with the collected facts")
	out := flag.String("out", "data", "directory for the tables")
	expected := flag.String("expected", "testdata", "directory for the documented results that tests compare with")
	flag.Parse()
	files, err := generate(*data, regions)
	if err == nil {
		err = write(files, *out, *expected)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate gives the tables of the types and of the regions by name; those of the tests begin with "expected".
func generate(dir string, regions []string) (map[string]string, error) {
	src, err := readSources(dir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	files := map[string]string{
		"types.tsv":                src.types(),
		"expected-allocatable.tsv": src.expectedAllocatable(),
		"expected-labels.tsv":      src.expectedLabels(),
	}
	for _, region := range regions {
		table, err := src.region(region)
		if err != nil {
			return nil, fmt.Errorf("region %s: %w", region, err)
		}
		files[region+".tsv"] = table
	}
	return files, nil
}

func write(files map[string]string, out, expected string) error {
	for name, text := range files {
		dir := out
		if isExpected(name) {
			dir = expected
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
