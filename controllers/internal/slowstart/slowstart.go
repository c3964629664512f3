// Package slowstart makes calls in batches of 1, 2, 4, 8, … until a call fails. If all calls
// would fail for the same reason, such as an exhausted quota, it makes only a few of them.
package slowstart

import (
	"context"
	"sync"
)

// Run makes up to n calls. It makes the calls of a batch concurrently, and waits for all of
// them. It returns the number of calls made, and the first error of the last batch. It starts
// no further batch after ctx is done.
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

// runBatch makes size calls concurrently. It returns the first error after all calls have
// returned.
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
