package check

import (
	"slices"
	"time"
)

// machine is the name of the process in a stall of gauntlet itself, which all processes share.
const machine = ""

// stalls contains the stalls of a run: times in which a process got no CPU time.
type stalls struct {
	all   []stall                  // sorted by their ends
	total map[string]time.Duration // the total duration, by the name of the process
}

// stall is one stall of a process, or of the whole machine.
type stall struct {
	process  string // the name of the process, or machine
	end      time.Duration
	duration time.Duration
}

// add adds a stall that ends at the given time of the run.
func (s *stalls) add(process string, end, duration time.Duration) {
	s.all = append(s.all, stall{process, end, duration})
	s.total[process] += duration
}

// lately returns for how long the given processes stalled in the 2 s (2 * lag) before a time. A
// stall in that period may have delayed a decision of the controller.
func (s *stalls) lately(at time.Duration, processes ...string) time.Duration {
	return s.since(at-2*lag, processes...)
}

// longest returns the longest total stall of a process after the given time of the run. It
// includes the stalls of the machine.
func (s *stalls) longest(from time.Duration) time.Duration {
	longest := s.since(from, machine)
	for process := range s.total {
		longest = max(longest, s.since(from, machine, process))
	}
	return longest
}

// since returns for how long the given processes stalled after the given time of the run.
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
