package awse2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// trouble is something that AWS does for a while.
type trouble struct {
	name string
	// script makes calls fail while it lasts.
	script awsapi.Script
	// begin and end change the account while it lasts.
	begin, end func(*rig)
	// says is what people are told of it, in an error, an outcome, a decision
	// or a condition.
	says string
	// launches says that pods get their nodes in spite of it.
	launches bool
}

// lasts is how long each trouble does.
const lasts = 50 * time.Second

// maxDecisions is how many may be made for one pod, whatever happens to it.
const maxDecisions = 12

// launching has calls to launch fail, dry runs excepted.
func launching(f awsapi.Fault) awsapi.Script {
	return func(c awsapi.Call) *awsapi.Fault {
		if c.Action == "CreateFleet" && !strings.Contains(c.Body, "DryRun=true") {
			return &f
		}
		return nil
	}
}

// once has the script strike a single time, times so many.
func once(s awsapi.Script) awsapi.Script { return times(1, s) }

func times(n int, s awsapi.Script) awsapi.Script {
	return func(c awsapi.Call) *awsapi.Fault {
		if n == 0 {
			return nil
		}
		f := s(c)
		if f != nil {
			n--
		}
		return f
	}
}

// plain is a NodePool whose nodes hold one pod of 3 CPUs each and are left
// alone.
func plain(capacityType string) string {
	return calm(pools(pool{name: "default", requirements: []string{types("c5.xlarge", "c5a.xlarge", "m5.xlarge"), capacityType}}))
}

// calm leaves the nodes of the NodePools alone.
func calm(file string) string {
	return strings.ReplaceAll(file, `budgets: [{nodes: "100%"}]`, `budgets: [{nodes: "0"}]`)
}

// play has the trouble while one pod more is wanted, and everything settle
// when it is over.
func (r *rig) play(t *testing.T, tr trouble) {
	t.Helper()
	r.tb = t
	pods := r.running()
	errs, decisions := len(r.errs), len(r.decisions)
	r.account.SetFaults(tr.script)
	if tr.begin != nil {
		tr.begin(r)
	}
	r.must(r.world.Scale("default/big", int32(pods+1)))
	r.run(lasts)
	if tr.launches && len(r.ours()) == pods {
		t.Errorf("the pod has no node after %s:\n%s\n%s", lasts, r.told(), joined(r.errs[errs:]))
	}
	said := r.heard(errs, decisions)
	r.account.SetFaults(nil)
	if tr.end != nil {
		tr.end(r)
	}
	r.step = 5 * time.Second
	r.until("settled after the fault", 6*time.Minute, func() bool { return r.settled() && r.running() == pods+1 })
	r.step = 0
	r.sound()
	if n := len(r.ours()); n != pods+1 {
		t.Errorf("%d instances for %d pods:\n%s", n, pods+1, r.told())
	}
	if !strings.Contains(said, tr.says) {
		t.Errorf("nobody says %q, but\n%s", tr.says, said)
	}
	if made := len(r.decisions) - decisions; made > maxDecisions {
		t.Errorf("%d decisions were made for one pod", made)
	}
}

