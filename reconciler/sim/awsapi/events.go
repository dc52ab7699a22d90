package awsapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Events sends what EventBridge's rules for a controller of nodes forward into
// its queue: the five kinds of events that announce the end of an instance, or
// tell of it. Their time is virtual, and their ids follow from the queue and
// the number of events before. Its methods may be called from where those of
// Queue may.
type Events struct {
	queue           *Queue
	account, region string
	sent            int
}

// NewEvents sends the events of the account's region into the queue.
func NewEvents(queue *Queue, account, region string) *Events {
	return &Events{queue: queue, account: account, region: region}
}

// envelope is an event as EventBridge delivers it.
type envelope struct {
	Version    string   `json:"version"`
	ID         string   `json:"id"`
	DetailType string   `json:"detail-type"`
	Source     string   `json:"source"`
	Account    string   `json:"account"`
	Time       string   `json:"time"`
	Region     string   `json:"region"`
	Resources  []string `json:"resources"`
	Detail     any      `json:"detail"`
}

// instanceDetail is the detail of EC2's warnings.
type instanceDetail struct {
	InstanceID string `json:"instance-id"`
	Action     string `json:"instance-action,omitempty"`
	State      string `json:"state,omitempty"`
}

// SpotWarning says that EC2 takes back the spot instance in two minutes. The
// action is "terminate", "stop" or "hibernate".
func (e *Events) SpotWarning(instanceID, action string) {
	e.queue.world.Lock()
	defer e.queue.world.Unlock()
	e.spotWarning(instanceID, action)
}

// The methods in lower case are for who holds the world.
func (e *Events) spotWarning(instanceID, action string) {
	e.ec2("EC2 Spot Instance Interruption Warning", instanceDetail{InstanceID: instanceID, Action: action})
}

// Rebalance says that the spot instance is at elevated risk of interruption.
func (e *Events) Rebalance(instanceID string) {
	e.queue.world.Lock()
	defer e.queue.world.Unlock()
	e.ec2("EC2 Instance Rebalance Recommendation", instanceDetail{InstanceID: instanceID})
}

// StateChange says that the instance is now in that state: "pending",
// "running", "stopping", "stopped", "shutting-down" or "terminated".
func (e *Events) StateChange(instanceID, state string) {
	e.queue.world.Lock()
	defer e.queue.world.Unlock()
	e.stateChange(instanceID, state)
}

func (e *Events) stateChange(instanceID, state string) {
	e.ec2("EC2 Instance State-change Notification", instanceDetail{InstanceID: instanceID, State: state})
}

// Reservation says that EC2 takes back the capacity of the reservation that the
// instance uses. The action is "terminate".
func (e *Events) Reservation(instanceID, action string) {
	e.queue.world.Lock()
	defer e.queue.world.Unlock()
	e.ec2("EC2 Capacity Reservation Instance Interruption Warning", instanceDetail{InstanceID: instanceID, Action: action})
}

func (e *Events) ec2(kind string, d instanceDetail) {
	e.send(kind, "aws.ec2", []string{fmt.Sprintf("arn:aws:ec2:%s:instance/%s", e.region, d.InstanceID)}, d)
}

// healthDetail is the detail of AWS Health about a change that is planned.
type healthDetail struct {
	EventARN          string              `json:"eventArn"`
	Service           string              `json:"service"`
	EventTypeCode     string              `json:"eventTypeCode"`
	EventTypeCategory string              `json:"eventTypeCategory"`
	StartTime         string              `json:"startTime"`
	EndTime           string              `json:"endTime"`
	EventDescription  []healthDescription `json:"eventDescription"`
	AffectedEntities  []healthEntity      `json:"affectedEntities"`
}

type healthDescription struct {
	Language          string `json:"language"`
	LatestDescription string `json:"latestDescription"`
}

type healthEntity struct {
	EntityValue string `json:"entityValue"`
}

// healthNotice is how long before a scheduled change AWS Health announces it.
const healthNotice = 14 * 24 * time.Hour

// healthTime is the form of the times in AWS Health's details.
const healthTime = "Mon, 2 Jan 2006 15:04:05 GMT"

// Health says that AWS plans a change of the instances in two weeks. The code
// is one of AWS Health's for EC2, such as
// "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED".
func (e *Events) Health(instanceIDs []string, code string) {
	e.queue.world.Lock()
	defer e.queue.world.Unlock()
	start := e.queue.clock.Now().Add(healthNotice)
	d := healthDetail{
		EventARN: fmt.Sprintf("arn:aws:health:%s::event/EC2/%s/%s_%s", e.region, code, code, strings.ToUpper(e.nextID()[:8])),
		Service:  "EC2", EventTypeCode: code, EventTypeCategory: "scheduledChange",
		StartTime: start.Format(healthTime), EndTime: start.Add(2 * time.Hour).Format(healthTime),
		EventDescription: []healthDescription{{Language: "en_US", LatestDescription: "A change of the affected instances is scheduled."}},
	}
	for _, id := range instanceIDs {
		d.AffectedEntities = append(d.AffectedEntities, healthEntity{EntityValue: id})
	}
	e.send("AWS Health Event", "aws.health", instanceIDs, d)
}

// nextID is the id of the event that comes next.
func (e *Events) nextID() string { return uuidOf("event", e.queue.arn, fmt.Sprint(e.sent+1)) }

func (e *Events) send(kind, source string, resources []string, detail any) {
	body, err := json.Marshal(envelope{
		Version: "0", ID: e.nextID(), DetailType: kind, Source: source, Account: e.account,
		Time: e.queue.clock.Now().Format(time.RFC3339), Region: e.region, Resources: resources, Detail: detail,
	})
	if err != nil {
		// Strings and lists of them always are JSON.
		return
	}
	e.sent++
	e.queue.put(string(body))
}
