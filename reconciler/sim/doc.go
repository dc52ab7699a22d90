// Package sim is a cluster and a cloud in memory with virtual time, behind the
// ports that the pipeline uses in production.
//
// A World holds an API server (objects with finalizers, deletion timestamps and
// garbage collection) and the controllers that matter to nodes: those of
// Deployments, StatefulSets and DaemonSets, the kubelet, the scheduler with
// preemption, those that find nodes lost and end pods by taints. A Cloud is EC2
// with its instances, and a Queue has its messages. Nothing in it runs by
// itself: time passes only in Advance and RunUntil, and the same calls give the
// same writes byte for byte.
//
// The scheduler of the simulation, the binder, is written from the Kubernetes
// documentation and shares no code with Reeve's engine, so that a mistake of
// the engine shows as a pod that the binder refuses.
package sim
