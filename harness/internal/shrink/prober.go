package shrink

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Prober determines whether a scenario fails. Because some failures do not occur in every run, it
// runs a scenario several times. It writes the result of each run to a journal, so that an
// interrupted shrink can continue without repeating the run.
type Prober struct {
	// Run runs a scenario once and reports whether the run has the same failure as the original
	// scenario.
	Run func(context.Context, *scenario.Scenario) (bool, error)
	// Search identifies the failure and the controllers under test. Results in the journal of another
	// search do not count.
	Search string
	// Journal receives one line of JSON for each run. [Prober.Resume] reads these lines to
	// continue a canceled search.
	Journal io.Writer

	// known has the results of all runs so far. The key is a digest of the scenario.
	known    map[string]counts
	original counts
}

// counts has the number of failed runs and the number of all runs of one scenario.
type counts struct{ failed, runs int }

// entry is a line of the journal, which has the result of one run.
type entry struct {
	Scenario string `json:"scenario"` // SHA-256 digest of the search and the scenario as YAML, in hexadecimal
	Failed   bool   `json:"failed"`
}

const (
	// firstRuns is the number of runs from which Calibrate estimates how often the original
	// scenario fails.
	firstRuns = 3
	// missProbability is the maximum probability that [Prober.Fails] misses a failure. It misses a
	// failure if all runs of a scenario pass, although the scenario fails as often as the
	// original.
	//
	// The probability can be higher if runsMax limits the number of runs.
	missProbability = 0.05
	// runsMax is the maximum number of runs that must pass before a scenario counts as passing.
	runsMax = 10
)

// Resume reads the journal of an interrupted search, so that the Prober need not repeat the runs in
// the journal. It ignores an incomplete last line. An error begins with the number of the line.
func (p *Prober) Resume(journal io.Reader) error {
	p.known = map[string]counts{}
	content, err := io.ReadAll(journal)
	if err != nil {
		return err
	}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		if !bytes.HasSuffix(line, []byte("\n")) {
			return nil
		}
		var e entry
		err := json.Unmarshal(line, &e)
		if err == nil && e.Scenario == "" {
			err = errors.New("field scenario: found no value; expected the digest of a scenario")
		}
		if err != nil {
			return fmt.Errorf("%d: the line is not a valid result of a run: %s; remove the line to repeat the run", number, inputfile.JSONReason(err))
		}
		p.known[e.Scenario] = p.known[e.Scenario].add(e.Failed)
	}
	return nil
}

// add returns the counts of a scenario after one more run. The argument failed says whether the
// additional run failed.
func (t counts) add(failed bool) counts {
	t.runs++
	if failed {
		t.failed++
	}
	return t
}

// rate estimates the probability that a run of the scenario fails, by Laplace's rule of
// succession.
//
// The estimate is below 1 even if every run has failed. With a rate of 1, [Prober.Runs] would
// return 0.
func (t counts) rate() float64 { return float64(t.failed+1) / float64(t.runs+2) }

// ErrNeverFails means that the original scenario did not fail in any run.
var ErrNeverFails = errors.New("expected at least 1 failure, because shrink needs a scenario that fails")

// Calibrate runs the original scenario several times to estimate how often it fails. It returns
// [ErrNeverFails] if no run fails. Call Calibrate before Fails.
//
// If no run in the journal has failed, Calibrate makes all runs again.
func (p *Prober) Calibrate(ctx context.Context, s *scenario.Scenario) error {
	enough, first := firstRuns, true
	var err error
	p.original, err = p.probe(ctx, s, func(t counts) bool {
		if first && t.failed == 0 {
			enough += t.runs
		}
		first = false
		return t.runs >= enough
	})
	if err != nil {
		return err
	}
	if p.original.failed == 0 {
		return fmt.Errorf("the original scenario failed in 0 of %d runs; %w", p.original.runs, ErrNeverFails)
	}
	return nil
}

// Runs returns how many runs of a scenario must pass before the scenario counts as passing. The
// number is higher if the original scenario fails rarely. Call Calibrate first.
func (p *Prober) Runs() int {
	runs := math.Ceil(math.Log(missProbability) / math.Log(1-p.original.rate()))
	return min(int(runs), runsMax)
}

// Confidence returns the probability that at least one of [Prober.Runs] runs fails, as a number
// from 0 to 1. It assumes that the scenario fails as often as the original scenario.
func (p *Prober) Confidence() float64 {
	return 1 - math.Pow(1-p.original.rate(), float64(p.Runs()))
}

// Fails reports whether a scenario fails. It repeats the scenario until a run fails, or until
// [Prober.Runs] runs have passed. Runs in the journal count too.
func (p *Prober) Fails(ctx context.Context, s *scenario.Scenario) (bool, error) {
	t, err := p.probe(ctx, s, func(t counts) bool { return t.failed > 0 || t.runs >= p.Runs() })
	return t.failed > 0, err
}

// Confirm repeats a scenario to find out how often it fails. It returns how many of the given
// number of runs failed. Runs in the journal count too.
func (p *Prober) Confirm(ctx context.Context, s *scenario.Scenario, runs int) (failed int, err error) {
	t, err := p.probe(ctx, s, func(t counts) bool { return t.runs >= runs })
	return t.failed, err
}

// probe repeats a scenario until the function enough returns true for the counts of its runs, and
// returns these counts. Runs in the journal count too.
func (p *Prober) probe(ctx context.Context, s *scenario.Scenario, enough func(counts) bool) (counts, error) {
	data, err := s.Marshal()
	if err != nil {
		return counts{}, err
	}
	sum := sha256.Sum256(fmt.Appendf(data, "\n%s", p.Search))
	digest := hex.EncodeToString(sum[:])
	if p.known == nil {
		p.known = map[string]counts{}
	}
	for !enough(p.known[digest]) {
		failed, err := p.Run(ctx, s)
		if err == nil {
			err = ctx.Err() // a canceled run has no result
		}
		if err != nil {
			return p.known[digest], err
		}
		p.known[digest] = p.known[digest].add(failed)
		if err := json.NewEncoder(p.Journal).Encode(entry{digest, failed}); err != nil {
			return p.known[digest], fmt.Errorf("writing the result of a run to the journal of \"gauntlet shrink\": %w", err)
		}
	}
	return p.known[digest], nil
}
