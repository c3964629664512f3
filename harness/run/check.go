package run

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

// Validate reports errors in a scenario that package scenario cannot detect: unknown
// faults, invalid fault parameters and unknown checks. The error contains the position
// in the file.
func Validate(s *scenario.Scenario) error {
	for _, fault := range s.Faults {
		if _, err := newFault(fault); err != nil {
			return err
		}
	}
	for i, id := range s.Exercises {
		if _, ok := check.Find(id); !ok {
			var known []string
			for _, c := range check.All {
				known = append(known, c.ID)
			}
			return s.Errorf(fmt.Sprintf("exercises[%d]", i), "unknown check %q; expected one of %s", id, strings.Join(known, ", "))
		}
	}
	return nil
}

// checkSettings returns the settings of the checks for a scenario.
func checkSettings(s *scenario.Scenario, environment *Environment) check.Settings {
	return check.Settings{
		Controllers: s.Controllers(),
		Within:      s.Settle.Within,
		Quiet:       s.Settle.Quiet,
		QPS:         float64(s.Subject.QPS),
		Upstream:    environment.Subject == subject.Upstream.String(),
		Exercises:   s.Exercises,
	}
}

// ErrUnreadable reports that the history of a run cannot be read, so the checks cannot
// run.
var ErrUnreadable = errors.New("cannot check the history")

// Check runs the checks on the files in a run directory and writes the reports again.
// The same directory always gives the same verdicts. If only the reports cannot be
// written, Check returns the result together with the error.
func Check(path string) (*reports.Run, error) {
	result, draft, err := checkDirectory(path)
	if err != nil {
		return nil, err
	}
	return result, reports.WriteRun(*result, draft)
}

// checkDirectory runs the checks on a run directory and writes nothing. While it reads
// the history for the checks, it also drafts the timeline of the reports, so that the
// history is decoded only once.
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
	var draft *timeline.Draft
	records := history.Tee(history.ReadFile(dir.history()), func(records iter.Seq2[*history.Record, error]) {
		draft = timeline.NewDraft(records)
	})
	var duration time.Duration
	results, activity, err := check.Run(checkSettings(spec, environment), func(yield func(*history.Record, error) bool) {
		for record, err := range records {
			if record != nil {
				duration = record.At
			}
			if !yield(record, err) {
				return
			}
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	summary := summarize(dir, spec, environment, results)
	summary.Duration = duration
	summary.Verdict, summary.Reason = check.Overall(results, activity)
	return summary, draft, nil
}

// summarize returns a description of the run with its results and the command that
// repeats it.
func summarize(dir directory, spec *scenario.Scenario, environment *Environment, results []check.Result) *reports.Run {
	versions := map[string]string{"gauntlet": environment.Revision, "go": environment.Go}
	maps.Copy(versions, environment.Versions)
	return &reports.Run{
		Scenario:    spec.Name,
		Description: spec.Description,
		Subject:     environment.Subject,
		Controllers: spec.Subject.Controllers,
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

// reproduceCommand returns the command line that repeats the run. The command line of a Go
// program with a workload of its own is that of the program.
func reproduceCommand(dir directory, spec *scenario.Scenario, environment *Environment) string {
	if spec.ExternalWorkload != nil {
		return shellQuote(environment.Command)
	}
	program := environment.Command[0]
	if strings.HasSuffix(program, ".test") { // a test suite started the run; use the command line instead
		program = "bin/gauntlet"
	}
	words := []string{
		program, "run", dir.scenario(),
		"--subject=" + environment.Subject,
		"--provider=" + environment.Provider,
		fmt.Sprintf("--seed=%d", environment.Seed),
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

// shellQuote joins the words of a command line, and quotes those that a shell would change.
func shellQuote(words []string) string {
	quoted := slices.Clone(words)
	for i, word := range quoted {
		if strings.ContainsAny(word, " \t'\"\\$`*?;&|<>()") {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
