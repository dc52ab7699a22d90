package awsapi

import (
	"context"
	"crypto/md5" //nolint:gosec // SQS names a body by its MD5, and the SDK checks it.
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reeve-project/reeve/reconciler/sim"
)

// Queue is a standard SQS queue in virtual time: at least once, in no promised
// order. Duplicate and Reorder make it show what that means.
//
// Its methods may be called from any goroutine, but not by what the endpoint
// calls with itself locked.
type Queue struct {
	name, url, arn string
	account        string
	clock          *sim.Clock
	// world is held by whoever uses the clock. It is taken before mu.
	world sync.Locker

	mu       sync.Mutex
	settings queueSettings
	// messages are in the order in which they were sent.
	messages []*message
	waiting  []*receiver
	// parked is closed and replaced when a receive begins to wait.
	parked chan struct{}
	// answered counts receives that no longer wait.
	answered          int
	sent, handles     int64
	duplicates        int
	order             func(n int) []int
	created, purgedAt time.Time
	everPurged        bool
}

// message is what was sent, and where it stands.
type message struct {
	id, body   string
	attributes map[string]messageAttribute
	sent       time.Time
	visible    time.Time
	first      time.Time
	receives   int
	// handle is of the last receive; empty before the first.
	handle string
}

// delivery is a message as one receive got it.
type delivery struct {
	id, handle, body string
	attributes       map[string]messageAttribute
	sent, first      time.Time
	receives         int
}

// receiver is a request that waits for messages.
type receiver struct {
	queue      *Queue
	max        int
	visibility time.Duration
	// answer holds one answer at most; it is made in virtual time, so that when
	// its goroutine gets to run decides nothing.
	answer chan []delivery
}

func newQueue(clock *sim.Clock, world sync.Locker, region, account, name string, s queueSettings) *Queue {
	return &Queue{
		name: name, account: account, clock: clock, world: world, settings: s,
		url:     fmt.Sprintf("https://sqs.%s.amazonaws.com/%s/%s", region, account, name),
		arn:     fmt.Sprintf("arn:aws:sqs:%s:%s:%s", region, account, name),
		parked:  make(chan struct{}),
		created: clock.Now(),
	}
}

// URL is what clients name the queue by.
func (q *Queue) URL() string { return q.url }

// Send puts a message into the queue as SendMessage does, and returns its id.
// Ids follow from the queue's name and the number of messages sent before.
func (q *Queue) Send(body string) string {
	q.world.Lock()
	defer q.world.Unlock()
	return q.put(body)
}

// put is Send for who holds the world.
func (q *Queue) put(body string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.send(body, nil, time.Duration(q.settings.delay)*time.Second)
}

func (q *Queue) send(body string, attributes map[string]messageAttribute, delay time.Duration) string {
	q.sent++
	now := q.clock.Now()
	m := &message{id: uuidOf("message", q.arn, fmt.Sprint(q.sent)), body: body, attributes: attributes, sent: now, visible: now.Add(delay)}
	q.messages = append(q.messages, m)
	q.wakeAfter(delay)
	return m.id
}

// Duplicate has each of the next n messages that are received delivered once
// more, although the receiver may have deleted it: a copy of it was on a server
// that the deletion did not reach.
func (q *Queue) Duplicate(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.duplicates = n
}

// Reorder has every receive take messages in another order than that in which
// they were sent: order gives a permutation of 0 … n-1 for n visible messages.
// With nil they come in order again.
func (q *Queue) Reorder(order func(n int) []int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.order = order
}

// Depth is how many messages can be received now and how many are in flight or
// delayed.
func (q *Queue) Depth() (visible, hidden int) {
	q.world.Lock()
	defer q.world.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropOld()
	for _, m := range q.messages {
		if m.visible.After(q.clock.Now()) {
			hidden++
		} else {
			visible++
		}
	}
	return visible, hidden
}

// Advance lets d of virtual time pass while n clients poll the queue on other
// goroutines. Whenever one of them is answered, time stands still until all wait
// for messages again, so that what they do in between happens at its time and
// has the world for itself. It fails as Clock.Advance does, and when the context
// ends.
func (q *Queue) Advance(ctx context.Context, d time.Duration, n int) error {
	if err := q.AwaitReceivers(ctx, n); err != nil {
		return err
	}
	end := q.clock.Now().Add(d)
	for {
		before := q.answers()
		woken, err := q.clock.RunUntil(end.Sub(q.clock.Now()), func() bool { return q.answers() != before })
		if err != nil {
			return fmt.Errorf("queue %s: %w", q.name, err)
		}
		if !woken {
			return nil
		}
		if err := q.AwaitReceivers(ctx, n); err != nil {
			return err
		}
	}
}

func (q *Queue) answers() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.answered
}

// AwaitReceivers returns once n receives or more wait for messages: those that
// wait do not touch the clock. It fails when the context ends.
func (q *Queue) AwaitReceivers(ctx context.Context, n int) error {
	for {
		q.mu.Lock()
		have, parked := len(q.waiting), q.parked
		q.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-parked:
		case <-ctx.Done():
			return fmt.Errorf("queue %s: %d of %d receivers wait for messages: %w", q.name, have, n, ctx.Err())
		}
	}
}

