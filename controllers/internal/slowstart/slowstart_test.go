package slowstart

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// TestRunCounts checks the number of calls. Run must complete the batch that contains the first
// failing call, and start no further batch.
func TestRunCounts(t *testing.T) {
	boom := errors.New("boom")
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1200).Draw(t, "n")
		failAt := rapid.IntRange(1, 1300).Draw(t, "failAt") // number of the first call that fails
		want := n
		for last := 1; failAt <= n; last = 2*last + 1 { // last call of each batch: 1, 3, 7, …
			if failAt <= last {
				want = min(last, n)
				break
			}
		}
		var calls atomic.Int64
		started, err := Run(ctx, n, func(context.Context) error {
			if calls.Add(1) == int64(failAt) {
				return boom
			}
			return nil
		})
		if started != want || int(calls.Load()) != want {
			t.Fatalf("started %d, called %d, want %d", started, calls.Load(), want)
		}
		if failed := errors.Is(err, boom); failed != (failAt <= n) {
			t.Fatalf("error %v with failure at call %d of %d", err, failAt, n)
		}
	})
}

// TestRunBatches checks that the calls of a batch run concurrently. The next batch must begin
// only after all calls of the batch have returned.
func TestRunBatches(t *testing.T) {
	var mu sync.Mutex
	begun := sync.NewCond(&mu)
	calls, running := 0, 0
	_, err := Run(t.Context(), 10, func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		calls++
		running++
		last := 1
		for size := 2; last < calls; size *= 2 {
			last = min(last+size, 10)
		}
		before := map[int]int{1: 0, 3: 1, 7: 3, 10: 7}[last] // number of calls in all earlier batches
		if running != calls-before {
			t.Errorf("call %d: %d are running, want %d", calls, running, calls-before)
		}
		for begun.Broadcast(); calls < last; {
			begun.Wait()
		}
		running--
		return nil
	})
	if err != nil || calls != 10 {
		t.Errorf("made %d calls with error %v, want 10", calls, err)
	}
}

func TestRunStopsBetweenBatches(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started, err := Run(ctx, 10, func(context.Context) error { cancel(); return nil })
	if started != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("started %d, error %v; want 1 and context.Canceled", started, err)
	}
}
