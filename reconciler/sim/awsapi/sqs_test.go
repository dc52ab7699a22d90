package awsapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
)

// queueOf is a queue of the simulated SQS with Karpenter's retention.
func queueOf(t *testing.T) (sqsPeer, *Queue, string) {
	t.Helper()
	p, s := simulatedSQS(t)
	out, err := p.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("events"), Attributes: map[string]string{"MessageRetentionPeriod": "300"}})
	check(t, err)
	q, err := s.find(*out.QueueUrl)
	check(t, err)
	return p, q, *out.QueueUrl
}

func TestAMessageIsRetainedForTheTimeOfTheQueue(t *testing.T) {
	p, q, url := queueOf(t)
	send(t, p, url, "first")
	p.pass(time.Second)
	send(t, p, url, "second")
	p.pass(299 * time.Second)
	if diff := cmp.Diff([]string{"second"}, bodies(receive(t, p, url, nil))); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	p.pass(time.Second)
	if visible, hidden := q.Depth(); visible != 0 || hidden != 0 {
		t.Errorf("%d visible and %d in flight after the retention", visible, hidden)
	}
}

func TestALongPollIsWokenWhenAMessageBecomesVisibleAgain(t *testing.T) {
	p, q, url := queueOf(t)
	send(t, p, url, "slow")
	receive(t, p, url, visibleAfter(5))
	got := make(chan []types.Message, 1)
	go func() { got <- receive(t, p, url, waitFor(20)) }()
	p.parked(url)
	p.pass(4 * time.Second)
	select {
	case m := <-got:
		t.Fatalf("received %v before its time-out", bodies(m))
	default:
	}
	// The answer is made at its time, however far the clock goes at once.
	p.pass(16 * time.Second)
	m := <-got
	if len(m) != 1 || m[0].Attributes["ApproximateReceiveCount"] != "2" {
		t.Errorf("received %+v", m)
	}
	if visible, _ := q.Depth(); visible != 0 {
		t.Error("the message that a long poll received is visible at once")
	}
}

func TestReceiversAreServedInTheOrderInWhichTheyCame(t *testing.T) {
	p, q, url := queueOf(t)
	got := make([]chan []types.Message, 3)
	for i := range got {
		got[i] = make(chan []types.Message, 1)
		go func() { got[i] <- receive(t, p, url, waitFor(20)) }()
		check(t, q.AwaitReceivers(t.Context(), i+1))
	}
	for i := range got {
		q.Send(fmt.Sprint(i))
	}
	for i := range got {
		if diff := cmp.Diff([]string{fmt.Sprint(i)}, bodies(<-got[i])); diff != "" {
			t.Errorf("receiver %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestAReceiverThatGoesAwayTakesNothing(t *testing.T) {
	p, q, url := queueOf(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := p.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 20})
		done <- err
	}()
	check(t, q.AwaitReceivers(t.Context(), 1))
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	q.Send("still there")
	if visible, _ := q.Depth(); visible != 1 {
		t.Error("the message went to a receiver that is gone")
	}
	if err := q.Advance(ctx, time.Second, 1); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "0 of 1 receivers") {
		t.Errorf("got error %v", err)
	}
}

func TestDuplicatesComeEvenAfterADeletion(t *testing.T) {
	p, q, url := queueOf(t)
	q.Duplicate(1)
	send(t, p, url, "twice")
	send(t, p, url, "once")
	var ids []string
	for range 3 {
		for _, m := range receive(t, p, url, nil) {
			ids = append(ids, *m.Body)
			_, err := p.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle})
			check(t, err)
		}
	}
	if diff := cmp.Diff([]string{"twice", "once", "twice"}, ids); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

func TestADuplicateHasNoHandleOfTheMessageBefore(t *testing.T) {
	p, q, url := queueOf(t)
	send(t, p, url, "twice")
	old := receive(t, p, url, visibleAfter(1))[0].ReceiptHandle
	p.pass(time.Second)
	q.Duplicate(1)
	receive(t, p, url, nil)
	_, err := p.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: old})
	check(t, err)
	if diff := cmp.Diff([]string{"twice"}, bodies(receive(t, p, url, nil))); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

