package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestPodsThatNeedRoomElsewhere(t *testing.T) {
	tests := []struct {
		name   string
		owner  string
		ending bool
		want   bool
	}{
		{"a pod of a ReplicaSet", "ReplicaSet", false, true},
		{"one that is about to end", "ReplicaSet", true, false},
		{"a pod without owner", "", false, true},
		{"a pod of a StatefulSet", "StatefulSet", false, true},
		{"one that is about to end is replaced afterwards", "StatefulSet", true, true},
		{"a daemon", "DaemonSet", false, false},
		{"a static pod", "Node", false, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := &Pod{Terminating: tc.ending, Shape: &Shape{Owner: Owner{Kind: tc.owner}}}
			if got := p.Reschedulable(); got != tc.want {
				t.Errorf("got %v", got)
			}
			if p.Daemon() != (tc.owner == "DaemonSet") || p.Static() != (tc.owner == "Node") {
				t.Errorf("daemon %v, static %v", p.Daemon(), p.Static())
			}
		})
	}
}

// Case C11 of the disruption semantics.
func TestFormsOfDoNotDisrupt(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name    string
		value   string
		age     time.Duration
		ending  bool
		active  bool
		problem string
	}{
		{"true protects", "true", time.Hour, false, true, ""},
		{"a duration that has not passed protects", "10m", 5 * time.Minute, false, true, ""},
		{"a duration that has passed does not", "10m", 11 * time.Minute, false, false, ""},
		{"the end of the duration does not", "10m", 10 * time.Minute, false, false, ""},
		{"a pod that has not started is protected", "10m", 0, false, true, ""},
		{"a word protects nothing", "forever", time.Hour, false, false, `"forever" protects nothing`},
		{"false protects nothing", "false", time.Hour, false, false, `"false" protects nothing`},
		{"no time protects nothing", "0s", time.Hour, false, false, `"0s" protects nothing`},
		{"a pod that is about to end is not protected", "true", time.Hour, true, false, ""},
		{"nothing", "", time.Hour, false, false, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p := &Pod{Terminating: tc.ending, Shape: &Shape{}}
			if tc.value != "" {
				p.Shape.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": tc.value}
			}
			if tc.age > 0 {
				p.Started = now.Add(-tc.age)
			}
			active, problem := p.DoNotDisrupt(now)
			if active != tc.active || (problem == "") != (tc.problem == "") || !strings.Contains(problem, tc.problem) {
				t.Errorf("got %v %q, want %v %q", active, problem, tc.active, tc.problem)
			}
		})
	}
}

func TestTolerations(t *testing.T) {
	taint := corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}
	tests := []struct {
		name string
		t    corev1.Toleration
		want bool
	}{
		{"everything", corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		{"the key", corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists}, true},
		{"the key by its value", corev1.Toleration{Key: taint.Key}, true},
		{"another value", corev1.Toleration{Key: taint.Key, Value: "x"}, false},
		{"another effect", corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
		{"another key", corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists}, false},
		{"a comparison", corev1.Toleration{Key: taint.Key, Operator: "Gt", Value: "1"}, false},
	}
	for _, tc := range tests {
		p := &Pod{Shape: &Shape{Tolerations: []corev1.Toleration{{Key: "other"}, tc.t}}}
		if got := p.Tolerates(taint); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
	if (&Pod{Shape: &Shape{PriorityClass: "high"}}).Critical() || !(&Pod{Shape: &Shape{PriorityClass: "system-node-critical"}}).Critical() {
		t.Error("critical pods are those of the two classes")
	}
}
