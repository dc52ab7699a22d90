package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	ec2v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/catalog"
	"github.com/reeve-project/reeve/reconciler/decision"
	"github.com/reeve-project/reeve/reconciler/port"
	"github.com/reeve-project/reeve/reconciler/requirements"
)

// EC2's words for why it launched nothing.
const (
	codeNoCapacity  = "InsufficientInstanceCapacity"
	codeUnsupported = "Unsupported"
)

// Launch launches as many instances as there are claims, each of the cheapest
// offering that EC2 has capacity of. The same token with the same input gives the same
// answer and launches nothing; with another input it is a terminal error.
func (c *Cloud) Launch(ctx context.Context, req port.LaunchRequest) (port.LaunchResult, error) {
	var out port.LaunchResult
	err := c.world.call(ctx, "cloud", "Launch", req.Token, func() error {
		var err error
		out, err = c.launch(req)
		return err
	})
	if err != nil {
		// A lost answer has to be asked for again.
		return port.LaunchResult{}, err
	}
	return out, nil
}

func (c *Cloud) launch(req port.LaunchRequest) (port.LaunchResult, error) {
	if err := checkLaunch(req); err != nil {
		return port.LaunchResult{}, port.Terminal(fmt.Errorf("launch for decision %s, group %d: %w", req.Decision, req.Group, err))
	}
	input, err := json.Marshal(req)
	if err != nil {
		return port.LaunchResult{}, fmt.Errorf("launch: encode the request: %w", err)
	}
	if earlier, ok := c.launches[req.Token]; ok {
		if earlier.input != string(input) {
			return port.LaunchResult{}, fmt.Errorf("IdempotentParameterMismatch: token %s: %w", req.Token, port.ErrTokenUsed)
		}
		return c.again(earlier), nil
	}
	for _, f := range c.onLaunch {
		f(req)
	}
	types, err := c.data.Resolve(req.Class, c.settings)
	if err != nil {
		return port.LaunchResult{}, port.Terminal(err)
	}
	l := &launch{input: string(input)}
	l.result = c.fulfil(req, sellable(req, types))
	c.launches[req.Token] = l
	return c.again(l), nil
}

// again is the answer with the instances as they are now, by id: EC2 answers in
// the order of nothing that a caller could rely on.
func (c *Cloud) again(l *launch) port.LaunchResult {
	out := port.LaunchResult{Refused: slices.Clone(l.result.Refused)}
	for _, in := range l.result.Instances {
		if have := c.find(in.ID); have != nil {
			out.Instances = append(out.Instances, have.value())
		}
	}
	slices.SortFunc(out.Instances, func(a, b port.Instance) int { return strings.Compare(a.ID, b.ID) })
	return out
}

func checkLaunch(req port.LaunchRequest) error {
	switch {
	case req.Token == "":
		return fmt.Errorf("the client token is missing")
	case len(req.Claims) == 0:
		return fmt.Errorf("there is no claim to launch for")
	case req.Class == nil || req.Template == nil:
		return fmt.Errorf("the class or the template is missing")
	case len(req.Offerings) == 0:
		return fmt.Errorf("there is no offering to choose from")
	}
	for _, o := range req.Offerings {
		if o.CapacityType != req.CapacityType {
			return fmt.Errorf("offering %s in %s is %s, and the launch is %s", o.InstanceType, o.Zone, o.CapacityType, req.CapacityType)
		}
	}
	return nil
}

// candidate is an offering of the request as EC2 sells it now.
type candidate struct {
	asked decision.Offering
	it    *catalog.InstanceType
	offer catalog.Offering
	image string
	// refused says why EC2 would not launch it even with capacity.
	refused string
}

