package awsapi

import (
	"cmp"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Health is what the status checks of an instance say.
type Health struct {
	// Instance and System are "ok", "impaired", "initializing" or
	// "insufficient-data"; "ok" unless set.
	Instance, System string
	// Since is when a check began to fail; nil if none does.
	Since *time.Time
	// Events are scheduled for the instance.
	Events []HealthEvent
}

// HealthEvent is what EC2 plans to do to an instance.
type HealthEvent struct {
	// Code is "instance-retirement", "system-maintenance", ….
	Code string
	// NotBefore is when it may begin.
	NotBefore time.Time
	// Description is for people.
	Description string
}

// SetHealth says what the status checks of the instance find. It fails for an
// instance that EC2 does not know.
func (e *Endpoint) SetHealth(id string, h Health) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	in := e.ec2.instance(id)
	if in == nil {
		return fmt.Errorf("set health: there is no instance %s", id)
	}
	in.health = h
	return nil
}

// describeInstanceStatus tells of running instances, or of all when asked to.
func (e *Endpoint) describeInstanceStatus(in *ec2.DescribeInstanceStatusInput) (*ec2.DescribeInstanceStatusOutput, error) {
	list, err := byIDs(e.visibleInstances(), in.InstanceIds, func(i *instance) string { return i.ID }, noInstance, noInstanceMessage)
	if err != nil {
		return nil, err
	}
	list, err = selected(list, in.Filters, &instance{}, statusAttributes)
	if err != nil {
		return nil, err
	}
	var shown []*instance
	for _, i := range list {
		if deref(in.IncludeAllInstances) || i.State == string(types.InstanceStateNameRunning) {
			shown = append(shown, i)
		}
	}
	shown, next, err := page(shown, in.MaxResults, in.NextToken, bounds{5, 1000, 1000})
	out := &ec2.DescribeInstanceStatusOutput{NextToken: next, InstanceStatuses: []types.InstanceStatus{}}
	for _, i := range shown {
		out.InstanceStatuses = append(out.InstanceStatuses, statusInfo(i))
	}
	return out, err
}

func statusAttributes(in *instance) (attributes, map[string]string) {
	a := attributes{
		"instance-status.status": one(cmp.Or(in.health.Instance, "ok")), "system-status.status": one(cmp.Or(in.health.System, "ok")),
		"instance-state-name": one(in.State), "availability-zone": one(in.Zone), "event.code": {},
	}
	for _, ev := range in.health.Events {
		a["event.code"] = append(a["event.code"], ev.Code)
	}
	return a, in.Tags
}

func statusInfo(in *instance) types.InstanceStatus {
	out := types.InstanceStatus{
		InstanceId: new(in.ID), AvailabilityZone: new(in.Zone), AvailabilityZoneId: new(in.ZoneID), InstanceState: stateOf(in.State),
		InstanceStatus: summary(in.health.Instance, in.health.Since), SystemStatus: summary(in.health.System, in.health.Since),
	}
	for i, ev := range in.health.Events {
		out.Events = append(out.Events, types.InstanceStatusEvent{
			InstanceEventId: new(fmt.Sprintf("instance-event-0%s%d", in.ID[3:], i)), Code: types.EventCode(ev.Code),
			NotBefore: new(ev.NotBefore), Description: new(ev.Description),
		})
	}
	return out
}

func summary(status string, since *time.Time) *types.InstanceStatusSummary {
	status = cmp.Or(status, "ok")
	check := types.InstanceStatusDetails{Name: types.StatusNameReachability, Status: types.StatusTypePassed}
	if status == string(types.SummaryStatusImpaired) {
		check.Status, check.ImpairedSince = types.StatusTypeFailed, since
	}
	return &types.InstanceStatusSummary{Status: types.SummaryStatus(status), Details: []types.InstanceStatusDetails{check}}
}
