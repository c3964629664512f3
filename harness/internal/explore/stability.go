package explore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// quietToCheck is the time without writes after which the run that checks the baseline ends. Some
// controllers create objects about 30 s after their start, and a run with faults may last as long.
const quietToCheck = 30 * time.Second

// beforeRestart is the time from the end of the workload to the restart in the run that checks the
// baseline.
const beforeRestart = 5 * time.Second

// baselineChecks are the checks that compare a run with the baseline.
var baselineChecks = []string{"same-end-state", "no-extra-effects"}

// checkBaseline makes one more run, and compares it with the baseline in s.plan. In this run, the
// controllers under test restart after the workload. Some objects change after a mere restart: the
// controllers had not finished them, or create them late. A new baseline then ignores what differs, and
// checkBaseline says which objects these are. The argument lessons has the lessons of the earlier runs.
//
// If a step of the workload failed, the run cannot be compared, and the baseline stays as it is. Other
// checks that fail in this run do not count, because a restart is a fault.
func (s *search) checkBaseline(ctx context.Context, lessons []*Lesson) error {
	s.Progress("run with a restart after the workload, to check the baseline")
	restarted, err := s.restarted()
	if err != nil {
		return err
	}
	run, err := s.Start(ctx, restarted, s.plan.Baseline, s.stabilityDirectory(), func(*history.Record) {})
	if run == nil || err != nil || ctx.Err() != nil {
		return err
	}
	lesson, err := lessonOf(run)
	if err != nil {
		return err
	}
	if step := lesson.Observer.FailedStep; step != "" {
		s.Progress(fmt.Sprintf("the baseline is not stable: in a further run with a restart at its end, %s; see %s", step, run.Directory))
		return nil
	}
	if unknown := slices.IndexFunc(run.Results, func(r check.Result) bool {
		return r.Verdict == check.Unknown && slices.Contains(baselineChecks, r.Check)
	}); unknown >= 0 {
		s.Progress(fmt.Sprintf("the baseline was not checked, because a further run with a restart at its end could not be compared: %s; see %s", run.Results[unknown].Reason, run.Directory))
		return nil
	}
	different := differing(run)
	if different == "" {
		return os.RemoveAll(s.stabilityDirectory())
	}
	s.Progress(fmt.Sprintf("the baseline is not stable; the search ignores what differs in a further run with a restart at its end: %s; see %s", different, run.Directory))
	stable := baselineOf(append(slices.Clone(lessons), lesson))
	stable.Runs = s.plan.Baseline.Runs // the value of --baseline
	s.plan.Baseline = stable
	return nil
}

// restarted returns the scenario of the run that checks the baseline.
func (s *search) restarted() (*scenario.Scenario, error) {
	calm := s.calm.Clone()
	calm.Seed += uint64(s.Baseline)
	calm.Settle.Quiet = max(calm.Settle.Quiet, min(quietToCheck, calm.Settle.Within/2))
	crash, err := crashAt(&scenario.Trigger{Step: &scenario.StepTrigger{Index: len(calm.Workload) - 1, At: scenario.Done}})
	crash[0].From = beforeRestart
	calm.Faults = crash
	return calm, err
}

// lessonOf returns what a run without faults shows.
func lessonOf(run *reports.Run) (*Lesson, error) {
	return Learn(history.ReadFile(filepath.Join(run.Directory, "history.jsonl")))
}

// include adds a run in which no fault fired to the baseline, which then ignores what differs in this run.
// Such a run shows what the controllers under test do without faults.
func (s *search) include(run *reports.Run) error {
	lesson, err := lessonOf(run)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Progress("the baseline is not stable; the search ignores what differs in a run in which no fault fired: " + differing(run))
	stable := *s.plan.Baseline
	stable.Include(lesson.Observer)
	s.plan.Baseline = &stable
	return s.save()
}

// onlyDiffers reports whether [baselineChecks] failed in a run, and no other check did.
func onlyDiffers(run *reports.Run) bool {
	return run.Verdict == check.Fail && !slices.ContainsFunc(run.Results, func(r check.Result) bool {
		return failed(r) && !slices.Contains(baselineChecks, r.Check)
	})
}

// failed reports whether a check failed.
func failed(r check.Result) bool { return r.Verdict == check.Fail }

// differing returns the objects and fields that differ between a run and its baseline, as a list in
// one line. It returns "" if the checks found no difference.
func differing(run *reports.Run) string {
	var names []string
	more := ""
	for _, result := range run.Results {
		if result.Verdict != check.Fail || !slices.Contains(baselineChecks, result.Check) {
			continue
		}
		for _, evidence := range result.Evidence {
			name, _, _ := strings.Cut(evidence.Summary, ": found")
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if result.Violations > len(result.Evidence) {
			more = " and others"
		}
	}
	return strings.Join(names, ", ") + more
}
