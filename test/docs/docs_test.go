package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

const root = "../.."

// pagesOf are all pages: those at the root, those below docs/, and those of the
// examples.
func pagesOf(t *testing.T) map[string]*page {
	t.Helper()
	out := map[string]*page{}
	add := func(name string) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePage(name, string(text))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = p
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		add(name)
	}
	err := fs.WalkDir(os.DirFS(root), "docs", func(name string, e fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			add(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	examples, err := fs.Glob(os.DirFS(root), "examples/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range examples {
		add(name)
	}
	return out
}

// mustRun says whether a page that holds no command is wrong: it would say
// nothing that a test can hold it to.
func mustRun(name string) bool {
	return name == "README.md" || strings.HasPrefix(name, "docs/concepts/") || strings.HasPrefix(name, "docs/how-to/") || strings.HasPrefix(name, "examples/")
}

func TestWhatTheDocumentationShowsIsTrue(t *testing.T) {
	makefile, ci := read(t, "Makefile"), read(t, ".ci/run")
	for name, p := range pagesOf(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps, err := p.steps()
			if err != nil {
				t.Fatal(err)
			}
			checkBlocks(t, p)
			ran := 0
			for _, s := range steps {
				if s.command == nil {
					continue
				}
				ran++
				if err := checkTargets(makeTargets(s.command.text), makefile, ci); err != nil {
					t.Errorf("%s:%d: %v", name, s.command.line, err)
				}
			}
			if ran == 0 && mustRun(name) {
				t.Errorf("%s has no command that is run: show one", name)
			}
			if ran > 0 {
				runPage(t, p, steps)
			}
		})
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func checkBlocks(t *testing.T, p *page) {
	for _, b := range p.blocks {
		if err := checkSnippet(b.language, b.text()); err != nil {
			t.Errorf("%s:%d: %v", p.name, b.line, err)
		}
	}
}

// runPage does what the page says in an empty directory. With UPDATE=1 in the
// environment it writes what commands print into the page.
func runPage(t *testing.T, p *page, steps []step) {
	bin := buildReeve(t)
	file := filepath.Join(t.TempDir(), strings.NewReplacer("/", "-", ".md", ".txtar").Replace(p.name))
	if err := os.WriteFile(file, []byte(script(p, steps)), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &runner{t: t, page: p, steps: steps, got: map[int][]string{}, update: os.Getenv("UPDATE") == "1"}
	t.Run("run", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Files: []string{file},
			Setup: func(env *testscript.Env) error {
				env.Vars = append(env.Vars, gitEnvironment()...)
				env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
				return nil
			},
			Cmds: map[string]func(*testscript.TestScript, bool, []string){"run": r.run, "write": r.write},
		})
	})
	if r.update && len(r.got) > 0 {
		if err := os.WriteFile(filepath.Join(root, p.name), []byte(rewrite(p, steps, r.got)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// gitEnvironment makes Git the same for everybody: commits that a page makes
// have the same id each time.
func gitEnvironment() []string {
	const date = "2026-04-06T12:30:00Z"
	return []string{
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=true", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=init.defaultBranch", "GIT_CONFIG_VALUE_0=main",
		"GIT_CONFIG_KEY_1=advice.detachedHead", "GIT_CONFIG_VALUE_1=false",
		"GIT_AUTHOR_NAME=You", "GIT_AUTHOR_EMAIL=you@example.com", "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=You", "GIT_COMMITTER_EMAIL=you@example.com", "GIT_COMMITTER_DATE=" + date,
		"TZ=UTC", "LC_ALL=C.UTF-8",
	}
}

// runner does the steps of one page.
type runner struct {
	t      *testing.T
	page   *page
	steps  []step
	update bool

	mu  sync.Mutex
	got map[int][]string
}

func (r *runner) step(ts *testscript.TestScript, args []string) (int, step) {
	i, err := strconv.Atoi(args[0])
	ts.Check(err)
	return i, r.steps[i]
}

// write writes a block to its file.
func (r *runner) write(ts *testscript.TestScript, _ bool, args []string) {
	_, s := r.step(ts, args)
	name := ts.MkAbs(filepath.FromSlash(s.file.file))
	ts.Check(os.MkdirAll(filepath.Dir(name), 0o755))
	ts.Check(os.WriteFile(name, []byte(s.file.text()), 0o644))
}

// run runs a command as a shell would and compares code and output.
func (r *runner) run(ts *testscript.TestScript, _ bool, args []string) {
	i, s := r.step(ts, args)
	c := s.command
	text := c.text
	switch targets := makeTargets(text); {
	case slices.Equal(targets, []string{"demo"}):
		// What "make demo" runs after it has built.
		text = "reeve demo"
	case targets != nil:
		return // only what .ci/run runs is named, so it need not run here
	}
	err := ts.Exec("sh", "-c", "exec 2>&1\n"+text)
	out := outputLines(ts.ReadFile("stdout"))
	if got := exitCodeOf(ts, err); got != c.exit {
		ts.Fatalf("%s:%d: exit code %d, want %d; it printed:\n%s", r.page.name, c.line, got, c.exit, strings.Join(out, "\n"))
	}
	at := mismatch(c.want, out)
	switch {
	case at < 0:
		return
	case r.update:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got[i] = out
	default:
		r.t.Errorf("%s:%d: the output is not that of the page (UPDATE=1 writes it there); it is:\n%s", r.page.name, c.first+at, strings.Join(out, "\n"))
	}
}

func exitCodeOf(ts *testscript.TestScript, err error) int {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Check(err)
	}
	if exit != nil {
		return exit.ExitCode()
	}
	return 0
}

// reeve is the directory of the command, built once.
var reeve = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "reeve-docs")
	if err != nil {
		return "", err
	}
	built = dir
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./cmd/reeve")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build reeve: %w\n%s", err, out)
	}
	return dir, nil
})

// built is removed at the end.
var built string

func buildReeve(t *testing.T) string {
	t.Helper()
	dir, err := reeve()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

func TestNoLinkIsBroken(t *testing.T) {
	pages := pagesOf(t)
	for _, p := range pages {
		for _, problem := range brokenLinks(p, pages, os.DirFS(root)) {
			t.Error(problem)
		}
	}
	for _, name := range orphans("README.md", pages) {
		t.Errorf("%s: no page that can be reached from README.md links to it", name)
	}
}

func TestRulesThatAreNamedExist(t *testing.T) {
	pages := pagesOf(t)
	known := pages["docs/reference/policy-rules.md"].rules()
	for name, p := range pages {
		for id := range p.rules() {
			if !known[id] {
				t.Errorf("%s names rule %s, which docs/reference/policy-rules.md does not", name, id)
			}
		}
	}
}
