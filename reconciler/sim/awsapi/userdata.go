package awsapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"slices"
	"strings"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"
)

// bootstrap is what user data makes a node of.
type bootstrap struct {
	labels  map[string]string
	taints  []corev1.Taint
	kubelet *ec2v1.KubeletConfiguration
	raid0   bool
}

// nodeConfig is the part of nodeadm's NodeConfig that makes a difference here
// (https://awslabs.github.io/amazon-eks-ami/nodeadm).
type nodeConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Cluster struct {
			Name                 string `json:"name"`
			APIServerEndpoint    string `json:"apiServerEndpoint"`
			CertificateAuthority string `json:"certificateAuthority"`
			CIDR                 string `json:"cidr"`
		} `json:"cluster"`
		Kubelet struct {
			Config json.RawMessage `json:"config"`
			Flags  []string        `json:"flags"`
		} `json:"kubelet"`
		Instance struct {
			LocalStorage struct {
				Strategy string `json:"strategy"`
			} `json:"localStorage"`
		} `json:"instance"`
	} `json:"spec"`
}

// readUserData is what an image of the family makes of the user data. The
// error is why no node joins: what the console of the instance would tell.
// An image that knows nothing of EKS, and user data that is not of the
// family's form, is taken to be made by somebody who does the rest: the node
// then registers with the taint that it is unregistered.
func readUserData(family, cluster string, raw []byte) (bootstrap, error) {
	switch {
	case family == "al2023" && isMIME(raw):
		return readMIME(cluster, raw)
	case family == "bottlerocket" && len(bytes.TrimSpace(raw)) > 0:
		return readTOML(cluster, raw)
	}
	return bootstrap{taints: []corev1.Taint{karpv1.UnregisteredNoExecuteTaint}}, nil
}

func isMIME(raw []byte) bool {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	return err == nil && strings.HasPrefix(m.Header.Get("Content-Type"), "multipart/")
}

// readMIME reads the NodeConfigs of a MIME message. As with nodeadm fields of a
// later one win, and flags of the kubelet come together.
func readMIME(cluster string, raw []byte) (bootstrap, error) {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return bootstrap{}, fmt.Errorf("user data: %w", err)
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return bootstrap{}, fmt.Errorf("user data: content type: %w", err)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	merged := map[string]any{}
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return bootstrap{}, fmt.Errorf("user data: %w", err)
		}
		if kind, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")); kind != "application/node.eks.aws" {
			continue
		}
		body, err := io.ReadAll(part)
		if err != nil {
			return bootstrap{}, fmt.Errorf("user data: %w", err)
		}
		var next map[string]any
		if err := yaml.Unmarshal(body, &next); err != nil {
			return bootstrap{}, fmt.Errorf("user data: NodeConfig: %w", err)
		}
		merge(merged, next)
	}
	whole, err := json.Marshal(merged)
	var n nodeConfig
	if err == nil {
		err = json.Unmarshal(whole, &n)
	}
	if err != nil {
		return bootstrap{}, fmt.Errorf("user data: NodeConfig: %w", err)
	}
	return n.bootstrap(cluster)
}

// merge puts one NodeConfig over another.
func merge(base, over map[string]any) {
	for k, v := range over {
		under, both := base[k].(map[string]any)
		if m, ok := v.(map[string]any); ok && both {
			merge(under, m)
			continue
		}
		if list, ok := v.([]any); ok && k == "flags" {
			before, _ := base[k].([]any)
			v = append(before, list...)
		}
		base[k] = v
	}
}

