// Package fleet holds the specs of one cluster as plain values: what a commit
// of the fleet repository says once CUE has been evaluated.
//
// A Fleet is immutable after it has been loaded. It knows the position of
// every field in the repository, so that whoever finds fault with a value can
// say file, line and column.
package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Fleet is everything a commit says about one cluster.
type Fleet struct {
	// Cluster is the settings of the cluster and of Reeve itself.
	Cluster Cluster
	// NodePools are sorted by name.
	NodePools []*karpv1.NodePool
	// NodeClasses are sorted by name. Their status is empty: it belongs to
	// the snapshot.
	NodeClasses []*ec2v1.EC2NodeClass
	// Exceptions are the accepted breaches of rules, in source order.
	Exceptions []Exception

	// Commit is the spec commit the fleet was read from, in hexadecimal.
	Commit string
	// Document is the whole fleet as JSON with defaults filled in and keys
	// sorted: what policies see as input.fleet. Its fields "cluster",
	// "nodePools", "nodeClasses", "policy" and "exceptions" are those of the
	// CUE package.
	Document json.RawMessage
	// Policy is the part of Document that policies see as data.policy.
	Policy json.RawMessage
	// Positions tell where each field of Document was written.
	Positions Positions
	// Warnings are what is allowed and likely a mistake, in order of their
	// paths.
	Warnings []Remark
}

// Mode says whether Reeve acts on its decisions.
type Mode string

// The modes of DESIGN.md section 9.
const (
	// Enforce acts on what policy allows.
	Enforce Mode = "enforce"
	// Observe records what would have been done and does nothing.
	Observe Mode = "observe"
)

// Durability says which actions wait until their decision has been pushed.
type Durability string

// The durabilities of DESIGN.md section 7.
const (
	// Ahead lets provision, interrupt and reclaim go before the push.
	Ahead Durability = "ahead"
	// Strict lets only interrupt go before the push.
	Strict Durability = "strict"
	// Async lets nothing wait for the push.
	Async Durability = "async"
)

// Cluster is the settings of one cluster.
type Cluster struct {
	// Name of the EKS cluster; also the name of the directory under clusters/
	// and of the decision branch, reeve/<name>.
	Name string `json:"name"`
	// Region is the AWS region: "ap-northeast-2".
	Region string `json:"region"`
	// KubernetesVersion is the minor version of the control plane: "1.34".
	KubernetesVersion string `json:"kubernetesVersion"`
	// Environment is a free word that policies test: "production".
	Environment string `json:"environment"`
	// Mode is whether decisions are acted on.
	Mode Mode `json:"mode"`
	// InterruptionQueue is the name of the SQS queue that AWS announces
	// interruptions in; empty for none (Karpenter's INTERRUPTION_QUEUE).
	InterruptionQueue string `json:"interruptionQueue,omitempty"`
	// Ledger is how decisions are written back.
	Ledger LedgerSettings `json:"ledger"`
	// Engine is what the engine may trade off.
	Engine EngineSettings `json:"engine"`
	// Judge is how policies are run.
	Judge JudgeSettings `json:"judge"`
}

// LedgerSettings is how decisions are written back to Git.
type LedgerSettings struct {
	// Branch that holds the decisions; "reeve/<cluster>" unless set.
	Branch string `json:"branch"`
	// PushInterval is the longest time between a commit and its push.
	PushInterval Duration `json:"pushInterval"`
	// Durability is which actions wait for the push.
	Durability Durability `json:"durability"`
	// Window is how long decisions stay in the tip of the branch.
	Window Duration `json:"window"`
	// SkipCI adds "[skip ci]" to the commits.
	SkipCI bool `json:"skipCI"`
}

// EngineSettings is what the engine may trade off, and the Karpenter settings
// that change the size of a node.
type EngineSettings struct {
	// NodeFee is added to the price of each new node when plans are compared,
	// in USD per hour: fewer nodes are worth that much. It is never part of a
	// reported price.
	NodeFee json.Number `json:"nodeFee"`
	// VMMemoryOverheadPercent is Karpenter's setting of that name: the share
	// of advertised memory that the hypervisor keeps, 0.075 by default.
	VMMemoryOverheadPercent json.Number `json:"vmMemoryOverheadPercent"`
	// ReservedENIs is Karpenter's setting of that name.
	ReservedENIs int64 `json:"reservedENIs"`
	// BatchIdle is Karpenter's BATCH_IDLE_DURATION: a batch of pending pods
	// closes when none came for that long.
	BatchIdle Duration `json:"batchIdle"`
	// BatchMax is Karpenter's BATCH_MAX_DURATION: a batch closes at the
	// latest that long after its first pod.
	BatchMax Duration `json:"batchMax"`
	// SpotToSpot lets spot nodes be replaced by cheaper spot nodes (Karpenter's
	// feature gate SpotToSpotConsolidation, which is off by default too).
	SpotToSpot bool `json:"spotToSpot,omitempty"`
}

// JudgeSettings is how policies are run.
type JudgeSettings struct {
	// Deadline of one evaluation. A policy that takes longer denies.
	Deadline Duration `json:"deadline"`
	// FailOpen are the decision kinds that go ahead when a policy fails to
	// give a verdict.
	FailOpen []string `json:"failOpen"`
}

// Exception is an accepted breach of one rule by one object.
type Exception struct {
	// Rule is the id of the rule: "REEVE-AMI-001".
	Rule string `json:"rule"`
	// Resource it holds for, as findings name it: "EC2NodeClass/default".
	Resource string `json:"resource"`
	// Reason is why, for the reader of the record.
	Reason string `json:"reason"`
	// Owner is who answers for it.
	Owner string `json:"owner"`
	// Expires is the instant from which it no longer holds.
	Expires time.Time `json:"expires"`
}

// Expired says whether the exception no longer holds at the instant.
func (e Exception) Expired(now time.Time) bool { return !now.Before(e.Expires) }

// Duration is a time.Duration that is written as Go writes it: "10s".
type Duration time.Duration

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON reads a string such as "1m30s".
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("duration: %w", err)
	}
	*d = Duration(v)
	return nil
}

// NodePool is the NodePool of that name, or nil.
func (f *Fleet) NodePool(name string) *karpv1.NodePool {
	i, found := slices.BinarySearchFunc(f.NodePools, name, func(p *karpv1.NodePool, n string) int { return cmp.Compare(p.Name, n) })
	if !found {
		return nil
	}
	return f.NodePools[i]
}

// NodeClass is the EC2NodeClass of that name, or nil.
func (f *Fleet) NodeClass(name string) *ec2v1.EC2NodeClass {
	i, found := slices.BinarySearchFunc(f.NodeClasses, name, func(c *ec2v1.EC2NodeClass, n string) int { return cmp.Compare(c.Name, n) })
	if !found {
		return nil
	}
	return f.NodeClasses[i]
}

// ByWeight are the NodePools in the order in which they are tried: weight
// descending, then name (Karpenter, pkg/utils/nodepool, OrderByWeight).
func (f *Fleet) ByWeight() []*karpv1.NodePool {
	out := slices.Clone(f.NodePools)
	slices.SortStableFunc(out, func(a, b *karpv1.NodePool) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func weight(p *karpv1.NodePool) int32 {
	if p.Spec.Weight == nil {
		return 0
	}
	return *p.Spec.Weight
}
