package docs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// page is one Markdown file.
type page struct {
	// name is the slash-separated path below the root of the module.
	name  string
	lines []string
	// blocks are the fenced blocks in order.
	blocks []block
	// headings are the anchors of the headings.
	headings map[string]bool
	links    []link
}

// block is a fenced block.
type block struct {
	// line is the number of its first line, the fence not counted.
	line int
	// language and file are the words of the info string.
	language, file string
	lines          []string
}

func (b block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// link is a link to somewhere else.
type link struct {
	line   int
	target string
}

var (
	heading    = regexp.MustCompile(`^#{1,6} +(.*?)( +#+)?$`)
	inlineLink = regexp.MustCompile(`\]\(([^()\s]*)\)`)
	codeSpan   = regexp.MustCompile("`[^`]*`")
)

// parsePage reads a Markdown file.
func parsePage(name, text string) (*page, error) {
	p := &page{name: name, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n"), headings: map[string]bool{}}
	for i := 0; i < len(p.lines); i++ {
		line := p.lines[i]
		if info, ok := strings.CutPrefix(line, "```"); ok {
			end, err := p.fence(i, info)
			if err != nil {
				return nil, err
			}
			i = end
			continue
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			p.addHeading(m[1])
		}
		for _, m := range inlineLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, "``"), -1) {
			p.links = append(p.links, link{i + 1, m[1]})
		}
	}
	return p, nil
}

// fence reads the block whose opening fence is at index i and returns the index
// of its closing fence.
func (p *page) fence(i int, info string) (int, error) {
	words := strings.Fields(info)
	b := block{line: i + 2}
	switch len(words) {
	case 2:
		b.language, b.file = words[0], words[1]
	case 1:
		b.language = words[0]
	default:
		return 0, fmt.Errorf("%s:%d: a block begins with its language and, if it is to be written, the name of a file", p.name, i+1)
	}
	for end := i + 1; end < len(p.lines); end++ {
		if p.lines[end] == "```" {
			b.lines = p.lines[i+1 : end]
			p.blocks = append(p.blocks, b)
			return end, nil
		}
	}
	return 0, fmt.Errorf("%s:%d: the block is not closed", p.name, i+1)
}

// addHeading makes the anchor as GitHub does: lower case, spaces to dashes, no
// punctuation, a number behind one that was there before.
func (p *page) addHeading(title string) {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.ReplaceAll(title, "`", "")) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	anchor := b.String()
	for n := 1; p.headings[anchor]; n++ {
		anchor = b.String() + "-" + strconv.Itoa(n)
	}
	p.headings[anchor] = true
}

// command is one command of a console block.
type command struct {
	// line it begins at.
	line int
	// text without the exit code.
	text string
	exit int
	// want is what it prints; first and last are the numbers of the lines that
	// say so, last excluded.
	want        []string
	first, last int
}

var exitCode = regexp.MustCompile(`\s+# exit ([0-9]+)$`)

// commands reads a console block.
func (b block) commands() ([]command, error) {
	var out []command
	for i := 0; i < len(b.lines); i++ {
		text, ok := strings.CutPrefix(b.lines[i], "$ ")
		if !ok {
			return nil, fmt.Errorf("line %d: a console block begins with a command, \"$ ...\"", b.line+i)
		}
		c := command{line: b.line + i}
		for strings.HasSuffix(text, `\`) && i+1 < len(b.lines) {
			i++
			text += "\n" + b.lines[i]
		}
		c.first = b.line + i + 1
		for i+1 < len(b.lines) && !strings.HasPrefix(b.lines[i+1], "$ ") {
			i++
			c.want = append(c.want, b.lines[i])
		}
		c.last = c.first + len(c.want)
		if m := exitCode.FindStringSubmatchIndex(text); m != nil {
			n, err := strconv.Atoi(text[m[2]:m[3]])
			if err != nil {
				return nil, fmt.Errorf("line %d: exit code: %w", c.line, err)
			}
			c.exit, text = n, text[:m[0]]
		}
		c.text = strings.TrimSpace(text)
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("line %d: the console block is empty", b.line)
	}
	return out, nil
}
