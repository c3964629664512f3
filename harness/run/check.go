package run

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/reports"
	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

// Validate reports what is wrong with a scenario beyond what its own package
// knows: faults that the catalogue does not have or whose parameters make no
// sense, and checks that do not exist. The error says where it stands.
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
			return s.Errorf(fmt.Sprintf("exercises[%d]", i), "no check %q: expected one of %s", id, strings.Join(known, ", "))
		}
	}
	return nil
}

// checkSettings is what the checks need to know of a scenario.
func checkSettings(s *scenario.Scenario, environment *Environment) check.Settings {
	return check.Settings{
		Within:    s.Settle.Within,
		Quiet:     s.Settle.Quiet,
		QPS:       float64(s.Subject.QPS),
		Upstream:  environment.Subject == subject.Upstream.String(),
		Exercises: s.Exercises,
	}
}

// ErrUnreadable is the error of a run whose history cannot be judged.
var ErrUnreadable = errors.New("the history cannot be judged")

// Check judges the run in a directory, from what is in it alone, and writes the
// reports anew. The same directory always gets the same verdicts. Where only the
// reports cannot be written, there is a run beside the error.
func Check(path string) (*reports.Run, error) {
	judged, draft, err := checkDirectory(path)
	if err != nil {
		return nil, err
	}
	return judged, reports.WriteRun(*judged, draft)
}

// checkDirectory judges the run in a directory, and writes nothing. The timeline of its reports is
// drafted meanwhile, so that a history is decoded once, however long it is.
func checkDirectory(path string) (*reports.Run, *timeline.Draft, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	dir, asked, environment, err := openRunDirectory(path)
	if err != nil {
		return nil, nil, err
	}
	if err := Validate(asked); err != nil {
		return nil, nil, err
	}
	var draft *timeline.Draft
	records := history.Tee(history.ReadFile(dir.history()), func(records iter.Seq2[*history.Record, error]) {
		draft = timeline.NewDraft(records)
	})
	var duration time.Duration
	results, activity, err := check.Run(checkSettings(asked, environment), func(yield func(*history.Record, error) bool) {
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
	summary := summarize(dir, asked, environment, results)
	summary.Duration = duration
	summary.Verdict, summary.Reason = check.Overall(results, activity)
	return summary, draft, nil
}

// summarize says what was run, and how to run it again.
func summarize(dir directory, asked *scenario.Scenario, environment *Environment, results []check.Result) *reports.Run {
	versions := map[string]string{"gauntlet": environment.Revision, "go": environment.Go}
	maps.Copy(versions, environment.Versions)
	return &reports.Run{
		Scenario:    asked.Name,
		Description: asked.Description,
		Subject:     environment.Subject,
		Provider:    environment.Provider,
		Seed:        environment.Seed,
		Directory:   string(dir),
		Size:        len(asked.Workload) + len(asked.Faults),
		Started:     environment.Started,
		Versions:    versions,
		Results:     results,
		Reproduce:   reproduceCommand(dir, environment),
	}
}

// reproduceCommand is the command line that makes the run again.
func reproduceCommand(dir directory, environment *Environment) string {
	program := environment.Command[0]
	if strings.HasSuffix(program, ".test") { // a suite made the run, and cannot make it alone
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
		{"displace", environment.ControllerSwitch},
	} {
		if flag.value != "" {
			words = append(words, "--"+flag.name+"="+flag.value)
		}
	}
	for i, word := range words {
		if strings.ContainsAny(word, " \t'\"\\$`*?;&|<>()") {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
