package catalog

import (
	"fmt"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

const (
	kib = int64(1) << 10
	mib = kib << 10
	gib = mib << 10
	gb  = int64(1_000_000_000)
)

// family is what an image family means for the size of a node
// (pkg/providers/amifamily).
type family struct {
	name string
	// windowsBuild is empty for Linux.
	windowsBuild string
	// device is where pods' ephemeral storage lies, empty when unknown.
	device string
	// storage is the size of that device in bytes unless the class sets it.
	storage int64
	// eniDensity says that the number of pods follows from the interfaces.
	eniDensity bool
	// podsPerCore says that kubelet.podsPerCore counts.
	podsPerCore bool
	// reserveForPods says that memory is reserved for the number of pods that
	// the node really takes, instead of the number its interfaces allow.
	reserveForPods bool
}

var families = []family{
	{name: awsv1.AMIFamilyAL2, device: "/dev/xvda", storage: 20 * gib, eniDensity: true, podsPerCore: true},
	{name: awsv1.AMIFamilyAL2023, device: "/dev/xvda", storage: 20 * gib, eniDensity: true, podsPerCore: true},
	{name: awsv1.AMIFamilyBottlerocket, device: "/dev/xvdb", storage: 20 * gib, eniDensity: true, reserveForPods: true},
	{name: awsv1.AMIFamilyCustom, storage: 20 * gib, eniDensity: true, podsPerCore: true},
	windows(awsv1.AMIFamilyWindows2019, awsv1.Windows2019Build),
	windows(awsv1.AMIFamilyWindows2022, awsv1.Windows2022Build),
	windows(awsv1.AMIFamilyWindows2025, awsv1.Windows2025Build),
}

func windows(name, build string) family {
	return family{name: name, windowsBuild: build, device: "/dev/sda1", storage: 50 * gib, podsPerCore: true, reserveForPods: true}
}

func (f family) os() string {
	if f.windowsBuild != "" {
		return "windows"
	}
	return "linux"
}

// familyOf reads the family from amiFamily or else from the alias. The API's
// own AMIFamily method ends the process when the alias is malformed.
func familyOf(class *awsv1.EC2NodeClass) (family, error) {
	if class.Spec.AMIFamily != nil {
		for _, f := range families {
			if f.name == *class.Spec.AMIFamily {
				return f, nil
			}
		}
		return family{}, fmt.Errorf("spec.amiFamily: %q is unknown: use one of %s", *class.Spec.AMIFamily, familyNames(""))
	}
	for i, term := range class.Spec.AMISelectorTerms {
		if term.Alias == "" {
			continue
		}
		name, _, _ := strings.Cut(term.Alias, "@")
		for _, f := range families {
			if f.name != awsv1.AMIFamilyCustom && strings.ToLower(f.name) == name {
				return f, nil
			}
		}
		return family{}, fmt.Errorf("spec.amiSelectorTerms[%d].alias: family of %q is unknown: write family@version with one of %s",
			i, term.Alias, strings.ToLower(familyNames(awsv1.AMIFamilyCustom)))
	}
	return family{}, fmt.Errorf("spec.amiFamily: is missing: set it, or select images by an alias such as al2023@v20260318")
}

func familyNames(except string) string {
	names := make([]string, 0, len(families))
	for _, f := range families {
		if f.name != except {
			names = append(names, f.name)
		}
	}
	return strings.Join(names, ", ")
}
