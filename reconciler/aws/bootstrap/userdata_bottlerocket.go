package bootstrap

import (
	"bytes"
	"fmt"
	"strings"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	toml "github.com/pelletier/go-toml/v2"
)

// bottlerocket is user data for Bottlerocket: the user's settings with those
// that join the node to the cluster, which win (bottlerocket.dev,
// settings.kubernetes).
func (b Bootstrap) bottlerocket(user string) (string, error) {
	if b.cluster.Endpoint == "" || b.cluster.CA == "" {
		return "", fmt.Errorf("the endpoint or the authority of cluster %s is not known: EKS has to describe it, or set both in the configuration", b.name)
	}
	doc := map[string]any{}
	if err := toml.Unmarshal([]byte(user), &doc); err != nil {
		return "", fmt.Errorf("spec.userData: %w: Bottlerocket takes TOML", err)
	}
	settings, err := table(doc, "settings")
	if err != nil {
		return "", err
	}
	kubernetes, err := table(settings, "kubernetes")
	if err != nil {
		return "", err
	}
	if err := b.kubernetesSettings(kubernetes); err != nil {
		return "", err
	}
	if b.raid0() {
		commands, err := table(settings, "bootstrap-commands")
		if err != nil {
			return "", err
		}
		commands["000-mount-instance-storage"] = mountInstanceStorage()
	}
	var out bytes.Buffer
	if err := toml.NewEncoder(&out).Encode(doc); err != nil {
		return "", fmt.Errorf("settings: %w", err)
	}
	return out.String(), nil
}

// table is the table of that name, made if it is not there.
func table(in map[string]any, name string) (map[string]any, error) {
	switch have := in[name].(type) {
	case nil:
		out := map[string]any{}
		in[name] = out
		return out, nil
	case map[string]any:
		return have, nil
	}
	return nil, fmt.Errorf("spec.userData: %s is not a table: write [%s]", name, name)
}

func (b Bootstrap) kubernetesSettings(k map[string]any) error {
	dns, err := b.clusterDNS()
	if err != nil {
		return err
	}
	k["api-server"] = b.cluster.Endpoint
	k["cluster-certificate"] = b.cluster.CA
	k["cluster-name"] = b.name
	k["cluster-dns-ip"] = dns[0]
	if len(dns) > 1 {
		k["cluster-dns-ip"] = dns
	}
	k["max-pods"] = b.maxPods
	labels, err := table(k, "node-labels")
	if err != nil {
		return err
	}
	for key, value := range b.labels {
		labels[key] = value
	}
	taints, err := table(k, "node-taints")
	if err != nil {
		return err
	}
	ours := map[string][]string{}
	for _, t := range b.taints {
		ours[t.Key] = append(ours[t.Key], t.Value+":"+string(t.Effect))
	}
	for key, values := range ours {
		taints[key] = values
	}
	kubeletSettings(k, b.class.Spec.Kubelet)
	return nil
}

// kubeletSettings are those of spec.kubelet that Bottlerocket has; it knows no
// podsPerCore.
func kubeletSettings(k map[string]any, spec *ec2v1.KubeletConfiguration) {
	if spec == nil {
		return
	}
	for name, values := range map[string]map[string]string{
		"system-reserved": spec.SystemReserved, "kube-reserved": spec.KubeReserved,
		"eviction-hard": spec.EvictionHard, "eviction-soft": spec.EvictionSoft, "eviction-soft-grace-period": periods(spec),
	} {
		if len(values) > 0 {
			k[name] = values
		}
	}
	if v := spec.EvictionMaxPodGracePeriod; v != nil {
		k["eviction-max-pod-grace-period"] = *v
	}
	if v := spec.ImageGCHighThresholdPercent; v != nil {
		k["image-gc-high-threshold-percent"] = *v
	}
	if v := spec.ImageGCLowThresholdPercent; v != nil {
		k["image-gc-low-threshold-percent"] = *v
	}
	if v := spec.CPUCFSQuota; v != nil {
		k["cpu-cfs-quota-enforced"] = *v
	}
}

func periods(spec *ec2v1.KubeletConfiguration) map[string]string {
	out := map[string]string{}
	for signal, d := range spec.EvictionSoftGracePeriod {
		out[signal] = d.Duration.String()
	}
	return out
}

// mountInstanceStorage puts what grows on the local disks. The directories are
// named because releases before 1.46 need it.
func mountInstanceStorage() map[string]any {
	return map[string]any{
		"commands": [][]string{
			strings.Fields("apiclient ephemeral-storage init"),
			strings.Fields("apiclient ephemeral-storage bind --dirs /var/lib/containerd /var/lib/kubelet /var/log/pods"),
		},
		"mode":      "always",
		"essential": true,
	}
}
