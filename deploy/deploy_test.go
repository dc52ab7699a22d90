// Package deploy holds what is deployed beside the commands.
package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTemplatesAreYAMLAndCheckTheFleet(t *testing.T) {
	files, err := filepath.Glob("ci/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	for _, f := range files {
		text := read(t, f)
		if _, err := yaml.YAMLToJSONStrict([]byte(text)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if !strings.Contains(text, "reeve check .") {
			t.Errorf("%s checks nothing", f)
		}
	}
}

// workflow is what of a workflow of GitHub Actions is held here; "make lint"
// runs actionlint over the rest.
type workflow struct {
	// On is true to a reader of YAML 1.1.
	On          map[string]any    `json:"true"`
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		Timeout     int               `json:"timeout-minutes"`
		Steps       []struct {
			Uses string            `json:"uses"`
			Run  string            `json:"run"`
			If   string            `json:"if"`
			Env  map[string]string `json:"env"`
			With map[string]any    `json:"with"`
		} `json:"steps"`
	} `json:"jobs"`
}

var pinned = regexp.MustCompile(`(?m)^\s*(?:- )?uses: [a-z0-9/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

func TestTheWorkflowIsPinnedAndMayDoLittle(t *testing.T) {
	text := read(t, "ci/github.yaml")
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	if used, ok := strings.Count(text, "uses: "), len(pinned.FindAllString(text, -1)); used == 0 || used != ok {
		t.Errorf("of %d actions %d are pinned to a commit with its version behind it", used, ok)
	}
	if w.Permissions == nil || len(w.Permissions) != 0 {
		t.Errorf("permissions of the workflow are %v, and not none", w.Permissions)
	}
	if _, ok := w.On["pull_request"]; !ok || len(w.On) != 1 {
		t.Errorf("it runs on %v", w.On)
	}
	job := w.Jobs["check"]
	want := map[string]string{"contents": "read", "security-events": "write", "pull-requests": "write"}
	for name, p := range job.Permissions {
		if want[name] != p {
			t.Errorf("it may %s: %s", name, p)
		}
	}
	if len(job.Permissions) != len(want) || job.Timeout == 0 {
		t.Errorf("permissions %v, timeout %d", job.Permissions, job.Timeout)
	}
	for _, s := range job.Steps {
		// Texts of the pull request must not become part of a script.
		if strings.Contains(s.Run, "${{") {
			t.Errorf("an expression is written into a script:\n%s", s.Run)
		}
		shell(t, s.Run)
	}
}

// gitlabKeywords are the keywords of a job that the template may use.
var gitlabKeywords = []string{
	"stage", "image", "timeout", "interruptible", "rules", "variables", "before_script", "script", "after_script", "artifacts",
}

func TestTheGitLabJobIsOne(t *testing.T) {
	var file struct {
		Variables map[string]string `json:"variables"`
		Fleet     map[string]any    `json:"fleet"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "ci/gitlab.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for key := range file.Fleet {
		if !slices.Contains(gitlabKeywords, key) {
			t.Errorf("%q is no keyword of a job", key)
		}
	}
	for _, part := range []string{"before_script", "script", "after_script"} {
		lines, ok := file.Fleet[part].([]any)
		if !ok || len(lines) == 0 {
			t.Errorf("%s is no list of commands: %v", part, file.Fleet[part])
		}
		for _, l := range lines {
			text, ok := l.(string)
			if !ok {
				t.Errorf("%s has a command that is no text: %v", part, l)
			}
			shell(t, text)
		}
	}
	artifacts, _ := file.Fleet["artifacts"].(map[string]any)
	reports, _ := artifacts["reports"].(map[string]any)
	if artifacts["when"] != "always" || reports["codequality"] == nil || reports["junit"] == nil {
		t.Errorf("artifacts %v", artifacts)
	}
	script := strings.Join(strings.Fields(read(t, "ci/gitlab.yaml")), " ")
	for kind, flag := range map[string]string{"codequality": "-o gitlab=", "junit": "-o junit="} {
		if file, _ := reports[kind].(string); !strings.Contains(script, flag+file+" ") {
			t.Errorf("nothing writes the report %s to %s", kind, file)
		}
	}
}

// shell lets a shell parse a script without running it.
func shell(t *testing.T, script string) {
	t.Helper()
	cmd := exec.Command("bash", "-n")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, script)
	}
}