func (n *nodeConfig) bootstrap(cluster string) (bootstrap, error) {
	c := n.Spec.Cluster
	switch {
	case n.Kind != "NodeConfig" || n.APIVersion != "node.eks.aws/v1alpha1":
		return bootstrap{}, fmt.Errorf("user data: there is no NodeConfig of node.eks.aws/v1alpha1")
	case c.Name != cluster:
		return bootstrap{}, fmt.Errorf("user data: the node asks to join cluster %q, and there is only %q", c.Name, cluster)
	case c.APIServerEndpoint == "" || c.CertificateAuthority == "" || c.CIDR == "":
		return bootstrap{}, fmt.Errorf("user data: NodeConfig needs apiServerEndpoint, certificateAuthority and cidr of the cluster")
	}
	out := bootstrap{raid0: n.Spec.Instance.LocalStorage.Strategy == "RAID0", labels: map[string]string{}}
	var config struct {
		ec2v1.KubeletConfiguration `json:",inline"`
		RegisterWithTaints         []corev1.Taint `json:"registerWithTaints"`
	}
	if len(n.Spec.Kubelet.Config) > 0 {
		if err := json.Unmarshal(n.Spec.Kubelet.Config, &config); err != nil {
			return bootstrap{}, fmt.Errorf("user data: kubelet configuration: %w", err)
		}
	}
	out.kubelet, out.taints = &config.KubeletConfiguration, config.RegisterWithTaints
	for _, flag := range n.Spec.Kubelet.Flags {
		list, ok := strings.CutPrefix(flag, "--node-labels=")
		if !ok {
			continue
		}
		for pair := range strings.SplitSeq(strings.Trim(list, `"'`), ",") {
			k, v, _ := strings.Cut(pair, "=")
			out.labels[k] = v
		}
	}
	return out, checkLabels(out.labels)
}

// settings are the part of Bottlerocket's settings that makes a difference
// here (https://bottlerocket.dev/en/os/latest/#/api/settings/kubernetes).
type settings struct {
	Settings struct {
		Kubernetes struct {
			APIServer          string              `toml:"api-server"`
			ClusterCertificate string              `toml:"cluster-certificate"`
			ClusterName        string              `toml:"cluster-name"`
			MaxPods            *int32              `toml:"max-pods"`
			NodeLabels         map[string]string   `toml:"node-labels"`
			NodeTaints         map[string][]string `toml:"node-taints"`
			KubeReserved       map[string]string   `toml:"kube-reserved"`
			SystemReserved     map[string]string   `toml:"system-reserved"`
			EvictionHard       map[string]string   `toml:"eviction-hard"`
		} `toml:"kubernetes"`
		BootstrapCommands map[string]struct {
			Commands [][]string `toml:"commands"`
		} `toml:"bootstrap-commands"`
	} `toml:"settings"`
}

func readTOML(cluster string, raw []byte) (bootstrap, error) {
	var s settings
	if err := toml.Unmarshal(raw, &s); err != nil {
		return bootstrap{}, fmt.Errorf("user data: settings: %w", err)
	}
	k := s.Settings.Kubernetes
	switch {
	case k.ClusterName != cluster:
		return bootstrap{}, fmt.Errorf("user data: the node asks to join cluster %q, and there is only %q", k.ClusterName, cluster)
	case k.APIServer == "" || k.ClusterCertificate == "":
		return bootstrap{}, fmt.Errorf("user data: settings.kubernetes needs api-server and cluster-certificate")
	}
	out := bootstrap{labels: k.NodeLabels, kubelet: &ec2v1.KubeletConfiguration{
		MaxPods: k.MaxPods, KubeReserved: k.KubeReserved, SystemReserved: k.SystemReserved, EvictionHard: k.EvictionHard,
	}}
	for _, b := range s.Settings.BootstrapCommands {
		out.raid0 = out.raid0 || slices.ContainsFunc(b.Commands, func(c []string) bool { return slices.Contains(c, "ephemeral-storage") })
	}
	for key, list := range k.NodeTaints {
		for _, t := range list {
			value, effect, _ := strings.Cut(t, ":")
			out.taints = append(out.taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	}
	slices.SortFunc(out.taints, func(a, b corev1.Taint) int { return strings.Compare(a.ToString(), b.ToString()) })
	return out, checkLabels(out.labels)
}
