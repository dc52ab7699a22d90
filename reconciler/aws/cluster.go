package aws

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/reeve-project/reeve/reconciler/port"
)

const (
	// infoAge is how long the description of the cluster is used: the version
	// changes with an upgrade of the control plane.
	infoAge = 5 * time.Minute
	// infoRetry is how long to wait with asking EKS again after an error, while
	// there is an older description.
	infoRetry = 15 * time.Second
)

// infoCache is what EKS last said of the cluster.
type infoCache struct {
	mu   sync.Mutex
	said source[ClusterInfo]
}

// clusterInfo is what a node has to know to join: as the options say, and for
// the rest as EKS describes the cluster. EKS is not asked when the options say
// all.
func (c *Cloud) clusterInfo(ctx context.Context) (ClusterInfo, error) {
	set := c.options.Info
	set.Version = cmp.Or(c.options.KubernetesVersion, set.Version)
	if set.Endpoint != "" && set.CA != "" && set.CIDR != "" && set.Version != "" {
		return set, nil
	}
	have, err := c.describeCluster(ctx)
	if err != nil {
		return ClusterInfo{}, err
	}
	return ClusterInfo{
		Endpoint: cmp.Or(set.Endpoint, have.Endpoint), CA: cmp.Or(set.CA, have.CA),
		CIDR: cmp.Or(set.CIDR, have.CIDR), Version: cmp.Or(set.Version, have.Version),
	}, nil
}

// describeCluster is what EKS says, or said when it last could be asked.
func (c *Cloud) describeCluster(ctx context.Context) (ClusterInfo, error) {
	c.info.mu.Lock()
	defer c.info.mu.Unlock()
	said, now := &c.info.said, c.clock.Now()
	if said.have && !said.due(now) {
		return said.value, nil
	}
	info, err := c.askCluster(ctx)
	if !said.have && err != nil {
		return ClusterInfo{}, err
	}
	said.take(now, info, err, infoAge, infoRetry, c.log, "description of the cluster", "")
	return said.value, nil
}

func (c *Cloud) askCluster(ctx context.Context) (ClusterInfo, error) {
	out, err := c.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(c.options.Cluster)})
	if err := kinded("eks:DescribeCluster", err); err != nil {
		return ClusterInfo{}, fmt.Errorf("cluster %s: %w", c.options.Cluster, err)
	}
	if out.Cluster == nil {
		return ClusterInfo{}, port.Terminal(fmt.Errorf("cluster %s: eks:DescribeCluster: EKS answered without a cluster: check the name and the region %s", c.options.Cluster, c.options.Region))
	}
	info := ClusterInfo{Endpoint: aws.ToString(out.Cluster.Endpoint), Version: aws.ToString(out.Cluster.Version)}
	if a := out.Cluster.CertificateAuthority; a != nil {
		info.CA = aws.ToString(a.Data)
	}
	if n := out.Cluster.KubernetesNetworkConfig; n != nil {
		info.CIDR = cmp.Or(aws.ToString(n.ServiceIpv4Cidr), aws.ToString(n.ServiceIpv6Cidr))
	}
	return info, nil
}

// kubernetesVersion is the minor version that images are chosen for.
func (c *Cloud) kubernetesVersion(ctx context.Context) (string, error) {
	if v := cmp.Or(c.options.KubernetesVersion, c.options.Info.Version); v != "" {
		return v, nil
	}
	info, err := c.clusterInfo(ctx)
	if err == nil && info.Version == "" {
		err = fmt.Errorf("EKS does not tell it for cluster %q", c.options.Cluster)
	}
	if err != nil {
		return "", fmt.Errorf("the cluster's version of Kubernetes: %w", err)
	}
	return info.Version, nil
}
