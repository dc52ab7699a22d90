package docs

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const samplePage = "# A *page* of `text`, twice\n" +
	"See [there](other.md#some-words), `[not](code.md)` and [us](https://example.com/x).\n" +
	"\n" +
	"## Again\n" +
	"## Again\n" +
	"```cue fleet/a.cue\n" +
	"# no heading: [no](link.md)\n" +
	"x: 1\n" +
	"```\n" +
	"```console\n" +
	"$ echo a \\\n" +
	"  b\n" +
	"a b\n" +
	"\n" +
	"$ false # exit 1\n" +
	"$ echo c\n" +
	"...\n" +
	"```\n"

func TestAPageIsReadAsAReaderWould(t *testing.T) {
	p, err := parsePage("docs/page.md", samplePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{"a-page-of-text-twice": true, "again": true, "again-1": true}, p.headings); diff != "" {
		t.Errorf("headings (-want +got):\n%s", diff)
	}
	wantLinks := []link{{2, "other.md#some-words"}, {2, "https://example.com/x"}}
	if diff := cmp.Diff(wantLinks, p.links, cmp.AllowUnexported(link{})); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	steps, err := p.steps()
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, s := range steps {
		if s.file != nil {
			got = append(got, *s.file)
		} else {
			got = append(got, *s.command)
		}
	}
	want := []any{
		block{line: 7, language: "cue", file: "fleet/a.cue", lines: []string{"# no heading: [no](link.md)", "x: 1"}},
		command{line: 11, text: "echo a \\\n  b", want: []string{"a b", ""}, first: 13, last: 15},
		command{line: 15, text: "false", exit: 1, first: 16, last: 16},
		command{line: 16, text: "echo c", want: []string{"..."}, first: 17, last: 18},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(block{}, command{})); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	wantScript := "# docs/page.md:7 fleet/a.cue\nwrite 0\n# docs/page.md:11 echo a \\   b\nrun 1\n# docs/page.md:15 false\nrun 2\n# docs/page.md:16 echo c\nrun 3\n"
	if diff := cmp.Diff(wantScript, script(p, steps)); diff != "" {
		t.Errorf("script (-want +got):\n%s", diff)
	}
}

