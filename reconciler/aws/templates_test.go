package aws

import (
	"strings"
	"testing"
)

func TestOnlyTemplatesThatReeveMadeForTheClusterAreItsToDelete(t *testing.T) {
	ours := "karpenter.k8s.aws/" + strings.Repeat("0f", 16)
	tests := []struct {
		name, template, cluster, class string
		want                           bool
	}{
		{"one that an earlier process made", ours, "prod", "default", true},
		{"one of a cluster whose name begins alike", ours, "prod-2", "default", false},
		{"one without a class", ours, "prod", "", false},
		{"one that Karpenter made for the same cluster", "karpenter.k8s.aws/9823749823749823749", "prod", "default", false},
		{"one that a person made", "base", "prod", "default", false},
	}
	c := &Cloud{options: Options{Cluster: "prod"}}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tags := map[string]string{"eks:eks-cluster-name": tc.cluster}
			if tc.class != "" {
				tags["karpenter.k8s.aws/ec2nodeclass"] = tc.class
			}
			if got := c.ownsTemplate(tc.template, tags); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
