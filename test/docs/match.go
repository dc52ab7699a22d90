package docs

import (
	"regexp"
	"slices"
	"strings"
)

const (
	anyLines = "..."
	anyText  = "…"
)

// outputLines are the lines of what a command printed, without blanks at their
// ends and without empty lines at the end.
func outputLines(s string) []string {
	return trimLines(strings.Split(s, "\n"))
}

func trimLines(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimRight(l, " \t\r")
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// mismatch is the index of the first wanted line that cannot be met, or -1 if
// the output is as wanted. An index behind the last line means that the output
// goes on.
func mismatch(want, got []string) int {
	want = trimLines(want)
	if matchAll(want, got) {
		return -1
	}
	for n := len(want); n > 0; n-- {
		// The longest beginning that some output could follow.
		if matchAll(append(slices.Clone(want[:n]), anyLines), got) {
			return n
		}
	}
	return 0
}

// matchAll says whether the lines are exactly those wanted.
func matchAll(want, got []string) bool {
	var b strings.Builder
	b.WriteString(`\A`)
	for _, w := range want {
		if w == anyLines {
			b.WriteString(`(?:[^\n]*\n)*`)
			continue
		}
		b.WriteString(linePattern(w) + `\n`)
	}
	b.WriteString(`\z`)
	text := ""
	if len(got) > 0 {
		text = strings.Join(got, "\n") + "\n"
	}
	return regexp.MustCompile(b.String()).MatchString(text)
}

func linePattern(want string) string {
	parts := strings.Split(want, anyText)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return strings.Join(parts, `[^\n]*`)
}

func matchLine(want, got string) bool {
	return want != anyLines && regexp.MustCompile(`\A`+linePattern(want)+`\z`).MatchString(got)
}

// renew is what to write in place of want when the output is got: lines that
// still hold stay as they are, "…" included, and where lines were left out by
// "..." about as many are left out again.
func renew(want, got []string) []string {
	want = trimLines(want)
	if mismatch(want, got) < 0 {
		return want
	}
	if len(want) == 0 {
		return got
	}
	var out []string
	w, g := 0, 0
	for _, pair := range append(align(want, got), [2]int{len(want), len(got)}) {
		out = append(out, fill(want[w:pair[0]], got[g:pair[1]])...)
		if pair[0] < len(want) {
			out = append(out, want[pair[0]])
		}
		w, g = pair[0]+1, pair[1]+1
	}
	return out
}

// fill replaces wanted lines, none of which holds any more, by the lines that
// are in their place.
func fill(want, got []string) []string {
	head := slices.Index(want, anyLines)
	if head < 0 {
		return got
	}
	tail := 0
	for i := len(want) - 1; want[i] != anyLines; i-- {
		tail++
	}
	switch {
	case len(got) == 0:
		return []string{anyLines}
	case head+tail >= len(got):
		return got
	}
	out := append(slices.Clone(got[:head]), anyLines)
	return append(out, got[len(got)-tail:]...)
}

// align pairs wanted lines with lines that meet them, as many as possible, both
// in order.
func align(want, got []string) [][2]int {
	best := make([][]int, len(want)+1)
	for i := range best {
		best[i] = make([]int, len(got)+1)
	}
	for i := len(want) - 1; i >= 0; i-- {
		for j := len(got) - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if matchLine(want[i], got[j]) {
				best[i][j] = max(best[i][j], best[i+1][j+1]+1)
			}
		}
	}
	var out [][2]int
	for i, j := 0, 0; i < len(want) && j < len(got); {
		switch {
		case matchLine(want[i], got[j]) && best[i][j] == best[i+1][j+1]+1:
			out = append(out, [2]int{i, j})
			i, j = i+1, j+1
		case best[i+1][j] >= best[i][j+1]:
			i++
		default:
			j++
		}
	}
	return out
}
