package sim

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NewDeployment is a Deployment whose pods have the label app=<name>, one
// container and the requests.
func NewDeployment(namespace, name string, replicas int32, requests corev1.ResourceList) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: podTemplate(labels, name, requests),
		},
	}
}

// NewStatefulSet is a StatefulSet whose pods have the label app=<name>, one
// container and the requests.
func NewStatefulSet(namespace, name string, replicas int32, requests corev1.ResourceList) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: podTemplate(labels, name, requests),
		},
	}
}

// NewDaemonSet is a DaemonSet in kube-system that tolerates everything and is
// critical for nodes, as kube-proxy and the network plugin are.
func NewDaemonSet(name string, requests corev1.ResourceList) *appsv1.DaemonSet {
	labels := map[string]string{"app": name}
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: labels},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: podTemplate(labels, name, requests)},
	}
	ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	ds.Spec.Template.Spec.PriorityClassName = "system-node-critical"
	return ds
}

func podTemplate(labels map[string]string, name string, requests corev1.ResourceList) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: name, Image: name, Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
	}
}
