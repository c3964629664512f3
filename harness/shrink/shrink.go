// Package shrink makes a scenario that fails smaller for as long as it fails: it
// leaves out faults, objects and steps, and brings down what is left, times and
// numbers. What remains is what the failure needs.
//
// The procedure is a pure function of the scenario and of what fails, so that one
// that was broken off can be gone through again from a record of the answers.
// Whether a scenario fails is up to the caller; see [Prober] for runs that fail now
// and then.
package shrink

import (
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Fails reports whether a scenario fails in the way that is looked for. An error
// ends the shrinking.
type Fails func(*scenario.Scenario) (bool, error)

// Shrink returns the smallest scenario that it comes to from one that fails, by
// reductions that each leave it failing. Leaving out any single fault or step more
// does not fail any more, or is no scenario. With an error it returns the smallest
// so far.
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

// reduce goes through the parts that a reduction can take away or bring down, in
// chunks of half of them, a quarter and so on to single ones.
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
				best = smaller // what stands at this place now may go, too
			} else {
				at += size
			}
		}
		if size == 1 {
			return best, nil
		}
	}
}

// without is a scenario with the parts from and up to a place reduced; nil if that
// changes nothing or makes no sense.
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
