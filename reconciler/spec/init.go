package spec

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/reeve-project/reeve/schemas"
)

// InitOptions say what a new fleet repository is about. Empty fields but
// Cluster have the defaults given here.
type InitOptions struct {
	// Cluster is the name of the EKS cluster.
	Cluster string
	// Region is the AWS region: "us-east-1".
	Region string
	// KubernetesVersion is the minor version of the control plane: "1.34".
	KubernetesVersion string
	// Environment is the word that policies test: "production".
	Environment string
	// Module is the CUE module path of the repository: "example.com/fleet@v0".
	Module string
}

func (o *InitOptions) defaults() {
	for _, f := range []struct {
		field *string
		value string
	}{
		{&o.Region, "us-east-1"}, {&o.KubernetesVersion, "1.34"},
		{&o.Environment, "production"}, {&o.Module, "example.com/fleet@v0"},
	} {
		if *f.field == "" {
			*f.field = f.value
		}
	}
}

// localModule is cue.mod/local-module.cue: where the schemas are.
const localModule = schemas.LocalModule + "\n"

// The files of a new repository. Names and contents are templates over
// InitOptions.
//
//go:embed template
var templates embed.FS

// The forms of #Cluster in the schemas, so that what Init writes passes them.
var (
	regionName        = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]+$`)
	kubernetesVersion = regexp.MustCompile(`^1\.[0-9]{1,3}$`)
)

// ErrNotEmpty says that Init found something in the directory.
var ErrNotEmpty = errors.New("the directory is not empty")

// Files are the files of a new fleet repository by name, with slashes: what Init
// writes. The error says which of the options is not what it should be.
func Files(opts InitOptions) (map[string][]byte, error) {
	opts.defaults()
	if !clusterName.MatchString(opts.Cluster) {
		return nil, fmt.Errorf("init: %q is not the name of a cluster: letters, digits, '-' and '_', at most 100", opts.Cluster)
	}
	for _, o := range []struct {
		what, value string
		form        *regexp.Regexp
		like        string
	}{
		{"region", opts.Region, regionName, "us-east-1"},
		{"Kubernetes version", opts.KubernetesVersion, kubernetesVersion, "1.34"},
	} {
		if !o.form.MatchString(o.value) {
			return nil, fmt.Errorf("init: %q is not a %s such as %q", o.value, o.what, o.like)
		}
	}
	files, err := newRepository(opts)
	if err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	return files, nil
}

// Init writes a new fleet repository with one cluster into dir, which must not
// exist or be empty but for .git. It returns the files it wrote, relative to
// dir. When it fails it removes what it wrote; it never touches what was there.
func Init(dir string, opts InitOptions) ([]string, error) {
	files, err := Files(opts)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, errors.New("init: no directory is named; write . for the present one")
	}
	if err := empty(dir); err != nil {
		return nil, fmt.Errorf("init %s: %w", dir, err)
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	w := &writer{dir: dir}
	for _, name := range names {
		if err := w.write(name, files[name]); err != nil {
			return nil, fmt.Errorf("init %s: %w", dir, errors.Join(err, w.undo()))
		}
	}
	return names, nil
}

// empty holds that the directory has nothing in it but the repository itself.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != ".git" {
			return fmt.Errorf("%w: it has %s; choose a new directory, or an empty one", ErrNotEmpty, e.Name())
		}
	}
	return nil
}

// newRepository renders all files by name.
func newRepository(opts InitOptions) (map[string][]byte, error) {
	files := map[string][]byte{localModuleFile: []byte("// Where this repository holds the schemas. Keep this file.\n" + localModule)}
	err := fs.WalkDir(templates, "template", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(templates, name)
		if err != nil {
			return err
		}
		t, err := template.New(name).Delims("<<", ">>").Parse(string(text))
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, opts); err != nil {
			return err
		}
		target := strings.TrimPrefix(strings.TrimSuffix(name, ".tmpl"), "template/")
		files[strings.Replace(target, "CLUSTER", opts.Cluster, 1)] = out.Bytes()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return files, vendorInto(files)
}

// vendorInto adds the schemas.
func vendorInto(files map[string][]byte) error {
	return fs.WalkDir(schemas.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(schemas.FS(), name)
		files[path.Join(schemas.VendorDir, name)] = text
		return err
	})
}

// writer creates files and remembers what it created.
type writer struct {
	dir  string
	made []string // files and directories in order of creation
}

func (w *writer) write(name string, text []byte) error {
	target := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := w.mkdir(filepath.Dir(target)); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	w.made = append(w.made, target)
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

func (w *writer) mkdir(dir string) error {
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.mkdir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	w.made = append(w.made, dir)
	return nil
}

// undo removes what was created; a directory that somebody else has used in the
// meantime stays.
func (w *writer) undo() error {
	var errs []error
	for _, name := range slices.Backward(w.made) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
