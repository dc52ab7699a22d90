package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reeve-project/reeve/reconciler/aws/event"
	"github.com/reeve-project/reeve/reconciler/port"
)

const (
	// batchSize is how many messages SQS takes or gives in one call.
	batchSize = 10
	// parallelReceives is how many calls ask for messages at the same time.
	parallelReceives = 10
	// visibility is how long a message that was received is hidden from other
	// receivers, as in Karpenter (pkg/providers/sqs).
	visibility = 20 * time.Second
	// longPoll is the longest that SQS waits for a message.
	longPoll = 20 * time.Second
)

// Queue is the SQS queue into which EventBridge puts what happens to
// instances. It is safe for use by several goroutines.
type Queue struct {
	api  sqsAPI
	name string

	mu  sync.Mutex
	url string
}

var _ port.Queue = (*Queue)(nil)

// Queue is the queue that the options name, nil if they name none. Nothing is
// asked of AWS yet; a queue that does not exist is an error of each call until
// it does.
func (c *Cloud) Queue() *Queue {
	if c.options.Queue == "" {
		return nil
	}
	return &Queue{api: c.sqs, name: c.options.Queue}
}

// received is a message with the id that SQS gave it.
type received struct {
	sqsID   string
	message port.Message
}

// Receive returns messages that are there, at most so many. It asks without
// waiting, by several calls at a time, until there are enough or a round
// brings nothing. Messages that were received are returned even when a later
// call fails: they would be hidden for a while otherwise.
func (q *Queue) Receive(ctx context.Context, most int) ([]port.Message, error) {
	var out []port.Message
	for len(out) < most {
		got, err := q.round(ctx, most-len(out))
		for _, r := range got {
			out = append(out, r.message)
		}
		if err != nil && len(out) == 0 {
			return nil, err
		}
		if err != nil || len(got) == 0 {
			break
		}
	}
	return out, nil
}

// round asks for so many messages by calls at the same time. Its order is that
// of the calls.
func (q *Queue) round(ctx context.Context, most int) ([]received, error) {
	calls := min((most+batchSize-1)/batchSize, parallelReceives)
	got, errs := make([][]received, calls), make([]error, calls)
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() { got[i], errs[i] = q.receive(ctx, min(batchSize, most-i*batchSize), 0) })
	}
	wg.Wait()
	return slices.Concat(got...), errors.Join(errs...)
}

// receive is one call for at most 10 messages that waits so long for the first.
func (q *Queue) receive(ctx context.Context, most int, wait time.Duration) ([]received, error) {
	url, err := q.locate(ctx)
	if err != nil {
		return nil, err
	}
	out, err := q.api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: int32(most), WaitTimeSeconds: int32(wait / time.Second), VisibilityTimeout: int32(visibility / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameSentTimestamp},
		MessageAttributeNames:       []string{"All"},
	})
	if err != nil {
		return nil, q.explain("receive messages from", err)
	}
	got := make([]received, len(out.Messages))
	for i := range out.Messages {
		got[i] = readMessage(&out.Messages[i])
	}
	return got, nil
}

// readMessage turns what SQS delivers into what the pipeline understands.
func readMessage(m *types.Message) received {
	e, err := event.Parse([]byte(awssdk.ToString(m.Body)))
	out := port.Message{Handle: awssdk.ToString(m.ReceiptHandle), ID: e.ID, Interruptions: e.Interruptions}
	if out.ID == "" {
		out.ID = awssdk.ToString(m.MessageId)
	}
	for i := range out.Interruptions {
		in := &out.Interruptions[i]
		in.Message = out.ID
		if in.Time.IsZero() {
			in.Time = sentTime(m)
		}
	}
	if err != nil {
		out.Problem = err.Error()
	}
	return received{sqsID: awssdk.ToString(m.MessageId), message: out}
}

// sentTime is when SQS got the message, zero if it does not say.
func sentTime(m *types.Message) time.Time {
	millis, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64)
	if err != nil || millis <= 0 || millis > maxMillis {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// maxMillis is the end of the year 9999, beyond which times have no encoding.
const maxMillis = 253402300799000

// Delete deletes the messages, ten by one call. Those that are gone, or whose
// handle is no longer valid because they were delivered again, are success.
func (q *Queue) Delete(ctx context.Context, messages []port.Message) error {
	if len(messages) == 0 {
		return nil
	}
	url, err := q.locate(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for batch := range slices.Chunk(messages, batchSize) {
		errs = append(errs, q.deleteBatch(ctx, url, batch))
	}
	return errors.Join(errs...)
}

func (q *Queue) deleteBatch(ctx context.Context, url string, batch []port.Message) error {
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
	for i, m := range batch {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: awssdk.String(fmt.Sprint(i)), ReceiptHandle: awssdk.String(m.Handle)})
	}
	out, err := q.api.DeleteMessageBatch(ctx, in)
	if err != nil {
		return q.explain("delete messages from", err)
	}
	var errs []error
	for _, f := range out.Failed {
		if goneHandle(&f) {
			continue
		}
		errs = append(errs, fmt.Errorf("delete a message from queue %s: %s: %s", q.name, awssdk.ToString(f.Code), awssdk.ToString(f.Message)))
	}
	return errors.Join(errs...)
}

// goneHandle says whether a message was not deleted because its handle has
// expired. If it is still there, it comes again with another handle.
func goneHandle(f *types.BatchResultErrorEntry) bool {
	code := awssdk.ToString(f.Code)
	return strings.Contains(code, "ReceiptHandleIsInvalid") ||
		strings.Contains(code, "InvalidParameterValue") && strings.Contains(awssdk.ToString(f.Message), "expired")
}

// locate finds the URL of the queue, once.
func (q *Queue) locate(ctx context.Context) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.url != "" {
		return q.url, nil
	}
	out, err := q.api.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &q.name})
	if err != nil {
		return "", q.describe("find", err)
	}
	q.url = awssdk.ToString(out.QueueUrl)
	return q.url, nil
}

// explain forgets the URL of a queue that is not there: whoever makes it again
// may have it somewhere else.
func (q *Queue) explain(what string, err error) error {
	if isNoQueue(err) {
		q.mu.Lock()
		q.url = ""
		q.mu.Unlock()
	}
	return q.describe(what, err)
}

func (q *Queue) describe(what string, err error) error {
	if isNoQueue(err) {
		return fmt.Errorf("%s SQS queue %q: %w: it does not exist in this account and region; create it with its EventBridge rules, or set interruptionQueue of the cluster to one that exists: %w",
			what, q.name, port.ErrNotFound, err)
	}
	return fmt.Errorf("%s SQS queue %q: %w", what, q.name, err)
}

func isNoQueue(err error) bool {
	return hasCode(err, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue")
}
