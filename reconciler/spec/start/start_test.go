package start

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain answers as a process that evaluates would: it repeats the request
// and tells its environment, or never ends, or does not listen.
func TestMain(m *testing.M) {
	if !Requested() {
		os.Exit(m.Run())
	}
	request, _ := io.ReadAll(os.Stdin)
	switch string(request) {
	case "hang":
		time.Sleep(time.Hour)
	case "fail":
		fmt.Fprintln(os.Stderr, "cannot")
		os.Exit(3)
	}
	dir, _ := os.Getwd()
	fmt.Printf("%s\n%s\n%s", request, strings.Join(os.Environ(), " "), dir)
}

func TestAProcessAnswersARequest(t *testing.T) {
	c, err := New("/proc/self/exe", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if err := c.Ask(context.Background(), []byte("hello"), &out, &errs); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	if want := "hello\nGOMAXPROCS=1 GOGC=400 GOMEMLIMIT=1073741824\n/"; out.String() != want {
		t.Errorf("the process says %q, want %q", out.String(), want)
	}
	if !c.State().Success() {
		t.Errorf("it ended with %s", c.State())
	}
}

func TestAProcessMayFail(t *testing.T) {
	c, err := New("/proc/self/exe", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if err := c.Ask(context.Background(), []byte("fail"), &out, &errs); err == nil {
		t.Error("no error")
	}
	if c.State().ExitCode() != 3 || errs.String() != "cannot\n" || out.Len() > 0 {
		t.Errorf("it ended with %s, said %q, and %q as its error", c.State(), out.String(), errs.String())
	}
}

func TestAProcessThatDoesNotEndIsKilledWithTheContext(t *testing.T) {
	c, err := New("/proc/self/exe", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if err := c.Ask(ctx, []byte("hang"), io.Discard, io.Discard); err == nil {
		t.Error("no error")
	}
	if c.State().Exited() {
		t.Errorf("it was not killed but ended with %s", c.State())
	}
}

func TestABinaryThatIsNotThereIsAnError(t *testing.T) {
	if _, err := New("/no/such/binary", 1<<30); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

func TestAProcessStartedAheadIsTakenOnceAndOnlyByItsLike(t *testing.T) {
	Ahead(1 << 30)
	first := ahead.child
	other, err := Take("", 2<<30)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := Take("", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Take("", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if first == nil || taken != first || other == first || again == first {
		t.Errorf("ahead %p, with other limits %p, taken %p, and then %p", first, other, taken, again)
	}
	for _, c := range []*Child{other, taken, again} {
		var out bytes.Buffer
		if err := c.Ask(context.Background(), []byte("x"), &out, io.Discard); err != nil || !strings.HasPrefix(out.String(), "x\n") {
			t.Errorf("%q, %v", out.String(), err)
		}
	}
}
