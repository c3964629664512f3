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

// terminal tells a user what a run is doing, a line for each thing.
type terminal struct {
	begun time.Time

	mu  sync.Mutex // runs go on side by side
	out io.Writer
}

func newTerminal(out io.Writer) *terminal {
	return &terminal{out: out, begun: time.Now()}
}

// progress prints one line, with the time since gauntlet began.
func (t *terminal) progress(scenario, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%6.1fs  %s: %s\n", time.Since(t.begun).Seconds(), scenario, message)
}

// hold leaves a control plane up until the user has had enough.
func (t *terminal) hold(ctx context.Context, kubeconfig string) {
	fmt.Fprintf(t.out, "The control plane stays up until Ctrl-C. To look at it:\n\n    export KUBECONFIG=%s\n\n", kubeconfig)
	<-ctx.Done()
}

// isTerminal reports whether a person reads out as it is written.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
