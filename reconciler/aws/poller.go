package aws

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/reeve-project/reeve/reconciler/port"
)

const (
	// bufferSize is how many messages a Poller keeps unless told otherwise.
	bufferSize = 1000
	// firstBackoff and lastBackoff bound the pause after calls that failed.
	firstBackoff = time.Second
	lastBackoff  = time.Minute
)

// Poller waits for messages in the background, so that a pass begins when one
// comes and finds it there. Run does the waiting; Receive and Delete are those
// of a port.Queue.
type Poller struct {
	// Queue to poll; it is needed.
	Queue *Queue
	// Clock for the pauses after errors; it is needed.
	Clock clock.Clock
	// Log for errors, which are told when they change; nothing is logged
	// unless set.
	Log *slog.Logger
	// Wake is called when a message has come; nothing is called unless set. It
	// must not block.
	Wake func()
	// Size is how many messages are kept, 1000 unless set. A full buffer stops
	// the polling: SQS keeps the rest.
	Size int

	mu     sync.Mutex
	buffer []received
	err    error
	room   chan struct{}
}

var _ port.Queue = (*Poller)(nil)

// Run polls until the context ends. It never gives up: a queue that is missing
// or may not be read is asked for again after a pause of up to a minute.
func (p *Poller) Run(ctx context.Context) {
	pause := firstBackoff
	for ctx.Err() == nil {
		if !p.waitForRoom(ctx) {
			return
		}
		got, err := p.Queue.receive(ctx, batchSize, longPoll)
		if ctx.Err() != nil {
			return
		}
		p.note(err)
		if err == nil {
			pause = firstBackoff
			p.add(got)
			continue
		}
		select {
		case <-ctx.Done():
		case <-p.Clock.After(pause):
		}
		pause = min(2*pause, lastBackoff)
	}
}

// note keeps the error of the last poll and logs it if it is another one than
// before.
func (p *Poller) note(err error) {
	p.mu.Lock()
	before := p.err
	p.err = err
	p.mu.Unlock()
	if p.Log == nil {
		return
	}
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		p.Log.Warn("interruption queue cannot be read", "queue", p.Queue.name, "error", err)
	case err == nil && before != nil:
		p.Log.Info("interruption queue is read again", "queue", p.Queue.name)
	}
}

// add buffers messages. One that is delivered again takes the place of its
// older copy: only its newest handle is sure to delete it.
func (p *Poller) add(got []received) {
	if len(got) == 0 {
		return
	}
	p.mu.Lock()
	for _, r := range got {
		i := slices.IndexFunc(p.buffer, func(b received) bool { return b.sqsID == r.sqsID })
		if i >= 0 {
			p.buffer[i] = r
			continue
		}
		p.buffer = append(p.buffer, r)
	}
	p.mu.Unlock()
	if p.Wake != nil {
		p.Wake()
	}
}

// waitForRoom returns when the buffer can take another batch; it is false when
// the context ended before.
func (p *Poller) waitForRoom(ctx context.Context) bool {
	for {
		p.mu.Lock()
		size := max(p.Size, batchSize)
		if p.Size == 0 {
			size = bufferSize
		}
		if len(p.buffer)+batchSize <= size {
			p.mu.Unlock()
			return true
		}
		room := make(chan struct{})
		p.room = room
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return false
		case <-room:
		}
	}
}

// Receive takes messages out of the buffer, at most so many, in the order in
// which they came. What is not deleted within 20 s comes again. The error of
// the last poll is returned when there is no message.
func (p *Poller) Receive(_ context.Context, most int) ([]port.Message, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(max(most, 0), len(p.buffer))
	if n == 0 {
		return nil, p.err
	}
	out := make([]port.Message, n)
	for i, r := range p.buffer[:n] {
		out[i] = r.message
	}
	p.buffer = slices.Delete(p.buffer, 0, n)
	if p.room != nil {
		close(p.room)
		p.room = nil
	}
	return out, nil
}

// Delete deletes the messages from the queue.
func (p *Poller) Delete(ctx context.Context, messages []port.Message) error {
	return p.Queue.Delete(ctx, messages)
}
