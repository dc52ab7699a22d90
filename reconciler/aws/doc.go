// Package aws is AWS as the pipeline needs it: a port.Cloud and a port.Queue
// over the SDK's clients.
//
// What Karpenter's AWS provider does is kept where people can see it: names and
// tags of launch templates, user data, the shape of a CreateFleet call, which
// error codes mean that there is no capacity. So a cluster can be taken over
// without rolling a node.
package aws
