// Package event reads what EventBridge says of EC2 instances. It knows nothing
// of the queue that the messages arrive in, and so links no client of AWS.
package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
)

// maxEvent is how many bytes of a message are looked at: as many as a message
// of SQS can have.
const maxEvent = 1 << 20

// maxWord is how long an id or an action may be that is taken from a message.
const maxWord = 128

var (
	// eventInstance is what EC2 calls an instance. What does not look like one is
	// never asked for.
	eventInstance = regexp.MustCompile(`^i-[0-9a-f]{8,32}$`)
	// word is what ids, actions and event codes consist of.
	word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`)
)

// stoppingStates are the states of an instance that end its node.
var stoppingStates = map[string]bool{"stopping": true, "stopped": true, "shutting-down": true, "terminated": true}

// envelope is what EventBridge puts around every event. Its detail is read
// once the kind is known.
type envelope struct {
	Version    string          `json:"version"`
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Time       time.Time       `json:"time"`
	Detail     json.RawMessage `json:"detail"`
}

// eventKey is what tells events apart, as Karpenter's parsers are registered
// (pkg/controllers/interruption/messages).
type eventKey struct{ version, source, detailType string }

// eventReader reads the detail of an event: which instances, and what happens
// to them. An event that asks for nothing is not relevant.
type eventReader func(detail []byte) (instances []string, action string, relevant bool, err error)

// eventReaders are the kinds of events that are understood.
var eventReaders = map[eventKey]eventReader{
	{"0", "aws.ec2", cluster.SpotInterruption}:        readAction,
	{"0", "aws.ec2", cluster.RebalanceRecommendation}: readAction,
	{"0", "aws.ec2", cluster.ReservationInterruption}: readAction,
	{"0", "aws.ec2", cluster.StateChange}:             readState,
	{"0", "aws.health", cluster.HealthEvent}:          readHealth,
}

// Event is a message of EventBridge.
type Event struct {
	// ID of the event; empty if it has none that could be used.
	ID string
	// Kind is the detail-type of an event that asks for something.
	Kind string
	// Interruptions has one for each instance.
	Interruptions []cluster.Interruption
}

// Parse reads the body of a message. Messages that nobody has to act on
// give an event without a kind: other events, an empty body, an event that
// SNS wrapped. An error is a message that should be an event and cannot be
// read; the event is still what is known of it. Whatever the body holds, the
// result is safe to record: ids and actions are short words, times can be
// encoded.
func Parse(body []byte) (Event, error) {
	if len(body) > maxEvent {
		return Event{}, fmt.Errorf("the message has %d bytes, and an event has at most %d", len(body), maxEvent)
	}
	if len(strings.TrimSpace(string(body))) == 0 {
		return Event{}, nil
	}
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return Event{}, fmt.Errorf("the message is no event of EventBridge: %w", short(err))
	}
	out := Event{ID: plainWord(e.ID)}
	read, ok := eventReaders[eventKey{e.Version, e.Source, e.DetailType}]
	if !ok {
		return out, nil
	}
	when := e.Time.UTC()
	if y := when.Year(); !e.Time.IsZero() && (y < 1970 || y > 9999) {
		return out, fmt.Errorf("%s: its time lies in the year %d", e.DetailType, y)
	}
	ids, action, relevant, err := read(e.Detail)
	if err != nil {
		return out, fmt.Errorf("%s: detail: %w", e.DetailType, short(err))
	}
	if !relevant {
		return out, nil
	}
	out.Kind = e.DetailType
	for _, id := range instancesOf(ids) {
		out.Interruptions = append(out.Interruptions, cluster.Interruption{
			Kind: e.DetailType, Message: out.ID, Instance: id, Time: when, Action: plainWord(action),
		})
	}
	// AWS Health also tells of volumes and the like; what EC2 itself says of an
	// instance has to name it.
	if len(out.Interruptions) == 0 && e.DetailType != cluster.HealthEvent {
		return out, fmt.Errorf("%s: it names no EC2 instance", e.DetailType)
	}
	return out, nil
}

// instancesOf are the ids of instances among the entities, each once.
func instancesOf(entities []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, e := range entities {
		if id := bareInstanceID(e); id != "" && !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// readAction reads the warnings that EC2 sends ahead.
func readAction(detail []byte) ([]string, string, bool, error) {
	var d struct {
		Instance string `json:"instance-id"`
		Action   string `json:"instance-action"`
	}
	err := readDetail(detail, &d)
	return []string{d.Instance}, d.Action, true, err
}

// readState reads a state that an instance has reached.
func readState(detail []byte) ([]string, string, bool, error) {
	var d struct {
		Instance string `json:"instance-id"`
		State    string `json:"state"`
	}
	err := readDetail(detail, &d)
	state := strings.ToLower(d.State)
	return []string{d.Instance}, state, stoppingStates[state], err
}

// readHealth reads what AWS Health announces. Only changes that are scheduled
// for EC2 matter; what else it says is not about an instance or needs nobody
// to move.
func readHealth(detail []byte) ([]string, string, bool, error) {
	var d struct {
		Service  string `json:"service"`
		Category string `json:"eventTypeCategory"`
		Code     string `json:"eventTypeCode"`
		Entities []struct {
			Value string `json:"entityValue"`
		} `json:"affectedEntities"`
	}
	if err := readDetail(detail, &d); err != nil {
		return nil, "", false, err
	}
	ids := make([]string, len(d.Entities))
	for i, e := range d.Entities {
		ids[i] = e.Value
	}
	return ids, d.Code, d.Service == "EC2" && d.Category == "scheduledChange", nil
}

// readDetail takes a missing detail for an empty one.
func readDetail(detail []byte, into any) error {
	if len(detail) == 0 {
		return nil
	}
	return json.Unmarshal(detail, into)
}

// bareInstanceID is the id of an instance, which AWS Health may give as an
// ARN; it is empty for everything else.
func bareInstanceID(s string) string {
	if strings.HasPrefix(s, "arn:") {
		_, s, _ = strings.Cut(s, ":instance/")
	}
	if !eventInstance.MatchString(s) {
		return ""
	}
	return s
}

// plainWord is the text if it is a short word, and empty otherwise.
func plainWord(s string) string {
	if len(s) > maxWord || !word.MatchString(s) {
		return ""
	}
	return s
}

// short cuts the text of an error that may quote what a stranger wrote.
func short(err error) error {
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) <= maxWord {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:maxWord], "") + " …")
}
