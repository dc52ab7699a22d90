package awsapi

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/sim"
)

// maxBody bounds the body of a request; the largest call of Reeve's has some
// hundred kilobytes.
const maxBody = 8 << 20

// Options are what the account and its EKS cluster look like.
type Options struct {
	// Cluster is the name of the EKS cluster; it is needed.
	Cluster string
	// Catalog is the region with its types and prices; it is needed.
	Catalog *catalog.Data
	// Settings of the sizes of nodes; Karpenter's defaults unless set.
	Settings *catalog.Settings
	// Zones are the names of those with a subnet; all of the region unless
	// set.
	Zones []string
	// Subnets of the account; one in each of Zones, tagged
	// karpenter.sh/discovery=<cluster>, unless set.
	Subnets []Subnet
	// SecurityGroups of the account; one with that tag unless set.
	SecurityGroups []SecurityGroup
	// Images of the account besides those of the Releases.
	Images []Image
	// Releases are the versions of the EKS images of each family, oldest
	// first: {"al2023": {"v20260318"}}. Each gives images and the SSM
	// parameters that name them.
	Releases map[string][]string
	// KubernetesVersion is the minor version of the cluster; "1.34" unless
	// set.
	KubernetesVersion string
	// Account is the number of the account; "111122223333" unless set.
	Account string
	// Boot is how an instance starts; as the World's Timing says unless set.
	// Like InstanceProfileExists it is called with the endpoint locked.
	Boot func(Instance) sim.Boot
	// StartupTaints are those that a daemon of the cluster takes away from
	// nodes which register with them; key and effect count. When it does is in
	// Boot.
	StartupTaints []corev1.Taint
	// EKS is the cluster as DescribeCluster shows it. Cluster is its name, and
	// what is not set is made up.
	EKS Cluster
	// Queue is the name of the SQS queue for EC2's events; Cluster unless set.
	Queue string
	// InstanceProfileExists says whether EC2 accepts the instance profile of
	// that name; those that IAM has unless set.
	InstanceProfileExists func(name string) bool
	// Delays are how late things become visible; at once unless set.
	Delays Delays
}

// Delays are how far EC2's reads lag behind its writes.
type Delays struct {
	// Instance is from the launch of an instance until Describe shows it.
	Instance time.Duration
	// Template is from the creation of a launch template until Describe shows
	// it and CreateFleet finds it.
	Template time.Duration
	// InstanceProfile is from the creation of an instance profile in IAM until
	// EC2 accepts it.
	InstanceProfile time.Duration
}

// Endpoint is the account: all services behind one address. It is safe for use
// by several goroutines, see the package's comment for the World.
type Endpoint struct {
	// mu guards everything below and every use of the world outside of the
	// clock's events. Events take it too.
	mu       sync.Mutex
	region   string
	world    *sim.World
	options  Options
	services map[string]service
	faults   faults
	ec2      *ec2State
	front    front
}

// service is one of AWS's behind the endpoint.
type service struct {
	// action names what the request asks for: "CreateFleet".
	action func(r *http.Request, body []byte) string
	// fail writes an error in the service's protocol.
	fail func(w http.ResponseWriter, err *APIError)
	// handler answers. It reads the body as usual, and takes the endpoint's
	// mutex itself: a long poll must not hold it.
	handler http.Handler
}

// New is an account without instances, in the region of the catalog. It fails
// without a catalog or the name of the cluster, or when something lies in a
// zone that the region does not have.
func New(w *sim.World, o Options) (*Endpoint, error) {
	if w == nil || o.Catalog == nil || o.Cluster == "" {
		return nil, fmt.Errorf("simulated AWS: a world, a catalog and the name of the cluster are needed")
	}
	o.Account = cmp.Or(o.Account, "111122223333")
	o.KubernetesVersion = cmp.Or(o.KubernetesVersion, "1.34")
	if o.Releases == nil {
		o.Releases = map[string][]string{"al2023": {"v20260318"}, "bottlerocket": {"v1.50.0"}}
	}
	e := &Endpoint{region: o.Catalog.Region(), world: w, options: o, services: map[string]service{}, faults: newFaults()}
	var err error
	if e.ec2, err = newEC2State(o); err != nil {
		return nil, fmt.Errorf("simulated AWS: %w", err)
	}
	e.services["ec2"] = e.ec2Service()
	e.services["pricing"] = jsonService(http.HandlerFunc(e.servePricing))
	if err := e.openFront(); err != nil {
		return nil, fmt.Errorf("simulated AWS: %w", err)
	}
	return e, nil
}

// Region is the region of the account: "ap-northeast-2".
func (e *Endpoint) Region() string { return e.region }

// Account is the number of the account.
func (e *Endpoint) Account() string { return e.options.Account }

// SetDelays changes how far reads lag behind writes, for what there is already
// too.
func (e *Endpoint) SetDelays(d Delays) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.options.Delays = d
}

// ServeHTTP answers a call of any service. Which one it is for is in the scope
// of its signature; signatures are not verified.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, region := scope(r)
	s, ok := e.services[name]
	switch {
	case name == "":
		failJSON(w, &APIError{Code: "MissingAuthenticationToken", Message: "Request is missing Authentication Token", Status: http.StatusForbidden})
		return
	case !ok:
		failJSON(w, &APIError{Code: "UnknownOperationException", Message: fmt.Sprintf("the simulated AWS has no service %q", name), Status: http.StatusNotFound})
		return
	}
	// Prices are served from a few regions for all others.
	if region != e.Region() && name != "pricing" && name != "iam" {
		s.fail(w, &APIError{Code: "SignatureDoesNotMatch", Message: fmt.Sprintf("Credential should be scoped to a valid region, not %q.", region), Status: http.StatusForbidden})
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		s.fail(w, &APIError{Code: "IncompleteBody", Message: err.Error(), Status: http.StatusBadRequest})
		return
	}
	e.serve(w, r, name, s, body)
}

// serve lets the script have its say before and after the service answers.
func (e *Endpoint) serve(w http.ResponseWriter, r *http.Request, name string, s service, body []byte) {
	call := Call{Service: name, Action: s.action(r, body), Body: string(body)}
	f := e.note(&call)
	if f != nil && !f.After {
		f.strike(w, r, s, nil)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := newRecorder()
	s.handler.ServeHTTP(answer, r)
	if f != nil {
		f.strike(w, r, s, answer)
		return
	}
	answer.copyTo(w, len(answer.body.Bytes()))
}

// scope is service and region that the request was signed for.
func scope(r *http.Request) (name, region string) {
	_, credential, ok := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	if !ok {
		return "", ""
	}
	credential, _, _ = strings.Cut(credential, ",")
	// <key>/<date>/<region>/<service>/aws4_request
	parts := strings.Split(strings.TrimSpace(credential), "/")
	if len(parts) < 5 {
		return "", ""
	}
	parts = parts[len(parts)-3:]
	return parts[1], parts[0]
}

// zone is the zone of that name in the account.
func (o *Options) zone(name string) (catalog.Zone, bool) {
	zones := o.Catalog.Zones()
	i := slices.IndexFunc(zones, func(z catalog.Zone) bool { return z.Name == name })
	if i < 0 {
		return catalog.Zone{}, false
	}
	return zones[i], true
}