func TestPagesThatCannotBeRunAreRefused(t *testing.T) {
	for _, tc := range []struct{ name, page, want string }{
		{"a block without a language", "```\nx\n```\n", "page.md:1: a block begins with its language"},
		{"a block that is not closed", "text\n```json\n{}\n", "page.md:2: the block is not closed"},
		{"output without a command", "```console\nfleet\n```\n", `line 2: a console block begins with a command`},
		{"a console block without a command", "```console\n```\n", "the console block is empty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := parsePage("page.md", tc.page)
			if err == nil {
				_, err = p.steps()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestOutputIsComparedByLine(t *testing.T) {
	for _, tc := range []struct {
		name, want, got string
		at              int
	}{
		{"the same", "a\nb", "a\nb\n", -1},
		{"nothing", "", "", -1},
		{"something where nothing is wanted", "", "a\n", 0},
		{"nothing where something is wanted", "a", "", 0},
		{"blanks at the end of lines and of the output", "a\nb\n", "a  \nb\n\n", -1},
		{"another line", "a\nb\nc", "a\nx\nc\n", 1},
		{"a line too many", "a", "a\nb\n", 1},
		{"a line too few", "a\nb", "a\n", 1},
		{"any text in a line", "a … c (…)", "a b c ()\n", -1},
		{"any text is not any line", "a … c", "a b\nc\n", 0},
		{"characters of patterns stand for themselves", "a.c*", "abc*\n", 0},
		{"any lines at the end", "a\n...", "a\nb\nc\n", -1},
		{"any lines may be none", "a\n...\nb", "a\nb\n", -1},
		{"any lines in the middle", "a\n...\nc", "a\nb\nb\nc\n", -1},
		{"a line after any lines", "a\n...\nc", "a\nb\nd\n", 2},
		{"a line behind any lines comes late", "...\nb\n...\nc", "b\nx\nb\nc\n", -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if at := mismatch(strings.Split(tc.want, "\n"), outputLines(tc.got)); at != tc.at {
				t.Errorf("the first wrong line is %d, want %d", at, tc.at)
			}
		})
	}
}

func TestRenewingKeepsWhatStillHolds(t *testing.T) {
	for _, tc := range []struct{ name, want, got, renewed string }{
		{"what holds is not touched", "a …\n...", "a b\nc\nd", "a …\n..."},
		{"nothing yet", "", "a\nb", "a\nb"},
		{"one line is another", "a …\nb\nc", "a 1\nx\nc", "a …\nx\nc"},
		{"a line came in between", "a\nb", "a\nx\nb", "a\nx\nb"},
		{"a line went away", "a\nb\nc", "a\nc", "a\nc"},
		{"left out lines stay left out", "a\n...\nd", "A\nb\nc\nd", "A\n...\nd"},
		{"about as many are shown as before", "a\n...\nz", "A\nb\nc\nd\nZ", "A\n...\nZ"},
		{"any lines that have become none", "a\n...\nb", "A\nb", "A\nb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want, got := strings.Split(tc.want, "\n"), strings.Split(tc.got, "\n")
			renewed := renew(want, got)
			if diff := cmp.Diff(tc.renewed, strings.Join(renewed, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if at := mismatch(renewed, got); at >= 0 {
				t.Errorf("line %d of the renewed output does not hold", at)
			}
		})
	}
}

func TestRewritingChangesOnlyTheOutput(t *testing.T) {
	p, err := parsePage("docs/page.md", samplePage)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := p.steps()
	if err != nil {
		t.Fatal(err)
	}
	got := rewrite(p, steps, map[int][]string{1: {"A B"}, 2: {"new"}, 3: {"c"}})
	want := strings.Replace(samplePage, "a b\n\n$ false # exit 1\n", "A B\n$ false # exit 1\nnew\n", 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSnippetsAreParsed(t *testing.T) {
	good := map[string]string{
		"cue":  "nodePools: default: spec: weight: 10",
		"rego": "deny contains \"no\" if input.x",
		"json": `{"a": [1]}`,
		"yaml": "a:\n  - 1",
		"go":   "func f() {}",
		"text": "anything {",
	}
	bad := map[string]string{
		"cue":  "nodePools: {",
		"rego": "deny[x] { x := 1 }",
		"json": "{a: 1}",
		"yaml": "a: 1\na: 2",
		"go":   "func f() {",
		"sh":   "echo",
	}
	for language, text := range good {
		if err := checkSnippet(language, text+"\n"); err != nil {
			t.Errorf("%s: %v", language, err)
		}
	}
	for language, text := range bad {
		if err := checkSnippet(language, text+"\n"); err == nil {
			t.Errorf("%s: %q is accepted", language, text)
		}
	}
}

func TestTargetsOfMakeAreChecked(t *testing.T) {
	makefile := "build: ## Build\n\tgo build\ndemo: build ## Demo\nfmt: ## Format\n"
	ci := "step build    make build\nstep demo     make demo\nstep bench make bench BENCH=\"x\"\n"
	for _, tc := range []struct{ text, want string }{
		{"make build demo", ""},
		{"make demo DEMO=\"--replicas 7,41\"", ""},
		{"make fmt", `.ci/run has no step "make fmt"`},
		{"make bench", "the Makefile has no target bench"},
		{"git log", ""},
	} {
		err := checkTargets(makeTargets(tc.text), makefile, ci)
		if got := errText(err); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.text, got, tc.want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestLinksThatLeadNowhereAreFound(t *testing.T) {
	files := fstest.MapFS{
		"README.md":      {Data: []byte("[a](docs/a.md) [dir](docs) [top](#start)\n# Start\n")},
		"docs/a.md":      {Data: []byte("# One\n[b](b.md#two) [up](../README.md) [gone](c.md) [no](#two) [out](../../x) [no](b.md#three)\n")},
		"docs/b.md":      {Data: []byte("## Two\n")},
		"docs/lonely.md": {Data: []byte("[a](a.md)\n")},
	}
	pages := map[string]*page{}
	for name, f := range files {
		p, err := parsePage(name, string(f.Data))
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = p
	}
	want := []string{
		"docs/a.md:2: there is no docs/c.md",
		`docs/a.md:2: docs/a.md has no heading "two"`,
		"docs/a.md:2: ../../x is outside of the repository",
		`docs/a.md:2: docs/b.md has no heading "three"`,
	}
	if diff := cmp.Diff(want, brokenLinks(pages["docs/a.md"], pages, files)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if got := brokenLinks(pages["README.md"], pages, files); got != nil {
		t.Errorf("links of the README: %q", got)
	}
	if diff := cmp.Diff([]string{"docs/lonely.md"}, orphans("README.md", pages)); diff != "" {
		t.Errorf("orphans (-want +got):\n%s", diff)
	}
}
