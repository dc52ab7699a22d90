package awsapi

import (
	"fmt"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// variant is one kind of EKS image: for an architecture, with or without
// drivers for devices.
type variant struct{ arch, devices string }

// variants are those that AWS publishes for a family.
var variants = map[string][]variant{
	"al2023":       {{"x86_64", "standard"}, {"arm64", "standard"}, {"x86_64", "nvidia"}, {"arm64", "nvidia"}, {"x86_64", "neuron"}},
	"bottlerocket": {{"x86_64", "standard"}, {"arm64", "standard"}, {"x86_64", "nvidia"}, {"arm64", "nvidia"}},
}

// kubeArch is the architecture by Kubernetes' name.
func (v variant) kubeArch() string {
	if v.arch == "x86_64" {
		return "amd64"
	}
	return v.arch
}

// firstRelease is when an image is from whose version is not a date; each
// further one is four weeks younger.
var firstRelease = time.Date(2026, 1, 6, 0, 0, 0, 0, time.UTC)

// release adds the images of a release and the SSM parameters that name them;
// the newest one is also the recommended one.
func (s *ec2State) release(family, version, kubernetes string, newest bool) {
	created, err := time.Parse("v20060102", version)
	if err != nil {
		created = firstRelease.AddDate(0, 0, 28*len(s.images))
	}
	for _, v := range variants[family] {
		im := Image{
			ID: "ami-0" + sim.HexID(family, version, v.kubeArch(), v.devices), Name: v.name(family, version, kubernetes),
			Family: family, Architecture: v.arch, Created: created, Owner: "amazon",
		}
		s.images = append(s.images, im)
		for _, path := range v.parameters(family, version, kubernetes, newest) {
			s.parameters[path] = im.ID
		}
	}
}

func (v variant) name(family, version, kubernetes string) string {
	if family == "al2023" {
		return fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", v.arch, v.devices, kubernetes, version)
	}
	return fmt.Sprintf("bottlerocket-aws-k8s-%s%s-%s-%s", kubernetes, v.suffix(), v.arch, version)
}

func (v variant) suffix() string {
	if v.devices == "standard" {
		return ""
	}
	return "-" + v.devices
}

// parameters are the SSM parameters of the image, as the EKS and Bottlerocket
// documentation names them.
func (v variant) parameters(family, version, kubernetes string, newest bool) []string {
	var out []string
	add := func(name string) {
		if family == "al2023" {
			out = append(out, fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id", kubernetes, v.arch, v.devices, name))
			return
		}
		out = append(out, fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", kubernetes, v.suffix(), v.arch, name))
	}
	if family == "al2023" {
		add(v.name(family, version, kubernetes))
	} else {
		add(strings.TrimPrefix(version, "v"))
	}
	switch {
	case newest && family == "al2023":
		add("recommended")
	case newest:
		add("latest")
	}
	return out
}

// parameter is the value of a public SSM parameter: the image that it names.
// The caller holds the mutex.
func (e *Endpoint) parameter(name string) (string, bool) {
	v, ok := e.ec2.parameters[name]
	return v, ok
}