// heard is all that people were told since.
func (r *rig) heard(errs, decisions int) string {
	var b strings.Builder
	for _, err := range r.errs[errs:] {
		fmt.Fprintln(&b, "error:", err)
	}
	for _, d := range r.decisions[decisions:] {
		fmt.Fprintln(&b, "decision:", d.Summary)
		for _, s := range r.steps[d.ID] {
			if s.Message != "" {
				fmt.Fprintln(&b, "outcome:", s.Message)
			}
		}
	}
	if f := r.pipeline.Fleet(); f != nil {
		for _, class := range f.NodeClasses {
			st, err := r.cloud.ResolveNodeClass(r.ctx, class)
			fmt.Fprintln(&b, "class:", err)
			for _, c := range st.Conditions {
				fmt.Fprintln(&b, "condition:", c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
	return b.String()
}

// TestErrorsOfCreateFleet goes through the codes of a call that EC2 refuses as
// a whole.
func TestErrorsOfCreateFleet(t *testing.T) {
	var all []trouble
	// The SDK repeats what comes with a server's status.
	const serverSide = "InsufficientInstanceCapacity"
	all = append(all, trouble{name: serverSide, says: serverSide, script: times(3, launching(awsapi.Fault{Code: serverSide}))})
	for _, code := range []string{
		"MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "UnfulfillableCapacity", "Unsupported",
		"InsufficientFreeAddressesInSubnet", "MaxFleetCountExceeded", "ReservationCapacityExceeded",
	} {
		all = append(all, trouble{name: code, says: code, script: once(launching(awsapi.Fault{Code: code}))})
	}
	for _, code := range []string{
		// again, with the same token
		"RequestLimitExceeded", "InternalError", "Unavailable", "InvalidLaunchTemplateName.NotFoundException",
		// once there are credentials
		"ExpiredToken", "AuthFailure", "ResourceLimitExceeded",
		// given up, and planned again
		"UnauthorizedOperation", "InvalidParameterValue", "InvalidUserData.Malformed", "InvalidLaunchTemplateId.NotFound",
		"InvalidCapacityReservationId.NotFound", "SomethingNew",
	} {
		all = append(all, trouble{name: code, says: code, script: launching(awsapi.Fault{Code: code})})
	}
	all = append(all,
		trouble{name: "IdempotentParameterMismatch", says: "cannot be repeated", script: launching(awsapi.Fault{Code: "IdempotentParameterMismatch"})})
	r := newRig(t, map[string]string{poolsFile: plain(onDemand)}, sim.NewDeployment("default", "big", 1, cpu("3"))).start()
	r.until("one pod runs", 2*time.Minute, func() bool { return r.settled() && r.running() == 1 })
	for _, tr := range all {
		t.Run(tr.name, func(t *testing.T) { r.play(t, tr) })
	}
	r.tb = t
	r.finish()
}

// TestAnswersToCreateFleetThatGetLost breaks the call before and after its
// effect, and lets it hang.
func TestAnswersToCreateFleetThatGetLost(t *testing.T) {
	r := newRig(t, map[string]string{poolsFile: plain(onDemand)}, sim.NewDeployment("default", "big", 1, cpu("3"))).start()
	r.until("one pod runs", 2*time.Minute, func() bool { return r.settled() && r.running() == 1 })
	for _, tr := range []trouble{
		{name: "no answer and no effect", script: launching(awsapi.Fault{}), says: "CreateFleet"},
		{name: "no answer, but an effect", script: launching(awsapi.Fault{After: true}), says: "CreateFleet"},
		{name: "half an answer", script: launching(awsapi.Fault{After: true, Truncate: true}), says: "CreateFleet"},
		{name: "an error though it has an effect", script: launching(awsapi.Fault{After: true, Code: "InternalError"}), says: "InternalError"},
		{name: "throttled though it has an effect", script: launching(awsapi.Fault{After: true, Code: "RequestLimitExceeded"}), says: "RequestLimitExceeded"},
		{name: "refused though it has an effect", launches: true, script: once(launching(awsapi.Fault{After: true, Code: "InvalidParameterValue"})), says: "provision"},
		{name: "one answer lost", launches: true, script: once(launching(awsapi.Fault{After: true})), says: "provision"},
	} {
		t.Run(tr.name, func(t *testing.T) { r.play(t, tr) })
	}
	t.Run("an endpoint that hangs", func(t *testing.T) { r.hang(t, awsapi.Fault{Hang: true}) })
	t.Run("an endpoint that hangs after the effect", func(t *testing.T) { r.hang(t, awsapi.Fault{Hang: true, After: true}) })
	r.tb = t
	r.finish()
}

// hang gives the pass up that waits for an answer, and dies: the next leader has
// to find what was launched.
func (r *rig) hang(t *testing.T, f awsapi.Fault) {
	t.Helper()
	r.tb = t
	pods := r.running()
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	strike := once(launching(f))
	r.account.SetFaults(func(c awsapi.Call) *awsapi.Fault {
		found := strike(c)
		if found != nil {
			cancel()
		}
		return found
	})
	r.must(r.world.Scale("default/big", int32(pods+1)))
	for range 30 {
		r.passWithin(ctx)
		if ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() == nil {
		t.Fatal("nothing was launched")
	}
	r.account.SetFaults(nil)
	r.lead()
	r.until("settled", 5*time.Minute, func() bool { return r.settled() && r.running() == pods+1 })
	r.sound()
	if n := len(r.ours()); n != pods+1 {
		t.Errorf("%d instances for %d pods", n, pods+1)
	}
}