func TestMessagesComeInTheOrderOfTheScript(t *testing.T) {
	p, q, url := queueOf(t)
	sendBatch(t, p, url, 4)
	q.Reorder(func(n int) []int {
		out := make([]int, n)
		for i := range out {
			out[i] = n - 1 - i
		}
		// What is no message is ignored.
		return append(out, n, -1, 0)
	})
	got := bodies(receive(t, p, url, visibleAfter(1)))
	q.Reorder(nil)
	p.pass(time.Second)
	got = append(got, bodies(receive(t, p, url, nil))...)
	if diff := cmp.Diff([]string{"body 3", "body 2", "body 1", "body 0", "body 0", "body 1", "body 2", "body 3"}, got); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

func TestAHandleThatALaterReceiveReplacedDeletesNothing(t *testing.T) {
	p, q, url := queueOf(t)
	send(t, p, url, "mine")
	old := receive(t, p, url, visibleAfter(1))[0].ReceiptHandle
	p.pass(time.Second)
	_, err := p.client.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: old, VisibilityTimeout: 9})
	wantError[*types.MessageNotInflight](t, err)
	latest := receive(t, p, url, nil)[0].ReceiptHandle
	_, err = p.client.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: old, VisibilityTimeout: 9})
	wantCode(t, err, "InvalidParameterValue")
	_, err = p.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: old})
	check(t, err)
	if _, hidden := q.Depth(); hidden != 1 {
		t.Error("an old handle deleted the message")
	}
	for range 2 { // deleting once more is no error
		_, err = p.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: latest})
		check(t, err)
	}
	if _, hidden := q.Depth(); hidden != 0 {
		t.Error("the message is still there")
	}
}

func TestAQueueIsPurgedOnceAMinute(t *testing.T) {
	p, _, url := queueOf(t)
	purge := func() error {
		_, err := p.client.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url})
		return err
	}
	check(t, purge())
	p.pass(59 * time.Second)
	wantError[*types.PurgeQueueInProgress](t, purge())
	p.pass(time.Second)
	check(t, purge())
}

func TestTheQueuesWaitAndVisibilityHoldUnlessTheRequestHasItsOwn(t *testing.T) {
	p, _ := simulatedSQS(t)
	out, err := p.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q"), Attributes: map[string]string{
		"ReceiveMessageWaitTimeSeconds": "3", "VisibilityTimeout": "7", "DelaySeconds": "2", "Policy": "{}"}})
	check(t, err)
	url := *out.QueueUrl
	send(t, p, url, "x")
	got := make(chan []types.Message, 1)
	go func() { got <- receive(t, p, url, nil) }()
	p.parked(url)
	p.pass(2 * time.Second)
	if m := <-got; len(m) != 1 {
		t.Fatalf("received %v", bodies(m))
	}
	p.pass(7 * time.Second)
	if m := receive(t, p, url, nil); len(m) != 1 {
		t.Errorf("received %v after the queue's time-out", bodies(m))
	}
	attributes, err := p.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"Policy", "VisibilityTimeout", "QueueArn"}})
	check(t, err)
	if diff := cmp.Diff(map[string]string{"Policy": "{}", "VisibilityTimeout": "7", "QueueArn": "arn:aws:sqs:us-east-1:000000000000:q"}, attributes.Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestSQSRefusesWhatItCannotTake(t *testing.T) {
	p, _, url := queueOf(t)
	create := func(name string, attributes map[string]string) error {
		_, err := p.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
		return err
	}
	wantError[*types.QueueNameExists](t, create("events", nil))
	wantError[*types.InvalidAttributeValue](t, create("a", map[string]string{"VisibilityTimeout": "43201"}))
	wantError[*types.InvalidAttributeName](t, create("a", map[string]string{"Colour": "red"}))
	wantError[*types.UnsupportedOperation](t, create("a", map[string]string{"RedrivePolicy": "{}"}))
	wantCode(t, create("a.fifo", nil), "InvalidParameterValue")
	check(t, create("events", map[string]string{"MessageRetentionPeriod": "300"}))

	_, err := p.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("a\x00b")})
	wantError[*types.InvalidMessageContents](t, err)
	_, err = p.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(strings.Repeat("x", 1<<20+1))})
	wantCode(t, err, "InvalidParameterValue")
	_, err = p.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x"), DelaySeconds: 901})
	wantCode(t, err, "InvalidParameterValue")
	_, err = p.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 11})
	wantCode(t, err, "InvalidParameterValue")
	_, err = p.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 43201})
	wantCode(t, err, "InvalidParameterValue")
	_, err = p.client.ListQueues(t.Context(), &sqs.ListQueuesInput{})
	wantCode(t, err, "InvalidAction")
	_, err = p.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"Colour"}})
	wantError[*types.InvalidAttributeName](t, err)
	half := aws.String(strings.Repeat("x", 1<<19+1))
	_, err = p.client.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{
		{Id: aws.String("a"), MessageBody: half}, {Id: aws.String("b"), MessageBody: half}}})
	wantError[*types.BatchRequestTooLong](t, err)
	_, err = p.client.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{{Id: aws.String("no spaces"), MessageBody: half}}})
	wantError[*types.InvalidBatchEntryId](t, err)
}

