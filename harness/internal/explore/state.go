package explore

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/outputfile"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// search is a search in progress. Its directory contains:
//
//	plan.json      the plan, and a hash of the search to which it belongs
//	results.jsonl  one line for each run with faults that has ended
//	baseline/      the runs without faults
//	stability/     a further run without faults, if it differs from the others
//	runs/          the runs with faults that show a failure
type search struct {
	Options
	plan     *Plan              // nil until the runs without faults are done
	calm     *scenario.Scenario // the scenario without its faults
	baseline []reports.Run      // the reports of the runs without faults
	pairs    *pairPlan          // nil until every place has been tried alone

	failedStarts int // the number of trials that could not start in this call of Run

	began time.Time // the time at which this call of Run began

	mu      sync.Mutex        // guards the fields below, because runs are concurrent
	results map[string]result // by the id of a trial
	journal *os.File          // results.jsonl, opened for appending
	took    time.Duration     // the total time of the runs that this call of Run has made
	ran     int               // the number of runs that this call of Run has made
	ahead   int               // the number of trials without a result
	number  int               // the number of the last run directory
}

// result is the result of one trial, which is one run with faults. It is a line of
// results.jsonl.
type result struct {
	Trial string `json:"trial"`
	// Fired is true if every fault that the method mustFire lists has fired. The run then
	// reached all places of the trial.
	Fired     bool          `json:"fired"`
	Verdict   check.Verdict `json:"verdict"`
	Reason    string        `json:"reason,omitempty"`
	Directory string        `json:"directory,omitempty"` // the run directory; empty unless kept returns true
	Seconds   float64       `json:"seconds"`

	run *reports.Run // nil unless this call of Run made the run and kept returns true
}

// failed reports whether the run shows a failure. The verdict unknown counts as a failure only if
// the run's faults fired.
func (r result) failed() bool {
	return r.Verdict == check.Fail || r.Verdict == check.Unknown && r.Fired
}

// kept reports whether the search keeps the directory of the run, because of a failure or a known upstream
// issue.
func (r result) kept() bool { return r.failed() || r.Verdict == check.KnownUpstream }

// PlanName is the name of the file with the plan in the directory of a search.
const PlanName = "plan.json"

// ResultsName is the name of the file with the results in the directory of a search.
const ResultsName = "results.jsonl"

// savedPlan is the content of plan.json: the plan, and the search to which the plan belongs.
type savedPlan struct {
	Search string `json:"search"` // the hash that the method digest returns
	// Settings says in words what the hash is about. It is nil in a file of an earlier version.
	Settings *settings `json:"settings,omitempty"`
	Plan
}

// settings has what must be equal in each call of Run for the same search.
type settings struct {
	Scenario string   `json:"scenario"` // the name of the scenario
	Subject  string   `json:"subject"`
	Seed     uint64   `json:"seed"`
	Faults   []Action `json:"faults"`
	Delay    string   `json:"delay"`
	// Provider is the provider of the control plane. It is empty in a file of an earlier version.
	Provider string `json:"provider,omitempty"`
}

// StateError means that the search cannot use the files in its directory. No run was made.
type StateError struct{ err error }

func (e *StateError) Error() string { return e.err.Error() }
func (e *StateError) Unwrap() error { return e.err }

// open returns the search whose files are in o.Directory, and creates this directory if necessary.
// If an interrupted search has left its plan and results there, open reads them. If the plan
// belongs to another search, open returns an error.
func open(o Options) (*search, error) {
	s := &search{Options: o, results: map[string]result{}, began: o.Clock.Now(), calm: WithoutFaults(o.Scenario)}
	if err := os.MkdirAll(o.Directory, 0o755); err != nil {
		return nil, err
	}
	err := cmp.Or(inputfile.CheckDirectory(s.baselineDirectory()), inputfile.CheckDirectory(s.runsDirectory()), inputfile.CheckRegular(s.resultsFile()))
	if err != nil {
		return nil, err
	}
	text, err := inputfile.Read(s.planFile())
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := s.checkForeign(); err != nil {
			return nil, err
		}
		if err := os.Remove(s.resultsFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		return s, s.readResults()
	case err != nil:
		return nil, err
	}
	var saved savedPlan
	if err := json.Unmarshal(text, &saved); err != nil {
		place, reason := inputfile.Locate(s.planFile(), text, err, saved)
		return nil, fmt.Errorf("%s: expected a plan of a search: %s; choose another directory with --dir", place, reason)
	}
	if err := saved.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.planFile(), err)
	}
	if err := s.checkSame(&saved); err != nil {
		return nil, fmt.Errorf("%s: %w; choose another directory with --dir", s.planFile(), err)
	}
	s.plan = &saved.Plan
	return s, s.readRuns()
}

