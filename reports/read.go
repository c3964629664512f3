package reports

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
)

// ReadDirectory returns the runs in the file verdicts.json that [WriteFiles] wrote to a
// directory. It accepts the versions 1 and 2 of the format.
func ReadDirectory(dir string) ([]Run, error) {
	path := filepath.Join(dir, verdictsName)
	const expected = "expected a run directory, or a directory that gauntlet nightly, sweep or report wrote"
	switch info, err := os.Stat(dir); {
	case err != nil:
		return nil, fmt.Errorf("%s: %w; %s", dir, inputfile.Reason(err), expected)
	case !info.IsDir():
		return nil, fmt.Errorf("%s: found %s; %s", dir, inputfile.Known(dir), expected)
	}
	content, err := inputfile.Read(path)
	if errors.Is(err, os.ErrNotExist) && isRunDirectory(dir) {
		return nil, fmt.Errorf("%s: the run has no file %s; to write the file, run gauntlet check", dir, verdictsName)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: found no %s; %s", dir, verdictsName, expected)
	}
	if err != nil {
		return nil, err
	}
	var report jsonReport
	if err := history.Unmarshal(content, &report); err != nil {
		place, reason := inputfile.Locate(path, content, err, report)
		return nil, fmt.Errorf("%s: expected the verdicts that gauntlet writes to this file, as JSON: %s; to write the file again, run gauntlet check", place, reason)
	}
	if report.Schema == 0 {
		return nil, fmt.Errorf("%s: schema: found no value; expected 1 to %d; to write the file again, run gauntlet check", path, schema)
	}
	if report.Schema < 1 || report.Schema > schema {
		return nil, fmt.Errorf("%s: expected schema 1 to %d, found %d; to write the file again, run gauntlet check", path, schema, report.Schema)
	}
	if len(report.Runs) == 0 && !isRunDirectory(dir) { // for example, gauntlet explore found no failure
		return nil, fmt.Errorf("%s: found no runs; expected at least one, in the directory of a run, or of a sweep or search in which a run failed", path)
	}
	if len(report.Runs) == 0 {
		return nil, fmt.Errorf("%s: found no runs; expected at least one; to write the file of a run again, run gauntlet check", path)
	}
	if err := report.check(); err != nil {
		return nil, fmt.Errorf("%s: %w; to write the file again, run gauntlet check", path, err)
	}
	runs := make([]Run, 0, len(report.Runs))
	for _, r := range report.Runs {
		runs = append(runs, r.run())
	}
	if len(runs) == 1 && isRunDirectory(dir) {
		if len(runs[0].Results) == 0 && runs[0].Verdict != check.Unknown {
			return nil, fmt.Errorf("%s: runs[0].results: found none; expected the results of the checks; to write the file again, run gauntlet check", path)
		}
		if err := checkEnvironment(dir, runs[0]); err != nil {
			return nil, fmt.Errorf("%s: %w; to write the file again, run gauntlet check", path, err)
		}
		// The directory may have been moved after the file was written.
		runs[0].Directory = dir
	}
	return runs, nil
}

// ReadRunJSON decodes one run from JSON that [RunJSON] wrote, for example in another process.
func ReadRunJSON(content []byte) (*Run, error) {
	var decoded jsonRun
	if err := history.Unmarshal(content, &decoded); err != nil {
		return nil, fmt.Errorf("reading a run: expected the JSON of one run: %s", inputfile.JSONReason(err))
	}
	if err := decoded.checkContent(); err != nil {
		return nil, fmt.Errorf("reading a run: %w", err)
	}
	run := decoded.run()
	return &run, nil
}

// isRunDirectory reports whether a directory belongs to one run, which means that it contains
// history.jsonl.
func isRunDirectory(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, historyName))
	return err == nil
}

// checkEnvironment returns an error if the verdicts in a run directory are those of another run. The file
// environment.json names the run.
func checkEnvironment(dir string, r Run) error {
	content, err := inputfile.Read(filepath.Join(dir, "environment.json"))
	var environment struct {
		Scenario string `json:"scenario"`
		Subject  string `json:"subject"`
		Seed     uint64 `json:"seed"`
	}
	if err != nil || json.Unmarshal(content, &environment) != nil {
		return nil // the verdicts do not need the file
	}
	if environment.Scenario != r.Scenario || environment.Subject != r.Subject || environment.Seed != r.Seed {
		return fmt.Errorf("found the verdicts of %s, subject %s, seed %d; expected %s, subject %s, seed %d, which environment.json names", r.Scenario, r.Subject, r.Seed, environment.Scenario, environment.Subject, environment.Seed)
	}
	return nil
}

// check returns an error if a run, or the verdict of the whole file, is impossible. So is a run that the
// file has twice. The error begins with the field's path.
func (r *jsonReport) check() error {
	worst, first := check.Pass, map[string]int{}
	for i := range r.Runs {
		run := &r.Runs[i]
		if err := run.check(); err != nil {
			return fmt.Errorf("runs[%d].%w", i, err)
		}
		worst = check.Worst(worst, currentVerdict(run.Verdict))
		if at, exists := first[run.Directory]; exists && run.Directory != "" {
			return fmt.Errorf("runs[%d].directory: found %q, as in runs[%d]; expected each run once", i, run.Directory, at)
		}
		first[run.Directory] = i
	}
	if r.Schema == 1 && r.Verdict == "" {
		return nil
	}
	if err := CheckVerdict(r.Verdict); err != nil {
		return fmt.Errorf("verdict: %w", err)
	}
	// The verdict of an interrupted campaign is unknown, although its runs passed.
	if v := currentVerdict(r.Verdict); check.Worst(v, worst) != v || v == check.Fail && worst != v {
		return fmt.Errorf("verdict: found %s; expected %s, the worst verdict of the runs", r.Verdict, worst)
	}
	return nil
}