func TestSQSNamesTheParameterOrTheQueueThatIsMissing(t *testing.T) {
	p, _, url := queueOf(t)
	none, elsewhere, handle := aws.String(""), aws.String("https://sqs.us-east-1.amazonaws.com/999999999999/events"), aws.String("h")
	entry := []types.DeleteMessageBatchRequestEntry{{Id: aws.String("a"), ReceiptHandle: handle}}
	message := []types.SendMessageBatchRequestEntry{{Id: aws.String("a"), MessageBody: handle}}
	for _, c := range []struct {
		name string
		code string
		do   func() error
	}{
		{"a receive without a queue", "MissingParameter", func() error {
			_, err := p.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: none})
			return err
		}},
		{"a deletion without a handle", "MissingParameter", func() error {
			_, err := p.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: none})
			return err
		}},
		{"a change without a handle", "MissingParameter", func() error {
			_, err := p.client.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: none})
			return err
		}},
		{"a change beyond twelve hours", "InvalidParameterValue", func() error {
			_, err := p.client.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: handle, VisibilityTimeout: 43201})
			return err
		}},
		{"a change in another account's queue", noSuchQueue, func() error {
			_, err := p.client.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: elsewhere, ReceiptHandle: handle})
			return err
		}},
		{"a message to another account's queue", noSuchQueue, func() error {
			_, err := p.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: elsewhere, MessageBody: handle})
			return err
		}},
		{"messages to another account's queue", noSuchQueue, func() error {
			_, err := p.client.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: elsewhere, Entries: message})
			return err
		}},
		{"a deletion in another account's queue", noSuchQueue, func() error {
			_, err := p.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: elsewhere, ReceiptHandle: handle})
			return err
		}},
		{"deletions in another account's queue", noSuchQueue, func() error {
			_, err := p.client.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: elsewhere, Entries: entry})
			return err
		}},
		{"a purge of another account's queue", noSuchQueue, func() error {
			_, err := p.client.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: elsewhere})
			return err
		}},
		{"the name of another account's queue", noSuchQueue, func() error {
			_, err := p.client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("events"), QueueOwnerAWSAccountId: aws.String("999999999999")})
			return err
		}},
	} {
		t.Run(c.name+" is refused", func(t *testing.T) { wantCode(t, c.do(), c.code) })
	}
}

const noSuchQueue = "AWS.SimpleQueueService.NonExistentQueue"

// The bytes are written out here as SQS's documentation describes them.
func TestAttributesAreDigestedByNameTypeAndValue(t *testing.T) {
	text := "v"
	one := md5OfAttributes(map[string]messageAttribute{"b": {DataType: "Binary", BinaryValue: []byte("v")}, "a": {DataType: "String", StringValue: &text}})
	two := md5OfAttributes(map[string]messageAttribute{"a": {DataType: "String", StringValue: &text}})
	if want := md5Of("\x00\x00\x00\x01a\x00\x00\x00\x06String\x01\x00\x00\x00\x01v"); two != want {
		t.Errorf("digest of one attribute %s, want %s", two, want)
	}
	if want := md5Of("\x00\x00\x00\x01a\x00\x00\x00\x06String\x01\x00\x00\x00\x01v\x00\x00\x00\x01b\x00\x00\x00\x06Binary\x02\x00\x00\x00\x01v"); one != want {
		t.Errorf("digest of two attributes %s, want %s", one, want)
	}
}

func TestTwoRunsGiveTheSameIDs(t *testing.T) {
	run := func() []string {
		p, _, url := queueOf(t)
		sendBatch(t, p, url, 3)
		var ids []string
		for _, m := range receive(t, p, url, nil) {
			ids = append(ids, *m.MessageId, *m.ReceiptHandle)
		}
		return ids
	}
	one, two := run(), run()
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("ids differ:\n%s", diff)
	}
	if slices.Sort(one); len(slices.Compact(one)) != 6 {
		t.Errorf("ids are not distinct: %v", one)
	}
}

// A client that polls on its own goroutine while the test lets time pass.
func TestAPollerReceivesAllMessagesWhileTimePasses(t *testing.T) {
	p, q, url := queueOf(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	handled, done := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(done)
		for {
			out, err := p.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 20, VisibilityTimeout: 20})
			if err != nil {
				return
			}
			for _, m := range out.Messages {
				handled <- *m.Body
				if _, err := p.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		}
	}()
	var want []string
	for i := range 50 {
		if i%3 == 0 {
			want = append(want, fmt.Sprint(i))
			q.Send(fmt.Sprint(i))
		}
		check(t, q.Advance(ctx, 13*time.Second, 1))
	}
	if now := q.clock.Now(); !now.Equal(frontStart.Add(650 * time.Second)) {
		t.Errorf("the clock stands at %s", now)
	}
	cancel()
	<-done
	close(handled)
	var got []string
	for b := range handled {
		got = append(got, b)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
}
