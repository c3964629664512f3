// Package fleet runs the seeds of a campaign in the pods of a Kubernetes cluster.
//
// A [Campaign] becomes one Indexed Job. Each index runs a range of seeds, in a pod that is a
// [Worker] with an embedded control plane. Workers write their results to a [Store], and [Merge]
// reads the results. Kubernetes does everything else: it schedules, queues and replaces pods.
//
// A result is never overwritten. Its name has the campaign, the index and the attempt, and each
// pod is one attempt. If the store has several results for one seed and subject, [Merge] counts
// only the first result.
package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/harness/internal/coverage"
	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/internal/generate"
)

// Campaign describes a series of runs in the pods of an Indexed Job. Each seed of a range has one
// run with each subject. A subject is the controllers under test.
type Campaign struct {
	// Name identifies the campaign in the store. The campaign's Job has the same name.
	Name string `json:"name"`
	// Seeds is the range of seeds that the campaign runs.
	Seeds Seeds `json:"seeds"`
	// PerPod is the number of seeds that one pod of the Indexed Job runs, at least 1.
	PerPod uint64 `json:"perPod"`
	// Subjects has the controllers under test, in the form of the flag --subject.
	Subjects []string `json:"subjects"`
	// Profile says how much happens in a generated scenario, such as calm or storm. It is empty if
	// Scenario is set.
	Profile string `json:"profile,omitempty"`
	// Duration is how long a generated workload lasts. With 0, the profile determines the
	// duration.
	Duration time.Duration `json:"duration,omitempty"`
	// Provider is the provider of the runs' control planes: embedded or virtual.
	Provider string `json:"provider"`
	// PreferUncovered has the counts of faults that fired in earlier runs, or is nil. Generated
	// scenarios then prefer faults with low counts.
	PreferUncovered *coverage.Table `json:"preferUncovered,omitempty"`
	// Scenario is the name of the built-in scenario that runs with each seed. If it is empty,
	// each seed generates a scenario.
	Scenario string `json:"scenario,omitempty"`
	// Units lists the failures that the campaign shrinks, or the scenarios that it explores as
	// `gauntlet explore` does. Each unit is one index of the Job. If Units is empty, the campaign
	// makes runs of seeds instead.
	Units []Unit `json:"units,omitempty"`
	// Of is the name of the campaign whose failures this campaign shrinks. It is empty if this
	// campaign shrinks nothing.
	Of string `json:"of,omitempty"`
	// Faults has the kinds of faults with which this campaign explores scenarios.
	Faults []string `json:"faults,omitempty"`
	// Budget is how long the campaign explores each scenario. With 0, there is no time limit: the
	// campaign tries every place for a fault, that is, each write and each watch event.
	Budget time.Duration `json:"budget,omitempty"`
}

// SeedsMax is the maximum number of seeds of a campaign. Commands that read the results have a list
// of all runs in memory.
const SeedsMax = 10_000_000

// These are the limits that Kubernetes has for an Indexed Job.
const (
	indexesMax = 100_000 // the maximum number of completions of a Job with backoffLimitPerIndex
	nameMax    = 48      // the maximum length of a campaign's name; pod names add the index and a random suffix
)

// CheckName returns an error if no campaign can have the name.
func CheckName(name string) error {
	if errs := validation.IsDNS1123Label(name); len(errs) > 0 || len(name) > nameMax {
		return fmt.Errorf("name of the campaign: found %q; expected at most %d lower-case letters, digits and \"-\", with a letter or digit at either end", name, nameMax)
	}
	return nil
}

// Validate returns an error if the campaign cannot run as a Job.
func (c *Campaign) Validate() error {
	if err := CheckName(c.Name); err != nil {
		return err
	}
	if err := c.Seeds.validate(); err != nil {
		return err
	}
	if n := c.Seeds.count(); n > SeedsMax {
		return fmt.Errorf("--seeds: found %d seeds in %s; expected at most %d", n, c.Seeds, SeedsMax)
	}
	if err := c.validateOptions(); err != nil {
		return err
	}
	if c.PerPod < 1 {
		return fmt.Errorf("--per-pod=%d: expected at least 1 seed for each pod", c.PerPod)
	}
	if n := c.indexes(); n > indexesMax {
		return fmt.Errorf("campaign %s: found %d indexes of %d seeds; expected at most %d indexes; increase --per-pod", c.Name, n, c.PerPod, indexesMax)
	}
	if len(c.Subjects) == 0 {
		return fmt.Errorf("campaign %s: found no subject; name at least one with --subjects", c.Name)
	}
	names := map[string]bool{}
	for _, subject := range c.Subjects {
		base := (Unit{Seed: 1, Subject: subject}).base()
		if names[base] {
			return fmt.Errorf("campaign %s: found the subject %s twice, or another subject whose results would have the same file names; name each subject once", c.Name, subject)
		}
		names[base] = true
	}
	for _, u := range c.Units {
		if names[u.base()] {
			return fmt.Errorf("campaign %s: found the same unit of work twice: %s; name each scenario and each subject once", c.Name, u)
		}
		names[u.base()] = true
	}
	return nil
}

