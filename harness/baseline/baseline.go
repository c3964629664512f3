// Package baseline describes what runs of a scenario without faults have in common. These are the
// objects at the end. A baseline also says how often the controllers under test (the subject)
// created and deleted each object.
//
// An [Observer] reads the history of one run and derives facts from it, such as the value of a
// field. [Learn] combines the facts of several runs into a [Baseline]. A fact that differs
// between the runs counts as random. A run with faults should have the facts of the baseline,
// too. The checks same-end-state and no-extra-effects compare a run with the baseline.
//
// A baseline is stored in a YAML file that users may edit, for example to ignore a field.
package baseline

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/outputfile"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// Baseline is what several runs of one scenario without faults have in common. It contains the
// objects at the end. It also contains how often the controllers under test (the subject) created
// and deleted each object.
type Baseline struct {
	// Scenario is the name of the scenario, such as "rollout".
	Scenario string `json:"scenario"`
	// Subject is what was under test, such as "ours" or "upstream". It is empty if the Start record
	// of the history does not say it.
	Subject string `json:"subject,omitempty"`
	// Workload is a hash of the steps and the number of nodes, such as "0a1b2c3d4e5f6071". It is
	// empty in files of earlier versions, and if the creator of the baseline knows the workload.
	Workload string `json:"workload,omitempty"`
	// Runs is the number of runs from which [Learn] derived the baseline, at least 1.
	Runs int `json:"runs"`
	// Written lists the resources that the controllers under test write, such as replicasets.apps.
	// For objects of these resources, the field End contains all fields except the status, and
	// except those that [Observer.End] leaves out. An entry such as replicasets.apps/status says
	// that the controllers write the status. The field End then contains the status too.
	Written []string `json:"written"`
	// Generated has the common parts of the names that the controllers under test generate, such as
	// "secrets default/web-*". Objects with such names count together. A name with a random suffix and
	// the name of an owner needs no entry.
	Generated []string `json:"generated,omitempty"`
	// End contains facts about the objects at the end of the runs, such as the values of their
	// fields. See [Observer.End].
	End Facts `json:"end"`
	// Effects contains how often the controllers under test created and deleted each object; see
	// [Observer.Effects].
	Effects Facts `json:"effects"`
}

