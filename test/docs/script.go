package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// step is one thing a reader does: run a command or write a file.
type step struct {
	command *command
	file    *block
}

// steps are what a reader of the page does, in order.
func (p *page) steps() ([]step, error) {
	var out []step
	for i := range p.blocks {
		b := &p.blocks[i]
		switch {
		case b.language == "console":
			commands, err := b.commands()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			for j := range commands {
				out = append(out, step{command: &commands[j]})
			}
		case b.file != "":
			out = append(out, step{file: b})
		}
	}
	return out, nil
}

// script is a testscript that does the steps. Its commands are "run N" and
// "write N", which know the rest by the number of the step.
func script(p *page, steps []step) string {
	var b strings.Builder
	for i, s := range steps {
		switch {
		case s.file != nil:
			fmt.Fprintf(&b, "# %s:%d %s\nwrite %d\n", p.name, s.file.line, s.file.file, i)
		case strings.HasPrefix(s.command.text, "cd "):
			fmt.Fprintf(&b, "# %s:%d\n%s\n", p.name, s.command.line, s.command.text)
		default:
			fmt.Fprintf(&b, "# %s:%d %s\nrun %d\n", p.name, s.command.line, strings.ReplaceAll(s.command.text, "\n", " "), i)
		}
	}
	return b.String()
}

var target = regexp.MustCompile(`^[a-z-]+$`)

// makeTargets are the targets of a command "make ...", nil for any other.
// Variables may stand behind them.
func makeTargets(text string) []string {
	words := strings.Fields(text)
	if len(words) < 2 || words[0] != "make" {
		return nil
	}
	return slices.DeleteFunc(words[1:], func(w string) bool { return !target.MatchString(w) })
}

// checkTargets says what is wrong with targets that the documentation names:
// they must exist, and continuous integration must run them.
func checkTargets(targets []string, makefile, ci string) error {
	for _, t := range targets {
		if !regexp.MustCompile(`(?m)^` + t + `:`).MatchString(makefile) {
			return fmt.Errorf("the Makefile has no target %s", t)
		}
		if !regexp.MustCompile(`(?m)^step .* make ` + t + `( |$)`).MatchString(ci) {
			return fmt.Errorf(".ci/run has no step \"make %s\"", t)
		}
	}
	return nil
}

// rewrite replaces the wanted output of commands by what they have printed,
// where the two differ. got holds the output by step.
func rewrite(p *page, steps []step, got map[int][]string) string {
	lines := slices.Clone(p.lines)
	for i := len(steps) - 1; i >= 0; i-- {
		out, ok := got[i]
		if !ok {
			continue
		}
		c := steps[i].command
		lines = slices.Replace(lines, c.first-1, c.last-1, renew(c.want, out)...)
	}
	return strings.Join(lines, "\n") + "\n"
}
