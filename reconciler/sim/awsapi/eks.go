package awsapi

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// Cluster is an EKS cluster as DescribeCluster shows it.
type Cluster struct {
	// Name of the cluster.
	Name string
	// Version is the minor version of Kubernetes: "1.34".
	Version string
	// Endpoint is the URL of the API server.
	Endpoint string
	// CertificateAuthority is the certificate of the API server's authority,
	// PEM in base64.
	CertificateAuthority string
	// ServiceCIDR is the range of the addresses of services, IPv4 or IPv6.
	ServiceCIDR string
}

// eksService answers the REST protocol of EKS for describing clusters.
type eksService struct {
	clock           *sim.Clock
	account, region string
	// mu is the endpoint's; it guards the clock and what follows.
	mu       sync.Locker
	clusters map[string]eksCluster
}

type eksCluster struct {
	Cluster
	created time.Time
}

func newEKS(clock *sim.Clock, mu sync.Locker, region, account string) *eksService {
	return &eksService{clock: clock, mu: mu, region: region, account: account, clusters: map[string]eksCluster{}}
}

// put adds the cluster, or replaces what is known of it.
func (s *eksService) put(c Cluster) {
	created := s.clock.Now()
	if old, ok := s.clusters[c.Name]; ok {
		created = old.created
	}
	s.clusters[c.Name] = eksCluster{Cluster: c, created: created}
}

const clustersPath = "/clusters/"

// eksAction names what a request asks for.
func eksAction(r *http.Request, _ []byte) string {
	if name, ok := strings.CutPrefix(r.URL.Path, clustersPath); ok && r.Method == http.MethodGet && name != "" && !strings.Contains(name, "/") {
		return "DescribeCluster"
	}
	return r.Method + " " + r.URL.Path
}

// ServeHTTP answers one request.
func (s *eksService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if action := eksAction(r, nil); action != "DescribeCluster" {
		err := errorf("UnknownOperationException", "The simulation has no %s in EKS.", action)
		err.Status = http.StatusNotFound
		failJSON(w, err)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, clustersPath)
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.clusters[name]
	if !ok {
		err := errorf("ResourceNotFoundException", "No cluster found for name: %s.", name)
		err.Status = http.StatusNotFound
		failJSON(w, err)
		return
	}
	sendJSON(w, "application/json", http.StatusOK, map[string]any{"cluster": s.describe(c)})
}

func (s *eksService) describe(c eksCluster) map[string]any {
	network := map[string]any{"ipFamily": "ipv4", "serviceIpv4Cidr": c.ServiceCIDR}
	if strings.Contains(c.ServiceCIDR, ":") {
		network = map[string]any{"ipFamily": "ipv6", "serviceIpv6Cidr": c.ServiceCIDR}
	}
	return map[string]any{
		"name": c.Name, "arn": "arn:aws:eks:" + s.region + ":" + s.account + ":cluster/" + c.Name, "status": "ACTIVE",
		"version": c.Version, "endpoint": c.Endpoint, "createdAt": c.created.Unix(),
		"certificateAuthority":    map[string]any{"data": c.CertificateAuthority},
		"kubernetesNetworkConfig": network,
	}
}
