package event

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// eventCase is a row of testdata/events.json: what a message says.
type eventCase struct {
	Name, Body, Kind, Action, Problem string
	Instances                         []string
}

func eventCases(t testing.TB) []eventCase {
	b, err := os.ReadFile("testdata/events.json")
	if err != nil {
		t.Fatal(err)
	}
	var out []eventCase
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatMessagesSay(t *testing.T) {
	for _, c := range eventCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			got, err := Parse([]byte(c.Body))
			var ids []string
			for _, in := range got.Interruptions {
				ids = append(ids, in.Instance)
				if in.Kind != c.Kind || in.Action != c.Action || in.Message != got.ID {
					t.Errorf("interruption %+v", in)
				}
			}
			if diff := cmp.Diff(c.Instances, ids); diff != "" || got.Kind != c.Kind {
				t.Errorf("kind %q, instances (-want +got):\n%s", got.Kind, diff)
			}
			if (err != nil) != (c.Problem != "") || err != nil && !strings.Contains(err.Error(), c.Problem) {
				t.Errorf("problem %v, want %q", err, c.Problem)
			}
		})
	}
}

func TestTheTimeOfAnEventIsInUTC(t *testing.T) {
	got, err := Parse([]byte(`{"version":"0","source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","time":"2026-02-03T09:05:06+09:00","detail":{"instance-id":"i-0aa11bb2"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []cluster.Interruption{{Kind: cluster.SpotInterruption, Instance: "i-0aa11bb2", Time: time.Date(2026, 2, 3, 0, 5, 6, 0, time.UTC)}}
	if diff := cmp.Diff(want, got.Interruptions); diff != "" {
		t.Errorf("interruptions (-want +got):\n%s", diff)
	}
}

func TestMessagesOfStrangers(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	for name, body := range map[string]string{
		"huge":                   strings.Repeat(" ", maxEvent) + "{}",
		"deep":                   strings.Repeat("[", 1<<19),
		"deep in the detail":     `{"version":"0","source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","detail":` + strings.Repeat(`{"a":`, 20000) + strings.Repeat("}", 20000) + "}",
		"a long detail-type":     `{"version":"0","source":"aws.ec2","detail-type":"` + long + `","detail":1,"time":1}`,
		"a long text for a time": `{"time":"` + long + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(body))
			if err == nil || len(got.Interruptions) != 0 {
				t.Fatalf("event %+v without a problem", got)
			}
			if len(err.Error()) > 400 {
				t.Errorf("the problem has %d bytes", len(err.Error()))
			}
		})
	}
}

// FuzzParseEvent holds that whatever arrives, there is no panic, and what comes
// out can be recorded.
func FuzzParseEvent(f *testing.F) {
	for _, c := range eventCases(f) {
		f.Add([]byte(c.Body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := Parse(body)
		if err != nil && (len(got.Interruptions) != 0 || len(err.Error()) > 1000) {
			t.Errorf("a problem of %d bytes with %d interruptions", len(err.Error()), len(got.Interruptions))
		}
		if got.ID != plainWord(got.ID) || len(got.ID) > maxWord {
			t.Errorf("id %q", got.ID)
		}
		for _, in := range got.Interruptions {
			if in.Kind != got.Kind || !eventInstance.MatchString(in.Instance) || in.Action != plainWord(in.Action) {
				t.Errorf("interruption %+v", in)
			}
			if _, err := json.Marshal(in); err != nil {
				t.Errorf("interruption %+v: %v", in, err)
			}
		}
	})
}

// indexKinds are the kinds by the words of the corpus's index.
var indexKinds = map[string]string{
	"spot_interrupted": cluster.SpotInterruption, "rebalance_recommendation": cluster.RebalanceRecommendation,
	"scheduled_change": cluster.HealthEvent, "instance_stopped": cluster.StateChange, "instance_terminated": cluster.StateChange,
	"capacity_reservation_interrupted": cluster.ReservationInterruption, "noop": "", "parse-error": "",
}

// TestCorpusOfEvents reads a directory of messages that arrived elsewhere, if
// there is one: with an index that says what each is taken for.
func TestCorpusOfEvents(t *testing.T) {
	shared := os.Getenv("REEVE_SHARED")
	if shared == "" {
		t.Skip("no corpus of events: set REEVE_SHARED")
	}
	dir := filepath.Join(shared, "corpus")
	f, err := os.Open(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '\t', true, -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, row := range rows {
		if !strings.HasPrefix(row[0], "events/") {
			continue
		}
		n++
		t.Run(row[0], func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(dir, row[0]+".json"))
			if err != nil {
				t.Fatal(err)
			}
			want, known := indexKinds[row[5]]
			got, err := Parse(body)
			if !known || got.Kind != want || row[5] == "parse-error" && err == nil || row[5] == "noop" && err != nil {
				t.Errorf("it is taken for %q (%v), the index says %q: %s", got.Kind, err, row[5], row[4])
			}
			t.Logf("%q: %d instances, problem %v", got.Kind, len(got.Interruptions), err)
		})
	}
	if n < 30 {
		t.Errorf("only %d events", n)
	}
}
