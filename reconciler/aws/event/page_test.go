package event

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// page is what people prepare an account by.
const page = "../../../docs/how-to/connect-to-aws.md"

func TestTheDocumentedEventPatternsAreThoseThatAreRead(t *testing.T) {
	var patterns []struct {
		Source     []string `json:"source"`
		DetailType []string `json:"detail-type"`
	}
	text, err := os.ReadFile(filepath.FromSlash(page))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "```json events.json\n")
	block, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatalf("%s has no block of JSON for events.json", page)
	}
	if err := json.Unmarshal([]byte(block), &patterns); err != nil {
		t.Fatalf("%s: events.json: %v", page, err)
	}
	got := map[eventKey]bool{}
	for _, p := range patterns {
		for _, source := range p.Source {
			for _, detailType := range p.DetailType {
				got[eventKey{"0", source, detailType}] = true
			}
		}
	}
	want := map[eventKey]bool{}
	for k := range eventReaders {
		want[k] = true
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(eventKey{})); diff != "" {
		t.Errorf("patterns in %s (-read +documented):\n%s", page, diff)
	}
}
