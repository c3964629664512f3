package mutant

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
)

// Candidate is a scenario that may become part of a tier.
type Candidate struct {
	Name     string
	Duration time.Duration // duration of a run with the unmodified controllers
	// Covers lists the mutants that the scenario catches, the checks that it exercises, and
	// its types of faults, such as "check expectations". Each check belongs to statements of
	// the contract, so scenarios that cover all checks cover all statements.
	Covers []string
}

// Candidates returns the scenarios that our unmodified controllers pass, sorted by name. The
// argument faults has the types of faults of each scenario, by the name of the scenario.
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

// mutantPrefix is the prefix of the items in [Candidate.Covers] that stand for mutants.
const mutantPrefix = "mutant "

// Choice is one scenario of a tier, in the order in which [ChooseTiers] chose it.
type Choice struct {
	Candidate
	// New contains the items of Covers that no scenario before this one covers.
	New []string
}

// Tiers are the chosen scenarios. Default includes Quick.
type Tiers struct{ Quick, Default []Choice }

// These are the goals of the tiers.
const (
	// QuickDuration is the maximum duration of all runs of the tier quick, one after another.
	QuickDuration = 4 * time.Minute
	// DefaultShare is the minimum share of the caught mutants that the tier default catches.
	DefaultShare = 0.97
)

// startUp is about how long a run takes to start its control plane and to stop it.
const startUp = 6 * time.Second

// ChooseTiers chooses the scenarios of the tiers quick and default with a greedy cover. The
// next scenario is always the one that covers the most new items for each second.
//
//   - Quick ends when the next scenario would exceed QuickDuration.
//   - Default ends when it covers all items except mutants, and catches the share DefaultShare
//     of the mutants that any candidate catches.
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

// bestChoice returns the candidate that covers the most new items for each second.
func bestChoice(candidates []Candidate, covered map[string]bool) Choice {
	var choices []Choice
	for _, c := range candidates {
		choices = append(choices, Choice{c, slices.DeleteFunc(slices.Clone(c.Covers), func(item string) bool { return covered[item] })})
	}
	perSecond := func(c Choice) float64 { return float64(len(c.New)) / (startUp + c.Duration).Seconds() }
	return slices.MaxFunc(choices, func(a, b Choice) int { return cmp.Compare(perSecond(a), perSecond(b)) })
}

// coversEnough reports whether the covered items are enough for the tier default; see
// [ChooseTiers].
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
