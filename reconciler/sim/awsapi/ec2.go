package awsapi

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// ec2Action is what an action of EC2 does. The input is the SDK's; with dry
// set nothing may be changed, and no error means that the call would succeed.
// The caller holds the mutex.
type ec2Action func(e *Endpoint, in any, dry bool) (any, error)

// act makes an action of a function for its own types that checks nothing
// before it changes something.
func act[I, O any](f func(*Endpoint, *I) (*O, error)) ec2Action {
	return func(e *Endpoint, in any, dry bool) (any, error) {
		if dry {
			return nil, nil
		}
		return f(e, in.(*I))
	}
}

// checked makes an action of a function that does its checks with dry set too.
func checked[I, O any](f func(*Endpoint, *I, bool) (*O, error)) ec2Action {
	return func(e *Endpoint, in any, dry bool) (any, error) { return f(e, in.(*I), dry) }
}

// ec2Actions are the actions that are answered.
var ec2Actions = map[string]ec2Action{
	"CreateFleet":                   checked((*Endpoint).createFleet),
	"CreateLaunchTemplate":          checked((*Endpoint).createLaunchTemplate),
	"CreateTags":                    act((*Endpoint).createTags),
	"DeleteLaunchTemplate":          act((*Endpoint).deleteLaunchTemplate),
	"DeleteTags":                    act((*Endpoint).deleteTags),
	"DescribeCapacityReservations":  act((*Endpoint).describeCapacityReservations),
	"DescribeImages":                act((*Endpoint).describeImages),
	"DescribeInstanceStatus":        act((*Endpoint).describeInstanceStatus),
	"DescribeInstanceTypeOfferings": act((*Endpoint).describeInstanceTypeOfferings),
	"DescribeInstanceTypes":         act((*Endpoint).describeInstanceTypes),
	"DescribeInstances":             act((*Endpoint).describeInstances),
	"DescribeLaunchTemplates":       act((*Endpoint).describeLaunchTemplates),
	"DescribePlacementGroups":       act((*Endpoint).describePlacementGroups),
	"DescribeSecurityGroups":        act((*Endpoint).describeSecurityGroups),
	"DescribeSpotPriceHistory":      act((*Endpoint).describeSpotPriceHistory),
	"DescribeSubnets":               act((*Endpoint).describeSubnets),
	"RunInstances":                  checked((*Endpoint).runInstances),
	"TerminateInstances":            act((*Endpoint).terminateInstances),
}

func (e *Endpoint) ec2Service() service {
	return service{action: formAction, fail: failEC2, handler: http.HandlerFunc(e.serveEC2)}
}

func (e *Endpoint) serveEC2(w http.ResponseWriter, r *http.Request) {
	body, err := e.answerEC2(r)
	if err != nil {
		var known *APIError
		if !errors.As(err, &known) {
			known = &APIError{Code: "InternalError", Message: err.Error()}
		}
		failEC2(w, known)
		return
	}
	writeXML(w, http.StatusOK, body)
}

func (e *Endpoint) answerEC2(r *http.Request) (string, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return "", errorf("MalformedQueryString", "The query string contains a syntax error.")
	}
	action := form.Get("Action")
	do, ok := ec2Actions[action]
	if !ok {
		return "", errorf("InvalidAction", "The action %s is not valid for this web service.", action)
	}
	in := wireInputs[action]()
	if err := decode(form, in); err != nil {
		return "", err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	dry := isDry(in)
	out, err := do(e, in, dry)
	switch {
	case err != nil:
		return "", err
	case dry:
		return "", errorf("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
	}
	return encode(action, out)
}

func isDry(in any) bool {
	f := reflect.ValueOf(in).Elem().FieldByName("DryRun")
	return f.IsValid() && !f.IsNil() && f.Elem().Bool()
}

// describeCapacityReservations finds none: the account has no reservations.
func (e *Endpoint) describeCapacityReservations(in *ec2.DescribeCapacityReservationsInput) (*ec2.DescribeCapacityReservationsOutput, error) {
	for _, id := range in.CapacityReservationIds {
		return nil, errorf("InvalidCapacityReservationId.NotFound", "The capacity reservation '%s' does not exist", id)
	}
	return &ec2.DescribeCapacityReservationsOutput{}, nil
}

// describePlacementGroups finds none: the account has no placement groups.
func (e *Endpoint) describePlacementGroups(in *ec2.DescribePlacementGroupsInput) (*ec2.DescribePlacementGroupsOutput, error) {
	for _, name := range append(in.GroupNames, in.GroupIds...) {
		return nil, errorf("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", name)
	}
	return &ec2.DescribePlacementGroupsOutput{}, nil
}
