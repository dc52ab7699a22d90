package awsapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/sivchari/kumo"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// The behaviours of TestSQSContract hold for the simulated SQS and for kumo's,
// which others wrote: neither is judged by assertions made for it.

// sqsPeer is an SQS and its time.
type sqsPeer struct {
	client *sqs.Client
	// pass lets time pass.
	pass func(time.Duration)
	// parked returns once a receive waits.
	parked func(url string)
	// clear empties a queue that an earlier run may have left; nil if none can.
	clear func(url string)
}

func simulatedPeer(t *testing.T) sqsPeer {
	p, _ := simulatedSQS(t)
	return p
}

func simulatedSQS(t *testing.T) (sqsPeer, *sqsService) {
	clock := sim.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	s := newSQS(clock, &sync.Mutex{}, "us-east-1", "000000000000")
	return sqsPeer{
		client: sqs.NewFromConfig(config("us-east-1", &http.Client{Transport: transport{s}})),
		pass:   func(d time.Duration) { check(t, clock.Advance(d)) },
		parked: func(url string) {
			q, err := s.find(url)
			check(t, err)
			check(t, q.AwaitReceivers(t.Context(), 1))
		},
	}, s
}

// kumoPeer runs on the wall clock; its times are whole seconds, and it wants a
// little more than them to pass. It keeps its queues for the whole process.
func kumoPeer(t *testing.T) sqsPeer {
	server := kumo.NewServer()
	t.Cleanup(server.Close)
	client := sqs.NewFromConfig(config("us-east-1", http.DefaultClient), func(o *sqs.Options) { o.BaseEndpoint = &server.URL })
	return sqsPeer{
		client: client,
		clear: func(url string) {
			_, err := client.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url})
			check(t, err)
		},
		pass:   func(d time.Duration) { time.Sleep(d + 50*time.Millisecond) },
		parked: func(string) { time.Sleep(200 * time.Millisecond) },
	}
}

