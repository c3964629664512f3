package library

import (
	_ "embed" // for tiers.txt
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Tier is a set of scenarios for one purpose, such as "quick" for pull requests. Each tier
// includes the smaller tiers.
type Tier string

// These are the tiers, which are sets of scenarios, from the smallest to the largest. The flag
// --tier selects one.
const (
	Quick   Tier = "quick"   // the tier whose scenarios run in a few minutes, for pull requests
	Default Tier = "default" // scenarios that together find almost all bugs that the library finds
	Full    Tier = "full"    // all scenarios, for nightly runs and before a release
)

// Tiers has all tiers (sets of scenarios), from the smallest to the largest.
var Tiers = []Tier{Quick, Default, Full}

// tiersFile lists the scenarios of the tiers quick and default. Each line has a tier and a
// scenario, such as "quick rollout". The command "gauntlet mutants tiers" computes these lines
// from the bugs that each scenario detects.
//
//go:embed tiers.txt
var tiersFile string

// ParseTier returns the tier with the given name, such as "quick". It returns an error for an
// unknown name.
func ParseTier(name string) (Tier, error) {
	if tier := Tier(name); slices.Contains(Tiers, tier) {
		return tier, nil
	}
	return "", fmt.Errorf("found unknown tier %q; expected quick, default or full", name)
}

// InTier returns the scenarios of a tier, such as "quick", and of the smaller tiers, sorted by
// name. The caller may change the returned scenarios; see [All].
func InTier(tier Tier) []*scenario.Scenario {
	return slices.DeleteFunc(All(), func(s *scenario.Scenario) bool {
		return slices.Index(Tiers, TierOf(s.Name)) > slices.Index(Tiers, tier)
	})
}

// Names returns the names of the scenarios of a tier, such as "quick", and of the smaller tiers.
// The order is alphabetical.
func Names(tier Tier) []string {
	var names []string
	for _, s := range InTier(tier) {
		names = append(names, s.Name)
	}
	return names
}

// TierOf returns the smallest tier (set of scenarios) that contains the scenario with the given
// name. It returns [Full] for a name that the file tiers.txt does not list.
func TierOf(name string) Tier {
	for line := range strings.Lines(tiersFile) {
		if tier, scenario, _ := strings.Cut(strings.TrimSpace(line), " "); scenario == name {
			return Tier(tier)
		}
	}
	return Full
}
