package awsapi

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// maxBatch is how many messages one request may send, receive or delete.
const maxBatch = 10

// maxVisibility is the longest visibility time-out, in seconds.
const maxVisibility = 43_200

type createQueueRequest struct {
	QueueName  string
	Attributes map[string]string
}

func (s *sqsService) createQueue(in createQueueRequest) (any, error) {
	q, err := s.create(in.QueueName, in.Attributes)
	if err != nil {
		return nil, err
	}
	return map[string]string{"QueueUrl": q.url}, nil
}

type queueURLRequest struct {
	QueueName              string
	QueueOwnerAWSAccountId string
}

func (s *sqsService) queueURL(in queueURLRequest) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[in.QueueName]
	if !ok || in.QueueOwnerAWSAccountId != "" && in.QueueOwnerAWSAccountId != s.account {
		return nil, noQueue()
	}
	return map[string]string{"QueueUrl": q.url}, nil
}

type queueAttributesRequest struct {
	QueueUrl       string
	AttributeNames []string
}

func (s *sqsService) queueAttributes(in queueAttributesRequest) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	known := queueAttributeNames()
	for _, n := range in.AttributeNames {
		if !slices.Contains(known, n) {
			return nil, errorf("InvalidAttributeName", "Unknown Attribute %s.", n)
		}
	}
	out := q.attributes()
	maps.DeleteFunc(out, func(name, _ string) bool {
		return !slices.Contains(in.AttributeNames, "All") && !slices.Contains(in.AttributeNames, name)
	})
	return map[string]any{"Attributes": out}, nil
}

// sendEntry is a message to send, alone or in a batch.
type sendEntry struct {
	Id                string
	MessageBody       *string
	DelaySeconds      *int
	MessageAttributes map[string]messageAttribute
}

type sendRequest struct {
	QueueUrl string
	sendEntry
}

// sent is the answer for one message.
type sent struct {
	Id                     string `json:",omitempty"`
	MessageId              string
	MD5OfMessageBody       string
	MD5OfMessageAttributes string `json:",omitempty"`
}

func (s *sqsService) sendMessage(in sendRequest) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return q.sendEntry(in.sendEntry)
}

func (q *Queue) sendEntry(e sendEntry) (*sent, error) {
	if err := checkMessage(e.MessageBody, e.MessageAttributes, q.settings); err != nil {
		return nil, err
	}
	wait := q.settings.delay
	if e.DelaySeconds != nil {
		wait = *e.DelaySeconds
	}
	delay, err := seconds("DelaySeconds", wait, 900)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	id := q.send(*e.MessageBody, e.MessageAttributes, delay)
	return &sent{Id: e.Id, MessageId: id, MD5OfMessageBody: md5Of(*e.MessageBody), MD5OfMessageAttributes: md5OfAttributes(e.MessageAttributes)}, nil
}

// batch is a request for several messages; failed entries do not fail it.
type batch[E any] struct {
	QueueUrl string
	Entries  []E
}

type batchFailure struct {
	Id, Code, Message string
	SenderFault       bool
}

var batchID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// runBatch checks the entries' ids and does one after the other.
func runBatch[E, R any](entries []E, id func(E) string, do func(E) (R, error)) (any, error) {
	switch {
	case len(entries) == 0:
		return nil, errorf("EmptyBatchRequest", "There should be at least one entry in the request.")
	case len(entries) > maxBatch:
		return nil, errorf("TooManyEntriesInBatchRequest", "Maximum number of entries per request are %d. You have sent %d.", maxBatch, len(entries))
	}
	seen := map[string]bool{}
	for _, e := range entries {
		switch {
		case !batchID.MatchString(id(e)):
			return nil, errorf("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		case seen[id(e)]:
			return nil, errorf("BatchEntryIdsNotDistinct", "Id %s repeated.", id(e))
		}
		seen[id(e)] = true
	}
	out := struct {
		Successful []R            `json:",omitempty"`
		Failed     []batchFailure `json:",omitempty"`
	}{}
	for _, e := range entries {
		r, err := do(e)
		if err != nil {
			known := asAPIError(err)
			out.Failed = append(out.Failed, batchFailure{Id: id(e), Code: queryCode(known.Code), Message: known.Message, SenderFault: true})
			continue
		}
		out.Successful = append(out.Successful, r)
	}
	return out, nil
}

func (s *sqsService) sendBatch(in batch[sendEntry]) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, e := range in.Entries {
		if e.MessageBody != nil {
			size += len(*e.MessageBody)
		}
	}
	if size > q.settings.size {
		return nil, errorf("BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", q.settings.size, size)
	}
	return runBatch(in.Entries, func(e sendEntry) string { return e.Id }, q.sendEntry)
}

