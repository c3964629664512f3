package campaign

import (
	"sync"

	"github.com/kube-gauntlet/gauntlet/reports"
)

// stalledMax is the share of a run's duration in which the run may stall, that is, get no CPU time.
// If a run stalls for longer, an adaptive Limit decreases. On two idle cores, the median share is 6 %
// with two runs at the same time, 14 % with four, and 19 % with eight. The checks allow for stalls.
const stalledMax = 0.25

// Limit is the maximum number of runs at the same time. It is constant ([Fixed]), or it follows the
// stalls of the runs ([Adaptive]). A stall is a time in which a run got no CPU time. Several
// goroutines may use a Limit.
type Limit struct {
	lowest, highest int

	mu      sync.Mutex
	current int
	changes int // how often current has changed
	steady  int // number of consecutive runs that stalled for at most stalledMax
}

// Fixed returns a Limit that is always n, which is at least 1.
func Fixed(n int) *Limit { return &Limit{lowest: n, highest: n, current: n} }

// Adaptive returns a Limit that begins with the argument start, and is between 1 and the argument
// highest. It decreases by 1 if a run cannot start, or stalls for more than 25 % of its duration. It
// increases by 1 after as many consecutive other runs as run at the same time.
func Adaptive(start, highest int) *Limit {
	return &Limit{lowest: 1, highest: max(start, highest), current: start}
}

// Current returns how many runs may take place at the same time now.
func (l *Limit) Current() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// begin returns a function that the caller calls when a run ends that begins now. The function
// adapts the limit to the stalls of this run. The argument is nil for a run that could not start.
// The function does nothing if the limit has changed since the run began, because the run then says
// nothing about the new limit.
func (l *Limit) begin() (end func(*reports.Run)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changes := l.changes
	return func(run *reports.Run) {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case changes != l.changes || run != nil && run.Duration == 0: // a run without a history says nothing
		case run == nil || run.Stalled.Seconds() > stalledMax*run.Duration.Seconds():
			l.change(-1)
		default:
			if l.steady++; l.steady >= l.current {
				l.change(1)
			}
		}
	}
}

// change adds by to the limit, within its bounds.
func (l *Limit) change(by int) {
	l.current = min(max(l.current+by, l.lowest), l.highest)
	l.changes++
	l.steady = 0
}
