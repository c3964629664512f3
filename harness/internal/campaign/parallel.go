package campaign

import (
	"context"
	"iter"
	"sync"

	"github.com/kube-gauntlet/gauntlet/reports"
)

// Attempt makes one run and returns the run's report. If it returns nil, the run could not start,
// and the error says why.
type Attempt func(ctx context.Context) (*reports.Run, error)

// RunParallel makes the runs of a series, several at the same time. The argument limit is the
// maximum number of runs at the same time.
//
// The argument take is a callback: RunParallel calls it after each run, and never concurrently. The
// arguments of take are the run's index in the series, the run's report, and the error of the
// attempt.
//
// RunParallel returns the first error of the series or of take. After such an error, or after ctx
// has ended, no further run starts. RunParallel then waits for the runs in progress. An attempt's
// error does not end the series by itself: the callback take decides whether it does.
func RunParallel(ctx context.Context, limit *Limit, series iter.Seq2[Attempt, error], take func(index int, run *reports.Run, err error) error) error {
	next, stop := iter.Pull2(series)
	defer stop()
	var (
		inProgress sync.WaitGroup
		mu         sync.Mutex // guards running, failed and the calls of take
		running    int        // number of runs in progress
		ended      = sync.NewCond(&mu)
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
		for running >= limit.Current() { // take the next attempt only when it can start
			ended.Wait()
		}
		if ctx.Err() != nil || failed != nil {
			return false
		}
		attempt, err, more := next()
		if !more || fail(err) {
			return false
		}
		running++
		end := limit.begin()
		inProgress.Go(func() {
			run, err := attempt(ctx)
			mu.Lock()
			defer mu.Unlock()
			running--
			end(run)
			ended.Signal()
			fail(take(index, run, err))
		})
		return true
	}
	for index := 0; begin(index); index++ {
	}
	inProgress.Wait()
	return failed
}
