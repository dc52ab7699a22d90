package aws

import (
	"log/slog"
	"time"
)

// source is an answer of AWS that is kept and asked for again from time to
// time. Its zero value has not been asked for.
type source[T any] struct {
	value T
	// have says that it was answered at least once.
	have bool
	// next is when to ask again.
	next time.Time
	// trouble is why it could not be had the last time.
	trouble string
}

// due says whether it is time to ask.
func (s *source[T]) due(now time.Time) bool { return !now.Before(s.next) }

// take notes what the question brought: the answer, which is good for so long,
// or an error. An error keeps the last answer and is logged when it is another
// one than before, with what serves instead.
func (s *source[T]) take(now time.Time, value T, err error, good, retry time.Duration, log *slog.Logger, what, instead string) {
	if err != nil {
		s.next = now.Add(retry)
		if s.have {
			instead = "the last answer"
		}
		if s.trouble != err.Error() {
			log.Warn(what+" cannot be read", "error", err, "instead", instead, "again", retry)
		}
		s.trouble = err.Error()
		return
	}
	if s.trouble != "" {
		log.Info(what + " can be read again")
	}
	*s = source[T]{value: value, have: true, next: now.Add(good)}
}
