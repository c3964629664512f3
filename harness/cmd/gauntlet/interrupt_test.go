package main

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestInterruptedPlan checks that a command that plans many runs, or generates many scenarios, ends
// soon after an interrupt.
func TestInterruptedPlan(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, line := range []string{
		"compare burst --pairs=1000", "baseline burst --runs=1000",
		"coverage scenarios --seeds=10000", "mutants --seeds=10000 --tree=../../..",
	} {
		t.Run(line, func(t *testing.T) {
			var code int
			root := newRoot(&code)
			root.SetArgs(strings.Fields(line))
			err := runRoot(ctx, root)
			var unfinished *unfinishedError
			if !errors.As(err, &unfinished) || err.Error() != "interrupted" {
				t.Errorf("error %v, want that the command was interrupted", err)
			}
		})
	}
}

// TestInterruptedBuild checks the exit status after an interrupt during the build of a subject.
func TestInterruptedBuild(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var code int
	root := newRoot(&code)
	root.SetArgs([]string{"run", "burst", "--provider=virtual", "--subject=go:."})
	if err := runRoot(ctx, root); err == nil || exitCode(code, err) != exitUnknown {
		t.Errorf("exit %d, error %v; want exit %d and an error", exitCode(code, err), err, exitUnknown)
	}
}

// TestInterruptedOutput checks that an interrupt ends a command whose reader does not read.
func TestInterruptedOutput(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var code int
	root := newRoot(&code)
	root.SetOut(blockedWriter{begun: interrupt, end: t.Context().Done()})
	root.SetArgs([]string{"list", "faults", "-o", "json"})
	err := runRoot(ctx, root)
	var unfinished *unfinishedError
	if !errors.As(err, &unfinished) || err.Error() != "interrupted" {
		t.Errorf("error %v; want that the command was interrupted", err)
	}
}

// blockedWriter is a writer like a pipe whose reader does not read. Write calls the function begun,
// and returns only after the channel end is closed.
type blockedWriter struct {
	begun func()
	end   <-chan struct{}
}

func (w blockedWriter) Write(content []byte) (int, error) {
	w.begun()
	<-w.end
	return len(content), nil
}
