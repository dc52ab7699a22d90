package spec

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueload "cuelang.org/go/cue/load"
	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/schemas"
)

func TestANewRepositoryLoads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "fleet")
	names, err := Init(dir, InitOptions{Cluster: "blue", Region: "eu-central-1", KubernetesVersion: "1.33", Environment: `test "x"`, Module: "corp.example/nodes@v0"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"clusters/blue/cluster.cue", "clusters/blue/nodeclasses.cue", "clusters/blue/nodepools.cue", "clusters/blue/policy.cue",
		"cue.mod/local-module.cue", "cue.mod/module.cue",
		"cue.mod/reeve/cluster.cue", "cue.mod/reeve/cue.mod/module.cue", "cue.mod/reeve/fleet.cue", "cue.mod/reeve/nodeclass.cue", "cue.mod/reeve/nodeclass_gen.cue",
		"cue.mod/reeve/nodepool.cue", "cue.mod/reeve/nodepool_gen.cue", "cue.mod/reeve/policy.cue", "policies/README.md",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	f, err := load(t, os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{f.Cluster.Region, f.Cluster.KubernetesVersion, f.Cluster.Environment, string(f.Cluster.Mode), f.NodeClass("default").Spec.Role}
	if diff := cmp.Diff([]string{"eu-central-1", "1.33", `test "x"`, string(fleet.Observe), "KarpenterNodeRole-blue"}, got); diff != "" {
		t.Errorf("fleet (-want +got):\n%s", diff)
	}
}

// vet does what "cue vet -c ./..." does: load all packages from the disk with
// the vendored schemas and no registry, and ask for concrete values.
func vet(t *testing.T, dir string) error {
	t.Helper()
	ctx := cuecontext.New()
	insts := cueload.Instances([]string{"./..."}, &cueload.Config{Dir: dir, Env: []string{"CUE_REGISTRY=none", "CUE_CACHE_DIR=" + t.TempDir()}})
	for _, inst := range insts {
		if inst.Err != nil {
			return inst.Err
		}
		if err := ctx.BuildInstance(inst).Validate(cue.Concrete(true)); err != nil {
			return err
		}
	}
	return nil
}

func TestANewRepositoryPassesPlainCUE(t *testing.T) {
	dir := t.TempDir()
	if _, err := Init(dir, InitOptions{Cluster: "blue"}); err != nil {
		t.Fatal(err)
	}
	if err := vet(t, dir); err != nil {
		t.Errorf("vet: %v", err)
	}
	if cue, err := exec.LookPath("cue"); err == nil {
		cmd := exec.Command(cue, "vet", "-c", "./...")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CUE_REGISTRY=none")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("cue vet: %v\n%s", err, out)
		}
	}
	file := filepath.Join(dir, "clusters", "blue", "nodepools.cue")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "limits:", "limitz:", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := vet(t, dir); err == nil || !strings.Contains(err.Error(), "field not allowed") {
		t.Errorf("vet of a misspelled field: %v", err)
	}
}

func TestInitLosesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	if _, err := Init(dir, InitOptions{Cluster: "blue"}); !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("init into a directory in use: %v", err)
	}
	if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
		t.Errorf("files changed:\n%s", diff)
	}
	if _, err := Init(filepath.Join(dir, "notes.txt"), InitOptions{Cluster: "blue"}); err == nil {
		t.Error("init into a file succeeded")
	}
	if err := os.Remove(filepath.Join(dir, "notes.txt")); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(dir, InitOptions{Cluster: "blue"}); err != nil {
		t.Errorf("init beside .git: %v", err)
	}
}

func TestInitCleansUpAfterAFailure(t *testing.T) {
	dir := t.TempDir()
	w := &writer{dir: dir}
	for _, name := range []string{"a/b/c.cue", "a/d.cue"} {
		if err := w.write(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.write("a/d.cue", []byte("y")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file was overwritten: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "b", "other"), []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := w.undo(); err == nil {
		t.Error("a directory in use was removed")
	}
	if diff := cmp.Diff([]string{"a", "a/b", "a/b/other"}, listing(t, dir)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestInitRefusesNoDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if names, err := Init("", InitOptions{Cluster: "blue"}); err == nil {
		t.Errorf("an empty name was taken for the present directory: wrote %d files", len(names))
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("wrote %v, %v", entries, err)
	}
}

func TestInitRefusesABadName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	if _, err := Init(dir, InitOptions{Cluster: "../up"}); err == nil || !strings.Contains(err.Error(), "is not the name of a cluster") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
}

func TestTheVendoredModuleIsTheOneThatIsDependedOn(t *testing.T) {
	files, err := newRepository(InitOptions{Cluster: "blue", Module: "m.example/x@v0"})
	if err != nil {
		t.Fatal(err)
	}
	dep := `"` + schemas.Module + `": {v: "` + schemas.Version + `", default: true`
	for _, name := range []string{moduleFile, localModuleFile} {
		if !strings.Contains(string(files[name]), dep) {
			t.Errorf("%s does not depend on %s:\n%s", name, dep, files[name])
		}
	}
	if !strings.Contains(string(files[schemas.VendorDir+"/cue.mod/module.cue"]), `module: "`+schemas.Module+`"`) {
		t.Error("the vendored module has another name")
	}
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, p); rel != "." {
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestInitRefusesWhatItsOwnSchemaWouldRefuse(t *testing.T) {
	for name, o := range map[string]InitOptions{
		"a region":             {Cluster: "blue", Region: `x"`},
		"a Kubernetes version": {Cluster: "blue", KubernetesVersion: "latest"},
	} {
		dir := filepath.Join(t.TempDir(), "fleet")
		if _, err := Init(dir, o); err == nil || !strings.Contains(err.Error(), "such as") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
}
