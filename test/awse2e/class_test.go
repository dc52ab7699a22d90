package awse2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// TestClassesThatDoNotResolve has a cluster begin while AWS does not say what
// its EC2NodeClass needs: the pods wait with a decision that says why.
func TestClassesThatDoNotResolve(t *testing.T) {
	denied := awsapi.Fault{Code: "AccessDenied", Message: "not allowed"}
	for _, tr := range []trouble{
		{name: "images denied", script: awsapi.Every("GetParameter", awsapi.Fault{Code: "AccessDeniedException", Message: "not allowed"}), says: "AMIsReady"},
		{name: "images missing", script: awsapi.Every("GetParameter", awsapi.Fault{Code: "ParameterNotFound"}), says: "AMIsReady"},
		{name: "half an answer about images", script: awsapi.Every("DescribeImages", awsapi.Fault{After: true, Truncate: true}), says: "AMIsReady"},
		{name: "profile denied", script: awsapi.Every("CreateInstanceProfile", denied), says: "InstanceProfileReady"},
		{name: "role denied", script: awsapi.Every("AddRoleToInstanceProfile", denied), says: "InstanceProfileReady"},
		{name: "IAM throttled", script: awsapi.Every("GetInstanceProfile", awsapi.Fault{Code: "Throttling"}), says: "InstanceProfileReady"},
		{name: "cluster denied", script: awsapi.Every("DescribeCluster", awsapi.Fault{Code: "AccessDeniedException", Message: "not allowed"}), says: "ClusterResolutionFailed"},
		{name: "subnets denied", script: awsapi.Every("DescribeSubnets", awsapi.Fault{Code: "UnauthorizedOperation"}), says: "SubnetsReady"},
		{name: "security groups throttled", script: awsapi.Every("DescribeSecurityGroups", awsapi.Fault{Code: "RequestLimitExceeded"}), says: "SecurityGroupsReady"},
		{name: "launch templates denied", script: awsapi.Every("CreateLaunchTemplate", awsapi.Fault{Code: "UnauthorizedOperation"}), says: "CreateLaunchTemplate"},
		{name: "launches denied", script: awsapi.Every("CreateFleet", awsapi.Fault{Code: "UnauthorizedOperation"}), says: "ValidationSucceeded"},
	} {
		t.Run(tr.name, func(t *testing.T) {
			r := newRig(t, map[string]string{poolsFile: plain(onDemand)}, sim.NewDeployment("default", "big", 1, cpu("3")))
			r.account.SetFaults(tr.script)
			r.start()
			r.run(lasts)
			if said := r.heard(0, 0); !strings.Contains(said, tr.says) {
				t.Errorf("nobody says %q, but\n%s", tr.says, said)
			}
			if len(r.ours()) > 0 {
				t.Error("something was launched")
			}
			if len(r.of(decision.Provision)) == 0 {
				t.Error("no decision says that the pod waits")
			}
			r.account.SetFaults(nil)
			r.step = 5 * time.Second
			r.until("settled after the fault", 6*time.Minute, func() bool { return r.settled() && r.running() == 1 })
			if n := len(r.ours()); n != 1 {
				t.Errorf("%d instances for one pod", n)
			}
			r.finish()
		})
	}
}

// TestUserDataThatIsTooLarge is refused in words, and launches once it is
// shortened.
func TestUserDataThatIsTooLarge(t *testing.T) {
	r := newRig(t, map[string]string{poolsFile: plain(onDemand)}, sim.NewDeployment("default", "big", 1, cpu("3")))
	good := string(r.files[classesFile])
	large := strings.Replace(good, "\trole:", "\tuserData: \"#!/bin/sh\\n"+strings.Repeat("# padding\\n", 2000)+"\"\n\trole:", 1)
	r.files[classesFile] = []byte(large)
	r.start()
	r.run(lasts)
	if said := r.heard(0, 0); !strings.Contains(said, "UserDataSizeLimitExceeded") && !strings.Contains(said, "16384") {
		t.Errorf("nobody says that the user data is too large, but\n%s", said)
	}
	if len(r.ours()) > 0 || len(r.of(decision.Provision)) == 0 {
		t.Errorf("%d instances and %d decisions about the pod", len(r.ours()), len(r.of(decision.Provision)))
	}
	r.push("Shorten the user data", map[string]string{classesFile: good})
	r.until("settled", 5*time.Minute, func() bool { return r.settled() && r.running() == 1 })
	r.finish()
}
