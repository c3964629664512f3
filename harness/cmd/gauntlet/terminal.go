package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// terminal prints progress messages of concurrent runs. Each message is one complete line.
type terminal struct {
	begun time.Time
	quiet bool // true if no progress messages are printed

	mu  sync.Mutex // locked while a line is printed, because runs are concurrent
	out io.Writer
}

func newTerminal(out io.Writer) *terminal {
	return &terminal{out: out, begun: time.Now()}
}

// progress prints one line: the time since the terminal was created, the scenario, and the
// message.
func (t *terminal) progress(scenario, message string) {
	if t.quiet {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%6.1fs  %s: %s\n", time.Since(t.begun).Seconds(), scenario, reports.Printable(message))
}

// recordText formats a record about a step, a fault or a process as a progress message. It returns
// "" for all other records, and for a fault that fires.
func recordText(record *history.Record) string {
	var text string
	switch {
	case record.Step != nil:
		text = fmt.Sprintf("step %d %s: %s", record.Step.Index, record.Step.Event, record.Step.Detail)
		if record.Step.Error != "" {
			text += ": " + record.Step.Error
		}
	case record.Fault != nil && record.Fault.Event != history.FaultFired: // a fault may fire thousands of times
		text = fmt.Sprintf("fault %d %s: %s %s", record.Fault.Index, record.Fault.Event, record.Fault.Name, record.Fault.Detail)
	case record.Process != nil:
		text = fmt.Sprintf("process %s %s %s", record.Process.Name, record.Process.Event, record.Process.Detail)
	}
	return strings.TrimSpace(text)
}

// keepUpUntilInterrupt prints the command that sets KUBECONFIG for a control plane that stays up.
// It returns when ctx ends.
func (t *terminal) keepUpUntilInterrupt(ctx context.Context, kubeconfig string) {
	fmt.Fprintf(t.out, "The control plane stays up until Ctrl-C. To use it:\n\n    export KUBECONFIG=%s\n\n", kubeconfig)
	<-ctx.Done()
}