// validateOptions returns an error if an option of the runs or explorations has an impossible value.
func (c *Campaign) validateOptions() error {
	if c.PreferUncovered != nil {
		if err := checkCoverage(c.PreferUncovered); err != nil {
			return err
		}
	}
	if c.Profile != "" {
		if _, err := generate.ProfileNamed(c.Profile); err != nil {
			return fmt.Errorf("profile: %w", err)
		}
	}
	if len(c.Faults) > 0 {
		if _, err := explore.ParseActions(c.Faults, explore.Actions...); err != nil {
			return fmt.Errorf("faults: %w", err)
		}
	}
	for _, field := range []struct {
		name  string
		value time.Duration
	}{{"duration", c.Duration}, {"budget", c.Budget}} {
		if field.value < 0 {
			return fmt.Errorf("%s: found %s; expected a duration that is not negative", field.name, field.value)
		}
	}
	return nil
}

// PreferredFile is the name of the file with the coverage table [Campaign].PreferUncovered, in the
// directory of the report.
const PreferredFile = "prefer-uncovered.json"

// ReportDirectory returns the name of the directory with the report of a campaign.
func ReportDirectory(campaign string) string { return "fleet-" + campaign }

// Command returns a command line that repeats one run or exploration of the campaign without a
// cluster. Reports show this command to users.
func (c *Campaign) Command(u Unit) string {
	if u.Scenario != "" {
		return fmt.Sprintf("bin/gauntlet explore %s --subject=%s --provider=%s --at=%s", u.Scenario, u.Subject, c.Provider, strings.Join(c.Faults, ","))
	}
	words := []string{"bin/gauntlet run"}
	if c.Scenario != "" {
		words = append(words, c.Scenario)
	}
	words = append(words, fmt.Sprintf("--seed=%d --subject=%s", u.Seed, u.Subject))
	words = append(words, "--provider="+c.Provider)
	if c.Scenario == "" {
		words = append(words, "--profile="+c.Profile)
	}
	if c.Duration > 0 {
		words = append(words, "--duration="+c.Duration.String())
	}
	if c.PreferUncovered != nil {
		words = append(words, "--prefer-uncovered="+path.Join("out", ReportDirectory(c.Name), PreferredFile))
	}
	return strings.Join(words, " ")
}

// Explores reports whether the campaign explores scenarios, as `gauntlet explore` does. Each unit
// of the campaign then has a scenario of its own. Explores returns false for a campaign that makes
// runs of seeds or shrinks failures.
func (c *Campaign) Explores() bool { return len(c.Units) > 0 && c.Of == "" }

// indexes returns the number of completion indexes of the campaign's Indexed Job. One pod at a time
// works on each index.
func (c *Campaign) indexes() uint64 {
	if len(c.Units) > 0 {
		return uint64(len(c.Units))
	}
	return (c.Seeds.count()-1)/c.PerPod + 1
}

// UnitsOf returns the runs, shrinks or explorations that belong to a completion index of the Job.
// They are in the order in which a worker makes them. If the Job has no such index, UnitsOf returns
// an error.
func (c *Campaign) UnitsOf(index int) ([]Unit, error) {
	if index >= 0 && index < len(c.Units) {
		return c.Units[index : index+1], nil
	}
	seeds, err := c.SeedsOf(index)
	if err != nil {
		return nil, err
	}
	return c.units(seeds), nil
}

// all returns all runs, shrinks or explorations of the campaign, of all indexes of the Job.
func (c *Campaign) all() []Unit {
	if len(c.Units) > 0 {
		return c.Units
	}
	return c.units(c.Seeds)
}

