// Package catalog knows the instance types of EC2: what a node of each type
// holds, which labels it carries, in which zones it is offered, and what it
// costs.
//
// A Data is the facts of one region. Resolve turns it into InstanceTypes for
// one EC2NodeClass, by the formulas of Karpenter's AWS provider v1.14.0
// (pkg/providers/instancetype). Nothing is estimated: a type without a listed
// price or zone has no offering.
//
// # The built-in tables
//
// Embedded reads tables that were made by internal/gen and are compiled in.
// They are tab-separated text with one head line, sorted by name.
//
// data/types.tsv has one row for each type: its name; the first supported
// architecture; virtual CPUs; MiB of memory; the processor's manufacturer and
// sustained MHz; the hypervisor (empty: bare metal); usage classes; whether
// traffic is encrypted in transit; Mbps of EBS bandwidth (empty: not optimized
// by default) and of network bandwidth (empty: not documented); decimal GB of
// NVMe and of other local disks; "count|manufacturer|name|MiB" of the GPU;
// "count|cores|name" of Neuron devices; "count|manufacturer|name" of another
// accelerator; the number of EFA interfaces; network interfaces of each network
// card, the default card first; IPv4 addresses of an interface; branch
// interfaces (empty: unknown to the VPC resource controller).
//
// data/<region>.tsv has the types that are sold in the region: name, on-demand
// price in USD per hour, then one column per zone id with the spot price, "-"
// where the type is offered without a listed spot price, nothing where it is
// not offered.
//
// Two conventions fill gaps of the sources. Zones are named <region>a, b, c in
// the order of their ids; a real account's names come from the subnets in the
// status of its EC2NodeClass. Listed spot prices carry no zone: they are given
// in ascending order to the zones that offer the type in the order of ids.
package catalog
