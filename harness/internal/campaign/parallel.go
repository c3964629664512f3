package campaign

import (
	"context"
	"iter"
	"sync"

	"github.com/kube-gauntlet/gauntlet/reports"
)

// Attempt makes one run. If it returns no run, the error says why the run did not
// start.
type Attempt func(ctx context.Context) (*reports.Run, error)

// RunParallel makes the runs of a series, up to parallel at the same time. It calls
// take after each run, one call at a time, with the run's index in the series. No
// further run starts after ctx has ended, or after take or the series has returned an
// error. Runs in progress are completed. RunParallel returns the first error of take or
// of the series. It passes the error of an attempt to take, which decides whether the
// series continues.
func RunParallel(ctx context.Context, parallel int, series iter.Seq2[Attempt, error], take func(index int, run *reports.Run, err error) error) error {
	next, stop := iter.Pull2(series)
	defer stop()
	var (
		inProgress sync.WaitGroup
		slots      = make(chan struct{}, parallel)
		mu         sync.Mutex // guards failed and the calls of take
		failed     error
	)
	fail := func(err error) (stop bool) {
		if failed == nil {
			failed = err
		}
		return failed != nil
	}
	begin := func(index int) (started bool) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil || failed != nil {
			return false
		}
		attempt, err, more := next()
		if !more || fail(err) {
			return false
		}
		inProgress.Go(func() {
			defer func() { <-slots }()
			run, err := attempt(ctx)
			mu.Lock()
			defer mu.Unlock()
			fail(take(index, run, err))
		})
		return true
	}
	slots <- struct{}{}
	for index := 0; begin(index); index++ {
		slots <- struct{}{} // take the next attempt only when there is a free slot
	}
	inProgress.Wait()
	return failed
}
