// Package port holds the interfaces between the pipeline and the world. They
// are defined by what the pipeline needs, in values of the core; adapters and
// the simulator implement them.
//
// Every method that changes something is idempotent: the pipeline repeats it
// after a crash. Errors are typed by what to do about them; see Terminal,
// RetryAfter and ErrNotFound.
package port

import (
	"context"
	"io/fs"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/fleet"
	"github.com/reeve-project/reeve/reconciler/requirements"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// Cluster is the Kubernetes API as the pipeline needs it.
type Cluster interface {
	// Snapshot reads nodes, claims, pods and daemonsets. Nominations, class
	// status, unavailable offerings and recent decisions are left empty: they
	// are not the API server's.
	Snapshot(ctx context.Context) (*cluster.Snapshot, error)
	// Apply makes the NodePool and EC2NodeClass objects those of the fleet:
	// created, updated, or deleted when the fleet no longer has them.
	Apply(ctx context.Context, f *fleet.Fleet) error
	// CreateClaim creates the NodeClaim, owned by its NodePool object. One of the same name and decision
	// that exists already is success.
	CreateClaim(ctx context.Context, claim *karpv1.NodeClaim) error
	// MarkLaunched writes what was launched into the claim's status.
	MarkLaunched(ctx context.Context, claim string, in Instance) error
	// MarkLaunchFailed sets Launched to False with the reason. The claim stays
	// until a liveness decision removes it.
	MarkLaunchFailed(ctx context.Context, claim, reason, message string) error
	// Register copies labels, annotations and taints of the claim to its
	// node, removes the unregistered taint and sets Registered.
	Register(ctx context.Context, claim, node string) error
	// Initialize labels the node and sets Initialized.
	Initialize(ctx context.Context, claim, node string) error
	// DeleteClaim deletes the NodeClaim; the finalizer keeps it until
	// Finalize.
	DeleteClaim(ctx context.Context, claim string) error
	// Finalize removes the finalizers of the claim and its node.
	Finalize(ctx context.Context, claim string) error
	// Taint adds the taint to the node unless it is there.
	Taint(ctx context.Context, node string, taint corev1.Taint) error
	// Untaint removes the taint from the node if it is there.
	Untaint(ctx context.Context, node string, taint corev1.Taint) error
	// Label sets a label of the node.
	Label(ctx context.Context, node, key, value string) error
	// SetCondition sets a condition of the NodeClaim.
	SetCondition(ctx context.Context, claim string, c Condition) error
	// Pods reads the pods of the node past every cache.
	Pods(ctx context.Context, node string) ([]*cluster.Pod, error)
	// Evict asks for the eviction of the pod. A disruption budget that does
	// not allow it now is ErrBlocked.
	Evict(ctx context.Context, pod *cluster.Pod) error
	// DeletePod deletes the pod past its disruption budgets, with so much
	// grace. One that is gone, or whose name another pod has by now, is success.
	DeletePod(ctx context.Context, pod *cluster.Pod, grace time.Duration) error
	// Event tells people about an object: "NodePool/default",
	// "Pod/ns/name", "NodeClaim/name".
	Event(ctx context.Context, resource string, warning bool, reason, message string)
}

// Cloud is AWS as the pipeline needs it.
type Cloud interface {
	// Catalog is what can be bought in the region, and its prices.
	Catalog(ctx context.Context) (*catalog.Data, error)
	// ResolveNodeClass finds subnets, security groups, images and the
	// instance profile of the class.
	ResolveNodeClass(ctx context.Context, class *ec2v1.EC2NodeClass) (ec2v1.EC2NodeClassStatus, error)
	// Launch launches one group. Instances and refusals may both be there.
	Launch(ctx context.Context, req LaunchRequest) (LaunchResult, error)
	// Terminate terminates the instances; those that are gone are success. An
	// error that is a *TerminateError names those that go on, any other error
	// is about all.
	Terminate(ctx context.Context, ids []string) error
	// Instances lists what runs in this cluster's name.
	Instances(ctx context.Context) ([]Instance, error)
	// Tag adds tags to an instance and what belongs to it.
	Tag(ctx context.Context, id string, tags map[string]string) error
	// Sweep removes what was made on the side and is no longer needed: launch
	// templates that nothing was launched from for a while, and the instance
	// profiles of classes that are not among those given.
	Sweep(ctx context.Context, classes []*ec2v1.EC2NodeClass) error
}

// Queue is where AWS announces interruptions.
type Queue interface {
	// Receive returns messages that are there, at most so many. It does not
	// wait for more. The same message may come again, and in any order.
	Receive(ctx context.Context, most int) ([]Message, error)
	// Delete deletes messages for good: what they ask for is recorded. Those
	// that are gone are success.
	Delete(ctx context.Context, messages []Message) error
}

// Message is one message of a Queue.
type Message struct {
	// Handle is what it is deleted by.
	Handle string
	// ID is that of the event, or of the message if it is no event.
	ID string
	// Interruptions are what it says, one for each instance; none for a message
	// that asks for nothing.
	Interruptions []cluster.Interruption
	// Problem is why it could not be understood; empty if it was.
	Problem string
}

// Condition is a condition of a NodeClaim.
type Condition struct {
	// Type is one of Karpenter's (pkg/apis/v1/nodeclaim_status.go).
	Type string
	// True is its status.
	True bool
	// Reason and Message tell people.
	Reason, Message string
}

// GroupTag on an instance is the number of the launch group within its
// decision.
const GroupTag = "reeve.dev/group"

// LaunchRequest is a group of claims with the same launch input: one
// CreateFleet call of type instant.
type LaunchRequest struct {
	// Decision, Group and Attempt name the call; Token follows from them.
	Decision string
	Group    int
	Attempt  int
	Token    string
	// Claims are the names, one instance each.
	Claims   []string
	NodePool string
	// Class with its resolved status.
	Class *ec2v1.EC2NodeClass
	// Template is one of the claims; user data is made from it.
	Template *karpv1.NodeClaim
	// CapacityType is "spot" or "on-demand".
	CapacityType string
	// Offerings that may be launched, cheapest first.
	Offerings []decision.Offering
	// Types are the instance types of the offerings, as the catalog resolved
	// them for the class. They follow from the rest.
	Types []*catalog.InstanceType `json:"-"`
	// Requirements of the claims.
	Requirements requirements.Set
	// Tags are those of DESIGN.md section 7 and AWS.md section 6.
	Tags map[string]string
}

// LaunchResult is what became of a LaunchRequest.
type LaunchResult struct {
	// Instances are in the order of the claims they are for, the same whenever
	// the request is repeated.
	Instances []Instance
	// Refused are offerings without capacity, each with EC2's error code.
	Refused []Refusal
}

// Refusal is an offering that EC2 did not launch.
type Refusal struct {
	Offering decision.Offering
	Code     string
	Message  string
}

// Instance is an EC2 instance of this cluster.
type Instance struct {
	ID           string
	ProviderID   string
	InstanceType string
	Zone         string
	CapacityType string
	ImageID      string
	// Price, Capacity, Allocatable and Labels are the catalog's word: the
	// pipeline adds them to what it launches. Who lists or launches instances
	// need not know them.
	Price       resources.Price
	Capacity    resources.List
	Allocatable resources.List
	Labels      map[string]string
	Tags        map[string]string
	Launched    time.Time
	// State is EC2's: pending, running, shutting-down, …
	State string
	// Claim, Decision and Group are read from the tags. Group is -1 without
	// that tag.
	Claim    string
	Decision string
	Group    int
}

// Specs is the fleet repository as the pipeline needs it.
type Specs interface {
	// Head is the commit at the tip of the spec branch.
	Head(ctx context.Context) (string, error)
	// Source reads the tree of a commit. Accepted commits stay readable.
	Source(ctx context.Context, commit string) (*Source, error)
	// Load evaluates a source. An error that the author of the commit has to
	// mend is a *spec.Error with positions; port.Diagnosed finds it.
	Load(ctx context.Context, src *Source) (*fleet.Fleet, error)
}

// Source is a commit of the fleet repository before it is evaluated.
type Source struct {
	Branch  string
	Commit  string
	Tree    string
	Author  string
	Subject string
	// Files is the tree.
	Files fs.FS
	// Forced says that the previously read head is no ancestor.
	Forced bool
}

// Ledger is the decision branch as the pipeline needs it.
type Ledger interface {
	// Append commits one pass locally and durably. When it returns, the
	// actions of the decisions in it may begin, as far as the durability
	// setting lets them.
	Append(ctx context.Context, e Entry) error
	// Open are the decisions whose outcome is not final, with their outcomes,
	// in order of id.
	Open() []Record
	// Recent are the short forms of the decisions of the last hour.
	Recent(now time.Time) []cluster.Recent
	// Accepted is the accepted spec commit, read from the ledger's own copy of
	// its tree: it stays readable when the spec branch is rewritten or gone.
	// Nil before the first, and when the tree was lost with its branch before it
	// was pushed.
	Accepted() (*Source, error)
	// Epoch of this writer.
	Epoch() int64
	// Push pushes what has been appended if the push interval has passed, or
	// at once when forced. An error of kind ErrFenced or ErrConflict means:
	// stop acting.
	Push(ctx context.Context, now time.Time, force bool) error
	// Close writes what is written only now and then, such as summaries, and
	// pushes everything. Nothing may be appended after it.
	Close(ctx context.Context, now time.Time) error
	// Unpushed is how many decisions are not pushed yet, and since when.
	Unpushed() (n int, since time.Time)
}

// Record is a decision with its outcome.
type Record struct {
	Decision *decision.Decision
	Outcome  *decision.Outcome
}

// Entry is what one pass appends.
type Entry struct {
	Time time.Time
	// Snapshot the decisions were made on; nil for an accept, reject or
	// handover, which leave the state in the ledger as it is.
	Snapshot  *cluster.Snapshot
	Decisions []*decision.Decision
	// Outcomes that advanced, whole.
	Outcomes []*decision.Outcome
	// Inputs in force.
	Inputs Inputs
	// Proposed are the sources of a commit under judgement; set exactly for
	// an accept or reject.
	Proposed *Proposed
}

// Inputs are the things that decisions depend on besides the snapshot.
type Inputs struct {
	// FleetTree is the Git tree of the accepted commit.
	FleetTree string
	// Policies are all Rego files that judge, by path.
	Policies map[string][]byte
	Catalog  *catalog.Data
}

// Proposed is a commit under judgement.
type Proposed struct {
	FleetTree string
	Policies  map[string][]byte
}

// Spool keeps what must survive the process until it has been pushed: a small
// object in the cluster that a new leader reads before its first pass.
type Spool interface {
	// Put stores the bytes under the key, replacing what was there.
	Put(ctx context.Context, key string, b []byte) error
	// List are the keys, sorted.
	List(ctx context.Context) ([]string, error)
	Get(ctx context.Context, key string) ([]byte, error)
	// Delete removes the key; one that is not there is success.
	Delete(ctx context.Context, key string) error
}
