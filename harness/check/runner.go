package check

import (
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func run(checks []Check, setting Settings, records iter.Seq2[*history.Record, error]) ([]Result, Activity, error) {
	model := newModel(setting)
	bench := make([]*seat, 0, len(checks))
	for _, c := range checks {
		bench = append(bench, &seat{check: c, judge: c.New(setting)})
	}
	activity := Activity{Incomplete: "the history ends before the run did"}
	for record, err := range records {
		if errors.Is(err, history.ErrTruncated) {
			activity.Incomplete = "the history is cut short"
			break
		}
		if err != nil {
			return nil, activity, err
		}
		if record.Gap != nil { // from here on, what is missing is no evidence
			detail, _, _ := strings.Cut(record.Gap.Detail, "\n") // the rest is the end of a log
			activity.Incomplete = fmt.Sprintf("%s: %s", record.Gap.Source, detail)
			break
		}
		activity.observe(record)
		if err := model.observe(record); err != nil {
			return nil, activity, fmt.Errorf("record %d: %w", record.Seq, err)
		}
		for _, s := range bench {
			s.observe(model, record)
		}
		if model.phase == history.PhaseEnd {
			activity.Incomplete = ""
			break
		}
	}
	results := make([]Result, 0, len(bench))
	for _, s := range bench {
		results = append(results, s.result(setting, activity.Incomplete))
	}
	excuse(bench, results)
	return results, activity, nil
}

// excuse makes idle what could not be judged because of what upstream is known for.
func excuse(bench []*seat, results []Result) {
	if !slices.ContainsFunc(results, func(r Result) bool { return r.Verdict == KnownUpstream }) {
		return
	}
	for i, s := range bench {
		waiting, ok := s.judge.(interface{ unsettled() bool })
		if ok && waiting.unsettled() && results[i].Verdict == Unknown {
			results[i].Verdict = NotExercised
		}
	}
}

// seat is a judge at work. A judge that panics judges no more.
type seat struct {
	check Check
	judge Checker
	panic string
}

func (s *seat) observe(m *Model, r *history.Record) {
	if s.panic != "" {
		return
	}
	defer s.recover(r.Seq)
	s.judge.Observe(m, r)
}

func (s *seat) recover(seq int64) {
	if p := recover(); p != nil {
		s.panic = fmt.Sprintf("the judge failed at record %d: %v\n%s", seq, p, debug.Stack())
	}
}

// result is the judge's, with a pass taken back where there is doubt.
func (s *seat) result(setting Settings, doubt string) (result Result) {
	if s.panic == "" {
		func() {
			defer s.recover(0)
			result = s.judge.Result()
		}()
	}
	result.Check = s.check.ID
	exercised := slices.Contains(setting.Exercises, s.check.ID)
	switch {
	case s.panic != "":
		return Result{Check: s.check.ID, Verdict: Unknown, Reason: s.panic}
	case result.Verdict == Fail && s.check.Property == Safety:
		// What has happened has happened, whatever is missing after it.
	case doubt != "":
		result.Verdict, result.Reason = Unknown, doubt
	case result.Verdict == NotExercised && exercised:
		result.Verdict = Unknown
		result.Reason += ", though the scenario says that it exercises this check"
	}
	return result
}