// checkForeign returns an error if a directory without a plan contains anything that no interrupted search leaves.
func (s *search) checkForeign() error {
	entries, err := os.ReadDir(s.Directory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		own := []string{s.baselineDirectory(), s.runsDirectory(), s.resultsFile()}
		if path := filepath.Join(s.Directory, entry.Name()); !slices.Contains(own, path) && !strings.HasPrefix(entry.Name(), ".") {
			return fmt.Errorf("%s: found %s and no %s; expected the directory of a search, or an empty directory; choose another directory with --dir", s.Directory, entry.Name(), PlanName)
		}
	}
	return nil
}

// checkSame returns an error if a saved plan belongs to another search. The error says what
// differs.
func (s *search) checkSame(saved *savedPlan) error {
	digest, err := s.digest()
	switch found := saved.Baseline.Runs; {
	case err != nil:
		return err
	case digest == saved.Search && found != s.Baseline:
		return fmt.Errorf("found the plan of a search with --baseline=%d; expected --baseline=%d", found, s.Baseline)
	case digest == saved.Search && saved.Settings != nil && !slices.Contains([]string{"", s.Provider}, saved.Settings.Provider):
		return fmt.Errorf("found the plan of a search with --provider=%s; expected --provider=%s", saved.Settings.Provider, s.Provider)
	case digest == saved.Search && saved.Baseline.Scenario != s.calm.Name:
		return fmt.Errorf("field baseline.scenario: found %s; expected %s", saved.Baseline.Scenario, s.calm.Name)
	case digest == saved.Search:
		return nil
	case saved.Settings == nil:
		return errors.New("the plan belongs to a search with another scenario, subject, seed, delay or other faults")
	}
	found, expected := saved.Settings, s.settings()
	for _, part := range []struct{ name, found, expected string }{
		{"scenario", found.Scenario, expected.Scenario},
		{"subject", found.Subject, expected.Subject},
		{"seed", fmt.Sprint(found.Seed), fmt.Sprint(expected.Seed)},
		{"faults", fmt.Sprint(found.Faults), fmt.Sprint(expected.Faults)},
		{"delay", found.Delay, expected.Delay},
	} {
		if part.found != part.expected {
			return fmt.Errorf("found the plan of a search with the %s %s; expected %s", part.name, part.found, part.expected)
		}
	}
	return fmt.Errorf("found the plan of a search with another workload of the scenario %s; expected the same workload", found.Scenario)
}

// settings returns what must be equal in each call of Run for this search.
func (s *search) settings() *settings {
	return &settings{s.calm.Name, s.Subject, s.calm.Seed, s.Actions, s.Delay.String(), s.Provider}
}

// readRuns sets s.baseline from the reports of the runs without faults, and s.results from the
// results of an interrupted search. It opens results.jsonl for further results.
func (s *search) readRuns() error {
	found, err := os.ReadDir(s.baselineDirectory())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, entry := range found {
		runs, err := reports.ReadDirectory(filepath.Join(s.baselineDirectory(), entry.Name()))
		if err != nil {
			return err
		}
		s.baseline = append(s.baseline, runs...)
	}
	return s.readResults()
}

// readResults opens results.jsonl for further results, and sets s.results from its lines.
func (s *search) readResults() error {
	journal, lines, err := outputfile.OpenJournal(s.resultsFile())
	if err != nil {
		return err
	}
	s.journal = journal
	number := 0
	for line := range bytes.Lines(lines) {
		number++
		r, err := parseResult(line)
		if err != nil {
			return fmt.Errorf("%s:%d: the line is not a valid result of a run: %w; remove the line to repeat the run", s.resultsFile(), number, err)
		}
		s.results[r.Trial] = r
	}
	return nil
}

// parseResult parses a line of results.jsonl.
func parseResult(line []byte) (result, error) {
	var r result
	if err := json.Unmarshal(line, &r); err != nil {
		return r, errors.New(inputfile.JSONReason(err))
	}
	if r.Trial == "" {
		return r, errors.New("field trial: found no value; expected the places of the run")
	}
	if err := reports.CheckVerdict(r.Verdict); err != nil {
		return r, fmt.Errorf("field verdict: %w", err)
	}
	if r.Seconds < 0 {
		return r, fmt.Errorf("field seconds: found %g; expected 0 or more", r.Seconds)
	}
	if (r.failed() || r.kept() && r.Fired) && r.Directory == "" {
		return r, errors.New("field directory: found no value; expected the directory of the run")
	}
	return r, nil
}

