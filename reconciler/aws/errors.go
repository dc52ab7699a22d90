package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/reeve-project/reeve/reconciler/port"
)

// credentialWait is how long to wait for credentials to be renewed, limitWait
// for somebody to make room below a limit of the account.
const (
	credentialWait = time.Minute
	limitWait      = time.Minute
)

// unfulfillable are the codes by which EC2 says that it has no capacity for an
// offering (Karpenter, pkg/errors).
var unfulfillable = []string{
	"InsufficientFreeAddressesInSubnet", "InsufficientInstanceCapacity", "MaxFleetCountExceeded", "MaxSpotInstanceCountExceeded",
	"ReservationCapacityExceeded", "UnfulfillableCapacity", "Unsupported", "VcpuLimitExceeded",
}

const (
	codeNoSpotRole    = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
	codeNoAddresses   = "InsufficientFreeAddressesInSubnet"
	codeNoTemplate    = "InvalidLaunchTemplateName.NotFoundException"
	codeTemplateThere = "InvalidLaunchTemplateName.AlreadyExistsException"
	codeNoInstance    = "InvalidInstanceID.NotFound"
	codeBadInstance   = "InvalidInstanceID.Malformed"
	codeMismatch      = "IdempotentParameterMismatch"
)

// notFound are the codes by which a service says that the object is not there.
var notFound = []string{
	codeNoInstance, codeNoTemplate, "InvalidLaunchTemplateId.NotFound", "InvalidCapacityReservationId.NotFound",
	"QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "NoSuchEntity", "ParameterNotFound", "ResourceNotFoundException",
}

// throttled are the codes that ask for fewer calls.
var throttled = []string{
	"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestThrottledException",
	"TooManyRequestsException", "EC2ThrottledException", "SlowDown", "PriorRequestNotComplete", "ProvisionedThroughputExceededException",
}

// expired are the codes that new credentials or a right clock mend.
var expired = []string{
	"ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId", "UnrecognizedClientException",
	"AuthFailure", "SignatureDoesNotMatch", "InvalidSignatureException",
}

// unauthorized are the codes that a change of an IAM policy mends.
var unauthorized = []string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthorizationError", "OptInRequired"}

// busy are server-side codes that come with a status of a client's error.
var busy = []string{"InternalError", "InternalFailure", "ServiceUnavailable", "ServiceUnavailableException", "Unavailable", "RequestTimeout", "RequestTimeoutException", "IncorrectState", "IncorrectInstanceState"}

// codeOf is the code of the service's error, or "".
func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func hasCode(err error, codes ...string) bool { return slices.Contains(codes, codeOf(err)) }

// isUnfulfillable says whether the code means that there is no capacity.
func isUnfulfillable(code string) bool { return slices.Contains(unfulfillable, code) }

// kinded says by its kind what to do about an error of the call, such as
// "ec2:CreateFleet": nothing mends it (port.Terminal), wait (port.RetryAfter),
// the object is not there (port.ErrNotFound), there is no capacity
// (port.ErrInsufficientCapacity), the client token is spent
// (port.ErrTokenUsed). Any other may be gone when the call is repeated.
func kinded(call string, err error) error {
	if err == nil {
		return nil
	}
	code := codeOf(err)
	wrapped := fmt.Errorf("%s: %w", call, err)
	switch {
	case code == "":
		return unanswered(call, err)
	case slices.Contains(notFound, code):
		return fmt.Errorf("%w: %w", wrapped, port.ErrNotFound)
	case code == codeMismatch:
		return fmt.Errorf("%w: %w", wrapped, port.ErrTokenUsed)
	case isUnfulfillable(code):
		return fmt.Errorf("%w: %w", wrapped, port.ErrInsufficientCapacity)
	case code == codeMismatch:
		return port.Terminal(fmt.Errorf("%w: %s: %w", wrapped, advice(call, code), port.ErrTokenUsed))
	case slices.Contains(throttled, code), slices.Contains(busy, code):
		return wrapped
	case slices.Contains(expired, code) && !strings.HasPrefix(messageOf(err), "Not authorized for images"):
		return port.RetryAfter(fmt.Errorf("%w: AWS does not take the credentials of the controller: renew them (check the role of its service account) or set its clock", wrapped), credentialWait)
	case strings.Contains(code, "LimitExceeded"):
		return port.RetryAfter(fmt.Errorf("%w: the account has reached a limit: delete what is not needed or ask AWS for a higher quota", wrapped), limitWait)
	case serverSide(err):
		return wrapped
	}
	return port.Terminal(fmt.Errorf("%w: %s", wrapped, advice(call, code)))
}

// unanswered is an error without an answer of the service: it may have done
// what it was asked for all the same.
func unanswered(call string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: no answer in time: %w", call, err)
	}
	return fmt.Errorf("%s: %w", call, err)
}

// serverSide says whether the service blames itself for the error.
func serverSide(err error) bool {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorFault() == smithy.FaultServer {
		return true
	}
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		status := answer.HTTPStatusCode()
		return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
	}
	return false
}

// advice is what to do about an error that no repetition mends.
func advice(call, code string) string {
	switch {
	case slices.Contains(unauthorized, code):
		return fmt.Sprintf("the role of the controller may not do this: allow %s in its IAM policy, and look for a service control policy that denies it", call)
	case code == codeNoSpotRole:
		return "the account has no service-linked role for spot: run aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
	case strings.HasPrefix(code, "InvalidUserData"):
		return "EC2 does not take the user data: shorten or correct spec.userData of the EC2NodeClass"
	case strings.HasPrefix(code, "InvalidAMI"), code == "AuthFailure", strings.HasPrefix(code, "InvalidBlockDevice"), strings.HasPrefix(code, "InvalidSecurityGroup"),
		strings.HasPrefix(code, "InvalidGroup"), strings.HasPrefix(code, "InvalidSubnet"), strings.HasPrefix(code, "InvalidKey"), strings.HasPrefix(code, "InvalidSnapshot"):
		return "something that the EC2NodeClass names is not there or does not fit: correct the EC2NodeClass"
	}
	return "EC2 does not take the request: compare the message with the EC2NodeClass and the NodePool, and correct them"
}

// messageOf is what the service says in its error, or the whole error.
func messageOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorMessage()
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// maxQuoted is how much is kept of the text of an error that quotes what AWS
// sent.
const maxQuoted = 128

// short cuts the text of an error that may quote what it could not read.
func short(err error) error {
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) <= maxQuoted {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:maxQuoted], "") + " …")
}