// receive takes what is visible; when nothing is and there is a wait, it
// returns a receive that waits.
func (q *Queue) receive(limit int, visibility, wait time.Duration) ([]delivery, *receiver) {
	q.mu.Lock()
	defer q.mu.Unlock()
	got := q.take(limit, visibility)
	if len(got) > 0 || wait <= 0 {
		return got, nil
	}
	r := &receiver{queue: q, max: limit, visibility: visibility, answer: make(chan []delivery, 1)}
	q.waiting = append(q.waiting, r)
	close(q.parked)
	q.parked = make(chan struct{})
	q.clock.After(wait, func() { q.giveUp(r) })
	return nil, r
}

// wait blocks until the receive is answered or its client has gone.
func (r *receiver) wait(ctx context.Context) []delivery {
	select {
	case got := <-r.answer:
		return got
	case <-ctx.Done():
		r.queue.giveUp(r)
		return <-r.answer
	}
}

// giveUp answers a receive that still waits with nothing.
func (q *Queue) giveUp(r *receiver) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, r); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.answered++
		r.answer <- nil
	}
}

// wakeAfter serves those that wait once d has passed; at once without a delay.
func (q *Queue) wakeAfter(d time.Duration) {
	if d <= 0 {
		q.serve()
		return
	}
	q.clock.After(d, func() {
		q.world.Lock()
		defer q.world.Unlock()
		q.mu.Lock()
		defer q.mu.Unlock()
		q.serve()
	})
}

// serve answers the receives that wait, the longest waiting first.
func (q *Queue) serve() {
	for len(q.waiting) > 0 {
		r := q.waiting[0]
		got := q.take(r.max, r.visibility)
		if len(got) == 0 {
			return
		}
		q.waiting = q.waiting[1:]
		q.answered++
		r.answer <- got
	}
}

// take hides up to limit visible messages and returns them.
func (q *Queue) take(limit int, visibility time.Duration) []delivery {
	q.dropOld()
	now := q.clock.Now()
	var visible []*message
	for _, m := range q.messages {
		if !m.visible.After(now) {
			visible = append(visible, m)
		}
	}
	var out []delivery
	for _, m := range q.sequence(visible) {
		if len(out) == limit {
			break
		}
		out = append(out, q.deliver(m, visibility))
	}
	if visibility > 0 && len(out) > 0 {
		q.wakeAfter(visibility)
	}
	return out
}

// sequence is the messages in the order of the script. What its permutation
// leaves out or repeats is not received, or once.
func (q *Queue) sequence(visible []*message) []*message {
	if q.order == nil {
		return visible
	}
	var out []*message
	for _, i := range q.order(len(visible)) {
		if i >= 0 && i < len(visible) && !slices.Contains(out, visible[i]) {
			out = append(out, visible[i])
		}
	}
	return out
}

// deliver counts a receive of the message and hides it.
func (q *Queue) deliver(m *message, visibility time.Duration) delivery {
	now := q.clock.Now()
	m.receives++
	if m.receives == 1 {
		m.first = now
	}
	if q.duplicates > 0 {
		q.duplicates--
		again := *m
		again.handle = ""
		q.messages = append(q.messages, &again)
	}
	q.handles++
	m.handle = base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s/%s/%d", q.arn, m.id, q.handles))
	m.visible = now.Add(visibility)
	return delivery{id: m.id, handle: m.handle, body: m.body, attributes: m.attributes, sent: m.sent, first: m.first, receives: m.receives}
}

// dropOld removes messages that were retained for long enough, in flight or
// not.
func (q *Queue) dropOld() {
	oldest := q.clock.Now().Add(-time.Duration(q.settings.retention) * time.Second)
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return !m.sent.After(oldest) })
}

// remove deletes the message of the handle. As in SQS, a handle that a later
// receive has replaced deletes nothing and is no error.
func (q *Queue) remove(handle string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.issued(handle) {
		return badHandle(handle)
	}
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return m.handle == handle })
	return nil
}

// hide makes the message of the handle visible once d has passed from now.
func (q *Queue) hide(handle string, d time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.issued(handle) {
		return badHandle(handle)
	}
	q.dropOld()
	i := slices.IndexFunc(q.messages, func(m *message) bool { return m.handle == handle })
	switch now := q.clock.Now(); {
	case i < 0:
		return invalid("Value %s for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.", handle)
	case !q.messages[i].visible.After(now):
		return errorf("MessageNotInflight", "The specified message isn't in flight.")
	default:
		q.messages[i].visible = now.Add(d)
		q.wakeAfter(d)
		return nil
	}
}

// issued says whether the handle is of this queue.
func (q *Queue) issued(handle string) bool {
	raw, err := base64.StdEncoding.DecodeString(handle)
	return err == nil && strings.HasPrefix(string(raw), q.arn+"/")
}

// purgeInterval is how long SQS refuses a second purge of a queue.
const purgeInterval = time.Minute

func (q *Queue) purge() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	if q.everPurged && now.Sub(q.purgedAt) < purgeInterval {
		return errorf("PurgeQueueInProgress", "Only one PurgeQueue operation on %s is allowed every 60 seconds.", q.name)
	}
	q.messages, q.everPurged, q.purgedAt = nil, true, now
	return nil
}

func md5Of(s string) string {
	sum := md5.Sum([]byte(s)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}