var sqsBehaviours = []struct {
	name string
	run  func(t *testing.T, p sqsPeer, url string)
}{
	{"a message is received with what its sender put in", func(t *testing.T, p sqsPeer, url string) {
		sent, err := p.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("wörds & <more>")})
		check(t, err)
		got := receive(t, p, url, nil)
		if len(got) != 1 || *got[0].Body != "wörds & <more>" || *got[0].MessageId != *sent.MessageId || *got[0].MD5OfBody != *sent.MD5OfMessageBody {
			t.Errorf("sent %s, received %+v", *sent.MessageId, got)
		}
		millis, err := strconv.ParseInt(got[0].Attributes["SentTimestamp"], 10, 64)
		check(t, err)
		if at := time.UnixMilli(millis); at.Year() < 2026 || got[0].Attributes["ApproximateReceiveCount"] != "1" {
			t.Errorf("sent at %s, attributes %v", at, got[0].Attributes)
		}
	}},
	{"message attributes arrive when they are asked for", func(t *testing.T, p sqsPeer, url string) {
		_, err := p.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("x"), MessageAttributes: map[string]types.MessageAttributeValue{
			"kind": {DataType: aws.String("String"), StringValue: aws.String("spot")}}})
		check(t, err)
		got := receive(t, p, url, func(in *sqs.ReceiveMessageInput) { in.MessageAttributeNames = []string{"All"} })
		if len(got) != 1 || aws.ToString(got[0].MessageAttributes["kind"].StringValue) != "spot" {
			t.Errorf("received %+v", got)
		}
	}},
	{"an empty queue answers at once without a wait", func(t *testing.T, p sqsPeer, url string) {
		if got := receive(t, p, url, nil); len(got) != 0 {
			t.Errorf("received %v", got)
		}
	}},
	{"a received message is hidden until its time-out, and then comes with another handle", func(t *testing.T, p sqsPeer, url string) {
		send(t, p, url, "once")
		first := receive(t, p, url, visibleAfter(1))
		if again := receive(t, p, url, nil); len(first) != 1 || len(again) != 0 {
			t.Fatalf("received %v, then %v", bodies(first), bodies(again))
		}
		p.pass(time.Second)
		second := receive(t, p, url, nil)
		if len(second) != 1 || second[0].Attributes["ApproximateReceiveCount"] != "2" || *second[0].ReceiptHandle == *first[0].ReceiptHandle {
			t.Errorf("received %+v", second)
		}
	}},
	{"a deleted message does not come back", func(t *testing.T, p sqsPeer, url string) {
		send(t, p, url, "done")
		got := receive(t, p, url, visibleAfter(1))
		_, err := p.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: got[0].ReceiptHandle})
		check(t, err)
		p.pass(time.Second)
		if again := receive(t, p, url, nil); len(again) != 0 {
			t.Errorf("received %v", bodies(again))
		}
	}},
	{"a message can be given back before its time-out", func(t *testing.T, p sqsPeer, url string) {
		send(t, p, url, "back")
		got := receive(t, p, url, visibleAfter(30))
		_, err := p.client.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: got[0].ReceiptHandle, VisibilityTimeout: 0})
		check(t, err)
		p.pass(0)
		if again := receive(t, p, url, nil); len(again) != 1 {
			t.Errorf("received %v", bodies(again))
		}
	}},
	{"a delayed message is not received early", func(t *testing.T, p sqsPeer, url string) {
		_, err := p.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("later"), DelaySeconds: 1})
		check(t, err)
		early := receive(t, p, url, nil)
		p.pass(time.Second)
		if late := receive(t, p, url, nil); len(early) != 0 || len(late) != 1 {
			t.Errorf("received %v, then %v", bodies(early), bodies(late))
		}
	}},
	{"a long poll gets what is sent while it waits", func(t *testing.T, p sqsPeer, url string) {
		got := make(chan []types.Message, 1)
		go func() { got <- receive(t, p, url, waitFor(10)) }()
		p.parked(url)
		send(t, p, url, "news")
		if diff := cmp.Diff([]string{"news"}, bodies(<-got)); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	}},
	{"a long poll ends with nothing after its wait", func(t *testing.T, p sqsPeer, url string) {
		got := make(chan []types.Message, 1)
		go func() { got <- receive(t, p, url, waitFor(1)) }()
		p.parked(url)
		p.pass(time.Second)
		if m := <-got; len(m) != 0 {
			t.Errorf("received %v", bodies(m))
		}
	}},
	{"a receive gets one message unless it asks for more, and ten at most", func(t *testing.T, p sqsPeer, url string) {
		for range 2 {
			sendBatch(t, p, url, 6)
		}
		one := receive(t, p, url, func(in *sqs.ReceiveMessageInput) { in.MaxNumberOfMessages = 0 })
		ten, last := receive(t, p, url, nil), receive(t, p, url, nil)
		if diff := cmp.Diff([]int{1, 10, 1}, []int{len(one), len(ten), len(last)}); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
	}},
	{"an entry of a batch fails alone", func(t *testing.T, p sqsPeer, url string) {
		sendBatch(t, p, url, 2)
		got := receive(t, p, url, visibleAfter(30))
		out, err := p.client.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: []types.DeleteMessageBatchRequestEntry{
			{Id: aws.String("good"), ReceiptHandle: got[0].ReceiptHandle}, {Id: aws.String("bad"), ReceiptHandle: aws.String("nonsense")}}})
		check(t, err)
		if len(out.Successful) != 1 || *out.Successful[0].Id != "good" || len(out.Failed) != 1 || *out.Failed[0].Id != "bad" || *out.Failed[0].Code != "ReceiptHandleIsInvalid" || !out.Failed[0].SenderFault {
			t.Errorf("successful %+v, failed %+v", out.Successful, out.Failed)
		}
	}},
	{"a batch without entries and one with an id twice are refused", func(t *testing.T, p sqsPeer, url string) {
		_, err := p.client.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{}})
		wantError[*types.EmptyBatchRequest](t, err)
		e := types.SendMessageBatchRequestEntry{Id: aws.String("a"), MessageBody: aws.String("x")}
		_, err = p.client.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{e, e}})
		wantError[*types.BatchEntryIdsNotDistinct](t, err)
		_, err = p.client.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: slices.Repeat([]types.SendMessageBatchRequestEntry{e}, 11)})
		wantError[*types.TooManyEntriesInBatchRequest](t, err)
	}},
	{"a purge empties the queue", func(t *testing.T, p sqsPeer, url string) {
		sendBatch(t, p, url, 3)
		receive(t, p, url, func(in *sqs.ReceiveMessageInput) { in.MaxNumberOfMessages = 1 })
		_, err := p.client.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url})
		check(t, err)
		if got := depth(t, p, url); got != [3]string{"0", "0", "0"} {
			t.Errorf("visible, in flight and delayed: %v", got)
		}
	}},
	{"the attributes count what is visible, in flight and delayed", func(t *testing.T, p sqsPeer, url string) {
		sendBatch(t, p, url, 3)
		receive(t, p, url, func(in *sqs.ReceiveMessageInput) { in.MaxNumberOfMessages = 1 })
		_, err := p.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("later"), DelaySeconds: 60})
		check(t, err)
		if got := depth(t, p, url); got != [3]string{"2", "1", "1"} {
			t.Errorf("visible, in flight and delayed: %v", got)
		}
	}},
	{"a queue is found by its name, and a missing one is not", func(t *testing.T, p sqsPeer, url string) {
		name := url[len(url)-len("contract-00"):]
		out, err := p.client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &name})
		check(t, err)
		if *out.QueueUrl != url {
			t.Errorf("the URL is %s, not %s", *out.QueueUrl, url)
		}
		_, err = p.client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("nowhere")})
		wantCode(t, err, "AWS.SimpleQueueService.NonExistentQueue")
		_, err = p.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(url + "-not")})
		wantCode(t, err, "AWS.SimpleQueueService.NonExistentQueue")
	}},
	{"a handle that is none is refused", func(t *testing.T, p sqsPeer, url string) {
		_, err := p.client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: aws.String("nonsense")})
		wantError[*types.ReceiptHandleIsInvalid](t, err)
		_, err = p.client.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: aws.String("nonsense"), VisibilityTimeout: 5})
		wantError[*types.ReceiptHandleIsInvalid](t, err)
	}},
	{"a wait beyond twenty seconds and an empty body are refused", func(t *testing.T, p sqsPeer, url string) {
		_, err := p.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 21})
		wantCode(t, err, "InvalidParameterValue")
		_, err = p.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("")})
		wantCode(t, err, "MissingParameter")
	}},
}

