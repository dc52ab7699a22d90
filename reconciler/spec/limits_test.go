package spec

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestEachLimitIsNamed(t *testing.T) {
	slow := hostile["disjunctions that multiply"].cue
	tests := []struct {
		name   string
		cue    string
		limits Limits
		want   LimitError
	}{
		{"processor time", slow, Limits{CPU: time.Second, Wall: time.Minute, Memory: 2 << 30},
			LimitError{Limit: LimitCPU, Allowed: "1s", Where: "clusters/blue"}},
		{"wall time", slow, Limits{CPU: time.Minute, Wall: 500 * time.Millisecond, Memory: 2 << 30},
			LimitError{Limit: LimitTime, Allowed: "500ms", Where: "clusters/blue"}},
		{"memory", hostile["a list of a billion numbers"].cue, Limits{CPU: time.Minute, Memory: 64 << 20},
			LimitError{Limit: LimitMemory, Allowed: "64 MiB", Where: "clusters/blue"}},
		{"the size of the files", "package fleet\n//" + strings.Repeat("x", 3<<10), Limits{Size: 3 << 10},
			LimitError{Limit: LimitSize, Allowed: "3 KiB", Where: "clusters/blue/h.cue"}},
		{"the size of the fleet", "package fleet\n", Limits{Output: 1001},
			LimitError{Limit: LimitOutput, Allowed: "1001 bytes", Where: "clusters/blue"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(context.Background(), fleetFS("blue", map[string]string{"clusters/blue/h.cue": tc.cue}), Options{Cluster: "blue", Limits: tc.limits})
			var got *LimitError
			if !errors.As(err, &got) || !IsLimit(err) {
				t.Fatalf("error %v, want a limit", err)
			}
			if *got != tc.want {
				t.Errorf("limit %+v, want %+v", *got, tc.want)
			}
			if !strings.Contains(err.Error(), tc.want.Where+": ") || !strings.Contains(err.Error(), tc.want.Allowed) {
				t.Errorf("message %q names neither place nor amount", err)
			}
		})
	}
}

func TestAChildThatNeverStopsTalkingIsStopped(t *testing.T) {
	yes, err := exec.LookPath("yes")
	if err != nil {
		t.Skip(err)
	}
	_, err = Load(context.Background(), fleetFS("blue", nil), Options{Cluster: "blue", Binary: yes, Limits: Limits{Output: 1 << 20}})
	var got *LimitError
	if !errors.As(err, &got) || *got != (LimitError{Limit: LimitOutput, Allowed: "1 MiB", Where: "clusters/blue"}) {
		t.Errorf("error %v, want the limit of output", err)
	}
}

func TestTooManyFilesAreALimit(t *testing.T) {
	fsys := fleetFS("blue", nil)
	for i := range maxTreeFiles {
		fsys["shared/f"+strings.Repeat("x", i%100)+strings.Repeat("y", i/100)+".cue"] = fsys["clusters/blue/cluster.cue"]
	}
	if _, err := load(t, fsys); !IsLimit(err) || !strings.Contains(err.Error(), "4096 files") {
		t.Errorf("error %v, want the limit of files", err)
	}
}

func TestOtherErrorsAreNoLimits(t *testing.T) {
	_, err := load(t, fleetFS("blue", map[string]string{"clusters/blue/h.cue": "package fleet\nx: 1\n"}))
	if err == nil || IsLimit(err) || IsLimit(nil) {
		t.Errorf("a misspelled field is a limit: %v", err)
	}
}

func TestChildrenThatEndOddlyAreClassified(t *testing.T) {
	for stderr, want := range map[string]bool{
		"fatal error: runtime: out of memory\n":                                                 true,
		"runtime: goroutine stack exceeds 67108864-byte limit\n":                                true,
		"runtime: failed to create new OS thread (have 2 already)\n":                            true,
		"SIGSEGV: segmentation violation\nPC=0x439dfd m=0 sigcode=1":                            true,
		"panic: runtime error: invalid memory address\n[signal SIGSEGV: segmentation violation": false,
		"request: EOF": false,
	} {
		if got := outOfMemory(stderr); got != want {
			t.Errorf("%q: out of memory %v, want %v", stderr, got, want)
		}
	}
}
