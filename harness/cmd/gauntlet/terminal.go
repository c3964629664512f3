package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// terminal prints progress messages of concurrent runs, one line for each message.
type terminal struct {
	begun time.Time

	mu  sync.Mutex // guards out, because runs are concurrent
	out io.Writer
}

func newTerminal(out io.Writer) *terminal {
	return &terminal{out: out, begun: time.Now()}
}

// progress prints one line with the time since the terminal was created, the scenario and the
// message.
func (t *terminal) progress(scenario, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%6.1fs  %s: %s\n", time.Since(t.begun).Seconds(), scenario, message)
}

// keepUpUntilInterrupt prints the path of the kubeconfig of a control plane, and returns when
// ctx ends.
func (t *terminal) keepUpUntilInterrupt(ctx context.Context, kubeconfig string) {
	fmt.Fprintf(t.out, "The control plane stays up until Ctrl-C. To use it:\n\n    export KUBECONFIG=%s\n\n", kubeconfig)
	<-ctx.Done()
}

// isTerminal reports whether out is a terminal.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
