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
