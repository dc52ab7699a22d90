package docs

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// brokenLinks are the links of the page that lead nowhere: to files that are
// not in the tree, or to headings that are not in their page. Links to other
// hosts are not followed.
func brokenLinks(p *page, pages map[string]*page, tree fs.FS) []string {
	var out []string
	for _, l := range p.links {
		if strings.Contains(l.target, "://") || strings.HasPrefix(l.target, "mailto:") {
			continue
		}
		file, anchor, _ := strings.Cut(l.target, "#")
		to := p.name
		if file != "" {
			to = path.Join(path.Dir(p.name), file)
		}
		if !fs.ValidPath(to) {
			out = append(out, fmt.Sprintf("%s:%d: %s is outside of the repository", p.name, l.line, l.target))
			continue
		}
		if _, err := fs.Stat(tree, to); err != nil {
			out = append(out, fmt.Sprintf("%s:%d: there is no %s", p.name, l.line, to))
			continue
		}
		if anchor != "" && (pages[to] == nil || !pages[to].headings[anchor]) {
			out = append(out, fmt.Sprintf("%s:%d: %s has no heading %q", p.name, l.line, to, anchor))
		}
	}
	return out
}

// orphans are the pages below docs/ that cannot be reached from the start by
// following links.
func orphans(start string, pages map[string]*page) []string {
	seen := map[string]bool{start: true}
	for todo := []string{start}; len(todo) > 0; todo = todo[1:] {
		for _, l := range pages[todo[0]].links {
			file, _, _ := strings.Cut(l.target, "#")
			to := path.Join(path.Dir(todo[0]), file)
			if pages[to] != nil && !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	var out []string
	for name := range pages {
		if !seen[name] && strings.HasPrefix(name, "docs/") && !strings.HasPrefix(name, "docs/adr/") {
			out = append(out, name)
		}
	}
	return out
}

var ruleID = regexp.MustCompile(`\bREEVE-[A-Z]+(?:-[0-9]{3})?\b`)

// rules are the ids of rules that the page names.
func (p *page) rules() map[string]bool {
	out := map[string]bool{}
	for _, line := range p.lines {
		for _, id := range ruleID.FindAllString(line, -1) {
			out[id] = true
		}
	}
	return out
}
