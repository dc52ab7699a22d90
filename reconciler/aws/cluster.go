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

// infoAge is how long the description of the cluster is used: the version
// changes with an upgrade of the control plane.
const infoAge = 5 * time.Minute

// infoCache is what EKS last said of the cluster.
type infoCache struct {
	mu   sync.Mutex
	info ClusterInfo
	read time.Time
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

func (c *Cloud) describeCluster(ctx context.Context) (ClusterInfo, error) {
	c.info.mu.Lock()
	defer c.info.mu.Unlock()
	now := c.clock.Now()
	if !c.info.read.IsZero() && now.Sub(c.info.read) < infoAge {
		return c.info.info, nil
	}
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
	c.info.info, c.info.read = info, now
	return info, nil
}
