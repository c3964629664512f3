// Package shrink makes a failing scenario smaller while it still fails. It removes
// faults, objects and steps, and reduces times and numbers. The result has only what
// the failure needs.
//
// The procedure is a pure function of the scenario and of the results of its runs.
// Therefore a canceled procedure can continue from a journal of the results. The caller
// determines whether a scenario fails; see [Prober] for failures that do not occur in
// every run.
package shrink

import (
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Fails reports whether a scenario has the failure of the original. An error ends the
// shrinking.
type Fails func(*scenario.Scenario) (bool, error)

// Shrink returns the smallest failing scenario that reductions of a failing scenario
// give. Without any single one of its faults or steps, the result passes or is not
// valid. With an error, Shrink returns the smallest failing scenario so far.
func Shrink(s *scenario.Scenario, fails Fails) (*scenario.Scenario, error) {
	best := s
	for {
		before := best
		for _, r := range reductions {
			var err error
			if best, err = reduce(best, r, fails); err != nil {
				return best, err
			}
		}
		if best == before {
			return best, nil
		}
	}
}

// reduce applies a reduction to chunks of its parts: half of them, a quarter, and so on
// to single ones.
func reduce(best *scenario.Scenario, r reduction, fails Fails) (*scenario.Scenario, error) {
	for size := max(1, (r.parts(best)+1)/2); ; size /= 2 {
		for at := 0; at < r.parts(best); {
			smaller := without(best, r, at, min(at+size, r.parts(best)))
			if smaller == nil {
				at += size
				continue
			}
			failing, err := fails(smaller)
			if err != nil {
				return best, err
			}
			if failing {
				best = smaller // try the parts that moved to this index
			} else {
				at += size
			}
		}
		if size == 1 {
			return best, nil
		}
	}
}

// without returns a scenario with the parts of a range reduced. It returns nil if that
// changes nothing or is not valid.
func without(s *scenario.Scenario, r reduction, from, to int) *scenario.Scenario {
	smaller := s.Clone()
	if !r.apply(smaller, from, to) {
		return nil
	}
	if _, err := smaller.Marshal(); err != nil {
		return nil
	}
	return smaller
}