type deleteEntry struct {
	Id            string
	ReceiptHandle string
}

type deleteRequest struct {
	QueueUrl string
	deleteEntry
}

func (s *sqsService) deleteMessage(in deleteRequest) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	_, err = q.deleteEntry(in.deleteEntry)
	return struct{}{}, err
}

func (q *Queue) deleteEntry(e deleteEntry) (map[string]string, error) {
	if e.ReceiptHandle == "" {
		return nil, missing("ReceiptHandle")
	}
	return map[string]string{"Id": e.Id}, q.remove(e.ReceiptHandle)
}

func (s *sqsService) deleteBatch(in batch[deleteEntry]) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return runBatch(in.Entries, func(e deleteEntry) string { return e.Id }, q.deleteEntry)
}

type visibilityRequest struct {
	QueueUrl, ReceiptHandle string
	VisibilityTimeout       *int
}

func (s *sqsService) changeVisibility(in visibilityRequest) (any, error) {
	q, err := s.find(in.QueueUrl)
	switch {
	case err != nil:
		return nil, err
	case in.ReceiptHandle == "":
		return nil, missing("ReceiptHandle")
	case in.VisibilityTimeout == nil:
		return nil, missing("VisibilityTimeout")
	}
	d, err := seconds("VisibilityTimeout", *in.VisibilityTimeout, maxVisibility)
	if err != nil {
		return nil, err
	}
	return struct{}{}, q.hide(in.ReceiptHandle, d)
}

type purgeRequest struct{ QueueUrl string }

func (s *sqsService) purgeQueue(in purgeRequest) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return struct{}{}, q.purge()
}

type receiveRequest struct {
	QueueUrl                    string
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
}

func (s *sqsService) receiveMessage(in receiveRequest) (any, error) {
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	limit := orElse(in.MaxNumberOfMessages, 1)
	if limit < 1 || limit > maxBatch {
		return nil, invalid("Value %d for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.", limit)
	}
	visibility, err := seconds("VisibilityTimeout", orElse(in.VisibilityTimeout, q.settings.visibility), maxVisibility)
	if err != nil {
		return nil, err
	}
	wait, err := seconds("WaitTimeSeconds", orElse(in.WaitTimeSeconds, q.settings.wait), 20)
	if err != nil {
		return nil, err
	}
	got, waits := q.receive(limit, visibility, wait)
	if waits != nil {
		return &pendingReceive{receiver: waits, request: &in}, nil
	}
	return in.response(q, got), nil
}

func orElse[T any](v *T, otherwise T) T {
	if v != nil {
		return *v
	}
	return otherwise
}

// receivedMessage is a message as the wire has it.
type receivedMessage struct {
	MessageId, ReceiptHandle, MD5OfBody, Body string
	Attributes                                map[string]string           `json:",omitempty"`
	MessageAttributes                         map[string]messageAttribute `json:",omitempty"`
	MD5OfMessageAttributes                    string                      `json:",omitempty"`
}

func (in *receiveRequest) response(q *Queue, got []delivery) any {
	names := slices.Concat(in.AttributeNames, in.MessageSystemAttributeNames)
	out := make([]receivedMessage, 0, len(got))
	for _, d := range got {
		system := map[string]string{
			"ApproximateFirstReceiveTimestamp": millis(d.first),
			"ApproximateReceiveCount":          strconv.Itoa(d.receives),
			"SenderId":                         q.account,
			"SentTimestamp":                    millis(d.sent),
		}
		maps.DeleteFunc(system, func(name, _ string) bool {
			return !slices.Contains(names, "All") && !slices.Contains(names, name)
		})
		attributes := wantedAttributes(d.attributes, in.MessageAttributeNames)
		out = append(out, receivedMessage{
			MessageId: d.id, ReceiptHandle: d.handle, MD5OfBody: md5Of(d.body), Body: d.body,
			Attributes: system, MessageAttributes: attributes, MD5OfMessageAttributes: md5OfAttributes(attributes),
		})
	}
	return struct {
		Messages []receivedMessage `json:",omitempty"`
	}{out}
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
