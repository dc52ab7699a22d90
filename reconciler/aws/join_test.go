package aws_test

import (
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/aws"
	"github.com/reeve-project/reeve/reconciler/resources"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// TestNodesJoinAsTheCatalogSaysTheyDo boots nodes from user data, as the image
// reads it, and compares them with what was planned.
func TestNodesJoinAsTheCatalogSaysTheyDo(t *testing.T) {
	tests := []struct {
		name, family, instanceType string
		edit                       func(*ec2v1.EC2NodeClassSpec)
	}{
		{"AL2023", "al2023", "m5.large", nil},
		{"AL2023 with a kubelet of its own", "al2023", "m5.large", func(s *ec2v1.EC2NodeClassSpec) {
			s.Kubelet = &ec2v1.KubeletConfiguration{MaxPods: new(int32(11)), SystemReserved: map[string]string{"memory": "300Mi"}, EvictionHard: map[string]string{"memory.available": "5%"}}
			s.UserData = new("#!/bin/sh\necho hello\n")
		}},
		{"AL2023 on local disks", "al2023", "m5d.large", func(s *ec2v1.EC2NodeClassSpec) { s.InstanceStorePolicy = new(ec2v1.InstanceStorePolicyRAID0) }},
		{"Bottlerocket", "bottlerocket", "m5.large", func(s *ec2v1.EC2NodeClassSpec) {
			s.Kubelet = &ec2v1.KubeletConfiguration{KubeReserved: map[string]string{"cpu": "200m"}}
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a := newAccount(t, func(o *awsapi.Options) { o.Images[0].Family = tc.family })
			req := a.request(t, 1, karpv1.CapacityTypeOnDemand, tc.instanceType)
			req.Class.Spec.AMISelectorTerms[0].Alias = tc.family + "@v1"
			if tc.edit != nil {
				tc.edit(&req.Class.Spec)
			}
			req.Template.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
			a.resolve(t, &req, tc.instanceType)
			out, err := a.cloud.Launch(ctx, req)
			check(t, err)
			check(t, a.world.Clock.Advance(2*time.Minute))
			in, _ := a.Instance(out.Instances[0].ID)
			if in.Trouble != "" {
				t.Fatalf("the node cannot join: %s", in.Trouble)
			}
			node, err := sim.Get[*corev1.Node](a.world.API, in.Node)
			check(t, err)
			if diff := cmp.Diff(req.Types[0].Allocatable, resources.From(node.Status.Allocatable)); diff != "" {
				t.Errorf("allocatable (-planned +node):\n%s", diff)
			}
			if node.Labels["team"] != "a" || node.Labels[karpv1.NodePoolLabelKey] != "default" || node.Labels[karpv1.NodeDoNotSyncTaintsLabelKey] != "true" || node.Labels["node-restriction.kubernetes.io/x"] != "" {
				t.Errorf("labels %v", node.Labels)
			}
			var taints []string
			for _, x := range node.Spec.Taints {
				taints = append(taints, x.ToString())
			}
			if diff := cmp.Diff([]string{"dedicated=x:NoSchedule", "karpenter.sh/unregistered:NoExecute"}, taints); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatTheOptionsDoNotSayEKSDoes(t *testing.T) {
	a := newAccount(t)
	cloud := a.newCloud(t, 1, func(o *aws.Options) { o.Info = aws.ClusterInfo{} })
	req := a.request(t, 1, karpv1.CapacityTypeOnDemand, "m5.large")
	for group := range 2 {
		_, err := cloud.Launch(ctx, next(req, group, 1))
		check(t, err)
	}
	if n := a.Calls()["DescribeCluster"]; n != 1 {
		t.Errorf("EKS was asked %d times: %v", n, a.Calls())
	}
	check(t, a.world.Clock.Advance(2*time.Minute))
	for _, in := range a.Instances() {
		if in.Trouble != "" {
			t.Errorf("the node cannot join: %s", in.Trouble)
		}
	}
}
