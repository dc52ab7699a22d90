package bootstrap

import (
	"fmt"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// nodeConfig is what nodeadm reads, as far as it is written here
// (awslabs/amazon-eks-ami, nodeadm/doc/api.md).
type nodeConfig struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Spec       nodeConfigSpec `json:"spec"`
}

type nodeConfigSpec struct {
	Cluster  nodeConfigCluster   `json:"cluster"`
	Kubelet  nodeConfigKubelet   `json:"kubelet"`
	Instance *nodeConfigInstance `json:"instance,omitempty"`
}

type nodeConfigCluster struct {
	Name                 string `json:"name"`
	APIServerEndpoint    string `json:"apiServerEndpoint"`
	CertificateAuthority string `json:"certificateAuthority"`
	CIDR                 string `json:"cidr"`
}

type nodeConfigKubelet struct {
	Config kubeletConfig `json:"config"`
	Flags  []string      `json:"flags"`
}

type nodeConfigInstance struct {
	LocalStorage nodeConfigStorage `json:"localStorage"`
}

type nodeConfigStorage struct {
	Strategy string `json:"strategy"`
}

// kubeletConfig is spec.kubelet, which has the names of the kubelet's own
// configuration, with what follows from the node. The fields here win over the
// embedded ones of the same name.
type kubeletConfig struct {
	ec2v1.KubeletConfiguration
	ClusterDNS         []string       `json:"clusterDNS"`
	MaxPods            int64          `json:"maxPods"`
	RegisterWithTaints []corev1.Taint `json:"registerWithTaints"`
}

// nodeadm is user data for AL2023: the user's parts, and a last one that joins
// the node to the cluster. nodeadm lays later parts over earlier ones.
func (b Bootstrap) nodeadm(user string) (string, error) {
	parts, err := userParts(user)
	if err != nil {
		return "", err
	}
	config, err := b.nodeConfig()
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("NodeConfig: %w", err)
	}
	return joinParts(append(parts, newPart(nodeConfigType, "# How this node joins the cluster, written by Reeve.\n"+string(text)))), nil
}

func (b Bootstrap) nodeConfig() (nodeConfig, error) {
	if b.cluster.Endpoint == "" || b.cluster.CA == "" || b.cluster.CIDR == "" {
		return nodeConfig{}, fmt.Errorf("the endpoint, the authority or the range of services of cluster %s is not known: EKS has to describe it, or set all three in the configuration", b.name)
	}
	dns, err := b.clusterDNS()
	if err != nil {
		return nodeConfig{}, err
	}
	kubelet := kubeletConfig{ClusterDNS: dns, MaxPods: b.maxPods, RegisterWithTaints: b.taints}
	if b.class.Spec.Kubelet != nil {
		kubelet.KubeletConfiguration = *b.class.Spec.Kubelet
	}
	out := nodeConfig{APIVersion: "node.eks.aws/v1alpha1", Kind: "NodeConfig", Spec: nodeConfigSpec{
		Cluster: nodeConfigCluster{Name: b.name, APIServerEndpoint: b.cluster.Endpoint, CertificateAuthority: b.cluster.CA, CIDR: b.cluster.CIDR},
		Kubelet: nodeConfigKubelet{Config: kubelet, Flags: []string{fmt.Sprintf("--node-labels=%q", b.labelFlag())}},
	}}
	if b.raid0() {
		out.Spec.Instance = &nodeConfigInstance{LocalStorage: nodeConfigStorage{Strategy: string(ec2v1.InstanceStorePolicyRAID0)}}
	}
	return out, nil
}
