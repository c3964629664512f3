package mutant

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Candidate is a scenario that [ChooseTiers] may choose for a tier.
type Candidate struct {
	Name     string
	Duration time.Duration // how long a run of the unmodified controllers takes
	// Covers has the mutants that the scenario detects, the checks that it exercises, and its types
	// of faults. An item is, for example, "check expectations". Statements of the contract are no
	// items of their own: a scenario that covers a check also covers the check's statements.
	Covers []string
}

// Candidates returns the scenarios that our unmodified controllers pass, sorted by name. The
// argument faults has each scenario's types of faults, by the scenario's name.
func (x *Matrix) Candidates(all []Mutant, faults map[string][]string) []Candidate {
	var candidates []Candidate
	for _, name := range slices.Sorted(maps.Keys(x.Unmodified[Ours])) {
		baseline := x.Unmodified[Ours][name]
		if baseline.Verdict != check.Pass {
			continue
		}
		c := Candidate{Name: name, Duration: baseline.Duration}
		for i := range all {
			if all[i].UnobservableReason == "" && x.Find(&all[i], []string{name}) == Caught {
				c.Covers = append(c.Covers, mutantPrefix+all[i].ID)
			}
		}
		for _, id := range baseline.Exercised {
			c.Covers = append(c.Covers, "check "+id)
		}
		for _, fault := range faults[name] {
			c.Covers = append(c.Covers, "fault "+fault)
		}
		slices.Sort(c.Covers)
		c.Covers = slices.Compact(c.Covers)
		candidates = append(candidates, c)
	}
	return candidates
}

// mutantPrefix begins the items of [Candidate.Covers] that name mutants, such as "mutant D5".
const mutantPrefix = "mutant "

// Choice is a scenario that [ChooseTiers] has chosen for a tier, with what it adds: mutants,
// checks and faults.
type Choice struct {
	Candidate
	// New has the items of Covers that no earlier choice covers.
	New []string
}

// Tiers has the scenarios that [ChooseTiers] has chosen for the tiers quick and default, in the
// order of the choice. Default includes Quick.
type Tiers struct{ Quick, Default []Choice }

// These are the limits by which [ChooseTiers] chooses the scenarios of each tier.
const (
	// QuickDuration is the maximum total time of the scenarios of the tier quick, which run one
	// after another.
	QuickDuration = 4 * time.Minute
	// DefaultShare is the minimum share of mutants that the scenarios of the tier default must
	// detect. Mutants that no candidate detects do not count.
	DefaultShare = 0.97
)

// startUp is approximately the time that a run needs to start and to stop its control plane.
const startUp = 6 * time.Second

// ChooseTiers chooses the scenarios of the tiers quick and default with a greedy algorithm. An item
// is a mutant that a scenario detects, a check that it exercises, or a type of its faults. The next
// choice is always the scenario with the most new items per second.
//
//   - The tier quick ends before the first choice with which its total time would exceed
//     QuickDuration.
//   - The tier default ends when it covers all checks and types of faults, and enough mutants. The
//     constant DefaultShare is the necessary share. Mutants that no candidate detects do not count.
func ChooseTiers(candidates []Candidate) Tiers {
	var tiers Tiers
	covered := map[string]bool{}
	var total time.Duration
	quick := true
	for !coversEnough(candidates, covered) {
		next := bestChoice(candidates, covered)
		total += startUp + next.Duration
		if quick = quick && total <= QuickDuration; quick {
			tiers.Quick = append(tiers.Quick, next)
		}
		tiers.Default = append(tiers.Default, next)
		for _, item := range next.New {
			covered[item] = true
		}
	}
	return tiers
}

// bestChoice returns the candidate that covers the most new items per second. An item is new if
// the map covered does not contain it.
func bestChoice(candidates []Candidate, covered map[string]bool) Choice {
	var choices []Choice
	for _, c := range candidates {
		choices = append(choices, Choice{c, slices.DeleteFunc(slices.Clone(c.Covers), func(item string) bool { return covered[item] })})
	}
	perSecond := func(c Choice) float64 { return float64(len(c.New)) / (startUp + c.Duration).Seconds() }
	return slices.MaxFunc(choices, func(a, b Choice) int { return cmp.Compare(perSecond(a), perSecond(b)) })
}

// coversEnough reports whether the chosen scenarios are enough for the tier named default. The
// keys of the map covered are the items that the scenarios cover; see [Candidate.Covers]. They
// must contain all checks and types of faults that any candidate covers. They must also contain
// at least DefaultShare of the mutants that any candidate detects.
func coversEnough(candidates []Candidate, covered map[string]bool) bool {
	mutants := map[string]bool{}
	for _, c := range candidates {
		for _, item := range c.Covers {
			switch {
			case strings.HasPrefix(item, mutantPrefix):
				mutants[item] = covered[item]
			case !covered[item]:
				return false
			}
		}
	}
	caught := 0
	for _, is := range mutants {
		if is {
			caught++
		}
	}
	return float64(caught) >= DefaultShare*float64(len(mutants))
}
