package library

import (
	"slices"
	"strings"
	"testing"
)

// TestTiersFile checks that each line of tiers.txt has a tier and the name of a scenario. No
// scenario may occur twice, and the lines of quick must be first.
func TestTiersFile(t *testing.T) {
	var seen []string
	inDefault := false
	for line := range strings.Lines(tiersFile) {
		tier, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if tier != string(Quick) && tier != string(Default) {
			t.Errorf("%q: expected quick or default, and a scenario", line)
		}
		if _, ok := Find(name); !ok || slices.Contains(seen, name) {
			t.Errorf("%q: expected the name of a scenario, once", line)
		}
		if inDefault = inDefault || tier == string(Default); inDefault && tier == string(Quick) {
			t.Errorf("%q: expected the scenarios of quick first", line)
		}
		seen = append(seen, name)
	}
}

// TestTiersInclude checks that each tier (set of scenarios) has all scenarios of the smaller tier,
// and more. The last tier must have all scenarios.
func TestTiersInclude(t *testing.T) {
	var before []string
	for _, tier := range Tiers {
		names := Names(tier)
		for _, name := range before {
			if !slices.Contains(names, name) {
				t.Errorf("tier %s has no scenario %s, which the tier before it has", tier, name)
			}
		}
		if len(names) <= len(before) {
			t.Errorf("tier %s has %d scenarios; expected more than the %d of the tier before it", tier, len(names), len(before))
		}
		before = names
	}
	if len(before) != len(All()) {
		t.Errorf("the last tier has %d scenarios; expected all %d", len(before), len(All()))
	}
}

func TestTierOf(t *testing.T) {
	line, _, _ := strings.Cut(tiersFile, "\n")
	tier, name, _ := strings.Cut(line, " ")
	if got := TierOf(name); string(got) != tier {
		t.Errorf("TierOf(%s) = %s; expected %s", name, got, tier)
	}
	if got := TierOf("no such scenario"); got != Full {
		t.Errorf("tier %s of a scenario that tiers.txt does not have; expected full", got)
	}
}

func TestParseTier(t *testing.T) {
	for _, tier := range Tiers {
		if got, err := ParseTier(string(tier)); got != tier || err != nil {
			t.Errorf("ParseTier(%s) = %s, %v", tier, got, err)
		}
	}
	const want = `found unknown tier "fast"; expected quick, default or full`
	if _, err := ParseTier("fast"); err == nil || err.Error() != want {
		t.Errorf("error %v; expected %s", err, want)
	}
}
