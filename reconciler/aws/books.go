package aws

import (
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/reeve-project/reeve/reconciler/decision"
)

const (
	// openFor is how long a call without an answer is remembered. EC2 itself
	// forgets tokens after some time, and a claim that is not launched by then
	// has been given up long since.
	openFor = time.Hour
	// answeredFor is how long a call with an answer is: it is repeated only by
	// a pass that could not finish.
	answeredFor = 10 * time.Minute
)

// launchBook remembers what was sent with each client token: EC2 takes a token
// again only with the same parameters.
type launchBook struct {
	mu      sync.Mutex
	byToken map[string]*launch
}

// launch is one CreateFleet call, made once or more.
type launch struct {
	input *ec2.CreateFleetInput
	// templates are those it launches from.
	templates []template
	// offerings are what it may launch, cheapest first, and images the image of
	// each type.
	offerings []decision.Offering
	images    map[string]string
	// subnets has the zone of each subnet that it may launch in; each has so
	// many addresses set aside.
	subnets   map[string]string
	addresses int64
	// perNode is how many addresses a node takes at least.
	perNode int64
	// used is when it was last sent; answered says that EC2 has said what
	// became of it.
	used     time.Time
	answered bool
}

// recall is the call of the token, or nil.
func (b *launchBook) recall(token string, now time.Time) *launch {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.byToken[token]
	if l != nil {
		l.used = now
	}
	return l
}

// remember keeps a new call, and gives the one that was made with the token in
// the meantime if there is one.
func (b *launchBook) remember(token string, l *launch, now time.Time) *launch {
	b.mu.Lock()
	defer b.mu.Unlock()
	for t, old := range b.byToken {
		if old.old(now) {
			delete(b.byToken, t)
		}
	}
	if b.byToken == nil {
		b.byToken = map[string]*launch{}
	}
	if first := b.byToken[token]; first != nil {
		return first
	}
	l.used = now
	b.byToken[token] = l
	return l
}

// isOpen says whether EC2 has not answered the call yet.
func (b *launchBook) isOpen(l *launch) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !l.answered
}

// answer notes that EC2 has answered the call, and says whether it is the first
// time.
func (b *launchBook) answer(l *launch) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := !l.answered
	l.answered = true
	return first
}

// templates are the names of those that calls without an answer need.
func (b *launchBook) templates(now time.Time) map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]bool{}
	for _, l := range b.byToken {
		for _, t := range l.templates {
			if !l.answered && !l.old(now) {
				out[t.name] = true
			}
		}
	}
	return out
}

func (l *launch) old(now time.Time) bool {
	if l.answered {
		return now.Sub(l.used) > answeredFor
	}
	return now.Sub(l.used) > openFor
}
