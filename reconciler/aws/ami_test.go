package aws_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

func withImages(terms ...ec2v1.AMISelectorTerm) *ec2v1.EC2NodeClass {
	return shopClass(func(s *ec2v1.EC2NodeClassSpec) {
		s.AMISelectorTerms = terms
		if len(terms) > 0 && terms[0].Alias == "" {
			s.AMIFamily = new(ec2v1.AMIFamilyCustom)
		}
	})
}

// describeImages is a line for each image: its name and what it needs.
func describeImages(s ec2v1.EC2NodeClassStatus) []string {
	var out []string
	for _, im := range s.AMIs {
		line := im.Name
		if im.Deprecated {
			line += " deprecated"
		}
		for _, r := range im.Requirements {
			key := r.Key[strings.LastIndex(r.Key, "/")+1:]
			switch r.Operator {
			case corev1.NodeSelectorOpIn:
				line += " " + strings.Join(r.Values, ",")
			case corev1.NodeSelectorOpExists:
				line += " +" + key
			default:
				line += " -" + key
			}
		}
		out = append(out, line)
	}
	return out
}

func TestAnAliasGivesAnImageForEachKindOfType(t *testing.T) {
	a := newTenant(t, func(o *awsapi.Options) {
		o.Releases = map[string][]string{"al2023": {"v20260301", "v20260318"}, "bottlerocket": {"v1.49.0", "v1.50.0"}}
	})
	al2023 := func(version string) map[string]bool {
		want := map[string]bool{}
		for _, v := range []string{"x86_64-standard amd64 -instance-gpu-count -instance-accelerator-count", "x86_64-nvidia amd64 +instance-gpu-count", "x86_64-neuron amd64 +instance-accelerator-count", "arm64-standard arm64 -instance-gpu-count -instance-accelerator-count", "arm64-nvidia arm64 +instance-gpu-count"} {
			name, needs, _ := strings.Cut(v, " ")
			want[fmt.Sprintf("amazon-eks-node-al2023-%s-1.34-%s %s", name, version, needs)] = true
		}
		return want
	}
	bottlerocket := func(version string) map[string]bool {
		return map[string]bool{
			"bottlerocket-aws-k8s-1.34-x86_64-" + version + " amd64 -instance-gpu-count -instance-accelerator-count": true,
			"bottlerocket-aws-k8s-1.34-x86_64-" + version + " amd64 +instance-accelerator-count":                     true,
			"bottlerocket-aws-k8s-1.34-arm64-" + version + " arm64 -instance-gpu-count -instance-accelerator-count":  true,
			"bottlerocket-aws-k8s-1.34-nvidia-x86_64-" + version + " amd64 +instance-gpu-count":                      true,
			"bottlerocket-aws-k8s-1.34-nvidia-arm64-" + version + " arm64 +instance-gpu-count":                       true,
		}
	}
	for alias, want := range map[string]map[string]bool{
		"al2023@latest": al2023("v20260318"), "al2023@v20260301": al2023("v20260301"),
		"bottlerocket@latest": bottlerocket("v1.50.0"), "bottlerocket@v1.49.0": bottlerocket("v1.49.0"), "bottlerocket@1.49.0": bottlerocket("v1.49.0"),
	} {
		t.Run(alias, func(t *testing.T) {
			s := a.resolve(t, withImages(ec2v1.AMISelectorTerm{Alias: alias}))
			got := map[string]bool{}
			for _, line := range describeImages(s) {
				got[line] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
			wantCondition(t, s, "Ready", metav1.ConditionTrue, "Ready")
		})
	}
}

func TestAnAliasThatCannotBeUsedIsACondition(t *testing.T) {
	a := newTenant(t)
	for alias, words := range map[string][]string{
		"al2023":               {"family@version"},
		"al2023@":              {"family@version"},
		"al2023@v1@v2":         {"family@version"},
		"@latest":              {"unknown family"},
		"AL2023@latest":        {"unknown family", "al2023, bottlerocket"},
		"ubuntu@latest":        {"unknown family"},
		"al2023@../../secret":  {"family@version"},
		"al2@latest":           {"no Amazon Linux 2 images for Kubernetes 1.34"},
		"windows2025@latest":   {"needs Kubernetes 1.35"},
		"windows2022@v1.0":     {"windows2022@latest"},
		strings.Repeat("@", 9): {"family@version"},
	} {
		t.Run(alias, func(t *testing.T) {
			s := a.resolve(t, withImages(ec2v1.AMISelectorTerm{Alias: alias}))
			wantCondition(t, s, "AMIsReady", metav1.ConditionFalse, "UnsupportedAlias", words...)
		})
	}
	t.Run("one beside another term", func(t *testing.T) {
		s := a.resolve(t, withImages(ec2v1.AMISelectorTerm{Alias: "al2023@latest"}, ec2v1.AMISelectorTerm{ID: "ami-1"}))
		wantCondition(t, s, "AMIsReady", metav1.ConditionFalse, "UnsupportedAlias", "does not stand alone")
	})
	t.Run("one beside another field", func(t *testing.T) {
		s := a.resolve(t, withImages(ec2v1.AMISelectorTerm{Alias: "al2023@latest", Name: "x"}))
		wantCondition(t, s, "AMIsReady", metav1.ConditionFalse, "UnsupportedAlias", "does not stand alone")
	})
}

func TestOlderFamiliesAndWindowsComeFromTheirParameters(t *testing.T) {
	image := func(id, arch string) awsapi.Image {
		return awsapi.Image{ID: id, Name: id, Architecture: arch, Owner: "amazon"}
	}
	a := newTenant(t, func(o *awsapi.Options) {
		o.KubernetesVersion = "1.32"
		o.Images = []awsapi.Image{image("ami-0a", "x86_64"), image("ami-0b", "arm64"), image("ami-0c", "x86_64"), image("ami-0d", "x86_64")}
	})
	for name, id := range map[string]string{
		"/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id":                                   "ami-0a",
		"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/recommended/image_id":                             "ami-0b",
		"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id":                               "ami-0c",
		"/aws/service/eks/optimized-ami/1.32/amazon-linux-2/amazon-eks-node-1.32-v20250101/image_id":                "ami-0d",
		"/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.32/image_id":              "ami-0d",
		"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/amazon-eks-arm64-node-1.32-v20250101/image_id":    "ami-0b",
		"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/amazon-eks-gpu-node-1.32-v20250101-broken/image_id": "ami-0c",
	} {
		a.PutParameter(name, id)
	}
	for alias, want := range map[string][]string{
		"al2@latest": {
			"ami-0a amd64 -instance-gpu-count -instance-accelerator-count", "ami-0b arm64 -instance-gpu-count -instance-accelerator-count",
			"ami-0c amd64 +instance-accelerator-count", "ami-0c amd64 +instance-gpu-count",
		},
		"al2@v20250101":      {"ami-0b arm64 -instance-gpu-count -instance-accelerator-count", "ami-0d amd64 -instance-gpu-count -instance-accelerator-count"},
		"windows2022@latest": {"ami-0d windows amd64 10.0.20348"},
	} {
		t.Run(alias, func(t *testing.T) {
			s := a.resolve(t, withImages(ec2v1.AMISelectorTerm{Alias: alias}))
			if diff := cmp.Diff(want, describeImages(s)); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheBestImageForTheSameTypesWins(t *testing.T) {
	day := func(n int) time.Time { return noon.AddDate(0, 0, n) }
	team := map[string]string{"team": "x"}
	a := newTenant(t, func(o *awsapi.Options) {
		o.Images = []awsapi.Image{
			{ID: "ami-01", Name: "base-1", Architecture: "x86_64", Created: day(-9), Tags: team},
			{ID: "ami-02", Name: "base-2", Architecture: "x86_64", Created: day(-5), Tags: team},
			{ID: "ami-03", Name: "base-3", Architecture: "x86_64", Created: day(-1), Deprecated: day(0), Tags: team},
			{ID: "ami-04", Name: "base-4", Architecture: "arm64", Created: day(-8), Tags: team},
			{ID: "ami-05", Name: "base-5", Architecture: "arm64", Created: day(-8), Tags: map[string]string{"team": "y"}},
			{ID: "ami-06", Name: "base-6", Architecture: "i386", Created: day(-2), Tags: team},
			{ID: "ami-07", Name: "base-7", Architecture: "x86_64", Created: day(-2), Owner: "999999999999"},
			{ID: "ami-08", Name: "late-1", Architecture: "x86_64", Created: day(-2), Deprecated: day(1)},
		}
	})
	a.PutParameter("/my/image", "ami-01")
	a.PutParameter("/my/text", "hello")
	for _, c := range []struct {
		name  string
		terms []ec2v1.AMISelectorTerm
		want  []string
	}{
		{"the newest that is not deprecated, of each architecture", []ec2v1.AMISelectorTerm{{Tags: team}}, []string{"base-2 amd64", "base-4 arm64"}},
		{"the greater name at the same time", []ec2v1.AMISelectorTerm{{Tags: map[string]string{"team": "*"}}}, []string{"base-2 amd64", "base-5 arm64"}},
		{"a deprecated one if it is all there is", []ec2v1.AMISelectorTerm{{ID: "ami-03"}}, []string{"base-3 deprecated amd64"}},
		{"by name only of this account and Amazon", []ec2v1.AMISelectorTerm{{Name: "base-*"}}, []string{"base-2 amd64", "base-5 arm64"}},
		{"by name of the owner that is named", []ec2v1.AMISelectorTerm{{Name: "base-*", Owner: "999999999999"}}, []string{"base-7 amd64"}},
		{"one whose deprecation is to come", []ec2v1.AMISelectorTerm{{Name: "late-1"}}, []string{"late-1 amd64"}},
		{"by a parameter", []ec2v1.AMISelectorTerm{{SSMParameter: "/my/image"}}, []string{"base-1 amd64"}},
		{"terms are alternatives", []ec2v1.AMISelectorTerm{{ID: "ami-01"}, {SSMParameter: "/my/none"}, {SSMParameter: "/my/text"}, {ID: "ami-05"}}, []string{"base-5 arm64", "base-1 amd64"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := a.resolve(t, withImages(c.terms...))
			if diff := cmp.Diff(c.want, describeImages(s)); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLatestFollowsReleases(t *testing.T) {
	a := newTenant(t)
	class := withImages(ec2v1.AMISelectorTerm{Alias: "bottlerocket@latest"})
	version := func() string {
		name := a.resolve(t, class).AMIs[0].Name
		return name[strings.LastIndex(name, "-")+1:]
	}
	if got := version(); got != "v1.50.0" {
		t.Fatalf("version %s", got)
	}
	a.Release("bottlerocket", "v1.51.0")
	a.pass(t, 23*time.Hour)
	if got := version(); got != "v1.50.0" {
		t.Errorf("version %s: parameters are good for a day", got)
	}
	a.pass(t, time.Hour)
	if got := version(); got != "v1.51.0" {
		t.Errorf("version %s after a day", got)
	}
}

func TestLatestMovesOnWhenItsImageIsDeprecated(t *testing.T) {
	a := newTenant(t, func(o *awsapi.Options) {
		o.Images = []awsapi.Image{
			{ID: "ami-0a", Name: "old", Architecture: "x86_64", Created: noon.AddDate(0, 0, -9), Deprecated: noon.Add(time.Hour), Owner: "amazon"},
			{ID: "ami-0b", Name: "new", Architecture: "x86_64", Created: noon.AddDate(0, 0, -1), Owner: "amazon"},
		}
		o.KubernetesVersion = "1.32"
	})
	const path = "/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id"
	a.PutParameter(path, "ami-0a")
	class := withImages(ec2v1.AMISelectorTerm{Alias: "al2@latest"})
	a.resolve(t, class)
	a.PutParameter(path, "ami-0b")
	a.pass(t, time.Hour)
	a.resolve(t, class)
	a.pass(t, 5*time.Minute)
	if got := a.resolve(t, class).AMIs[0].Name; got != "new" {
		t.Errorf("image %q", got)
	}
}