// sellable are the offerings of the request, cheapest first as EC2 sees it.
func sellable(req port.LaunchRequest, types []*catalog.InstanceType) []candidate {
	var out []candidate
	for _, asked := range req.Offerings {
		cand := candidate{asked: asked, refused: "The requested configuration is currently not supported."}
		i, ok := slices.BinarySearchFunc(types, asked.InstanceType, func(t *catalog.InstanceType, n string) int { return strings.Compare(t.Name, n) })
		if ok {
			cand.it = types[i]
			cand.image = imageFor(req.Class, cand.it)
			for _, o := range cand.it.Offerings {
				if o.Zone == asked.Zone && o.CapacityType == asked.CapacityType {
					cand.offer, cand.refused = o, o.Reason
				}
			}
		}
		out = append(out, cand)
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.offer.Price, b.offer.Price), strings.Compare(a.asked.InstanceType, b.asked.InstanceType), strings.Compare(a.asked.Zone, b.asked.Zone))
	})
	return out
}

// imageFor is the first image of the class that fits the type.
func imageFor(class *ec2v1.EC2NodeClass, it *catalog.InstanceType) string {
	for _, ami := range class.Status.AMIs {
		fits := true
		labels := it.Requirements.Labels()
		for _, e := range ami.Requirements {
			value, ok := labels[e.Key]
			fits = fits && matchesExpression(e, value, ok)
		}
		if fits {
			return ami.ID
		}
	}
	return ""
}

// fulfil takes from the cheapest pool with capacity, again and again.
func (c *Cloud) fulfil(req port.LaunchRequest, candidates []candidate) port.LaunchResult {
	var out port.LaunchResult
	refuse := func(cand candidate, code, message string) {
		out.Refused = append(out.Refused, port.Refusal{Offering: cand.asked, Code: code, Message: message})
	}
	next := 0
	for i := range candidates {
		cand := candidates[i]
		p := Pool{cand.asked.InstanceType, cand.asked.Zone, cand.asked.CapacityType}
		if cand.refused != "" {
			refuse(cand, codeUnsupported, cand.refused)
			continue
		}
		for ; next < len(req.Claims); next++ {
			left, bounded := c.pools[p]
			if bounded && left == 0 {
				refuse(cand, codeNoCapacity, fmt.Sprintf("We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).", p.InstanceType, p.Zone))
				break
			}
			if bounded && left > 0 {
				c.pools[p]--
			}
			out.Instances = append(out.Instances, c.boot(req, next, cand).Instance)
		}
		if next == len(req.Claims) {
			break
		}
	}
	return out
}

// boot launches the nth instance of the request. Nothing says which of the
// claims it is for: EC2 knows only the tags of the whole call.
func (c *Cloud) boot(req port.LaunchRequest, n int, cand candidate) *instance {
	in := &instance{Instance: c.instanceOf(cand.it, cand.offer, "i-0"+HexID(req.Token, n))}
	in.ImageID = cand.image
	in.tag(req.Tags)
	m := c.machine(in, c.nodeName(len(c.instances)), kubeletLabels(in.Labels, req.Template.Labels))
	// The bootstrap of the image registers with all taints, and says so by the
	// label, so that registration does not bring back what was removed since.
	m.Labels[karpv1.NodeDoNotSyncTaintsLabelKey] = "true"
	m.StartupTaints = req.Template.Spec.StartupTaints
	m.Taints = slices.Concat(req.Template.Spec.Taints, m.StartupTaints, []corev1.Taint{karpv1.UnregisteredNoExecuteTaint})
	var boot Boot
	if c.options.Boot != nil {
		boot = c.options.Boot(in.value())
	}
	c.start(in, boot, m)
	return in
}

// kubeletLabels are what the node registers with: what EC2 and the kubelet
// know, and those of the claim that a kubelet may set on itself. The others
// come with registration.
func kubeletLabels(instance, claim map[string]string) map[string]string {
	out := maps.Clone(instance)
	for k, v := range claim {
		domain, _, _ := strings.Cut(k, "/")
		restricted := strings.HasSuffix(domain, "kubernetes.io") || strings.HasSuffix(domain, "k8s.io")
		if !restricted || requirements.WellKnown(k) {
			out[k] = v
		}
	}
	return out
}
