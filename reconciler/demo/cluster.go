package demo

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// setCluster makes the cluster as the story begins: two managed nodes that are
// not ours, with one replica of the controller on each so that no pod of
// inflate fits, and daemons that take 150m of every node.
func (s *stage) setCluster() error {
	s.world = sim.NewWorld(sim.Options{Start: begin})
	data, err := catalog.Embedded(region)
	if err != nil {
		return err
	}
	if s.cloud, err = sim.NewCloud(s.world, sim.CloudOptions{
		Cluster: Cluster, Catalog: data,
		Releases: map[string][]string{"al2023": {"v20260318", "v20260402"}},
	}); err != nil {
		return err
	}
	for _, zone := range data.Zones()[:2] {
		if _, err := s.cloud.AddManaged("system", "m5.large", zone.Name); err != nil {
			return err
		}
	}
	for _, o := range []sim.Object{
		sim.NewDaemonSet("aws-node", cpu("50m")),
		sim.NewDaemonSet("kube-proxy", cpu("100m")),
		controller(),
		sim.NewDeployment("default", "inflate", 0, cpu("1")),
		gravitonDeployment(),
	} {
		if err := s.world.Apply(o); err != nil {
			return err
		}
	}
	return nil
}

// region of the story.
const region = "ap-northeast-2"

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
