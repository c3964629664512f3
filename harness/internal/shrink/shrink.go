// Package shrink makes a failing scenario smaller as long as it still fails. It removes faults,
// objects and steps, and reduces times and numbers. The result contains only parts that the failure
// needs.
//
// The result depends only on the scenario and on which scenarios fail. A canceled search can
// therefore continue from a journal with the results of its runs. The caller determines whether a
// scenario fails. [Prober] determines it for failures that do not occur in every run.
package shrink

import (
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Fails reports whether a smaller scenario still has the failure of the original scenario. If it
// returns an error, [Shrink] ends.
type Fails func(*scenario.Scenario) (bool, error)

// Shrink returns the smallest failing scenario that it can reach by removing and reducing parts of
// s.
//
// Every fault, object and step of the result is needed: without it, the scenario would pass or be
// invalid. If the function fails returns an error, Shrink returns the error and the smallest
// failing scenario so far.
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

// reduce removes or reduces parts of a scenario with one reduction, as long as the scenario still
// fails. It returns the smallest failing scenario.
//
// It first tries half of the parts at once. Each further pass tries chunks of half the size, down
// to single parts.
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
				best = smaller // the next part now has this index
			} else {
				at += size
			}
		}
		if size == 1 {
			return best, nil
		}
	}
}

// without returns a copy of a scenario to which a reduction was applied. The reduction changes the
// parts in the slice [from:to] of all parts. without returns nil if the reduction changes nothing
// or makes the scenario invalid.
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
