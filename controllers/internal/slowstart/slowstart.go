// Package slowstart calls a function many times, in batches of 1, 2, 4, 8 and so on. It stops after
// the first batch with an error. If all calls would fail for the same reason, such as an exhausted
// quota, only a few calls are made.
package slowstart

import (
	"context"
	"sync"
)

// Run calls a function, the argument call, up to n times, in growing batches. The calls of a batch
// run concurrently, and Run waits for all of them. After an error, or after ctx is done, Run
// starts no further batch.
//
// Run returns the number of calls, and the first error of the last batch or the error of ctx.
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

// runBatch calls a function, the argument call, several times concurrently. The argument size is
// the number of calls. After all calls have returned, runBatch returns the first error.
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
