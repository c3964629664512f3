package library

import (
	_ "embed" // for tiers.txt
	"fmt"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Tier is a part of the library. Each tier includes the one before it.
type Tier string

// These are the tiers, from the smallest to the largest.
const (
	Quick   Tier = "quick"   // a few minutes, for pull requests
	Default Tier = "default" // most of what the library catches
	Full    Tier = "full"    // all scenarios, for the night and before a release
)

// Tiers has all tiers, from the smallest to the largest.
var Tiers = []Tier{Quick, Default, Full}

// tiersFile lists the scenarios of the tiers quick and default. Each line has a tier and a
// scenario. The command "gauntlet mutants tiers" computes which scenarios these should be.
//
//go:embed tiers.txt
var tiersFile string

// ParseTier returns the tier with a name.
func ParseTier(name string) (Tier, error) {
	if tier := Tier(name); slices.Contains(Tiers, tier) {
		return tier, nil
	}
	return "", fmt.Errorf("found tier %q; expected quick, default or full", name)
}

// InTier returns the scenarios of a tier, sorted by name. As with [All], the caller may change
// them.
func InTier(tier Tier) []*scenario.Scenario {
	return slices.DeleteFunc(All(), func(s *scenario.Scenario) bool {
		return slices.Index(Tiers, TierOf(s.Name)) > slices.Index(Tiers, tier)
	})
}

// Names returns the names of the scenarios of a tier, in alphabetical order.
func Names(tier Tier) []string {
	var names []string
	for _, s := range InTier(tier) {
		names = append(names, s.Name)
	}
	return names
}

// TierOf returns the smallest tier that has the scenario with the given name.
func TierOf(name string) Tier {
	for line := range strings.Lines(tiersFile) {
		if tier, scenario, _ := strings.Cut(strings.TrimSpace(line), " "); scenario == name {
			return Tier(tier)
		}
	}
	return Full
}
