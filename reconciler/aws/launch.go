package aws

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/reeve-project/reeve/reconciler/port"
)

// Launch launches the claims of the request with one CreateFleet call of type
// instant. The same token gives the same answer and launches nothing more: what
// was sent with it is remembered and sent again as it was, whatever the request
// says now. After a restart the call is computed anew; if it then differs, EC2
// refuses it, which is port.ErrTokenUsed: what was launched is found by its tags,
// and the rest needs the next attempt.
//
// Refused offerings come with the instances, or with
// port.ErrInsufficientCapacity when there are none. A terminal error means that
// neither this token nor this request leads to anything; any other that the
// request is to be made again with the same token.
func (c *Cloud) Launch(ctx context.Context, req port.LaunchRequest) (port.LaunchResult, error) {
	out, err := c.launch(ctx, req)
	if err != nil {
		err = fmt.Errorf("launch for decision %s, group %d, attempt %d: %w", req.Decision, req.Group, req.Attempt, err)
	}
	return out, err
}

func (c *Cloud) launch(ctx context.Context, req port.LaunchRequest) (port.LaunchResult, error) {
	if err := checkLaunch(req); err != nil {
		return port.LaunchResult{}, port.Terminal(err)
	}
	l, err := c.prepare(ctx, req)
	if err != nil {
		return port.LaunchResult{}, err
	}
	answer, err := c.createFleet(ctx, l)
	if err != nil {
		return c.refusedCall(req, l, err)
	}
	first := c.launches.answer(l)
	out := c.result(req, l, answer)
	if first {
		c.settle(l, answer)
	}
	return out, c.verdict(ctx, l, answer, out)
}

// prepare is the call for the request, as it was made before or planned now.
func (c *Cloud) prepare(ctx context.Context, req port.LaunchRequest) (*launch, error) {
	now := c.clock.Now()
	if l := c.launches.recall(req.Token, now); l != nil {
		if have := aws.ToInt32(l.input.TargetCapacitySpecification.TotalTargetCapacity); int(have) != len(req.Claims) {
			return nil, fmt.Errorf("%s: the client token was used for %d claims and not %d: %w", codeMismatch, have, len(req.Claims), port.ErrTokenUsed)
		}
		return l, nil
	}
	l, err := c.plan(ctx, req)
	if err != nil {
		return nil, err
	}
	return c.launches.remember(req.Token, l, now), nil
}

// createFleet makes the call. Templates that have vanished are made again, once.
func (c *Cloud) createFleet(ctx context.Context, l *launch) (*ec2.CreateFleetOutput, error) {
	if c.launches.isOpen(l) {
		if err := c.ensureTemplates(ctx, l.templates); err != nil {
			return nil, err
		}
	}
	out, err := c.ec2.CreateFleet(ctx, l.input)
	if hasCode(err, codeNoTemplate) {
		c.forgetTemplates(l.templates)
		if err := c.ensureTemplates(ctx, l.templates); err != nil {
			return nil, err
		}
		out, err = c.ec2.CreateFleet(ctx, l.input)
	}
	if err != nil {
		return nil, &fleetError{err}
	}
	return out, nil
}

// fleetError is an error of CreateFleet itself.
type fleetError struct{ err error }

func (e *fleetError) Error() string { return e.err.Error() }
func (e *fleetError) Unwrap() error { return e.err }

// refusedCall is the answer when EC2 refused the whole call or gave none.
func (c *Cloud) refusedCall(req port.LaunchRequest, l *launch, err error) (port.LaunchResult, error) {
	var fleet *fleetError
	if !errors.As(err, &fleet) {
		return port.LaunchResult{}, err
	}
	code := codeOf(err)
	err = kinded("ec2:CreateFleet", fleet.err)
	switch {
	case isUnfulfillable(code), code == codeNoSpotRole && req.CapacityType == karpv1.CapacityTypeSpot:
		var out port.LaunchResult
		for _, o := range l.offerings {
			out.Refused = append(out.Refused, port.Refusal{Offering: o, Code: code, Message: messageOf(err)})
		}
		c.release(l)
		if code == codeNoSpotRole {
			// Another capacity type may do, so this is not the end.
			return out, fmt.Errorf("ec2:CreateFleet: %w: %s: %w", fleet.err, advice("ec2:CreateFleet", code), port.ErrInsufficientCapacity)
		}
		return out, err
	case code == codeNoTemplate:
		// It was made just now: EC2 does not see everywhere at once what it has
		// been told.
		return port.LaunchResult{}, err
	case errors.Is(err, port.ErrNotFound):
		err = port.Terminal(fmt.Errorf("%w: %s", err, advice("ec2:CreateFleet", code)))
	}
	if port.IsTerminal(err) || errors.Is(err, port.ErrTokenUsed) {
		c.release(l)
	}
	return port.LaunchResult{}, err
}

// release gives back the addresses that were set aside for a call that launched
// nothing, and the templates it held.
func (c *Cloud) release(l *launch) {
	if c.launches.answer(l) {
		c.settle(l, &ec2.CreateFleetOutput{})
	}
}

// settle gives back the addresses of nodes that were not launched in a subnet.
func (c *Cloud) settle(l *launch, answer *ec2.CreateFleetOutput) {
	taken := map[string]int64{}
	for _, in := range answer.Instances {
		taken[placeOf(in).subnet] += int64(len(in.InstanceIds)) * l.perNode
	}
	for id := range l.subnets {
		c.addresses.release(id, l.addresses-taken[id])
	}
	for _, e := range answer.Errors {
		if id := overridesOf(e.LaunchTemplateAndOverrides).SubnetId; aws.ToString(e.ErrorCode) == codeNoAddresses && id != nil {
			c.addresses.observe(*id, 0)
		}
	}
}

// verdict is the error of an answered call: none when something was launched.
func (c *Cloud) verdict(ctx context.Context, l *launch, answer *ec2.CreateFleetOutput, out port.LaunchResult) error {
	other := c.otherErrors(ctx, l, answer)
	switch {
	case len(out.Instances) > 0:
		return nil
	case other != nil:
		return port.Terminal(other)
	case len(out.Refused) > 0:
		return fmt.Errorf("ec2:CreateFleet: none of %d offerings: %w", len(l.offerings), port.ErrInsufficientCapacity)
	}
	return port.Terminal(fmt.Errorf("ec2:CreateFleet: EC2 launched nothing and does not say why: look at fleet %s in CloudTrail", aws.ToString(answer.FleetId)))
}

// otherErrors are those in the answer that do not mean that there is no
// capacity. EC2 answers this token so for ever, so that another attempt is
// needed whatever they are.
func (c *Cloud) otherErrors(ctx context.Context, l *launch, answer *ec2.CreateFleetOutput) error {
	var errs []error
	seen := map[string]bool{}
	for _, e := range answer.Errors {
		code, message := aws.ToString(e.ErrorCode), aws.ToString(e.ErrorMessage)
		if isUnfulfillable(code) || code == codeNoSpotRole || seen[code+message] {
			continue
		}
		seen[code+message] = true
		if code == codeNoTemplate {
			c.forgetTemplates(l.templates)
		}
		c.log.WarnContext(ctx, "EC2 could not launch some offerings", "code", code, "message", message)
		errs = append(errs, fmt.Errorf("ec2:CreateFleet: %s: %s: %s", code, message, advice("ec2:CreateFleet", code)))
	}
	return errors.Join(errs...)
}
