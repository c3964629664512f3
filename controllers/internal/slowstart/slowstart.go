// Package slowstart sends many calls in batches of 1, 2, 4, 8, … and stops
// after the first batch in which one fails, so that calls which are all bound
// to fail alike (a quota, say) cost a handful and not hundreds.
package slowstart

import (
	"context"
	"sync"
)

// Run makes up to n calls, those of one batch at once, and waits for every call
// it started. It returns how many it started, and the first error of the batch
// that was the last. No batch starts once ctx is done.
func Run(ctx context.Context, n int, call func(ctx context.Context) error) (started int, err error) {
	for size := 1; started < n; size *= 2 {
		if err := ctx.Err(); err != nil {
			return started, err
		}
		size = min(size, n-started)
		started += size
		if err := runBatch(ctx, size, call); err != nil {
			return started, err
		}
	}
	return started, nil
}

func runBatch(ctx context.Context, size int, call func(ctx context.Context) error) error {
	var calls sync.WaitGroup
	var once sync.Once
	var first error
	for range size {
		calls.Go(func() {
			if err := call(ctx); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	calls.Wait()
	return first
}
