// Package baseline describes what runs of a scenario without faults have in common. These are the
// objects at the end, and how often the subject created and deleted each object.
//
// An [Observer] reads the history of a run and states its facts. [Learn] combines the facts of
// several runs to a [Baseline]. Facts on which the runs do not agree count as random. A run with
// faults should have the facts of the baseline, too; see [Facts.Differences] and [ExtraEffects].
//
// A baseline is stored in a YAML file that users may edit, for example to ignore a field.
package baseline

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

// Baseline is what several runs of a scenario without faults have in common.
type Baseline struct {
	// Scenario is the name of the scenario.
	Scenario string `json:"scenario"`
	// Subject is what was under test, such as ours. It is empty if the user does not say.
	Subject string `json:"subject,omitempty"`
	// Runs is the number of runs, at least 1.
	Runs int `json:"runs"`
	// Written lists the resources that the subject writes. End has the fields of their objects.
	Written []string `json:"written"`
	// End has the objects at the end of the runs; see [Observer.End].
	End Facts `json:"end"`
	// Effects has the creates and deletes of objects; see [Observer.Effects].
	Effects Facts `json:"effects"`
}

// Learn combines the histories of runs of one scenario to a baseline. It returns an error if a
// history cannot be read, or if a step of its workload failed.
func Learn(histories ...iter.Seq2[*history.Record, error]) (*Baseline, error) {
	if len(histories) == 0 {
		return nil, errors.New("learning a baseline: found no run; expected at least one")
	}
	var observers []*Observer
	for _, records := range histories {
		o := NewObserver()
		for record, err := range records {
			if err != nil {
				return nil, err
			}
			o.Observe(record)
		}
		if o.FailedStep != "" {
			return nil, fmt.Errorf("learning a baseline: found a failed step in a run without faults: %s; expected a workload that completes", o.FailedStep)
		}
		observers = append(observers, o)
	}
	return Combine(observers), nil
}

// Combine returns the baseline of runs that observers have read. It needs at least one run.
func Combine(observers []*Observer) *Baseline {
	first := observers[0]
	b := &Baseline{Scenario: first.start.Scenario, Subject: first.start.Subject, Runs: len(observers), Written: first.Written()}
	var ends, effects []Facts
	for _, o := range observers {
		ends, effects = append(ends, o.End(b.Written)), append(effects, o.Effects())
	}
	b.End, b.Effects = Agreed(ends), Agreed(effects)
	return b
}

// header explains the file to users who edit it.
const header = `# What the runs of a scenario without faults have in common.
# A run with faults must have the same values, except those that are "*".
# To ignore a value, replace it by "*". Remove no line: a missing line means that
# the object or the field must not exist.
`

// Write writes the baseline to a file.
func (b *Baseline) Write(path string) error {
	text, err := yaml.Marshal(b)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(header), text...), 0o644)
}

// Read reads a baseline from a file. The error names the file, and what was found and expected.
func Read(path string) (*Baseline, error) {
	text, err := inputfile.Read(path)
	if err != nil {
		return nil, err
	}
	b := new(Baseline)
	if err := yaml.UnmarshalStrict(text, b); err != nil {
		_, reason, _ := strings.Cut(err.Error(), ": ") // without the prefix of the YAML library
		return nil, fmt.Errorf("%s: expected a baseline, as \"gauntlet baseline\" writes it: %s", path, strings.TrimPrefix(reason, "while decoding JSON: json: "))
	}
	if err := b.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// validate returns an error for each field that is missing or wrong.
func (b *Baseline) validate() error {
	var errs []error
	if b.Scenario == "" {
		errs = append(errs, errors.New("scenario: found none; expected the name of a scenario"))
	}
	if b.Runs < 1 {
		errs = append(errs, fmt.Errorf("runs: found %d; expected at least 1", b.Runs))
	}
	if len(b.End) == 0 {
		errs = append(errs, errors.New("end: found no objects; expected at least one"))
	}
	for _, key := range slices.Sorted(maps.Keys(b.Effects)) {
		if _, err := parseEffects(key, b.Effects[key]); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
