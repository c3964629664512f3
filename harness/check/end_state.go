package check

import (
	"sync"

	"github.com/kube-gauntlet/gauntlet/harness/baseline"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// EndState decides whether the objects of a run are those of the baseline (runs without faults). A
// run with a baseline uses it to find the end of its settle phase. A controller that retries with
// back-off may write nothing for a while, although it is not done.
//
// The methods of EndState are safe for concurrent use.
type EndState struct {
	mu       sync.Mutex // guards all other fields
	checker  *baselineChecker
	compared bool // true if no record since the last comparison can change its result
	same     bool // the result of the last comparison
}

// NewEndState returns an EndState that has read no record. The baseline may be nil. The parameter
// lastOperation is the index of the last step of the workload that has an operation.
func NewEndState(b *baseline.Baseline, lastOperation int) *EndState {
	return &EndState{checker: newBaselineChecker(Settings{Baseline: b, LastOperation: lastOperation}, sameEndStateExcludes, compareEndStates)}
}

// Observe reads the next record of the history.
func (e *EndState) Observe(r *history.Record) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.checker.baseline == nil {
		return
	}
	e.checker.collect(r)
	if r.Commit != nil || r.Fault != nil || r.Response != nil {
		e.compared = false
	}
}

// Reached reports whether the objects are the same as in runs without faults. It returns true if
// the run cannot be compared with these runs, for example because a step of the workload failed.
func (e *EndState) Reached() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.checker.unusable() != "" {
		return true
	}
	if !e.compared {
		_, differences := e.checker.compare(e.checker.baseline, e.checker.observer, e.checker.fired)
		e.compared, e.same = true, len(differences) == 0
	}
	return e.same
}
