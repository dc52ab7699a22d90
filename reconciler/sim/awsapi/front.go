package awsapi

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// retention is how many seconds the queue keeps a message, as in the template
// that Karpenter's users create the queue with: an older warning is worthless.
const retention = "300"

// front is what an account has besides EC2 and prices.
type front struct {
	sqs    *sqsService
	iam    *iamService
	ssm    *ssmService
	eks    *eksService
	queue  *Queue
	events *Events
}

// openFront adds the services, the queue with EC2's events in it, the cluster
// and the role of its nodes. It fails if SQS refuses the name of the queue.
func (e *Endpoint) openFront() error {
	o, clock := &e.options, e.world.Clock
	e.front = front{
		sqs: newSQS(clock, &e.mu, e.Region(), o.Account),
		iam: newIAM(clock, &e.mu, o.Account),
		ssm: newSSM(clock, &e.mu, e.Region(), o.Account, e.parameter),
		eks: newEKS(clock, &e.mu, e.Region(), o.Account),
	}
	queue, err := e.front.sqs.create(cmp.Or(o.Queue, o.Cluster), map[string]string{"MessageRetentionPeriod": retention})
	if err != nil {
		return fmt.Errorf("queue %q: %w", cmp.Or(o.Queue, o.Cluster), err)
	}
	e.front.queue, e.front.events = queue, NewEvents(queue, o.Account, e.Region())
	e.front.eks.put(o.cluster())
	e.front.iam.putRole(NodeRole(o.Cluster))
	if o.InstanceProfileExists == nil {
		o.InstanceProfileExists = e.instanceProfileExists
	}
	e.ec2.onState = append(e.ec2.onState, func(in Instance) { e.front.events.stateChange(in.ID, in.State) })
	e.ec2.onWarning = append(e.ec2.onWarning, func(in Instance) { e.front.events.spotWarning(in.ID, "terminate") })
	e.ec2.leftovers = append(e.ec2.leftovers, e.front.iam.leftovers)
	e.services["sqs"] = service{action: jsonAction, fail: failSQS, handler: e.front.sqs}
	e.services["iam"] = queryService(e.front.iam)
	e.services["ssm"] = jsonService(e.front.ssm)
	e.services["eks"] = service{action: eksAction, fail: failJSON, handler: e.front.eks}
	return nil
}

// NodeRole is the name of the IAM role of a cluster's nodes that exists from
// the start: that which Karpenter's guides create.
func NodeRole(cluster string) string { return "KarpenterNodeRole-" + cluster }

// cluster is the EKS cluster of the options.
func (o *Options) cluster() Cluster {
	c := o.EKS
	c.Name = o.Cluster
	c.Version = cmp.Or(c.Version, o.KubernetesVersion)
	c.Endpoint = cmp.Or(c.Endpoint, fmt.Sprintf("https://%s.gr7.%s.eks.amazonaws.com", strings.ToUpper(sim.HexID(o.Cluster, "api")), o.Catalog.Region()))
	c.CertificateAuthority = cmp.Or(c.CertificateAuthority, base64.StdEncoding.EncodeToString([]byte("certificate authority of "+o.Cluster+"\n")))
	c.ServiceCIDR = cmp.Or(c.ServiceCIDR, "10.100.0.0/16")
	return c
}

// Queue is the queue that EC2's events come into.
func (e *Endpoint) Queue() *Queue { return e.front.queue }

// Events sends events into the queue that EC2 does not send by itself. State
// changes, and the warning of SpotWarning, come without it.
func (e *Endpoint) Events() *Events { return e.front.events }

// PutParameter adds a parameter to the account's Parameter Store, or gives it a
// new version. It comes before one of that name that AWS publishes.
func (e *Endpoint) PutParameter(name, value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.front.ssm.put(name, value)
}

// PutCluster adds an EKS cluster, or replaces what is known of the one with
// that name: after an upgrade, say.
func (e *Endpoint) PutCluster(c Cluster) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.front.eks.put(c)
}

// PutRole adds an IAM role that EC2 may take.
func (e *Endpoint) PutRole(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.front.iam.putRole(name)
}

// DropRole removes an IAM role, from the instance profiles that have it too.
func (e *Endpoint) DropRole(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.front.iam.dropRole(name)
}

// PutInstanceProfile adds an instance profile with the role, as somebody did
// who manages profiles by hand: it exists for long, and is no leftover. The
// role is added if there is none of that name.
func (e *Endpoint) PutInstanceProfile(name, role string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.front.iam.seed(name, role)
}

// InstanceProfiles are all that IAM has, sorted by name; those of
// PutInstanceProfile included.
func (e *Endpoint) InstanceProfiles() []InstanceProfile {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.front.iam.list()
}

// instanceProfileExists says whether EC2 accepts the profile. The caller holds
// the mutex.
func (e *Endpoint) instanceProfileExists(name string) bool {
	return e.front.iam.exists(name, e.options.Delays.InstanceProfile)
}

// seed adds a profile that was there before.
func (s *iamService) seed(name, role string) {
	if _, ok := s.roles[role]; !ok {
		s.putRole(role)
	}
	s.profiles[name] = &profile{InstanceProfile: InstanceProfile{Name: name, Path: "/", Role: role, Created: s.clock.Now(), Tags: map[string]string{}}, seeded: true}
}

func (s *iamService) dropRole(name string) {
	delete(s.roles, name)
	for _, p := range s.profiles {
		if p.Role == name {
			p.Role = ""
		}
	}
}

// exists says whether a profile of that name is known for at least the delay.
func (s *iamService) exists(name string, delay time.Duration) bool {
	p, ok := s.profiles[name]
	return ok && (p.seeded || !s.clock.Now().Before(p.Created.Add(delay)))
}

// leftovers is a line for each profile that a client created.
func (s *iamService) leftovers() []string {
	var out []string
	for name, p := range s.profiles {
		if !p.seeded {
			out = append(out, fmt.Sprintf("instance profile %s (%s)", name, p.Path))
		}
	}
	slices.Sort(out)
	return out
}
