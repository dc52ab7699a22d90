package awsapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// sqsService answers the JSON 1.0 protocol of SQS for the queues of one account
// in one region.
type sqsService struct {
	clock           *sim.Clock
	account, region string
	// world is held by a request while it may use the clock, and not while it
	// waits for messages.
	world sync.Locker

	mu     sync.Mutex
	queues map[string]*Queue
}

func newSQS(clock *sim.Clock, world sync.Locker, region, account string) *sqsService {
	return &sqsService{clock: clock, world: world, region: region, account: account, queues: map[string]*Queue{}}
}

// The errors that every AWS service of that framework shares: they are not in
// SQS's own model, so clients know them by the code of the query protocol.
const (
	shapeInvalidParameter = "InvalidParameterValueException"
	shapeMissingParameter = "MissingRequiredParameterException"
	shapeInvalidAction    = "InvalidActionException"
)

func invalid(format string, args ...any) error {
	return errorf(shapeInvalidParameter, format, args...)
}

func missing(parameter string) error {
	return errorf(shapeMissingParameter, "The request must contain the parameter %s.", parameter)
}

func badHandle(handle string) error {
	return errorf("ReceiptHandleIsInvalid", "The input receipt handle %q is not a valid receipt handle.", handle)
}

func noQueue() error { return errorf("QueueDoesNotExist", "The specified queue does not exist.") }

// queryCode is the code in the query protocol of an error of SQS's model. SQS
// repeats it in a header, and the SDK reports it as the code.
func queryCode(shape string) string {
	switch shape {
	case shapeInvalidParameter, shapeMissingParameter, shapeInvalidAction:
		return strings.TrimSuffix(strings.Replace(shape, "Required", "", 1), "Exception")
	case "QueueDoesNotExist":
		return "AWS.SimpleQueueService.NonExistentQueue"
	case "QueueNameExists":
		return "QueueAlreadyExists"
	case "BatchEntryIdsNotDistinct", "BatchRequestTooLong", "EmptyBatchRequest", "InvalidBatchEntryId", "MessageNotInflight",
		"PurgeQueueInProgress", "TooManyEntriesInBatchRequest", "UnsupportedOperation":
		return "AWS.SimpleQueueService." + shape
	default:
		return shape
	}
}

// failSQS writes an error as SQS does.
func failSQS(w http.ResponseWriter, err *APIError) {
	status := err.status()
	switch {
	case err.Status != 0:
	case err.Code == "ReceiptHandleIsInvalid":
		status = http.StatusNotFound
	case err.Code == "PurgeQueueInProgress" || err.Code == "RequestThrottled" || err.Code == "OverLimit":
		status = http.StatusForbidden
	}
	space, fault := "com.amazonaws.sqs#", "Sender"
	if strings.HasSuffix(err.Code, "Exception") {
		space = "com.amazon.coral.service#"
	}
	if status >= http.StatusInternalServerError {
		fault = "Receiver"
	}
	w.Header().Set("x-amzn-query-error", queryCode(err.Code)+";"+fault)
	sendJSON(w, jsonTen, status, map[string]string{"__type": space + err.Code, "message": err.Message})
}

// sqsAction reads a request and answers it; a *receiver as the answer means that
// it is yet to come.
type sqsAction func(s *sqsService, body []byte) (any, error)

// sqsAct is an action on the decoded request.
func sqsAct[In any](f func(s *sqsService, in In) (any, error)) sqsAction {
	return func(s *sqsService, body []byte) (any, error) {
		var in In
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, errorf("SerializationException", "%v", err)
		}
		return f(s, in)
	}
}

var sqsActions = map[string]sqsAction{
	"ChangeMessageVisibility": sqsAct((*sqsService).changeVisibility),
	"CreateQueue":             sqsAct((*sqsService).createQueue),
	"DeleteMessage":           sqsAct((*sqsService).deleteMessage),
	"DeleteMessageBatch":      sqsAct((*sqsService).deleteBatch),
	"GetQueueAttributes":      sqsAct((*sqsService).queueAttributes),
	"GetQueueUrl":             sqsAct((*sqsService).queueURL),
	"PurgeQueue":              sqsAct((*sqsService).purgeQueue),
	"ReceiveMessage":          sqsAct((*sqsService).receiveMessage),
	"SendMessage":             sqsAct((*sqsService).sendMessage),
	"SendMessageBatch":        sqsAct((*sqsService).sendBatch),
}

// ServeHTTP answers one request; a receive with a wait may take as long as
// virtual time takes to pass.
func (s *sqsService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		failSQS(w, errorf("SerializationException", "read request: %v", err))
		return
	}
	out, err := s.act(jsonAction(r, nil), body)
	if err != nil {
		failSQS(w, asAPIError(err))
		return
	}
	if p, ok := out.(*pendingReceive); ok {
		out = p.answer(r.Context())
	}
	sendJSON(w, jsonTen, http.StatusOK, out)
}

func (s *sqsService) act(action string, body []byte) (any, error) {
	f, ok := sqsActions[action]
	if !ok {
		return nil, errorf(shapeInvalidAction, "The action %q is not one that the simulation answers.", action)
	}
	s.world.Lock()
	defer s.world.Unlock()
	return f(s, body)
}

// pendingReceive is a receive that waits, with what its client wants to see of
// the messages.
type pendingReceive struct {
	*receiver
	request *receiveRequest
}

func (p *pendingReceive) answer(ctx context.Context) any {
	return p.request.response(p.queue, p.wait(ctx))
}

var queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// create makes the queue unless it exists with the same attributes.
func (s *sqsService) create(name string, attributes map[string]string) (*Queue, error) {
	if !queueName.MatchString(name) {
		return nil, invalid("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	set, err := newSettings(attributes)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, ok := s.queues[name]; ok {
		if !q.settings.equal(set) {
			return nil, errorf("QueueNameExists", "A queue already exists with the same name and a different value for an attribute.")
		}
		return q, nil
	}
	q := newQueue(s.clock, s.world, s.region, s.account, name, set)
	s.queues[name] = q
	return q, nil
}

// find is the queue of a URL. Only the account and the name count, since
// clients may reach the endpoint under any host.
func (s *sqsService) find(url string) (*Queue, error) {
	if url == "" {
		return nil, missing("QueueUrl")
	}
	parts := strings.Split(strings.TrimSuffix(url, "/"), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	if q, ok := s.queues[parts[len(parts)-1]]; ok && len(parts) > 1 && parts[len(parts)-2] == s.account {
		return q, nil
	}
	return nil, noQueue()
}

// seconds checks a number of seconds against SQS's bounds.
func seconds(parameter string, v, limit int) (time.Duration, error) {
	if v < 0 || v > limit {
		return 0, invalid("Value %d for parameter %s is invalid. Reason: Must be >= 0 and <= %d, if provided.", v, parameter, limit)
	}
	return time.Duration(v) * time.Second, nil
}
