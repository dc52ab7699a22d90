package awsapi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

const bottlerocketUserData = `
[settings.kubernetes]
api-server = "https://myeks.example"
cluster-certificate = "Y2E="
cluster-name = "myeks"
max-pods = 42

[settings.kubernetes.node-labels]
"karpenter.sh/nodepool" = "default"

[settings.kubernetes.node-taints]
"karpenter.sh/unregistered" = [":NoExecute"]
team = ["a:NoSchedule", "b:NoSchedule"]

[settings.kubernetes.eviction-hard]
"memory.available" = "12%"

[settings.bootstrap-commands.000-mount-instance-storage]
commands = [["apiclient", "ephemeral-storage", "init"]]
`

func taint(s string) corev1.Taint {
	key, effect, _ := strings.Cut(s, ":")
	key, value, _ := strings.Cut(key, "=")
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
}

func TestUserDataMakesTheNode(t *testing.T) {
	unregistered := taint("karpenter.sh/unregistered:NoExecute")
	raid := strings.Replace(nodeUserData, "  kubelet:", "  instance: {localStorage: {strategy: RAID0}}\n  kubelet:", 1)
	own := strings.Replace(nodeUserData, "--//\nContent-Type: application/node.eks.aws", `--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: mine}
  kubelet:
    config: {maxPods: 5, evictionHard: {memory.available: 5%}}
    flags: [--v=2, --node-labels=team=a]
--//
Content-Type: application/node.eks.aws`, 1)
	tests := []struct {
		name, family, data string
		want               bootstrap
	}{
		{"AL2023 with a NodeConfig of the user's before", "al2023", own, bootstrap{
			labels:  map[string]string{"team": "a", "karpenter.sh/capacity-type": "on-demand", "karpenter.sh/nodepool": "default", "karpenter.sh/do-not-sync-taints": "true"},
			taints:  []corev1.Taint{taint("team=a:NoSchedule"), taint("cilium:NoExecute"), unregistered},
			kubelet: &ec2v1.KubeletConfiguration{MaxPods: new(int32(20)), ClusterDNS: []string{"10.100.0.10"}, EvictionHard: map[string]string{"memory.available": "5%"}},
		}},
		{"AL2023 with a NodeConfig", "al2023", raid, bootstrap{
			labels:  map[string]string{"karpenter.sh/capacity-type": "on-demand", "karpenter.sh/nodepool": "default", "karpenter.sh/do-not-sync-taints": "true"},
			taints:  []corev1.Taint{taint("team=a:NoSchedule"), taint("cilium:NoExecute"), unregistered},
			kubelet: &ec2v1.KubeletConfiguration{MaxPods: new(int32(20)), ClusterDNS: []string{"10.100.0.10"}}, raid0: true,
		}},
		{"Bottlerocket with settings", "bottlerocket", bottlerocketUserData, bootstrap{
			labels:  map[string]string{"karpenter.sh/nodepool": "default"},
			taints:  []corev1.Taint{unregistered, taint("team=a:NoSchedule"), taint("team=b:NoSchedule")},
			kubelet: &ec2v1.KubeletConfiguration{MaxPods: new(int32(42)), EvictionHard: map[string]string{"memory.available": "12%"}}, raid0: true,
		}},
		{"AL2023 with a script of somebody's", "al2023", "#!/bin/bash\n/opt/join", bootstrap{taints: []corev1.Taint{unregistered}}},
		{"an image of somebody's", "", nodeUserData, bootstrap{taints: []corev1.Taint{unregistered}}},
		{"Bottlerocket without user data", "bottlerocket", "", bootstrap{taints: []corev1.Taint{unregistered}}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := readUserData(tc.family, "myeks", []byte(tc.data))
			check(t, err)
			if diff := cmp.Diff(tc.want, got, everything); diff != "" {
				t.Errorf("bootstrap (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUserDataThatMakesNoNode(t *testing.T) {
	edit := func(old, new string) string { return strings.Replace(nodeUserData, old, new, 1) }
	bottlerocket := func(old, new string) string { return strings.Replace(bottlerocketUserData, old, new, 1) }
	tests := []struct{ name, family, data, want string }{
		{"another cluster's", "al2023", edit("name: myeks", "name: other"), `cluster "other"`},
		{"without the cluster's addresses", "al2023", edit("cidr: 10.100.0.0/16", ""), "cidr"},
		{"without a NodeConfig", "al2023", edit("application/node.eks.aws", "text/plain"), "there is no NodeConfig"},
		{"with a NodeConfig that is no YAML", "al2023", edit("kind: NodeConfig", "kind: ]"), "NodeConfig: "},
		{"with a kubelet configuration of another form", "al2023", edit("maxPods: 20", "maxPods: many"), "kubelet configuration"},
		{"cut off", "al2023", nodeUserData[:len(nodeUserData)-40], "user data: "},
		{"with a label that a kubelet may not set", "al2023", edit("karpenter.sh/nodepool", "node-restriction.kubernetes.io/x"), `"node-restriction.kubernetes.io/x"`},
		{"Bottlerocket's for another cluster", "bottlerocket", bottlerocket(`"myeks"`, `"other"`), `cluster "other"`},
		{"Bottlerocket's without an address", "bottlerocket", bottlerocket(`api-server`, `api`), "api-server"},
		{"Bottlerocket's that is no TOML", "bottlerocket", "= x", "settings: "},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := readUserData(tc.family, "myeks", []byte(tc.data))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %s", err, tc.want)
			}
		})
	}
}

func TestLabelsThatAKubeletMaySetOnItself(t *testing.T) {
	check(t, checkLabels(map[string]string{
		"team": "a", "node.kubernetes.io/lifecycle": "spot", "x.kubelet.kubernetes.io/y": "z", "topology.kubernetes.io/zone": "a", "karpenter.k8s.aws/instance-size": "large",
	}))
}
