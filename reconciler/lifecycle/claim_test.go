package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/resources"
)

// taint reads "key[=value]:Effect".
func taint(s string) corev1.Taint {
	key, effect, _ := strings.Cut(s, ":")
	key, value, _ := strings.Cut(key, "=")
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
}

func nodeClaim() *karpv1.NodeClaim {
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "default-abc", UID: "u1", CreationTimestamp: metav1.NewTime(t0),
			Labels: map[string]string{
				karpv1.NodePoolLabelKey:        "default",
				corev1.LabelInstanceTypeStable: "c5a.2xlarge",
				corev1.LabelTopologyZone:       "ap-northeast-2a",
				karpv1.CapacityTypeLabelKey:    "on-demand",
				"team":                         "a",
			},
			Annotations: map[string]string{cluster.DecisionAnnotation: "d1", cluster.IndexAnnotation: "2", PriceAnnotation: "0.344"},
		},
		Spec: karpv1.NodeClaimSpec{
			Taints:        []corev1.Taint{taint("team=a:NoSchedule")},
			StartupTaints: []corev1.Taint{taint("cni:NoSchedule")},
			NodeClassRef:  &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
			Resources:     karpv1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("5150m")}},
		},
	}
}

func TestFromNodeClaimTakesWhatDecisionsDependOn(t *testing.T) {
	nc := nodeClaim()
	nc.Status.ProviderID = providerID
	nc.Status.ImageID = "ami-1"
	nc.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("8")}
	nc.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("7910m")}
	SetCondition(nc, karpv1.ConditionTypeLaunched, metav1.ConditionTrue, "", "", t0.Add(time.Second))
	got := FromNodeClaim(nc)
	want := &cluster.Claim{
		Name: "default-abc", NodePool: "default", NodeClass: "default", Created: t0, Decision: "d1", Index: 2,
		Labels: nc.Labels, Annotations: nc.Annotations, Requests: resources.List{"cpu": 5150},
		Taints: nc.Spec.Taints, StartupTaints: nc.Spec.StartupTaints,
		InstanceType: "c5a.2xlarge", Zone: "ap-northeast-2a", CapacityType: "on-demand", ImageID: "ami-1", ProviderID: providerID,
		Price: 344_000_000, Capacity: resources.List{"cpu": 8000}, Allocatable: resources.List{"cpu": 7910},
		Conditions: cluster.Conditions{Launched: true, LaunchedAt: t0.Add(time.Second)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatAClaimAsksForIsNotWhatWasLaunched(t *testing.T) {
	got := FromNodeClaim(nodeClaim())
	if got.InstanceType+got.Zone+got.CapacityType != "" {
		t.Errorf("got %+v", got)
	}
}

func TestAFailedLaunchIsRead(t *testing.T) {
	nc := nodeClaim()
	SetCondition(nc, karpv1.ConditionTypeLaunched, metav1.ConditionFalse, "InsufficientCapacity", "none left", t0)
	got := FromNodeClaim(nc)
	if got.Conditions != (cluster.Conditions{LaunchFailed: "InsufficientCapacity: none left"}) {
		t.Errorf("got %+v", got)
	}
}

func TestAnnotationsThatDoNotParseCountAsMissing(t *testing.T) {
	for _, value := range []string{"x", "", "99999999999999999999999", "-1"} {
		nc := nodeClaim()
		nc.Annotations[PriceAnnotation] = value
		if got := FromNodeClaim(nc); got.Price != 0 {
			t.Errorf("price %q is read as %s", value, got.Price)
		}
		nc.Annotations[cluster.IndexAnnotation] = "x"
		if got := FromNodeClaim(nc); got.Index != 0 {
			t.Errorf("index is %d", got.Index)
		}
	}
}

func TestReadyFollowsTheThreeConditions(t *testing.T) {
	nc := nodeClaim()
	var got []string
	for i, kind := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized, karpv1.ConditionTypeInitialized} {
		SetCondition(nc, kind, metav1.ConditionTrue, "", "", t0.Add(time.Duration(i)*time.Second))
		for _, c := range nc.Status.Conditions {
			if c.Type == "Ready" {
				got = append(got, string(c.Status)+" "+c.Reason+" "+c.LastTransitionTime.UTC().Format(time.TimeOnly))
			}
		}
	}
	want := []string{"Unknown ReconcilingDependents 12:00:00", "Unknown ReconcilingDependents 12:00:00", "True Ready 12:00:02", "True Ready 12:00:02"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRegistrationGivesTheNodeWhatTheClaimSays(t *testing.T) {
	tests := []struct {
		name     string
		own      string
		wantSync []corev1.Taint
	}{
		{"taints are added", "false", []corev1.Taint{taint("cni=x:NoSchedule"), taint("team=a:NoSchedule")}},
		{"taints stay when the kubelet registered with them", "true", []corev1.Taint{taint("cni=x:NoSchedule")}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			nc := nodeClaim()
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-1", Labels: map[string]string{"team": "b", karpv1.NodeDoNotSyncTaintsLabelKey: tc.own}}}
			node.Spec.Taints = []corev1.Taint{karpv1.UnregisteredNoExecuteTaint, taint("cni=x:NoSchedule")}
			SyncRegistered(node, nc)
			SyncRegistered(node, nc)
			SyncInitialized(node)
			labels := merged(nc.Labels, map[string]string{karpv1.NodeDoNotSyncTaintsLabelKey: tc.own, karpv1.NodeRegisteredLabelKey: "true", karpv1.NodeInitializedLabelKey: "true"})
			want := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{
					Name: "ip-1", Labels: labels, Annotations: nc.Annotations, Finalizers: []string{karpv1.TerminationFinalizer},
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "default-abc", UID: "u1", BlockOwnerDeletion: new(true)}},
				},
				Spec: corev1.NodeSpec{Taints: tc.wantSync},
			}
			if diff := cmp.Diff(want, node); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
