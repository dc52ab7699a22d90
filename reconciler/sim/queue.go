package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/reeve-project/reeve/reconciler/cluster"
	"github.com/reeve-project/reeve/reconciler/port"
)

// visibility is how long a message that was received stays hidden before it
// comes again, unless it is deleted.
const visibility = 20 * time.Second

// Queue is an SQS queue in memory as a port.Queue. Messages come in the order in
// which they were sent unless Deliver says otherwise.
type Queue struct {
	// Deliver changes what a Receive is about to give: it may reorder, repeat
	// and hold back messages. Those it leaves out stay visible.
	Deliver func([]port.Message) []port.Message

	world    *World
	messages []*queued
	sent     int
	received int
}

var _ port.Queue = (*Queue)(nil)

// queued is a message with the handle of its last delivery.
type queued struct {
	port.Message
	hidden time.Time
}

// NewQueue is an empty queue.
func NewQueue(w *World) *Queue { return &Queue{world: w} }

// Send puts one message with the interruptions in the queue; one without any
// asks for nothing. It fills in the id of the message and the time.
func (q *Queue) Send(in ...cluster.Interruption) {
	q.sent++
	id := string(uid("message", q.sent))
	for i := range in {
		in[i].Message = id
		if in[i].Time.IsZero() {
			in[i].Time = q.world.Now()
		}
	}
	q.messages = append(q.messages, &queued{Message: port.Message{ID: id, Interruptions: in}})
}

// SendGarbage puts a message in the queue that nobody can understand.
func (q *Queue) SendGarbage(problem string) {
	q.sent++
	q.messages = append(q.messages, &queued{Message: port.Message{ID: string(uid("message", q.sent)), Problem: problem}})
}

// Len is how many messages are in the queue, hidden ones included.
func (q *Queue) Len() int { return len(q.messages) }

// Receive gives at most so many of the messages that are visible, and hides
// them for 20 s.
func (q *Queue) Receive(ctx context.Context, most int) ([]port.Message, error) {
	var out []port.Message
	err := q.world.call(ctx, "queue", "Receive", "", func() error {
		out = q.receive(most)
		return nil
	})
	if err != nil {
		// An answer that is lost leaves the messages hidden.
		return nil, err
	}
	return out, nil
}

func (q *Queue) receive(most int) []port.Message {
	var visible []port.Message
	for _, m := range q.messages {
		if !m.hidden.After(q.world.Now()) {
			visible = append(visible, m.Message)
		}
	}
	if q.Deliver != nil {
		visible = q.Deliver(visible)
	}
	visible = slices.Clone(visible[:min(max(most, 0), len(visible))])
	for i := range visible {
		for _, m := range q.messages {
			if m.ID == visible[i].ID {
				q.received++
				m.Handle, m.hidden = fmt.Sprintf("receipt-%d", q.received), q.world.Now().Add(visibility)
				visible[i].Handle = m.Handle
				visible[i].Interruptions = slices.Clone(m.Interruptions)
			}
		}
	}
	return visible
}

// Delete deletes the messages. As in SQS only the handle of the last delivery
// does; an older one is accepted and deletes nothing.
func (q *Queue) Delete(ctx context.Context, messages []port.Message) error {
	return q.world.call(ctx, "queue", "Delete", "", func() error {
		q.messages = slices.DeleteFunc(q.messages, func(m *queued) bool {
			return m.Handle != "" && slices.ContainsFunc(messages, func(o port.Message) bool { return o.Handle == m.Handle })
		})
		return nil
	})
}