// check returns an error if the run or one of its checks has an impossible verdict, name or number. The
// error begins with the field's path in the run.
func (r *jsonRun) check() error { return cmp.Or(r.checkContent(), r.checkNames()) }

// checkContent returns an error if the run or one of its checks has an impossible verdict or number. The
// error begins with the field's path in the run.
func (r *jsonRun) checkContent() error {
	if err := CheckVerdict(r.Verdict); err != nil {
		return fmt.Errorf("verdict: %w", err)
	}
	if err := cmp.Or(checkSeconds("durationSeconds", r.DurationSeconds), checkSeconds("stalledSeconds", r.StalledSeconds)); err != nil {
		return err
	}
	numbers := []number{{"size", r.Size}}
	for i, fault := range r.Faults {
		numbers = append(numbers, number{fmt.Sprintf("faults[%d].injected", i), fault.Injected}, number{fmt.Sprintf("faults[%d].fired", i), fault.Fired})
	}
	return cmp.Or(checkNumbers(numbers), r.checkResults())
}

// checkResults returns an error if a result has an impossible verdict, name or number. It also returns one
// if the verdict of the run is better than that of a result.
func (r *jsonRun) checkResults() error {
	first := map[string]int{}
	for i, result := range r.Results {
		field := fmt.Sprintf("results[%d].", i)
		at, exists := first[result.Check]
		first[result.Check] = i
		switch {
		case result.Check == "":
			return fmt.Errorf("%scheck: found no name; expected the ID of a check", field)
		case exists:
			return fmt.Errorf("%scheck: found %s, as in results[%d]; expected each check once", field, result.Check, at)
		}
		if err := CheckVerdict(result.Verdict); err != nil {
			return fmt.Errorf("%sverdict: %w", field, err)
		}
		if err := checkNumbers([]number{{field + "exercised", result.Exercised}, {field + "tested", result.Tested}, {field + "violations", result.Violations}}); err != nil {
			return err
		}
		if run, worst := currentVerdict(r.Verdict), currentVerdict(result.Verdict); check.Worst(run, worst) != run && worst != check.Pass {
			return fmt.Errorf("verdict: found %s; expected %s, the worst verdict of its results (%s)", r.Verdict, worst, result.Check)
		}
	}
	return nil
}

// number is the value of a field that must not be negative.
type number struct {
	field string // the path of the field
	value int
}

// checkNumbers returns an error if a number is negative.
func checkNumbers(numbers []number) error {
	for _, n := range numbers {
		if n.value < 0 {
			return fmt.Errorf("%s: found %d; expected 0 or more", n.field, n.value)
		}
	}
	return nil
}

// checkNames returns an error if the run has no scenario, subject or provider. The error begins with the
// field's path in the run. Files of a fleet have runs without a scenario, which no pod completed.
func (r *jsonRun) checkNames() error {
	for _, name := range []struct{ field, value string }{{"scenario", r.Scenario}, {"subject", r.Subject}, {"provider", r.Provider}} {
		if name.value == "" && (r.Verdict != check.Unknown || len(r.Results) > 0) {
			return fmt.Errorf("%s: found no name; expected the name of the %s", name.field, name.field)
		}
	}
	if r.Scenario == "" && r.Subject == "" {
		return errors.New("scenario: found no name, and no subject either; expected the name of the scenario")
	}
	return nil
}

// CheckVerdict returns an error if a verdict is unknown. Verdicts of schema 1 are known.
func CheckVerdict(v check.Verdict) error {
	if !slices.Contains(worstFirst, currentVerdict(v)) {
		return fmt.Errorf("found %q; expected %s", v, nearest.List(worstFirst, "or"))
	}
	return nil
}

// checkSeconds returns an error if a field has a duration that is negative or too long.
func checkSeconds(field string, seconds float64) error {
	if longest := math.MaxInt64 / float64(time.Second); seconds < 0 || seconds >= longest {
		return fmt.Errorf("%s: found %g; expected 0 to %.0f", field, seconds, longest)
	}
	return nil
}

// duration converts seconds to a duration, rounded to microseconds.
func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}

// run converts a run that was read from verdicts.json, schema 1 or 2, to a Run.
func (r *jsonRun) run() Run {
	run := Run{
		Scenario:          r.Scenario,
		Description:       r.Description,
		Subject:           r.Subject,
		Provider:          r.Provider,
		Seed:              r.Seed,
		Controllers:       r.Controllers,
		Directory:         r.Directory,
		Size:              r.Size,
		Started:           r.Started,
		VirtualTime:       r.VirtualTime,
		Duration:          duration(r.DurationSeconds),
		Stalled:           duration(r.StalledSeconds),
		Versions:          r.Versions,
		Verdict:           currentVerdict(r.Verdict),
		Reason:            r.Reason,
		Reproduce:         cmp.Or(r.Reproduce, r.Again),
		UnusedPermissions: r.UnusedPermissions,
	}
	for _, fault := range r.Faults {
		run.Faults = append(run.Faults, check.FaultCount(fault))
	}
	for _, result := range r.Results {
		run.Results = append(run.Results, result.result())
	}
	return run
}
