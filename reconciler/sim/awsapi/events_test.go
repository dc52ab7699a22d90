package awsapi

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/karpenter-provider-aws/pkg/controllers/interruption/messages"
	"github.com/aws/karpenter-provider-aws/pkg/controllers/interruption/messages/capacityreservationinterruption"
	"github.com/aws/karpenter-provider-aws/pkg/controllers/interruption/messages/rebalancerecommendation"
	"github.com/aws/karpenter-provider-aws/pkg/controllers/interruption/messages/scheduledchange"
	"github.com/aws/karpenter-provider-aws/pkg/controllers/interruption/messages/spotinterruption"
	"github.com/aws/karpenter-provider-aws/pkg/controllers/interruption/messages/statechange"
	"github.com/google/go-cmp/cmp"
)

// seenByKarpenter is what Karpenter's parsers make of an event.
type seenByKarpenter struct {
	Kind messages.Kind
	IDs  []string
	At   time.Time
}

// parse finds the parser as Karpenter does: by version, source and detail type.
func parse(t *testing.T, raw string) seenByKarpenter {
	t.Helper()
	var m messages.Metadata
	check(t, json.Unmarshal([]byte(raw), &m))
	for _, p := range []messages.Parser{statechange.Parser{}, spotinterruption.Parser{}, scheduledchange.Parser{}, rebalancerecommendation.Parser{}, capacityreservationinterruption.Parser{}} {
		if p.Version() != m.Version || p.Source() != m.Source || p.DetailType() != m.DetailType {
			continue
		}
		parsed, err := p.Parse(raw)
		check(t, err)
		if parsed == nil {
			return seenByKarpenter{Kind: messages.NoOpKind}
		}
		return seenByKarpenter{parsed.Kind(), parsed.EC2InstanceIDs(), parsed.StartTime()}
	}
	t.Fatalf("no parser of Karpenter's takes %s", raw)
	return seenByKarpenter{}
}

func TestEventsAreWhatKarpenterParses(t *testing.T) {
	p, q, url := queueOf(t)
	e := NewEvents(q, "111122223333", "eu-west-1")
	p.pass(time.Minute)
	at := frontStart.Add(time.Minute)
	e.SpotWarning("i-1", "terminate")
	e.Rebalance("i-2")
	e.Health([]string{"i-3", "i-4"}, "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED")
	e.StateChange("i-5", "stopping")
	e.StateChange("i-6", "terminated")
	e.StateChange("i-7", "running")
	e.Reservation("i-8", "terminate")
	var got []seenByKarpenter
	ids := map[string]bool{}
	for _, body := range bodies(receive(t, p, url, nil)) {
		got = append(got, parse(t, body))
		var m messages.Metadata
		check(t, json.Unmarshal([]byte(body), &m))
		ids[m.ID] = true
	}
	want := []seenByKarpenter{
		{messages.SpotInterruptionKind, []string{"i-1"}, at},
		{messages.RebalanceRecommendationKind, []string{"i-2"}, at},
		{messages.ScheduledChangeKind, []string{"i-3", "i-4"}, at},
		{messages.InstanceStoppedKind, []string{"i-5"}, at},
		{messages.InstanceTerminatedKind, []string{"i-6"}, at},
		{Kind: messages.NoOpKind},
		{messages.CapacityReservationInterruptionKind, []string{"i-8"}, at},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(ids) != len(want) {
		t.Errorf("%d ids of %d events", len(ids), len(want))
	}
}

func TestAnEventIsWrittenAsEventBridgeWritesIt(t *testing.T) {
	_, q, _ := queueOf(t)
	e := NewEvents(q, "111122223333", "eu-west-1")
	e.SpotWarning("i-0123456789abcdef0", "terminate")
	e.Health([]string{"i-1"}, "AWS_EC2_INSTANCE_STOP_SCHEDULED")
	got, _ := q.receive(10, 0, 0)
	spot := `{"version":"0","id":"` + uuidOf("event", q.arn, "1") + `","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","account":"111122223333","time":"2026-01-02T03:04:05Z","region":"eu-west-1","resources":["arn:aws:ec2:eu-west-1:instance/i-0123456789abcdef0"],"detail":{"instance-id":"i-0123456789abcdef0","instance-action":"terminate"}}`
	if diff := cmp.Diff(spot, got[0].body); diff != "" {
		t.Errorf("spot warning (-want +got):\n%s", diff)
	}
	var health struct{ Detail healthDetail }
	check(t, json.Unmarshal([]byte(got[1].body), &health))
	if d := health.Detail; d.StartTime != "Fri, 16 Jan 2026 03:04:05 GMT" || d.EndTime != "Fri, 16 Jan 2026 05:04:05 GMT" {
		t.Errorf("the change is from %s to %s", d.StartTime, d.EndTime)
	}
}
