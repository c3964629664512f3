// Package slowstart makes calls in batches of 1, 2, 4, 8, … until a batch fails. If
// all calls fail for one reason, such as an exhausted quota, only a few are made.
package slowstart

import (
	"context"
	"sync"
)

// Run makes up to n calls, the calls of one batch concurrently, and waits for every
// call that it started. It returns the number of calls started and the first error of
// the last batch. It starts no batch once ctx is done.
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
