// Package fleet runs the seeds of a campaign in the pods of a Kubernetes cluster.
//
// A [Campaign] becomes one Indexed Job: each index runs a range of seeds, and each pod is a
// [Worker] with an embedded control plane. Workers write their results to a [Store], and [Merge]
// reads them. Kubernetes does everything else: it schedules, queues and replaces pods.
//
// A result is never overwritten. Its name has the campaign, the index and the attempt, and an
// attempt is one pod. Of several results of a seed, [Merge] counts only the first.
package fleet

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Campaign says which runs a fleet makes: each seed of a range, on each subject.
type Campaign struct {
	// Name identifies the campaign in the store. The Job has the same name.
	Name string `json:"name"`
	// Seeds is the range of seeds.
	Seeds Seeds `json:"seeds"`
	// PerPod is the number of seeds of one index of the Job, at least 1.
	PerPod uint64 `json:"perPod"`
	// Subjects has the controllers under test, as --subject names them.
	Subjects []string `json:"subjects"`
	// Profile is the profile of generated scenarios. It is empty if Scenario is set.
	Profile string `json:"profile,omitempty"`
	// Duration is the time of a generated workload. With 0, the profile determines it.
	Duration time.Duration `json:"duration,omitempty"`
	// Scenario is the name of the built-in scenario that runs with each seed. If it is empty,
	// each seed generates a scenario.
	Scenario string `json:"scenario,omitempty"`
}

// Limits of Kubernetes for an Indexed Job.
const (
	indexesMax = 100_000 // completions of a Job with backoffLimitPerIndex
	nameMax    = 48      // leaves room for the index and the random suffix in names of pods
)

// Validate returns an error if a Job cannot run the campaign.
func (c *Campaign) Validate() error {
	if errs := validation.IsDNS1123Label(c.Name); len(errs) > 0 || len(c.Name) > nameMax {
		return fmt.Errorf("name of the campaign: found %q; expected at most %d lower-case letters, digits and \"-\"", c.Name, nameMax)
	}
	if err := c.Seeds.validate(); err != nil {
		return err
	}
	if c.PerPod < 1 {
		return fmt.Errorf("seeds of a pod: found %d; expected at least 1", c.PerPod)
	}
	if n := c.indexes(); n > indexesMax {
		return fmt.Errorf("campaign %s: found %d indexes of %d seeds; expected at most %d indexes; use more seeds for each pod", c.Name, n, c.PerPod, indexesMax)
	}
	if len(c.Subjects) == 0 {
		return fmt.Errorf("campaign %s: found no subject; expected at least one", c.Name)
	}
	names := map[string]bool{}
	for _, subject := range c.Subjects {
		base := (Unit{1, subject}).base()
		if names[base] {
			return fmt.Errorf("campaign %s: found the subject %s twice, or two that differ only in their path; expected each once", c.Name, subject)
		}
		names[base] = true
	}
	return nil
}

// command returns the command line that makes one run of the campaign on this machine.
func (c *Campaign) command(u Unit) string {
	words := []string{"bin/gauntlet run"}
	if c.Scenario != "" {
		words = append(words, c.Scenario)
	}
	words = append(words, fmt.Sprintf("--seed=%d --subject=%s", u.Seed, u.Subject))
	if c.Scenario == "" {
		words = append(words, "--profile="+c.Profile)
	}
	if c.Duration > 0 {
		words = append(words, "--duration="+c.Duration.String())
	}
	return strings.Join(words, " ")
}

// indexes returns the number of indexes of the Job.
func (c *Campaign) indexes() uint64 { return (c.Seeds.count()-1)/c.PerPod + 1 }

// SeedsOf returns the seeds of an index of the Job. It returns an error if the Job has no such
// index.
func (c *Campaign) SeedsOf(index int) (Seeds, error) {
	if index < 0 || uint64(index) >= c.indexes() {
		return Seeds{}, fmt.Errorf("campaign %s: found index %d; expected 0 to %d", c.Name, index, c.indexes()-1)
	}
	first := c.Seeds.First + uint64(index)*c.PerPod
	return Seeds{first, min(first+c.PerPod-1, c.Seeds.Last)}, nil
}

// units returns the runs for a range of seeds, in the order in which a worker makes them.
func (c *Campaign) units(seeds Seeds) []Unit {
	var units []Unit
	for seed := seeds.First; seed <= seeds.Last; seed++ {
		for _, subject := range c.Subjects {
			units = append(units, Unit{seed, subject})
		}
	}
	return units
}

// encode returns the campaign as JSON.
func (c *Campaign) encode() []byte {
	encoded, err := json.Marshal(c)
	if err != nil {
		panic(err) // impossible: the type has only texts and numbers
	}
	return encoded
}

// Unit is one run of a campaign.
type Unit struct {
	Seed    uint64 `json:"seed"`
	Subject string `json:"subject"`
}

// String returns the unit as text for messages.
func (u Unit) String() string { return fmt.Sprintf("seed %d, subject %s", u.Seed, u.Subject) }

// Seeds is a range of seeds, both ends included.
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
	if err1 != nil || err2 != nil || seeds.validate() != nil {
		return Seeds{}, fmt.Errorf("seeds: found %q; expected a range such as 1..1000", text)
	}
	return seeds, nil
}

// validate returns an error if the range is empty or has the seed 0, which means a random seed.
func (s Seeds) validate() error {
	if s.First < 1 || s.Last < s.First || s.Last == math.MaxUint64 {
		return fmt.Errorf("seeds: found %s; expected a first seed of at least 1, and a last seed that is not less than it", s)
	}
	return nil
}

// count returns the number of seeds in the range.
func (s Seeds) count() uint64 { return s.Last - s.First + 1 }

// String returns the range in the form that [ParseSeeds] accepts.
func (s Seeds) String() string { return fmt.Sprintf("%d..%d", s.First, s.Last) }