// SeedsOf returns the seeds for which the pod with the given completion index makes runs. It
// returns an error if the Job has no such index.
func (c *Campaign) SeedsOf(index int) (Seeds, error) {
	if index < 0 || uint64(index) >= c.indexes() {
		return Seeds{}, fmt.Errorf("campaign %s: found completion index %d; expected an index from 0 to %d", c.Name, index, c.indexes()-1)
	}
	first := c.Seeds.First + uint64(index)*c.PerPod
	return Seeds{first, min(first+c.PerPod-1, c.Seeds.Last)}, nil
}

// units returns the runs for a range of seeds, in the order in which a worker makes these runs.
// Each seed has one run for each subject (controllers under test).
func (c *Campaign) units(seeds Seeds) []Unit {
	var units []Unit
	for seed := seeds.First; seed <= seeds.Last; seed++ {
		for _, subject := range c.Subjects {
			units = append(units, Unit{Seed: seed, Subject: subject})
		}
	}
	return units
}

// encode returns the campaign as JSON, for campaign.json and for an annotation of the Job.
func (c *Campaign) encode() []byte {
	encoded, err := json.Marshal(c)
	if err != nil {
		panic(err) // impossible: the type has only texts and numbers
	}
	return encoded
}

// Unit identifies one run, shrink or exploration of a campaign by its seed and its subject (the
// controllers under test). A shrink makes the scenario of a failure smaller, as `gauntlet shrink`
// does. An exploration tries faults at many places of a scenario, as `gauntlet explore` does.
type Unit struct {
	Seed    uint64 `json:"seed"`
	Subject string `json:"subject"`
	// Check is the ID of the check whose failure is shrunk. It is empty if nothing is shrunk.
	Check string `json:"check,omitempty"`
	// Scenario is the name of the scenario that is explored. It is empty if nothing is explored.
	Scenario string `json:"scenario,omitempty"`
}

// EncodeUnits returns units as JSON, for the flag --units of "gauntlet fleet worker".
func EncodeUnits(units []Unit) string {
	encoded, err := json.Marshal(units)
	if err != nil {
		panic(err) // impossible: the type has only texts and numbers
	}
	return string(encoded)
}

// String identifies a run, shrink or exploration of the campaign in messages, such as "seed 7,
// subject ours".
func (u Unit) String() string {
	text := fmt.Sprintf("seed %d, subject %s", u.Seed, u.Subject)
	if u.Check != "" {
		text += ", check " + u.Check
	}
	if u.Scenario != "" {
		text += ", scenario " + u.Scenario
	}
	return text
}

// Seeds is a range of seeds. First and Last belong to the range.
type Seeds struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// ParseSeeds parses a range such as "1..1000", or a single seed.
func ParseSeeds(text string) (Seeds, error) {
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		last = first
	}
	var seeds Seeds
	var err1, err2 error
	seeds.First, err1 = strconv.ParseUint(first, 10, 64)
	seeds.Last, err2 = strconv.ParseUint(last, 10, 64)
	switch err := errors.Join(err1, err2); {
	case errors.Is(err, strconv.ErrRange):
		return Seeds{}, fmt.Errorf("seeds: found %q; expected seeds of at most %d", text, seedMax)
	case err != nil:
		return Seeds{}, fmt.Errorf("seeds: found %q; expected a range such as 1..1000", text)
	}
	return seeds, seeds.validate()
}

// seedMax is the maximum of the last seed of a range. The number of seeds in a range with a greater
// seed might not fit into 64 bits.
const seedMax uint64 = math.MaxUint64 - 1

// validate returns an error if the range contains no seed or a seed above seedMax, or contains the seed 0. The flag --seed=0
// means a random seed, so such a run could not be repeated.
func (s Seeds) validate() error {
	if s.Last > seedMax {
		return fmt.Errorf("seeds: found %s; expected seeds of at most %d", s, seedMax)
	}
	if s.First < 1 || s.Last < s.First {
		return fmt.Errorf("seeds: found %s; the first seed must be at least 1, and the last seed must not be less than the first", s)
	}
	return nil
}

// contains reports whether a seed belongs to the range.
func (s Seeds) contains(seed uint64) bool { return seed >= s.First && seed <= s.Last }

// count returns the number of seeds in the range.
func (s Seeds) count() uint64 { return s.Last - s.First + 1 }

// String returns the range in the form that [ParseSeeds] accepts.
func (s Seeds) String() string { return fmt.Sprintf("%d..%d", s.First, s.Last) }
