package run

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

// Validate returns the errors of a scenario that package scenario does not detect, joined to one
// error. These are unknown faults, invalid fault parameters, and unknown checks in the field
// `exercises`. Each error contains the position in the scenario file.
func Validate(s *scenario.Scenario) error {
	errs := validateExercises(s)
	for _, fault := range s.Faults {
		if fault.Name == "" { // package scenario has reported the missing name
			continue
		}
		if _, err := newFault(fault); err != nil {
			errs = append(errs, err)
		}
	}
	return scenario.JoinErrors(errs...)
}

// checkSettings returns the settings of the checks for one run, such as time limits and the
// controllers under test.
func checkSettings(s *scenario.Scenario, environment *Environment) check.Settings {
	return check.Settings{
		Controllers: s.Controllers(),
		Within:      s.Settle.Within,
		Quiet:       s.Settle.Quiet,
		QPS:         float64(s.Subject.QPS),
		Upstream:    environment.Subject == subject.Upstream.String() || environment.BuiltFromUpstream,
		Exercises:   s.Exercises,

		LastOperation: lastOperation(s.Workload),
	}
}

// lastOperation returns the index of the last step with an operation, such as create. It returns -1
// if no step has an operation, for example because the workload is not in the scenario.
func lastOperation(steps []scenario.Step) int {
	for i, step := range slices.Backward(steps) {
		if step.Operation != nil {
			return i
		}
	}
	return -1
}

// ErrUnreadable means that the checks could not run. The file history.jsonl cannot be read, or is the
// history of another run.
var ErrUnreadable = errors.New("cannot check the history")

// Check runs the checks again on the history in a run directory, rewrites the reports, and returns
// their content. For an unchanged directory, Check always computes the same verdicts.
//
// If another command uses the directory, the error wraps [ErrInUse]. If Check cannot write the
// reports, it returns a result and an error.
//
// If the history cannot be read or is that of another run, the error wraps [ErrUnreadable], and the
// result's verdict is unknown. The rewritten reports then contain this verdict instead of the earlier
// verdicts.
func Check(path string) (*reports.Run, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		unlock, err := Lock(path)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	result, draft, err := checkDirectory(path)
	if result == nil {
		return nil, err
	}
	return result, errors.Join(err, reports.WriteRun(*result, draft))
}

// checkDirectory runs the checks on the history in a run directory, and returns the content of the
// reports. It writes nothing. It also returns a draft of the report's timeline, which contains
// everything except the violations. The caller therefore need not read the history again for the
// timeline.
//
// If the history cannot be read or is that of another run, the error wraps [ErrUnreadable], and the
// result has the verdict unknown.
func checkDirectory(path string) (*reports.Run, *timeline.Draft, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	dir, spec, environment, err := openRunDirectory(path)
	if err != nil {
		return nil, nil, err
	}
	if err := Validate(spec); err != nil {
		return nil, nil, err
	}
	if err := dir.checkSameRun(spec, environment); err != nil {
		return nil, nil, err
	}
	settings := checkSettings(spec, environment)
	if settings.Baseline, err = dir.readBaseline(environment); err != nil {
		return nil, nil, err
	}
	var draft *timeline.Draft
	records := history.Tee(history.ReadFile(dir.history()), func(records iter.Seq2[*history.Record, error]) {
		draft = timeline.NewDraft(records)
	})
	var duration time.Duration
	damaged := false // whether the history could not be read
	used := map[permission]bool{}
	stalls := stallTotals{}
	results, activity, err := check.Run(settings, func(yield func(*history.Record, error) bool) {
		for record, err := range records {
			if record != nil {
				duration = max(duration, record.At)
				if err = errors.Join(environment.sameRun(record.Start), sameScenario(spec, record)); err != nil {
					yield(nil, fmt.Errorf("line %d: %w", record.Seq, err))
					return
				}
				if record.Stall != nil {
					stalls.add(record.Stall)
				}
				if record.Request != nil && len(environment.Rules) > 0 {
					used[neededBy(record.Request)] = true
				}
			}
			damaged = err != nil
			if !yield(record, err) {
				return
			}
		}
	})
	if err != nil && !damaged { // the error does not name the file
		err = fmt.Errorf("%s: %w", dir.history(), err)
	}
	summary := summarize(dir, spec, environment, results)
	summary.Duration, summary.Stalled = duration, stalls.longest()
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnreadable, err)
		summary.Verdict, summary.Reason = check.Unknown, err.Error()
		return summary, draft, err
	}
	summary.UnusedPermissions = unusedPermissions(environment.Rules, used)
	summary.Faults = countFaults(spec, activity)
	activity.Failures = append(activity.Failures, missedFirings(summary.Faults)...)
	summary.Verdict, summary.Reason = check.Overall(results, activity)
	if verdict, reason := check.Overall([]check.Result{{Verdict: check.Pass}}, activity); verdict == check.Unknown {
		summary.Inconclusive = reason
	}
	return summary, draft, nil
}

