// Package bootstrap makes user data: what the image of a node runs when it
// starts, so that the node joins the cluster. It links no client of AWS.
package bootstrap

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// maxUserData is what EC2 takes, in bytes before base64.
const maxUserData = 16 << 10

// codeUserDataTooBig is the reason that Karpenter gives; EC2 has none.
const codeUserDataTooBig = "UserDataSizeLimitExceeded"

// ClusterInfo is what a node has to know to join the cluster.
type ClusterInfo struct {
	// Endpoint is the URL of the API server.
	Endpoint string
	// CA is the certificate of its authority, in base64.
	CA string
	// CIDR is the range of the addresses of services, IPv4 or IPv6.
	CIDR string
	// Version is the Kubernetes version, such as "1.34".
	Version string
}

// Node is what the nodes of one launch template have in common.
type Node struct {
	// Class says which images there are and what the user wants of them.
	Class *ec2v1.EC2NodeClass
	// Template has the labels and taints that the nodes start with.
	Template *karpv1.NodeClaim
	// CapacityType is the value of Karpenter's label: "spot", "on-demand" or
	// "reserved".
	CapacityType string
	// MaxPods is how many pods the kubelet takes.
	MaxPods int64
}

// Bootstrap is what a node has to know when it starts.
type Bootstrap struct {
	// name of the cluster, and how to reach it.
	name    string
	cluster ClusterInfo
	class   *ec2v1.EC2NodeClass
	// labels and taints that the kubelet registers with.
	labels  map[string]string
	taints  []corev1.Taint
	maxPods int64
}

// New puts together what the nodes have to know to join the cluster of that
// name. It fails when a label of the template is not one that a kubelet starts
// with.
func New(cluster string, info ClusterInfo, node Node) (Bootstrap, error) {
	labels, err := kubeletLabels(node.Template.Labels)
	if err != nil {
		return Bootstrap{}, err
	}
	labels[karpv1.CapacityTypeLabelKey] = node.CapacityType
	labels[karpv1.NodeDoNotSyncTaintsLabelKey] = "true"
	out := Bootstrap{name: cluster, cluster: info, class: node.Class, labels: labels, maxPods: node.MaxPods}
	spec := node.Template.Spec
	for _, list := range [][]corev1.Taint{spec.Taints, spec.StartupTaints, {karpv1.UnregisteredNoExecuteTaint}} {
		for _, t := range list {
			out.taints = append(out.taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	return out, nil
}

// kubeletLabels are those that a kubelet may give itself. It does not start with
// others of Kubernetes' own domains; these come with registration.
func kubeletLabels(labels map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, k := range sortedKeys(labels) {
		if problems := append(validation.IsQualifiedName(k), validation.IsValidLabelValue(labels[k])...); len(problems) > 0 {
			return nil, fmt.Errorf("label %q=%q of the node: %s: correct the labels of the NodePool's template", k, labels[k], problems[0])
		}
		if mayLabelItself(k) {
			out[k] = labels[k]
		}
	}
	return out, nil
}

// mayLabelItself says whether the kubelet takes the label in --node-labels
// (Kubernetes, pkg/kubelet/apis/well_known_labels.go).
func mayLabelItself(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok || !within(domain, "kubernetes.io") && !within(domain, "k8s.io") {
		return true
	}
	return within(domain, "kubelet.kubernetes.io") || within(domain, "node.kubernetes.io")
}

func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

// UserData is what the image of the family runs when the node starts, in
// base64, or "" for none. It fails when the family is unknown or not supported,
// when the user data of the class is not what the family takes, when too little
// of the cluster is known, and when the result is more than EC2 takes.
func (b Bootstrap) UserData() (string, error) {
	family, err := FamilyOf(b.class)
	if err != nil {
		return "", err
	}
	user := ""
	if b.class.Spec.UserData != nil {
		user = *b.class.Spec.UserData
	}
	if err := fits(user); err != nil {
		return "", err
	}
	var data string
	switch family {
	case ec2v1.AMIFamilyCustom:
		data = user
	case ec2v1.AMIFamilyAL2023:
		data, err = b.nodeadm(user)
	case ec2v1.AMIFamilyBottlerocket:
		data, err = b.bottlerocket(user)
	default:
		err = fmt.Errorf("images of family %s are not supported yet: use AL2023, Bottlerocket, or Custom with user data of your own", family)
	}
	if err != nil {
		return "", fmt.Errorf("user data: %w", err)
	}
	if err := fits(data); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString([]byte(data)), nil
}

func fits(data string) error {
	if len(data) > maxUserData {
		return fmt.Errorf("%s: user data has %d bytes and EC2 takes %d: shorten spec.userData, for example by fetching a script from it", codeUserDataTooBig, len(data), maxUserData)
	}
	return nil
}

// families of images, as spec.amiFamily names them. The API's own AMIFamily method ends the
// process when an alias is malformed.
var families = []string{
	ec2v1.AMIFamilyAL2, ec2v1.AMIFamilyAL2023, ec2v1.AMIFamilyBottlerocket, ec2v1.AMIFamilyCustom,
	ec2v1.AMIFamilyWindows2019, ec2v1.AMIFamilyWindows2022, ec2v1.AMIFamilyWindows2025,
}

// FamilyOf is the family of the class's images, from spec.amiFamily or else the
// alias; Custom when it says neither. It fails when either names a family that
// is unknown.
func FamilyOf(class *ec2v1.EC2NodeClass) (string, error) {
	if f := class.Spec.AMIFamily; f != nil {
		for _, known := range families {
			if known == *f {
				return known, nil
			}
		}
		return "", fmt.Errorf("spec.amiFamily: %q is unknown: use one of %s", *f, strings.Join(families, ", "))
	}
	for i, term := range class.Spec.AMISelectorTerms {
		if term.Alias == "" {
			continue
		}
		name, _, _ := strings.Cut(term.Alias, "@")
		for _, known := range families {
			if known != ec2v1.AMIFamilyCustom && strings.ToLower(known) == name {
				return known, nil
			}
		}
		return "", fmt.Errorf("spec.amiSelectorTerms[%d].alias: family of %q is unknown: write one such as al2023@v20260318", i, term.Alias)
	}
	return ec2v1.AMIFamilyCustom, nil
}

// clusterDNS are the addresses of the DNS service: as the class says, or the
// tenth of the range of services, where EKS puts it.
func (b Bootstrap) clusterDNS() ([]string, error) {
	if k := b.class.Spec.Kubelet; k != nil && len(k.ClusterDNS) > 0 {
		return k.ClusterDNS, nil
	}
	prefix, err := netip.ParsePrefix(b.cluster.CIDR)
	if err != nil {
		return nil, fmt.Errorf("range of services of the cluster: %w: EKS has to describe it, or set it in the configuration", err)
	}
	addr := prefix.Masked().Addr()
	for range 10 {
		addr = addr.Next()
	}
	if !prefix.Contains(addr) {
		return nil, fmt.Errorf("range of services of the cluster: %s has no tenth address, where EKS puts the DNS service: set spec.kubelet.clusterDNS", prefix)
	}
	return []string{addr.String()}, nil
}

func (b Bootstrap) raid0() bool {
	p := b.class.Spec.InstanceStorePolicy
	return p != nil && *p == ec2v1.InstanceStorePolicyRAID0
}

// labelFlag is the value of --node-labels.
func (b Bootstrap) labelFlag() string {
	parts := make([]string, 0, len(b.labels))
	for _, k := range sortedKeys(b.labels) {
		parts = append(parts, k+"="+b.labels[k])
	}
	return strings.Join(parts, ",")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
