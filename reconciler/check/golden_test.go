package check

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/reeve-project/reeve/reconciler/report"
)

// loose are what changes with every policy that is shipped: how many they are
// and where their rules stand.
var loose = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\b\d+ (policy|policies)\b`), "N policies"},
	{regexp.MustCompile(`"policies": \d+`), `"policies": N`},
	{regexp.MustCompile(`(shipped/[a-z_]+\.rego):\d+`), "$1:N"},
}

// wantGolden compares every format of the check of a change with the files
// testdata/golden/<name>/<format>, holds what is SARIF to its schema, and gives
// the check back. With UPDATE=1 in the environment it writes them.
func wantGolden(t *testing.T, name string, base, head fs.FS) *report.Check {
	t.Helper()
	res, err := Run(ctx, Options{
		Source: "fleet", Files: head, Now: noon,
		Base: &Base{Rev: "main", Commit: strings.Repeat("0123456789", 4), Files: base},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("testdata", "golden", name)
	for _, format := range report.CheckFormats() {
		var b bytes.Buffer
		if err := report.WriteCheck(&b, format, res); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, format, b.Bytes())
		text := b.String()
		for _, l := range loose {
			text = l.pattern.ReplaceAllString(text, l.with)
		}
		file := filepath.Join(dir, format)
		if os.Getenv("UPDATE") == "1" {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	return res
}

// wellFormed reads a format as its readers would.
func wellFormed(t *testing.T, format string, b []byte) {
	t.Helper()
	switch format {
	case "sarif":
		validSARIF(t, b)
	case "json", "gitlab":
		if !json.Valid(b) {
			t.Errorf("%s is no JSON:\n%s", format, b)
		}
	case "junit":
		if err := xml.Unmarshal(b, new(struct{})); err != nil {
			t.Errorf("junit is no XML: %v", err)
		}
	}
}

// validSARIF holds the log to the JSON schema of SARIF 2.1.0, and nothing in it
// may be unknown to the format.
func validSARIF(t *testing.T, b []byte) {
	t.Helper()
	log, err := sarif.FromBytes(b)
	if err != nil {
		t.Fatalf("sarif: %v", err)
	}
	for _, run := range log.Runs {
		// The reader makes an empty list of it where there is none, which the
		// schema refuses; this is the format's default.
		run.NewlineSequences = []string{"\r\n", "\n"}
	}
	if err := log.Validate(); err != nil {
		t.Errorf("sarif: %v", err)
	}
	again, err := json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	var ours, theirs any
	if err := json.Unmarshal(b, &ours); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &theirs); err != nil {
		t.Fatal(err)
	}
	lost(t, "", ours, theirs)
}

// lost reports what of our log a reader of the format did not take.
func lost(t *testing.T, at string, ours, theirs any) {
	t.Helper()
	switch x := ours.(type) {
	case map[string]any:
		y, _ := theirs.(map[string]any)
		for k, v := range x {
			lost(t, at+"/"+k, v, y[k])
		}
	case []any:
		y, _ := theirs.([]any)
		if len(x) > 0 && len(x) != len(y) {
			t.Errorf("sarif: of %s %d of %d elements are read", at, len(y), len(x))
			return
		}
		for i := range x {
			lost(t, at, x[i], y[i])
		}
	default:
		if !cmp.Equal(ours, theirs) {
			t.Errorf("sarif: %s is read as %v instead of %v", at, theirs, ours)
		}
	}
}

// treeOf is a directory as a tree that files can be added to.
func treeOf(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = &fstest.MapFile{Data: b, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPullRequestsInEveryFormat checks the changes below testdata/prs: the files
// in each go over those of a new fleet, those below base/ into the base too.
func TestPullRequestsInEveryFormat(t *testing.T) {
	cases, err := filepath.Glob("testdata/prs/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("%v %v", cases, err)
	}
	start := newFleet(t)
	for _, file := range cases {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			base, head := treeOf(t, start), treeOf(t, start)
			for _, f := range archive.Files {
				if path, ok := strings.CutPrefix(f.Name, "base/"); ok {
					base[path] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
					head[path] = base[path]
				}
			}
			for _, f := range archive.Files {
				if !strings.HasPrefix(f.Name, "base/") {
					head[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
				}
			}
			wantGolden(t, name, base, head)
		})
	}
}
