package spec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/reeve-project/reeve/reconciler/spec/eval"
	"github.com/reeve-project/reeve/reconciler/spec/start"
)

// child starts evaluations in processes of their own.
type child struct {
	binary string
	limits Limits
	where  string
}

// errNoEval is for a binary that does not answer start.Arg.
var errNoEval = errors.New("the binary does not evaluate specs: it must link the package reconciler/spec/eval and take no other arguments than " + start.Arg)

// evaluate runs a request in a child process and waits for it.
func (c child) evaluate(ctx context.Context, req eval.Request) (eval.Response, error) {
	req.Limits = eval.Limits{
		CPUSeconds:  uint64((c.limits.CPU + time.Second - 1) / time.Second),
		MemoryBytes: uint64(c.limits.Memory),
		WallMillis:  c.limits.Wall.Milliseconds(),
		OutputBytes: c.limits.Output,
	}
	stdin, err := json.Marshal(req)
	if err != nil {
		return eval.Response{}, fmt.Errorf("evaluate specs: %w", err)
	}
	wall, cancel := context.WithTimeout(ctx, c.limits.Wall)
	defer cancel()
	stdout := &boundedBuffer{room: c.limits.Output + int64(len(eval.Greeting)), full: cancel}
	stderr := &boundedBuffer{room: 16 << 10}
	process, err := start.Take(c.binary, c.limits.Memory/2)
	if errors.Is(err, start.ErrSelf) {
		return eval.Response{}, errNoEval // or the child would start another one
	}
	if err != nil {
		return eval.Response{}, fmt.Errorf("evaluate specs: start child: %w", err)
	}
	runErr := process.Ask(wall, stdin, stdout, stderr)
	switch {
	case ctx.Err() != nil:
		return eval.Response{}, fmt.Errorf("evaluate specs: %w", ctx.Err())
	case stdout.overflowed:
		return eval.Response{}, c.limit(LimitOutput)
	case errors.Is(wall.Err(), context.DeadlineExceeded):
		return eval.Response{}, c.limit(LimitTime)
	case runErr != nil:
		return eval.Response{}, c.classify(process.State(), runErr, stderr.buf.String())
	}
	return c.decode(stdout.buf.Bytes())
}

func (c child) decode(out []byte) (eval.Response, error) {
	body, ok := bytes.CutPrefix(out, []byte(eval.Greeting))
	if !ok {
		return eval.Response{}, fmt.Errorf("evaluate specs: %w", errNoEval)
	}
	var resp eval.Response
	if err := json.Unmarshal(body, &resp); err != nil {
		return eval.Response{}, fmt.Errorf("evaluate specs: answer of the child: %w", err)
	}
	if resp.TooLarge {
		return eval.Response{}, c.limit(LimitOutput)
	}
	if resp.Document == nil && len(resp.Diagnostics) == 0 {
		return eval.Response{}, errors.New("evaluate specs: the child gave neither a fleet nor a reason")
	}
	return resp, nil
}

// classify says why a child ended without an answer. The Go runtime writes
// fixed words to standard error before it gives up.
func (c child) classify(state *os.ProcessState, runErr error, stderr string) error {
	if state == nil {
		return fmt.Errorf("evaluate specs: start child: %w", runErr)
	}
	if outOfMemory(stderr) {
		return c.limit(LimitMemory)
	}
	if killed(state) {
		// The kernel counts to the second and kills within it. A child that
		// was killed earlier fell to the memory limit of the container.
		if state.UserTime()+state.SystemTime() >= c.limits.CPU-time.Second/2 {
			return c.limit(LimitCPU)
		}
		return c.limit(LimitMemory)
	}
	return fmt.Errorf("evaluate specs: child ended with %s: %s", state, firstLines(stderr, 5))
}

// outOfMemory recognises how the Go runtime ends when it gets no more memory,
// in words or, inside the garbage collector, by a fault of its own.
func outOfMemory(stderr string) bool {
	if strings.HasPrefix(stderr, "SIGSEGV: segmentation violation\nPC=") {
		return true
	}
	return slices.ContainsFunc([]string{
		"out of memory", "cannot allocate memory", "stack overflow", "goroutine stack exceeds", "failed to create new OS thread",
	}, func(words string) bool { return strings.Contains(stderr, words) })
}

func (c child) limit(l Limit) *LimitError {
	allowed := map[Limit]string{
		LimitCPU:    c.limits.CPU.String(),
		LimitMemory: size(c.limits.Memory),
		LimitTime:   c.limits.Wall.String(),
		LimitOutput: size(c.limits.Output),
	}
	return &LimitError{Limit: l, Allowed: allowed[l], Where: c.where}
}

func firstLines(s string, n int) string {
	lines := strings.SplitN(strings.TrimSpace(s), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], " | ")
}

// boundedBuffer keeps what fits and drops the rest. It has no other methods of
// bytes.Buffer: io.Copy would use its ReadFrom and go round the bound.
type boundedBuffer struct {
	buf        bytes.Buffer
	room       int64
	overflowed bool
	full       func() // called once when something had to be dropped
}

// Write is io.Writer. It never fails, so that the child is not stopped by a
// broken pipe before it has been killed.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	fits := min(int64(len(p)), b.room-int64(b.buf.Len()))
	b.buf.Write(p[:fits])
	if fits < int64(len(p)) && !b.overflowed {
		b.overflowed = true
		if b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}
