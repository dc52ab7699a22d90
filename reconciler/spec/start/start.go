// Package start starts the processes that evaluate specs, and lets every such
// process, and whoever waits for it, begin fast.
//
// It imports nothing but the standard library, so that Go initialises it before
// almost everything else that a binary links: what a process does here it does
// tens of milliseconds earlier than in its main function.
package start

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Arg is the first argument with which a binary is started to evaluate the
// specs of one commit.
const Arg = "__eval"

// DefaultMemory is the memory in bytes that a process should keep to unless it
// was told otherwise.
const DefaultMemory = 384 << 20

func init() {
	if Requested() {
		HugePages(hugeHeap)
	}
}

// Requested says whether this process was started to evaluate.
func Requested() bool { return len(os.Args) == 2 && os.Args[1] == Arg }

// Child is a process that waits for a request on its standard input.
type Child struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	in     *io.PipeWriter
	out    late
	errs   late
}

// New starts a process of the binary, which has to link package eval. It gets
// no environment but bounds: one processor, and so many bytes of memory as
// it should keep to.
func New(binary string, memory int64) (*Child, error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Child{cmd: exec.CommandContext(ctx, binary, Arg), cancel: cancel, out: newLate(), errs: newLate()}
	c.cmd.Env = []string{"GOMAXPROCS=1", "GOGC=400", fmt.Sprintf("GOMEMLIMIT=%d", memory)}
	c.cmd.Dir = "/"
	var in *io.PipeReader
	in, c.in = io.Pipe()
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = in, c.out, c.errs
	c.cmd.WaitDelay = 5 * time.Second
	if err := c.cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	return c, nil
}

// Ask hands the request over, and what the process writes to out and errs,
// until it ends. When the context ends it is killed.
func (c *Child) Ask(ctx context.Context, request []byte, out, errs io.Writer) error {
	defer c.cancel()
	defer context.AfterFunc(ctx, c.cancel)()
	c.out.into(out)
	c.errs.into(errs)
	// A process that has ended already does not read: that is seen below.
	go func() {
		_, err := io.Copy(c.in, bytes.NewReader(request))
		c.in.CloseWithError(err)
	}()
	err := c.cmd.Wait()
	// Nobody may be left to read the request.
	c.in.CloseWithError(io.ErrClosedPipe)
	return err
}

// State is how the process ended.
func (c *Child) State() *os.ProcessState { return c.cmd.ProcessState }

// late is a writer that is known later than the process that writes to it.
type late struct {
	known chan struct{}
	to    *io.Writer
}

func newLate() late { return late{known: make(chan struct{}), to: new(io.Writer)} }

func (l late) into(w io.Writer) {
	*l.to = w
	close(l.known)
}

// Write is io.Writer. It waits until there is somewhere to write to.
func (l late) Write(p []byte) (int, error) {
	<-l.known
	return (*l.to).Write(p)
}

// ahead is a process that was started before anybody asked for one.
var ahead struct {
	mu     sync.Mutex
	child  *Child
	binary string
	memory int64
}

// Ahead starts a process that the next call of Take gets. A process that nobody
// takes ends with this one. That it cannot be started is no error here: whoever
// needs one will see.
func Ahead(memory int64) {
	binary, err := Self()
	if err != nil {
		return
	}
	c, err := New(binary, memory)
	if err != nil {
		return
	}
	ahead.mu.Lock()
	defer ahead.mu.Unlock()
	ahead.child, ahead.binary, ahead.memory = c, binary, memory
}

// ErrSelf says that a process that evaluates would start another one.
var ErrSelf = errors.New("this process was started to evaluate")

// Take is New, or the process that Ahead has started if it is of the same kind.
// An empty binary is the running one.
func Take(binary string, memory int64) (*Child, error) {
	if binary == "" {
		if Requested() {
			return nil, ErrSelf
		}
		var err error
		if binary, err = Self(); err != nil {
			return nil, fmt.Errorf("find own binary: %w", err)
		}
	}
	ahead.mu.Lock()
	defer ahead.mu.Unlock()
	if c := ahead.child; c != nil && ahead.binary == binary && ahead.memory == memory {
		ahead.child = nil
		return c, nil
	}
	return New(binary, memory)
}
