package awsapi

import (
	"cmp"
	"crypto/md5" //nolint:gosec // SQS names attributes by their MD5.
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// queueSettings are the attributes of a queue that its creator chooses: seconds, and
// bytes for the size.
type queueSettings struct {
	visibility, retention, delay, wait, size int
	// texts are attributes that are kept and given back, and change nothing.
	texts map[string]string
}

// setting is one numeric attribute, with SQS's default and bounds.
type setting struct {
	name              string
	initial, min, max int
	field             func(*queueSettings) *int
}

var numericSettings = []setting{
	{"DelaySeconds", 0, 0, 900, func(s *queueSettings) *int { return &s.delay }},
	{"MaximumMessageSize", 1 << 20, 1 << 10, 1 << 20, func(s *queueSettings) *int { return &s.size }},
	{"MessageRetentionPeriod", 345_600, 60, 1_209_600, func(s *queueSettings) *int { return &s.retention }},
	{"ReceiveMessageWaitTimeSeconds", 0, 0, 20, func(s *queueSettings) *int { return &s.wait }},
	{"VisibilityTimeout", 30, 0, 43_200, func(s *queueSettings) *int { return &s.visibility }},
}

// inertSettings are accepted because Terraform modules and templates set them.
var inertSettings = []string{"KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId", "Policy", "SqsManagedSseEnabled"}

// newSettings applies the attributes of CreateQueue to the defaults.
func newSettings(attributes map[string]string) (queueSettings, error) {
	s := queueSettings{texts: map[string]string{}}
	for _, n := range numericSettings {
		*n.field(&s) = n.initial
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		value := attributes[name]
		i := slices.IndexFunc(numericSettings, func(n setting) bool { return n.name == name })
		switch {
		case i >= 0:
			n := numericSettings[i]
			v, err := strconv.Atoi(value)
			if err != nil || v < n.min || v > n.max {
				return queueSettings{}, errorf("InvalidAttributeValue", "Invalid value for the parameter %s. Reason: Must be between %d and %d.", name, n.min, n.max)
			}
			*n.field(&s) = v
		case slices.Contains(inertSettings, name):
			s.texts[name] = value
		case name == "FifoQueue" && value == "true" || name == "RedrivePolicy":
			return queueSettings{}, errorf("UnsupportedOperation", "The simulation has standard queues without a dead-letter queue; leave out %s.", name)
		default:
			return queueSettings{}, errorf("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	return s, nil
}

func (s queueSettings) equal(t queueSettings) bool {
	for _, n := range numericSettings {
		if *n.field(&s) != *n.field(&t) {
			return false
		}
	}
	return maps.Equal(s.texts, t.texts)
}

// attributes are those of GetQueueAttributes, all of them.
func (q *Queue) attributes() map[string]string {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropOld()
	out := maps.Clone(q.settings.texts)
	for _, n := range numericSettings {
		out[n.name] = strconv.Itoa(*n.field(&q.settings))
	}
	var visible, delayed, inFlight int
	for _, m := range q.messages {
		switch {
		case !m.visible.After(q.clock.Now()):
			visible++
		case m.receives == 0:
			delayed++
		default:
			inFlight++
		}
	}
	out["ApproximateNumberOfMessages"] = strconv.Itoa(visible)
	out["ApproximateNumberOfMessagesDelayed"] = strconv.Itoa(delayed)
	out["ApproximateNumberOfMessagesNotVisible"] = strconv.Itoa(inFlight)
	out["CreatedTimestamp"] = strconv.FormatInt(q.created.Unix(), 10)
	out["LastModifiedTimestamp"] = out["CreatedTimestamp"]
	out["QueueArn"] = q.arn
	return out
}

// queueAttributeNames are the names that GetQueueAttributes knows.
func queueAttributeNames() []string {
	names := append([]string{
		"All", "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible",
		"CreatedTimestamp", "LastModifiedTimestamp", "QueueArn", "FifoQueue", "RedrivePolicy", "RedriveAllowPolicy",
	}, inertSettings...)
	for _, n := range numericSettings {
		names = append(names, n.name)
	}
	return names
}

// messageAttribute is an attribute that the sender gave to a message.
type messageAttribute struct {
	DataType    string  `json:"DataType"`
	StringValue *string `json:"StringValue,omitempty"`
	BinaryValue []byte  `json:"BinaryValue,omitempty"`
}

// wantedAttributes are those of the names: exact, `All`, `.*`, or a prefix that
// ends in `.*`.
func wantedAttributes(have map[string]messageAttribute, names []string) map[string]messageAttribute {
	out := map[string]messageAttribute{}
	for name, a := range have {
		for _, n := range names {
			prefix, isPrefix := strings.CutSuffix(n, "*")
			if n == "All" || n == name || isPrefix && strings.HasPrefix(name, strings.TrimSuffix(prefix, ".")) {
				out[name] = a
			}
		}
	}
	return out
}

// md5OfAttributes is the digest that SQS documents for message attributes:
// sorted by name; name, type and value each after its length in four bytes, the
// value also after one byte for its kind. Without attributes it is empty.
func md5OfAttributes(attributes map[string]messageAttribute) string {
	if len(attributes) == 0 {
		return ""
	}
	var b []byte
	add := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s))) //nolint:gosec // bounded by the size of a message
		b = append(b, s...)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		add(name)
		add(a.DataType)
		if a.StringValue != nil {
			b = append(b, 1)
			add(*a.StringValue)
		} else {
			b = append(b, 2)
			add(string(a.BinaryValue))
		}
	}
	sum := md5.Sum(b) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// checkMessage refuses what SQS refuses to take.
func checkMessage(body *string, attributes map[string]messageAttribute, s queueSettings) error {
	if body == nil {
		return missing("MessageBody")
	}
	size := len(*body)
	for name, a := range attributes {
		size += len(name) + len(a.DataType) + len(a.BinaryValue) + len(*cmp.Or(a.StringValue, new(string)))
	}
	switch i := strings.IndexFunc(*body, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\uFFFE' || r == '\uFFFF'
	}); {
	case *body == "":
		return missing("MessageBody")
	case size > s.size:
		return invalid("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", s.size)
	case i >= 0:
		return errorf("InvalidMessageContents", "Invalid binary character at byte %d was found in the message body.", i)
	}
	return nil
}
