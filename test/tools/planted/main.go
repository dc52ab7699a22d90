// Command planted proves that tests can fail: it plants one bug at a time,
// through a build overlay and without touching a file of the tree, and wants
// the test that is named for it to go red.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bug is a change of one place in one file and the test that must find it.
type bug struct {
	name string
	file string
	// old stands once in the file and is replaced by new.
	old, new string
	pkg      string
	test     string
}

func main() {
	failed := 0
	for _, b := range bugs {
		if err := plant(b); err != nil {
			fmt.Printf("NOT FOUND  %s: %v\n", b.name, err)
			failed++
			continue
		}
		fmt.Printf("found      %s by %s\n", b.name, b.test)
	}
	if failed > 0 {
		fmt.Printf("%d of %d planted bugs were not found\n", failed, len(bugs))
		os.Exit(1)
	}
	fmt.Printf("all %d planted bugs were found\n", len(bugs))
}

func plant(b bug) error {
	src, err := os.ReadFile(b.file)
	if err != nil {
		return err
	}
	if n := strings.Count(string(src), b.old); n != 1 {
		return fmt.Errorf("the place to plant it stands %d times in %s", n, b.file)
	}
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(dir, b, strings.Replace(string(src), b.old, b.new, 1))
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "test", "-overlay", overlay, "-count=1", "-run", "^"+b.test+"$", b.pkg)
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return fmt.Errorf("%s passes", b.test)
	case !strings.Contains(string(out), "--- FAIL: "+b.test):
		return fmt.Errorf("%s did not fail but something else did:\n%s", b.test, out)
	default:
		return nil
	}
}

func writeOverlay(dir string, b bug, planted string) (string, error) {
	abs, err := filepath.Abs(b.file)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(dir, filepath.Base(b.file))
	if err := os.WriteFile(copied, []byte(planted), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {abs: copied}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}
