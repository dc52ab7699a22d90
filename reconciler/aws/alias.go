package aws

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// aliasFamilies are the families that an alias may name.
var aliasFamilies = []string{"al2", "al2023", "bottlerocket", "windows2019", "windows2022", "windows2025"}

// windowsBuilds are the builds of Windows Server by the family's name.
var windowsBuilds = map[string]string{
	"windows2019": ec2v1.Windows2019Build, "windows2022": ec2v1.Windows2022Build, "windows2025": ec2v1.Windows2025Build,
}

// reasonBadAlias is the reason of a class whose alias cannot be used.
const reasonBadAlias = "UnsupportedAlias"

// parameter is an SSM parameter that names an image, with what the image is
// for: it may be more than one thing.
type parameter struct {
	name     string
	variants []variant
}

// variant is what an image needs of the instance type, besides the
// architecture.
type variant []corev1.NodeSelectorRequirement

func exists(key string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists}
}

func absent(key string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpDoesNotExist}
}

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// The variants of EKS images (Karpenter, pkg/providers/amifamily/types.go).
var (
	standard = variant{absent(ec2v1.LabelInstanceGPUCount), absent(ec2v1.LabelInstanceAcceleratorCount)}
	nvidia   = variant{exists(ec2v1.LabelInstanceGPUCount)}
	neuron   = variant{exists(ec2v1.LabelInstanceAcceleratorCount)}
)

// aliasOf is the alias of the terms, "" if there is none. It must stand alone.
func aliasOf(terms []ec2v1.AMISelectorTerm) (string, error) {
	i := slices.IndexFunc(terms, func(t ec2v1.AMISelectorTerm) bool { return t.Alias != "" })
	if i < 0 {
		return "", nil
	}
	t := terms[i]
	if len(terms) > 1 || t.ID != "" || t.Name != "" || t.Owner != "" || t.SSMParameter != "" || len(t.Tags) > 0 {
		return "", &problem{reason: reasonBadAlias, message: fmt.Sprintf(
			"amiSelectorTerms: alias %q does not stand alone: an alias cannot be combined with other fields or terms; remove them", t.Alias)}
	}
	return t.Alias, nil
}

// splitAlias checks an alias before anything else looks at it: the helpers of
// Karpenter's API package end the process on a malformed one.
func splitAlias(alias string) (family, version string, err error) {
	parts := strings.Split(alias, "@")
	if len(parts) != 2 || parts[1] == "" || strings.ContainsAny(parts[1], "/ \t\r\n") {
		return "", "", &problem{reason: reasonBadAlias, message: fmt.Sprintf(
			"amiSelectorTerms: alias %q is not of the form family@version: write one such as al2023@v20260318 or bottlerocket@latest", alias)}
	}
	if !slices.Contains(aliasFamilies, parts[0]) {
		return "", "", &problem{reason: reasonBadAlias, message: fmt.Sprintf(
			"amiSelectorTerms: alias %q names an unknown family: use one of %s", alias, strings.Join(aliasFamilies, ", "))}
	}
	return parts[0], parts[1], nil
}

// aliasParameters are the SSM parameters of an alias for a version of
// Kubernetes (AWS.md section 5; Karpenter, pkg/providers/amifamily). It fails
// when EKS has no such images for that version.
func aliasParameters(family, version, kubernetes string) ([]parameter, error) {
	minor := minorOf(kubernetes)
	switch family {
	case "al2023":
		return al2023Parameters(version, kubernetes), nil
	case "bottlerocket":
		return bottlerocketParameters(version, kubernetes), nil
	case "al2":
		if minor >= 33 {
			return nil, &problem{reason: reasonBadAlias, message: fmt.Sprintf(
				"amiSelectorTerms: EKS has no Amazon Linux 2 images for Kubernetes %s: they ended with 1.32; use al2023 or bottlerocket", kubernetes)}
		}
		return al2Parameters(version, kubernetes), nil
	}
	if version != ec2v1.AliasVersionLatest {
		return nil, &problem{reason: reasonBadAlias, message: fmt.Sprintf(
			"amiSelectorTerms: alias %s@%s: images for Windows have no versions to choose from; write %s@latest", family, version, family)}
	}
	if family == "windows2025" && minor < 35 {
		return nil, &problem{reason: reasonBadAlias, message: fmt.Sprintf(
			"amiSelectorTerms: Windows Server 2025 needs Kubernetes 1.35, and the cluster has %s: use windows2022, or upgrade the cluster", kubernetes)}
	}
	year := strings.TrimPrefix(family, "windows")
	return []parameter{{
		fmt.Sprintf("/aws/service/ami-windows-latest/Windows_Server-%s-English-Core-EKS_Optimized-%s/image_id", year, kubernetes),
		[]variant{{in(corev1.LabelOSStable, string(corev1.Windows)), in(corev1.LabelWindowsBuild, windowsBuilds[family])}},
	}}, nil
}

// minorOf is the minor version of "1.34", 0 if it has none.
func minorOf(kubernetes string) int {
	_, minor, _ := strings.Cut(kubernetes, ".")
	n, err := strconv.Atoi(minor)
	if err != nil {
		return 0
	}
	return n
}

func al2023Parameters(version, kubernetes string) []parameter {
	var out []parameter
	add := func(arch, name string, v variant) {
		image := "recommended"
		if version != ec2v1.AliasVersionLatest {
			image = fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", arch, name, kubernetes, version)
		}
		path := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id", kubernetes, arch, name, image)
		out = append(out, parameter{path, []variant{v}})
	}
	add("x86_64", "standard", standard)
	add("x86_64", "nvidia", nvidia)
	add("x86_64", "neuron", neuron)
	add("arm64", "standard", standard)
	add("arm64", "nvidia", nvidia)
	return out
}

func al2Parameters(version, kubernetes string) []parameter {
	path := func(folder, prefix string) string {
		image := "recommended"
		if version != ec2v1.AliasVersionLatest {
			image = fmt.Sprintf("%s-%s-%s", prefix, kubernetes, version)
		}
		return fmt.Sprintf("/aws/service/eks/optimized-ami/%s/%s/%s/image_id", kubernetes, folder, image)
	}
	return []parameter{
		{path("amazon-linux-2", "amazon-eks-node"), []variant{standard}},
		{path("amazon-linux-2-arm64", "amazon-eks-arm64-node"), []variant{standard}},
		{path("amazon-linux-2-gpu", "amazon-eks-gpu-node"), []variant{neuron, nvidia}},
	}
}

// bottlerocketParameters takes versions with and without the "v" that the
// releases have and the parameters have not.
func bottlerocketParameters(version, kubernetes string) []parameter {
	path := func(flavour, arch string) string {
		return fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", kubernetes, flavour, arch, strings.TrimLeft(version, "v"))
	}
	return []parameter{
		{path("", "x86_64"), []variant{standard, neuron}},
		{path("", "arm64"), []variant{standard}},
		{path("-nvidia", "x86_64"), []variant{nvidia}},
		{path("-nvidia", "arm64"), []variant{nvidia}},
	}
}

// kubeArchitecture is the architecture of an image as Kubernetes names it, ""
// for one that no node has.
func kubeArchitecture(ec2 string) string {
	switch ec2 {
	case "x86_64":
		return karpv1.ArchitectureAmd64
	case "arm64":
		return karpv1.ArchitectureArm64
	}
	return ""
}
