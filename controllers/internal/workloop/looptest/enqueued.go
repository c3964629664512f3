// Package looptest contains helpers for tests of event handlers.
package looptest

import (
	"context"
	"slices"
	"testing"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// EnqueuedKeys returns the keys that an event handler adds to the work queue, sorted. The argument
// event is a function that calls the handler under test. The handler must add its keys to the
// given Loop.
func EnqueuedKeys(t *testing.T, event func(*workloop.Loop)) []string {
	t.Helper()
	const last = "the last key"
	var keys []string
	drain, done := make(chan struct{}), make(chan struct{})
	loop := workloop.New("test", func(_ context.Context, key string) error {
		if key == last {
			close(drain)
		} else {
			keys = append(keys, key)
		}
		return nil
	})
	event(loop)
	loop.Add(last) // one worker processes keys in order
	go func() {
		defer close(done)
		loop.Run(t.Context(), drain, nil, 1)
	}()
	<-done
	slices.Sort(keys)
	return keys
}
