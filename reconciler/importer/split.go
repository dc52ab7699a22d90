package importer

import (
	"strings"
)

// chunk is one document of a stream, with the number of its first line.
type chunk struct {
	text string
	line int
}

// split cuts a stream into documents. A line that begins with "---" separates
// documents wherever it stands, in block scalars too; so says YAML, and so do
// kubectl and Helm. Each document is then read by itself, so that one that is
// broken does not take the others with it.
func split(stream string) []chunk {
	stream = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream)
	var out []chunk
	var b strings.Builder
	start, number := 1, 0
	for line := range strings.Lines(stream) {
		number++
		bare := strings.TrimRight(strings.TrimPrefix(line, bom), " \t\n")
		switch {
		case marker(line, "---"):
			out = append(out, chunk{b.String(), start})
			b.Reset()
			start = number
			b.WriteString(line)
		case marker(line, "..."):
			out = append(out, chunk{b.String(), start})
			b.Reset()
			start = number + 1
		case number == start && strings.HasPrefix(bare, "%YAML"), number == start && strings.HasPrefix(bare, "%TAG"):
			b.WriteString("\n") // a directive changes nothing that matters here
		default:
			b.WriteString(strings.TrimPrefix(line, bom))
		}
	}
	return append(out, chunk{b.String(), start})
}

// bom is the byte order mark that some editors put at the start of a file.
const bom = "\ufeff"

// marker says whether a line is a document marker.
func marker(line, mark string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(line, bom), mark)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\n"))
}
