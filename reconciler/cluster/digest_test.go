package cluster

import (
	"testing"
	"time"
)

func digestible() *Snapshot {
	at := time.Date(2026, 4, 6, 12, 0, 0, 0, time.UTC)
	shape := (&Shape{Namespace: "default", Labels: map[string]string{"app": "a", "tier": "b"}}).Sealed()
	return (&Snapshot{
		Time:        at,
		Nodes:       []*Node{{Name: "n", Ready: true, Pods: []*Pod{{Namespace: "default", Name: "bound", Shape: shape}}, Nominated: []string{"default/p"}}},
		Pending:     []*Pod{{Namespace: "default", Name: "p", UID: "1", Created: at, Shape: shape}},
		DaemonSets:  []*DaemonSet{{Namespace: "kube-system", Name: "d", Shape: shape}},
		NodeClasses: []*NodeClassStatus{{Name: "default"}},
		Unavailable: []Unavailable{{InstanceType: "m5.large", Zone: "a", CapacityType: "spot", Until: at}},
		Recent:      []Recent{{ID: "x", Time: at}},
	}).Seal()
}

func TestADigestIsOfEverythingInTheSnapshot(t *testing.T) {
	base := digestible().Digest()
	if again := digestible().Digest(); again != base {
		t.Fatalf("the same snapshot has the digests %s and %s", base, again)
	}
	other := (&Shape{Namespace: "default", Labels: map[string]string{"app": "other"}}).Sealed()
	changes := map[string]func(*Snapshot){
		"the time":                   func(s *Snapshot) { s.Time = s.Time.Add(time.Millisecond) },
		"a node":                     func(s *Snapshot) { s.Nodes[0].Ready = false },
		"a nomination":               func(s *Snapshot) { s.Nodes[0].Nominated = nil },
		"the shape of a bound pod":   func(s *Snapshot) { s.Nodes[0].Pods[0].Shape = other },
		"a pod bound that was not":   func(s *Snapshot) { s.Nodes[0].Pods, s.Pending = append(s.Nodes[0].Pods, s.Pending...), nil },
		"the shape of a pending pod": func(s *Snapshot) { s.Pending[0].Shape = other },
		"the start of a pod":         func(s *Snapshot) { s.Pending[0].Started = s.Time },
		"a daemonset":                func(s *Snapshot) { s.DaemonSets[0].Shape = other },
		"the status of a class":      func(s *Snapshot) { s.NodeClasses[0].Status.InstanceProfile = "p" },
		"an unavailable offering":    func(s *Snapshot) { s.Unavailable = nil },
		"a recent decision":          func(s *Snapshot) { s.Recent[0].Repeats = 1 },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			s := digestible()
			change(s)
			if s.Digest() == base {
				t.Error("the digest is the same")
			}
		})
	}
}

func TestAnEmptyListHasTheDigestOfNone(t *testing.T) {
	none := (&Snapshot{}).Seal().Digest()
	empty := (&Snapshot{NodeClasses: []*NodeClassStatus{}, Unavailable: []Unavailable{}, Recent: []Recent{}}).Seal().Digest()
	if none != empty {
		t.Error("a snapshot that is read back has another digest")
	}
}