// countFaults returns how often each fault was injected and fired, in the order of the scenario. A
// fault fires each time it changes something. Faults that a Go program injected in addition are
// last.
func countFaults(spec *scenario.Scenario, activity check.Activity) []check.FaultCount {
	var all []check.FaultCount
	for i, fault := range spec.Faults {
		count := activity.Faults[i]
		count.Name, count.MustFire = fault.Name, fault.MustFire
		all = append(all, count)
	}
	for _, i := range slices.Sorted(maps.Keys(activity.Faults)) {
		if i >= len(spec.Faults) {
			all = append(all, activity.Faults[i])
		}
	}
	return all
}

// sameScenario returns an error if a record is about a fault or a step that the scenario does not have. It
// also returns an error if the start record names other controllers under test. The scenario of a run with
// an external workload may have fewer faults and steps than the history.
func sameScenario(spec *scenario.Scenario, record *history.Record) error {
	fault, step, complete := record.Fault, record.Step, spec.ExternalWorkload == nil
	switch {
	case record.Start != nil && record.Start.Controllers != nil && !slices.Equal(record.Start.Controllers, spec.Subject.Controllers):
		return fmt.Errorf("start.controllers: found %q; expected %q, as in the scenario", record.Start.Controllers, spec.Subject.Controllers)
	case step != nil && step.Index >= len(spec.Workload) && complete:
		return fmt.Errorf("step.index: found %d; expected the index of one of the %d steps of the scenario", step.Index, len(spec.Workload))
	case fault == nil:
		return nil
	case fault.Index >= len(spec.Faults) && complete:
		return fmt.Errorf("fault.index: found %d; expected the index of one of the %d faults of the scenario", fault.Index, len(spec.Faults))
	case fault.Index < len(spec.Faults) && fault.Name != spec.Faults[fault.Index].Name:
		return fmt.Errorf("fault.name: found %q; expected %q, which is fault %d of the scenario", fault.Name, spec.Faults[fault.Index].Name, fault.Index)
	}
	return nil
}

// missedFirings returns one text for each fault that has mustFire: true but never changed
// anything. If there is such a fault, the verdict of the run is unknown, unless a check fails. The
// texts are the reason for the verdict unknown.
func missedFirings(counts []check.FaultCount) (missed []string) {
	for i, fault := range counts {
		if fault.Missed() {
			missed = append(missed, fmt.Sprintf("fault %d (%s) has mustFire, but had no effect", i, fault.Name))
		}
	}
	return missed
}

// controllerNames returns the names of the controllers under test. The result is empty if the default
// controllers are under test.
func controllerNames(spec *scenario.Scenario) []string {
	if spec.Operator != nil && len(spec.Operator.Controllers) > 0 {
		return kube.NamesOf(spec.Controllers())
	}
	return spec.Subject.Controllers
}

// summarize returns the content of the reports of a run, including the command that repeats the
// run. checkDirectory adds the duration, the verdict and the counts of the faults.
func summarize(dir directory, spec *scenario.Scenario, environment *Environment, results []check.Result) *reports.Run {
	versions := map[string]string{"gauntlet": environment.Revision, "go": environment.Go}
	maps.Copy(versions, environment.Versions)
	provider, err := providers.Named(environment.Provider)
	return &reports.Run{
		VirtualTime: err == nil && provider.Capabilities.Has(cluster.VirtualTime),
		Scenario:    spec.Name,
		Description: spec.Description,
		Subject:     environment.Subject,
		Controllers: controllerNames(spec),
		Provider:    environment.Provider,
		Seed:        environment.Seed,
		Directory:   string(dir),
		Size:        len(spec.Workload) + len(spec.Faults),
		Started:     environment.Started,
		Versions:    versions,
		Results:     results,
		Reproduce:   reproduceCommand(dir, spec, environment),
	}
}

// reproduceCommand returns the shell command that repeats the run, such as "gauntlet run
// scenario.yaml --seed=1". If a Go program contained the workload, the result is the command line
// of that program.
func reproduceCommand(dir directory, spec *scenario.Scenario, environment *Environment) string {
	if spec.ExternalWorkload != nil {
		return shellQuote(environment.Command)
	}
	program := environment.Command[0]
	if strings.HasSuffix(program, ".test") { // a Go test started the run, but the command gauntlet can repeat the run
		program = "bin/gauntlet"
	}
	words := []string{
		program, "run", dir.scenario(),
		"--subject=" + environment.Subject,
		"--provider=" + environment.Provider,
		fmt.Sprintf("--seed=%d", environment.Seed),
	}
	if _, err := os.Stat(dir.baseline()); err == nil {
		words = append(words, "--baseline="+dir.baseline())
	}
	for _, flag := range []struct{ name, value string }{
		{"upstream-dir", environment.UpstreamDir},
		{"node-image", environment.NodeImage},
		{"kubeconfig", environment.Kubeconfig},
		{"context", environment.Context},
		{"controller-switch", environment.ControllerSwitch},
	} {
		if flag.value != "" {
			words = append(words, "--"+flag.name+"="+flag.value)
		}
	}
	return shellQuote(words)
}

// plainWord matches a word that no shell changes.
var plainWord = regexp.MustCompile(`^[\p{L}\p{N}%+,./:=@_-]+$`)

// shellQuote joins the words of a command line with spaces, and quotes words that a shell would
// change.
func shellQuote(words []string) string {
	quoted := slices.Clone(words)
	for i, word := range quoted {
		if !plainWord.MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
