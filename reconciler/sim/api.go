package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Object is an object of the Kubernetes API.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is the kind of an object: "Pod".
type Kind string

// The kinds that the simulated API server knows.
const (
	KindNamespace   Kind = "Namespace"
	KindNode        Kind = "Node"
	KindPod         Kind = "Pod"
	KindDeployment  Kind = "Deployment"
	KindReplicaSet  Kind = "ReplicaSet"
	KindDaemonSet   Kind = "DaemonSet"
	KindStatefulSet Kind = "StatefulSet"
	KindNodeClaim   Kind = "NodeClaim"
	KindPDB         Kind = "PodDisruptionBudget"
	KindNodePool    Kind = "NodePool"
	KindNodeClass   Kind = "EC2NodeClass"
)

// kinds in the order in which controllers look at them.
var kinds = []Kind{KindNamespace, KindNode, KindPod, KindDeployment, KindReplicaSet, KindDaemonSet, KindStatefulSet, KindNodePool, KindNodeClass, KindNodeClaim, KindPDB}

// kindOf is the kind of the object, empty for one that the API does not know.
func kindOf(o Object) Kind {
	switch o.(type) {
	case *corev1.Namespace:
		return KindNamespace
	case *corev1.Node:
		return KindNode
	case *corev1.Pod:
		return KindPod
	case *appsv1.Deployment:
		return KindDeployment
	case *appsv1.ReplicaSet:
		return KindReplicaSet
	case *appsv1.DaemonSet:
		return KindDaemonSet
	case *appsv1.StatefulSet:
		return KindStatefulSet
	case *karpv1.NodeClaim:
		return KindNodeClaim
	case *policyv1.PodDisruptionBudget:
		return KindPDB
	case *karpv1.NodePool:
		return KindNodePool
	case *ec2v1.EC2NodeClass:
		return KindNodeClass
	default:
		return ""
	}
}

// KeyOf is the name an object is known by within its kind: "namespace/name",
// or the name alone.
func KeyOf(o metav1.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// Write is one change of the API, for tests that check what was done and when.
type Write struct {
	Time time.Time
	// Actor is who wrote: "reeve", "kubelet", "scheduler", "script", …
	Actor string
	// Verb is "create", "update", "delete" (a deletion timestamp was set) or
	// "remove" (the object is gone).
	Verb string
	Kind Kind
	Key  string
	// Note says what was written: "bind", "register".
	Note string
}

// String is the write as one line.
func (w Write) String() string {
	s := fmt.Sprintf("%s %s %s %s %s", w.Time.Format(time.RFC3339Nano), w.Actor, w.Verb, w.Kind, w.Key)
	if w.Note != "" {
		s += " (" + w.Note + ")"
	}
	return s
}

// API is the simulated API server. Objects are handed out as they are stored
// and are replaced, never changed, by a write: what was read stays as it was
// read and must not be changed by the reader.
type API struct {
	clock   *Clock
	tables  map[Kind]*table
	version int64
	// made is the order in which objects were created.
	made     map[types.UID]int64
	audit    []Write
	events   []Event
	onChange func(Kind)
	// onUpdate is told of every object that is replaced by a newer version.
	onUpdate func(old, now Object)
}

// table is the objects of one kind; keys are sorted.
type table struct {
	keys    []string
	objects map[string]Object
}

func newAPI(c *Clock) *API {
	a := &API{clock: c, tables: map[Kind]*table{}, made: map[types.UID]int64{}, onChange: func(Kind) {}, onUpdate: func(Object, Object) {}}
	for _, k := range kinds {
		a.tables[k] = &table{objects: map[string]Object{}}
	}
	return a
}

// stamp is the time as objects hold it: the API's JSON has whole seconds.
func (a *API) stamp() metav1.Time { return metav1.NewTime(a.clock.Now().Truncate(time.Second)) }

// Audit is every write so far, in order.
func (a *API) Audit() []Write { return a.audit }

// List is all objects of the type, sorted by key.
func List[T Object](a *API) []T {
	var zero T
	t := a.tables[kindOf(zero)]
	out := make([]T, 0, len(t.keys))
	for _, k := range t.keys {
		out = append(out, t.objects[k].(T))
	}
	return out
}

// Get is the object of that key. The error is the API's NotFound.
func Get[T Object](a *API, key string) (T, error) {
	var zero T
	kind := kindOf(zero)
	o, ok := a.tables[kind].objects[key]
	if !ok {
		return zero, notFound(kind, key)
	}
	return o.(T), nil
}

func notFound(kind Kind, key string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: string(kind)}, key)
}