func TestSQSContract(t *testing.T) {
	for _, peer := range []struct {
		name  string
		start func(*testing.T) sqsPeer
	}{{"simulated", simulatedPeer}, {"kumo", kumoPeer}} {
		t.Run(peer.name, func(t *testing.T) {
			p := peer.start(t)
			for i, b := range sqsBehaviours {
				url := createQueue(t, p, fmt.Sprintf("contract-%02d", i))
				if p.clear != nil {
					p.clear(url)
				}
				t.Run(b.name, func(t *testing.T) { b.run(t, p, url) })
			}
		})
	}
}

func createQueue(t *testing.T, p sqsPeer, name string) string {
	t.Helper()
	out, err := p.client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	check(t, err)
	return *out.QueueUrl
}

func send(t *testing.T, p sqsPeer, url, body string) {
	t.Helper()
	_, err := p.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
	check(t, err)
}

func sendBatch(t *testing.T, p sqsPeer, url string, n int) {
	t.Helper()
	in := &sqs.SendMessageBatchInput{QueueUrl: &url}
	for i := range n {
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(fmt.Sprintf("body %d", i))})
	}
	out, err := p.client.SendMessageBatch(t.Context(), in)
	check(t, err)
	if len(out.Successful) != n {
		t.Fatalf("sent %d of %d: %+v", len(out.Successful), n, out.Failed)
	}
}

// receive asks for ten messages with all attributes, changed by the function.
func receive(t *testing.T, p sqsPeer, url string, change func(*sqs.ReceiveMessageInput)) []types.Message {
	t.Helper()
	in := &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}}
	if change != nil {
		change(in)
	}
	out, err := p.client.ReceiveMessage(t.Context(), in)
	if err != nil {
		t.Errorf("receive: %v", err)
		return nil
	}
	return out.Messages
}

func visibleAfter(seconds int32) func(*sqs.ReceiveMessageInput) {
	return func(in *sqs.ReceiveMessageInput) { in.VisibilityTimeout = seconds }
}

func waitFor(seconds int32) func(*sqs.ReceiveMessageInput) {
	return func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = seconds }
}

func bodies(ms []types.Message) []string {
	var out []string
	for _, m := range ms {
		out = append(out, *m.Body)
	}
	return out
}

func depth(t *testing.T, p sqsPeer, url string) [3]string {
	t.Helper()
	out, err := p.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"All"}})
	check(t, err)
	return [3]string{out.Attributes["ApproximateNumberOfMessages"], out.Attributes["ApproximateNumberOfMessagesNotVisible"], out.Attributes["ApproximateNumberOfMessagesDelayed"]}
}

func wantError[E error](t *testing.T, err error) {
	t.Helper()
	var want E
	if !errors.As(err, &want) {
		t.Errorf("got error %v, want a %T", err, want)
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code {
		t.Errorf("got error %v, want the code %s", err, code)
	}
}
