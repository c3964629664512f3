package check

import (
	"slices"
	"time"
)

// machine is the process name in records that say that gauntlet itself got no CPU time (a stall).
// The controllers under test then probably got no CPU time either, so the stall counts for all
// processes.
const machine = ""

// stalls contains the stalls of a run. A stall is a time in which gauntlet or a process got no CPU
// time. Checks extend their time limits by it.
type stalls struct {
	all   []stall                  // sorted by end, earliest first
	total map[string]time.Duration // the sum of the durations, by process name
}

// stall is one period in which a process, or gauntlet itself, got no CPU time.
type stall struct {
	process  string        // the name of the process; the constant machine for gauntlet itself
	end      time.Duration // when the stall ended, as an offset from the start of the run
	duration time.Duration
}

// add adds a stall: a time in which a process or the whole machine got no CPU time. The parameter
// end is an offset from the start of the run.
func (s *stalls) add(process string, end, duration time.Duration) {
	s.all = append(s.all, stall{process, end, duration})
	s.total[process] += duration
}

// recent returns for how long the given processes got no CPU time during the last 2 s. These stalls
// may have delayed a decision of the controller. The parameter now is the current time, as an
// offset from the start of the run.
func (s *stalls) recent(now time.Duration, processes ...string) time.Duration {
	return s.since(now-2*lag, processes...)
}

// longest returns for how long the most affected process has got no CPU time in a period. The
// parameter from is the beginning of the period, which ends now. Stalls of the whole machine
// count for every process.
func (s *stalls) longest(from time.Duration) time.Duration {
	longest := s.since(from, machine)
	for process := range s.total {
		longest = max(longest, s.since(from, machine, process))
	}
	return longest
}

// since returns the sum of the times for which the given processes got no CPU time in a period. The
// parameter from is the beginning of the period, which ends now.
func (s *stalls) since(from time.Duration, processes ...string) (sum time.Duration) {
	for _, each := range slices.Backward(s.all) {
		if each.end <= from {
			break
		}
		if slices.Contains(processes, each.process) {
			sum += min(each.duration, each.end-from)
		}
	}
	return sum
}