// Create stores a copy of the object with what the API server fills in: uid,
// creation time, resource version and the defaults of its kind. It fails when
// the name is taken.
func (a *API) Create(actor string, o Object) error {
	kind, key := kindOf(o), KeyOf(o)
	t := a.tables[kind]
	if t == nil {
		return fmt.Errorf("create %s: the simulation has no kind for %T", key, o)
	}
	if o.GetName() == "" {
		return fmt.Errorf("create %s: the name is missing: the simulation generates none", kind)
	}
	if _, ok := t.objects[key]; ok {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: string(kind)}, key)
	}
	c := o.DeepCopyObject().(Object)
	setDefaults(c)
	a.version++
	c.SetUID(uid(kind, "/", key, "/", a.version))
	a.made[c.GetUID()] = a.version
	c.SetCreationTimestamp(a.stamp())
	c.SetResourceVersion(strconv.FormatInt(a.version, 10))
	c.SetGeneration(1)
	i, _ := slices.BinarySearch(t.keys, key)
	t.keys = slices.Insert(t.keys, i, key)
	t.objects[key] = c
	a.wrote(actor, "create", kind, key, "")
	return nil
}

// Update replaces the object of that key with what f makes of a copy of it; an
// error of f leaves it as it was. An object that is being deleted goes away
// with its last finalizer. Adding a finalizer to one is refused.
func Update[T Object](a *API, actor, key, note string, f func(T) error) error {
	old, err := Get[T](a, key)
	if err != nil {
		return err
	}
	c := old.DeepCopyObject().(T)
	if err := f(c); err != nil {
		return err
	}
	if old.GetDeletionTimestamp() != nil {
		for _, fin := range c.GetFinalizers() {
			if !slices.Contains(old.GetFinalizers(), fin) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: string(kindOf(c))}, key,
					fmt.Errorf("no finalizer can be added while it is being deleted: %s", fin))
			}
		}
	}
	a.version++
	c.SetResourceVersion(strconv.FormatInt(a.version, 10))
	kind := kindOf(c)
	a.tables[kind].objects[key] = c
	a.wrote(actor, "update", kind, key, note)
	a.onUpdate(old, c)
	if c.GetDeletionTimestamp() != nil && len(c.GetFinalizers()) == 0 && graceOf(c) == 0 {
		a.remove(actor, kind, key)
	}
	return nil
}

// graceOf is how many seconds a deleted object still has for its own clean-up;
// only pods have any.
func graceOf(o metav1.Object) int64 {
	if g := o.GetDeletionGracePeriodSeconds(); g != nil {
		return *g
	}
	return 0
}

// Delete deletes the object of that key: at once, or, when it has finalizers or
// is a pod that runs, by setting its deletion timestamp. grace overrides a pod's
// terminationGracePeriodSeconds; a later call can only shorten it.
func Delete[T Object](a *API, actor, key string, grace *int64) error {
	o, err := Get[T](a, key)
	if err != nil {
		return err
	}
	return a.delete(actor, o, grace)
}

func (a *API) delete(actor string, o Object, grace *int64) error {
	kind, key := kindOf(o), KeyOf(o)
	g := deletionGrace(o, grace)
	if g == 0 && len(o.GetFinalizers()) == 0 {
		a.remove(actor, kind, key)
		return nil
	}
	if o.GetDeletionTimestamp() != nil && g >= graceOf(o) {
		return nil
	}
	c := o.DeepCopyObject().(Object)
	at := metav1.NewTime(a.stamp().Add(time.Duration(g) * time.Second))
	c.SetDeletionTimestamp(&at)
	c.SetDeletionGracePeriodSeconds(&g)
	a.version++
	c.SetResourceVersion(strconv.FormatInt(a.version, 10))
	a.tables[kind].objects[key] = c
	a.wrote(actor, "delete", kind, key, "")
	a.onUpdate(o, c)
	return nil
}

// deletionGrace is what the API server makes of the asked-for grace: only a pod
// that a kubelet runs gets any.
func deletionGrace(o Object, asked *int64) int64 {
	pod, ok := o.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || terminal(pod) {
		return 0
	}
	if asked != nil {
		return max(*asked, 0)
	}
	return *pod.Spec.TerminationGracePeriodSeconds
}

func (a *API) remove(actor string, kind Kind, key string) {
	t := a.tables[kind]
	if i, ok := slices.BinarySearch(t.keys, key); ok {
		t.keys = slices.Delete(t.keys, i, i+1)
	}
	delete(a.made, t.objects[key].GetUID())
	delete(t.objects, key)
	a.version++
	a.wrote(actor, "remove", kind, key, "")
}

func (a *API) wrote(actor, verb string, kind Kind, key, note string) {
	a.audit = append(a.audit, Write{Time: a.clock.Now(), Actor: actor, Verb: verb, Kind: kind, Key: key, Note: note})
	a.onChange(kind)
}

// Event is what somebody told people about an object.
type Event struct {
	Time time.Time
	// Resource is "Pod/ns/name", "NodePool/default".
	Resource string
	Warning  bool
	Reason   string
	Message  string
}

// Events are all events so far, in order.
func (a *API) Events() []Event { return a.events }

func (a *API) record(resource string, warning bool, reason, message string) {
	a.events = append(a.events, Event{Time: a.clock.Now(), Resource: resource, Warning: warning, Reason: reason, Message: message})
}
