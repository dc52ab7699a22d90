package sim

import (
	"container/heap"
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// maxEventsAtOnce bounds how much may happen without time passing. More means
// that two controllers undo each other's work for ever.
const maxEventsAtOnce = 200_000

// Clock is virtual time: it stands still except in Advance and RunUntil, which
// run what was scheduled, in order of time and then of scheduling.
type Clock struct {
	start time.Time
	now   time.Time
	seq   int64
	queue eventQueue
}

var _ clock.PassiveClock = (*Clock)(nil)

// NewClock is a clock that stands at the instant.
func NewClock(start time.Time) *Clock { return &Clock{start: start.UTC(), now: start.UTC()} }

// Now is the virtual time.
func (c *Clock) Now() time.Time { return c.now }

// Since is how much virtual time has passed since the instant.
func (c *Clock) Since(t time.Time) time.Duration { return c.now.Sub(t) }

// After runs f once d has passed. Events at the same instant run in the order
// in which they were scheduled.
func (c *Clock) After(d time.Duration, f func()) {
	c.seq++
	heap.Push(&c.queue, event{at: c.now.Add(max(d, 0)), seq: c.seq, run: f})
}

// Advance lets d pass and runs everything due on the way, the end included. It
// fails when events keep coming without time passing.
func (c *Clock) Advance(d time.Duration) error {
	end := c.now.Add(max(d, 0))
	_, err := c.run(end, func() bool { return false })
	if err == nil {
		c.now = end
	}
	return err
}

// RunUntil runs events until done says so, at most for limit. It says whether
// done did; the clock then stands at the event that made it so. It fails as
// Advance does.
func (c *Clock) RunUntil(limit time.Duration, done func() bool) (bool, error) {
	if done() {
		return true, nil
	}
	end := c.now.Add(max(limit, 0))
	ok, err := c.run(end, done)
	if err == nil && !ok {
		c.now = end
	}
	return ok, err
}

func (c *Clock) run(end time.Time, done func() bool) (bool, error) {
	n := 0
	for len(c.queue) > 0 && !c.queue[0].at.After(end) {
		e := heap.Pop(&c.queue).(event)
		if e.at.After(c.now) {
			c.now, n = e.at, 0
		}
		if n++; n > maxEventsAtOnce {
			return false, fmt.Errorf("simulation at %s: more than %d events without time passing: two controllers undo each other's work", c.now.Format(time.RFC3339), maxEventsAtOnce)
		}
		e.run()
		if done() {
			return true, nil
		}
	}
	return false, nil
}

// Next is when the next event is due; false if none is scheduled.
func (c *Clock) Next() (time.Time, bool) {
	if len(c.queue) == 0 {
		return time.Time{}, false
	}
	return c.queue[0].at, true
}

type event struct {
	at  time.Time
	seq int64
	run func()
}

// eventQueue is a heap by time, then by order of scheduling.
type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
