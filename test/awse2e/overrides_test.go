package awse2e_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// soldOut takes away, or gives back, the capacity of every type of the plain
// NodePool in the zones.
func soldOut(capacityType string, left int, zones ...string) func(*rig) {
	return func(r *rig) {
		for _, name := range []string{"c5.xlarge", "c5a.xlarge", "m5.xlarge"} {
			for _, z := range zones {
				r.account.SetCapacity(awsapi.Pool{InstanceType: name, Zone: region + z, CapacityType: capacityType}, left)
			}
		}
	}
}

var allZones = []string{"a", "b", "c", "d"}

// TestErrorsOfSingleOverrides has EC2 answer with errors about each offering:
// those that it makes by itself, and all others in their place.
func TestErrorsOfSingleOverrides(t *testing.T) {
	const itself = "InsufficientInstanceCapacity"
	var all []trouble
	add := func(code, capacityType string, launches bool, zones ...string) {
		all = append(all, trouble{
			name: strings.Join(append(zones, code), " "), says: code, launches: launches,
			begin: func(r *rig) {
				soldOut(capacityType, 0, zones...)(r)
				r.rewrite = func(action string, answer []byte) []byte {
					if action != "CreateFleet" {
						return answer
					}
					return bytes.ReplaceAll(answer, []byte(itself), []byte(code))
				}
			},
			end: func(r *rig) { r.rewrite = nil; soldOut(capacityType, -1, zones...)(r) },
		})
	}
	for _, code := range []string{
		itself, "UnfulfillableCapacity", "Unsupported", "MaxFleetCountExceeded", "ReservationCapacityExceeded", "VcpuLimitExceeded", "InsufficientFreeAddressesInSubnet",
		"UnauthorizedOperation", "InvalidParameterValue", "InvalidLaunchTemplateName.NotFoundException", "SomethingNew",
	} {
		add(code, "on-demand", false, allZones...)
	}
	play(t, onDemand, all)

	all = nil
	add("MaxSpotInstanceCountExceeded", "spot", false, allZones...)
	add("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "spot", false, allZones...)
	play(t, spot, all)
}

// TestLimitsOfTheAccount runs into those that the endpoint keeps itself.
func TestLimitsOfTheAccount(t *testing.T) {
	play(t, onDemand, []trouble{
		{
			name: "virtual CPUs", says: "VcpuLimitExceeded",
			begin: func(r *rig) { r.account.SetQuota("on-demand", 4) }, end: func(r *rig) { r.account.SetQuota("on-demand", -1) },
		},
		{name: "one zone without capacity", says: "provision", launches: true, begin: soldOut("on-demand", 0, "a", "b"), end: soldOut("on-demand", -1, "a", "b")},
		{name: "no capacity at all", says: "InsufficientInstanceCapacity", begin: soldOut("on-demand", 0, allZones...), end: soldOut("on-demand", -1, allZones...)},
	})
}

// play has one trouble after the other in one cluster.
func play(t *testing.T, capacityType string, all []trouble) {
	t.Helper()
	r := newRig(t, map[string]string{poolsFile: plain(capacityType)}, sim.NewDeployment("default", "big", 1, cpu("3"))).start()
	r.until("one pod runs", 2*time.Minute, func() bool { return r.settled() && r.running() == 1 })
	for _, tr := range all {
		t.Run(tr.name, func(t *testing.T) { r.play(t, tr) })
	}
	r.tb = t
	r.finish()
}

// TestOtherCallsThatFail has the calls around a launch fail.
func TestOtherCallsThatFail(t *testing.T) {
	var all []trouble
	for _, action := range []string{"DescribeInstances", "CreateTags"} {
		all = append(all,
			trouble{name: action + " throttled", script: awsapi.Every(action, awsapi.Fault{Code: "RequestLimitExceeded"}), says: action},
			trouble{name: action + " denied", script: awsapi.Every(action, awsapi.Fault{Code: "UnauthorizedOperation"}), says: "allow ec2:" + action},
			trouble{name: action + " without an answer", script: awsapi.Every(action, awsapi.Fault{After: true}), says: action},
			trouble{name: action + " with half an answer", script: awsapi.Every(action, awsapi.Fault{After: true, Truncate: true}), says: action},
		)
	}
	all = append(all,
		trouble{name: "credentials that have expired", script: awsapi.Every("", awsapi.Fault{Code: "ExpiredToken"}), says: "does not take the credentials"},
		trouble{name: "all throttled", script: awsapi.Every("", awsapi.Fault{Code: "RequestLimitExceeded"}), says: "RequestLimitExceeded"},
		trouble{name: "no network", script: awsapi.Every("", awsapi.Fault{}), says: "connection reset"},
		trouble{name: "a queue that is missing", script: awsapi.Every("ReceiveMessage", awsapi.Fault{Code: "QueueDoesNotExist"}), says: "does not exist in this account and region", launches: true},
		trouble{name: "a queue that is denied", script: awsapi.Every("ReceiveMessage", awsapi.Fault{Code: "AccessDenied"}), says: "AccessDenied", launches: true},
		trouble{name: "messages that cannot be deleted", script: awsapi.Every("DeleteMessageBatch", awsapi.Fault{Code: "InternalError"}), says: "delete", launches: true},
	)
	play(t, onDemand, all)
}