// save writes plan.json, so that a later call of Run can continue an interrupted search.
func (s *search) save() error {
	digest, err := s.digest()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(savedPlan{digest, s.settings(), *s.plan}, "", "  ")
	if err != nil {
		return err
	}
	return outputfile.Replace(s.planFile(), append(text, '\n'))
}

// digest returns a hash of the subject's name, the scenario without faults, the actions and the
// delay. The subject is the controllers under test. A saved plan is valid only for a search with
// the same hash.
func (s *search) digest() (string, error) {
	text, err := s.calm.Marshal()
	sum := sha256.Sum256(fmt.Appendf(text, "baseline 3 %s %v %s", s.Subject, s.Actions, s.Delay))
	return hex.EncodeToString(sum[:]), err
}

// checkDirectory returns an error if somebody has removed the directory of the search. The results
// of further runs would be lost.
func (s *search) checkDirectory() error {
	if _, err := os.Stat(s.planFile()); err != nil {
		return fmt.Errorf("%s: %w; the directory was removed or changed during the search; run the command again to start a new search", s.planFile(), inputfile.Reason(err))
	}
	return nil
}

func (s *search) close() { _ = s.journal.Close() }

func (s *search) planFile() string           { return filepath.Join(s.Directory, PlanName) }
func (s *search) resultsFile() string        { return filepath.Join(s.Directory, ResultsName) }
func (s *search) baselineDirectory() string  { return filepath.Join(s.Directory, "baseline") }
func (s *search) runsDirectory() string      { return filepath.Join(s.Directory, "runs") }
func (s *search) stabilityDirectory() string { return filepath.Join(s.Directory, "stability") }

// runDirectory returns a path for the directory of a trial's run. Nothing exists at this path yet.
func (s *search) runDirectory(t trial) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		s.number++
		dir := filepath.Join(s.runsDirectory(), fmt.Sprintf("%04d-%s", s.number, t[0].Action))
		switch _, err := os.Lstat(dir); {
		case errors.Is(err, os.ErrNotExist):
			return dir, nil
		case err != nil: // for example, somebody has replaced the directory by a file
			return "", fmt.Errorf("%s: %w", dir, inputfile.Reason(err))
		}
	}
}

// note stores the result of a trial, which is one run with faults, and prints the progress of the
// search.
func (s *search) note(t trial, r result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.kept() {
		r.Directory, r.Reason, r.run = "", "", nil
	}
	s.results[r.Trial] = r
	s.took += time.Duration(r.Seconds * float64(time.Second))
	s.ran++
	s.ahead--
	s.Progress(fmt.Sprintf("%s: %s%s", t, r.outcomeText(), s.estimate()))
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = s.journal.Write(append(line, '\n'))
	return err
}

// outcomeText describes the result in a progress message: "pass", "not reached", or the verdict
// and the run directory.
func (r result) outcomeText() string {
	switch {
	case r.kept():
		return fmt.Sprintf("%s (%s)", r.Verdict, r.Directory)
	case !r.Fired:
		return "not reached"
	}
	return "pass"
}

// estimate says how many trials (runs with faults) have no result yet, and how long these trials
// will probably take. It returns "" if every trial has a result.
func (s *search) estimate() string {
	if s.ahead == 0 {
		return ""
	}
	left := s.took / time.Duration(s.ran) * time.Duration(s.ahead) / time.Duration(s.Parallel.Current())
	text := fmt.Sprintf("; runs left: %d, about %s", s.ahead, left.Round(time.Second))
	if s.Budget > 0 {
		if budget := s.Budget - s.Clock.Since(s.began); budget < left {
			text += fmt.Sprintf(", but the time budget has only %s left", max(0, budget).Round(time.Second))
		}
	}
	return text
}

// outcome returns all results of the search so far, including those of earlier calls of Run.
func (s *search) outcome() *Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &Outcome{Plan: s.plan, Tried: map[Action]*Counts{}, Complete: true, Baseline: s.baseline, FailedStarts: s.failedStarts}
	for _, p := range s.plan.Places {
		if o.Tried[p.Action] == nil {
			o.Tried[p.Action] = new(Counts)
		}
		o.Complete = o.add(o.Tried[p.Action], s.results[trial{p}.id()]) && o.Complete
	}
	if s.pairs != nil {
		o.Pairs = s.pairs.String()
		for _, t := range s.pairs.trials {
			o.Complete = o.add(&o.TriedPairs, s.results[t.id()]) && o.Complete
		}
	}
	slices.SortStableFunc(o.Failed, func(a, b reports.Run) int { return a.Started.Compare(b.Started) })
	return o
}
