package campaign

import (
	"context"
	"iter"
	"sync"

	"github.com/kube-gauntlet/gauntlet/reports"
)

// Attempt makes one run. Without a run there is an error, which says what kept it
// from beginning.
type Attempt func(ctx context.Context) (*reports.Run, error)

// RunParallel makes the runs of a series, up to parallel of them at the same time, and
// hands what comes of each to take as it ends, one at a time, with its place in
// the series from 0. When ctx ends, or take or the series returns an error, no more
// runs are begun, and those under way are finished. The error is the first one of
// take or the series.
func RunParallel(ctx context.Context, parallel int, series iter.Seq2[Attempt, error], take func(place int, run *reports.Run, err error) error) error {
	next, stop := iter.Pull2(series)
	defer stop()
	var (
		underWay sync.WaitGroup
		slots    = make(chan struct{}, parallel)
		mu       sync.Mutex // of what follows, and of take
		failed   error
	)
	fail := func(err error) (over bool) {
		if failed == nil {
			failed = err
		}
		return failed != nil
	}
	begin := func(place int) (begun bool) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil || failed != nil {
			return false
		}
		attempt, err, more := next()
		if !more || fail(err) {
			return false
		}
		underWay.Go(func() {
			defer func() { <-slots }()
			run, err := attempt(ctx)
			mu.Lock()
			defer mu.Unlock()
			fail(take(place, run, err))
		})
		return true
	}
	slots <- struct{}{}
	for place := 0; begin(place); place++ {
		slots <- struct{}{} // what comes next is decided when there is room for it
	}
	underWay.Wait()
	return failed
}
