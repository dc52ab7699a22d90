package demo

import (
	"log/slog"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/reeve-project/reeve/reconciler/aws"
	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/sim"
	"github.com/reeve-project/reeve/reconciler/sim/awsapi"
)

// setCluster makes the cluster and the account as the scene begins, with the
// production client talking to the account as it would to AWS.
func (s *stage) setCluster() error {
	s.world = sim.NewWorld(sim.Options{Start: begin})
	data, err := catalog.Embedded(region)
	if err != nil {
		return err
	}
	if s.account, err = awsapi.New(s.world, awsapi.Options{
		Cluster: s.scene.cluster, Catalog: data, KubernetesVersion: "1.34", StartupTaints: s.scene.startupTaints,
		Releases: map[string][]string{"al2023": {"v20260318", "v20260402"}},
	}); err != nil {
		return err
	}
	if s.cloud, err = aws.New(sdk.Config{
		Region: region, HTTPClient: s.account.HTTPClient(),
		Credentials: credentials.NewStaticCredentialsProvider("demo", "demo", ""),
	}, aws.Options{
		Cluster: s.scene.cluster, Region: region, KubernetesVersion: "1.34", Queue: s.scene.cluster,
		Clock: s.world.Clock, Log: slog.New(slog.DiscardHandler),
	}); err != nil {
		return err
	}
	for _, o := range append([]sim.Object{sim.NewDaemonSet("aws-node", cpu("50m")), sim.NewDaemonSet("kube-proxy", cpu("100m"))}, s.scene.workloads...) {
		if err := s.world.Apply(o); err != nil {
			return err
		}
	}
	for _, m := range s.scene.managed {
		if err := s.addManaged(m); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) addManaged(m managed) error {
	name, err := s.account.AddManaged(m.group, m.instanceType, m.zone)
	if err != nil || len(m.taints) == 0 {
		return err
	}
	return sim.Update(s.world.API, "eks", name, "taint", func(n *corev1.Node) error {
		n.Spec.Taints = append(n.Spec.Taints, m.taints...)
		return nil
	})
}

// region of the story.
const region = "ap-northeast-2"

// managed is a node of a managed node group, which is not ours.
type managed struct {
	group, instanceType, zone string
	taints                    []corev1.Taint
}

// twoManaged are the nodes that every lab begins with: one replica of the
// controller on each leaves no room for a pod of 1 CPU.
func twoManaged() []managed {
	return []managed{
		{group: "system", instanceType: "m5.large", zone: region + "a"},
		{group: "system", instanceType: "m5.large", zone: region + "b"},
	}
}

func cpu(q string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q)}
}

// controller is Reeve itself, as its chart would deploy it.
func controller() *appsv1.Deployment {
	d := sim.NewDeployment("kube-system", "reeve", 2, cpu("1"))
	d.Spec.Template.Labels["app.kubernetes.io/name"] = "reeve"
	return d
}

// gravitonDeployment tolerates the taint of NodePool graviton and asks for its
// architecture.
func gravitonDeployment() *appsv1.Deployment {
	d := sim.NewDeployment("default", "inflate-arm64", 0, cpu("1"))
	d.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64"}
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: corev1.LabelArchStable, Operator: corev1.TolerationOpEqual, Value: "arm64", Effect: corev1.TaintEffectNoSchedule}}
	return d
}