// Learn derives a baseline from the histories of runs of one scenario without faults. A baseline is
// what these runs have in common. Learn returns an error if a history cannot be read, or if a
// workload step failed in a run.
func Learn(histories ...iter.Seq2[*history.Record, error]) (*Baseline, error) {
	if len(histories) == 0 {
		return nil, errors.New("learning a baseline: found no history of a run; expected at least one")
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

// Combine returns the baseline of several runs: what these runs have in common. Each observer must
// have read the history of one run. There must be at least one observer.
func Combine(observers []*Observer) *Baseline {
	first := observers[0]
	b := &Baseline{Scenario: first.start.Scenario, Subject: first.start.Subject, Runs: len(observers), Written: first.Written()}
	var ends, effects []Facts
	for _, o := range observers {
		ends, effects = append(ends, o.End(b.Written)), append(effects, o.Effects())
	}
	b.mergeGenerated(ends, effects)
	b.End, b.Effects = Agreed(ends), Agreed(effects)
	return b
}

// Differences returns a sorted list of texts. Each text says how an object at the end of a run
// differs from the baseline (runs without faults).
//
// With podsReplaced true, faults of the run have ended or replaced pods. The list then leaves out
// the status of objects, and pods with fixed names that the controllers under test do not create.
// Nobody creates such a pod again.
func (b *Baseline) Differences(run *Observer, podsReplaced bool) []string {
	if !podsReplaced {
		return b.End.Differences(b.endOf(run))
	}
	expected, found := maps.Clone(b.End), b.endOf(run)
	for _, facts := range []Facts{expected, found} {
		maps.DeleteFunc(facts, func(key, _ string) bool { return strings.Contains(key, " status/") || b.createdByOthers(key, run) })
	}
	return expected.Differences(found)
}

// Include adds a further run without faults to the baseline. Facts that differ in this run become [Any].
func (b *Baseline) Include(run *Observer) {
	b.End, b.Effects = Agreed([]Facts{b.End, b.endOf(run)}), Agreed([]Facts{b.Effects, b.EffectsOf(run)})
}

// createdByOthers reports whether a key of [Observer.End] names a pod that the controllers under
// test never created. The pod's name is fixed, not generated. The controllers created the pod
// neither in the run nor in the runs of the baseline.
func (b *Baseline) createdByOthers(key string, run *Observer) bool {
	if !strings.HasPrefix(key, objects.PodResource+" ") || HasGeneratedName(key) {
		return false
	}
	_, written := b.Effects[key]
	found := run.counts[key]
	return !written && (found == nil || found.created == 0)
}

// header is the comment at the top of a YAML file with a baseline. It explains the file to users
// who edit it.
const header = `# What the runs of a scenario without faults have in common.
# A run with faults must have the same values, except those that are "*".
# To ignore a value, replace it by "*". Remove no line: a missing line means that
# the object or the field must not exist.
`

// file is the content of a baseline file.
type file struct {
	// Format is the version of the format: fileFormat.
	Format int `json:"format"`
	Baseline
}

// fileFormat is the version of the files that Write writes, and the only one that Read accepts. It
// increases when the same runs give other facts, because a run would then not equal its baseline.
const fileFormat = 3

// Write writes the baseline, which is what runs without faults have in common, to a file at path.
// The file is YAML with a comment at the top. Write replaces an existing file.
func (b *Baseline) Write(path string) error { return b.write(path, outputfile.Replace) }

// WriteNew writes the baseline as [Baseline.Write] does. It returns an error if the file exists.
func (b *Baseline) WriteNew(path string) error { return b.write(path, outputfile.Create) }

// write encodes the baseline, and calls the argument write with the path and the text.
func (b *Baseline) write(path string, write func(string, []byte) error) error {
	text, err := yaml.Marshal(file{fileFormat, *b})
	if err != nil {
		return err
	}
	return write(path, append([]byte(header), text...))
}

// upperCaseKey matches the key of a field with an upper-case letter. No field has one, but the decoder
// ignores the case of keys.
var upperCaseKey = regexp.MustCompile(`(?m)^["']?([a-z]*[A-Z][A-Za-z]*)["']?\s*:`)

// Read returns the baseline in the YAML file at path. An error names the file, what was found and
// what was expected.
func Read(path string) (*Baseline, error) {
	text, err := inputfile.ReadText(path)
	if err != nil {
		return nil, err
	}
	var f file
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		if mistaken := inputfile.Mistaken(text, "a baseline, as \"gauntlet baseline\" writes it"); mistaken != nil {
			return nil, fmt.Errorf("%s: %w", path, mistaken)
		}
		place, reason := inputfile.Locate(path, text, err, f)
		return nil, fmt.Errorf("%s: expected a baseline, as \"gauntlet baseline\" writes it: %s", place, reason)
	}
	if match := upperCaseKey.FindSubmatch(text); match != nil {
		return nil, fmt.Errorf("%s: unknown field %q; expected %s", path, match[1], bytes.ToLower(match[1]))
	}
	if err := inputfile.CheckOneDocument(path, text); err != nil {
		return nil, err
	}
	if f.Format == 0 && f.Scenario == "" && f.Runs == 0 && len(f.End)+len(f.Effects) == 0 {
		return nil, fmt.Errorf("%s: found no fields; expected a baseline, as \"gauntlet baseline\" writes it", path)
	}
	if f.Format == 0 {
		return nil, fmt.Errorf("%s: field format: found no value; expected %d; create the baseline again with \"gauntlet baseline\"", path, fileFormat)
	}
	if f.Format != fileFormat {
		return nil, fmt.Errorf("%s: field format: found %d; expected %d; create the baseline again with \"gauntlet baseline\"", path, f.Format, fileFormat)
	}
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// The field is the last one that Write writes. Without it, the end of the file is missing.
	if f.Written == nil && !bytes.Contains(text, []byte("\nwritten:")) {
		return nil, fmt.Errorf("%s: field written: found no value; expected a list of resources, such as pods; create the baseline again with \"gauntlet baseline\"", path)
	}
	return &f.Baseline, nil
}

// resourceName matches a value of [Baseline].Written.
var resourceName = regexp.MustCompile(`^[a-z0-9.-]+(/[a-z]+)?$`)

// Validate returns an error of one line that lists every field with a missing or invalid value. It
// returns nil if the baseline is valid.
func (b *Baseline) Validate() error {
	var errs []error
	if b.Scenario == "" {
		errs = append(errs, errors.New("field scenario: found no value; expected the name of a scenario"))
	}
	if b.Runs < 1 {
		errs = append(errs, fmt.Errorf("field runs: found %d; expected at least 1", b.Runs))
	}
	switch {
	case b.End == nil:
		errs = append(errs, errors.New("field end (the objects at the end of a run): found no value; expected the objects, or {} if the workload deletes all"))
	case len(b.End)+len(b.Effects) == 0:
		errs = append(errs, errors.New("fields end and effects: found no objects; expected a workload in which there is an object at the end, or in which the subject creates one"))
	}
	for i, resource := range b.Written {
		if !resourceName.MatchString(resource) || slices.Index(b.Written, resource) < i {
			errs = append(errs, fmt.Errorf("field written[%d]: found %q; expected a resource such as pods or replicasets.apps/status, and each resource once", i, resource))
		}
	}
	for i, common := range b.Generated {
		if name, ok := strings.CutSuffix(common, "*"); !ok || !slices.Contains(commonParts(name+"x"), common) {
			errs = append(errs, fmt.Errorf("field generated[%d]: found %q; expected the common part of names, such as \"secrets default/web-*\"", i, common))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b.Effects)) {
		if _, err := parseEffects(key, b.Effects[key]); err != nil {
			errs = append(errs, err)
		}
	}
	return inputfile.JoinReasons(errs...)
}
