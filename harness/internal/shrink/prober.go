package shrink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Prober determines whether a scenario fails. Some failures do not occur in every run, so
// it runs the scenario several times. It writes each run to a journal, and does not repeat
// runs that are in the journal.
type Prober struct {
	// Run runs a scenario once and reports whether it had the failure of the original.
	Run func(context.Context, *scenario.Scenario) (bool, error)
	// Journal gets a line for each run, so that [Prober.Resume] can continue a canceled
	// search.
	Journal io.Writer

	known    map[string]counts
	original counts
}

// counts has the number of failed runs and the number of all runs of a scenario.
type counts struct{ failed, runs int }

// entry is a line of the journal. It has one run of a scenario, identified by its digest.
type entry struct {
	Scenario string `json:"scenario"` // SHA-256 digest of the scenario file
	Failed   bool   `json:"failed"`
}

const (
	// firstRuns is the number of runs that determine the failure rate of the original.
	firstRuns = 3
	// missProbability is the accepted probability that a scenario with the failure rate of
	// the original passes all its runs.
	missProbability = 0.05
	// runsMax is the maximum number of runs of one scenario.
	runsMax = 10
)

// Resume reads a journal of an earlier search, so that its runs are not repeated. The last
// line of the journal may be incomplete.
func (p *Prober) Resume(journal io.Reader) error {
	p.known = map[string]counts{}
	lines := json.NewDecoder(journal)
	for {
		var e entry
		switch err := lines.Decode(&e); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading the journal of runs: %w", err)
		}
		t := p.known[e.Scenario]
		p.known[e.Scenario] = t.add(e.Failed)
	}
}

func (t counts) add(failed bool) counts {
	t.runs++
	if failed {
		t.failed++
	}
	return t
}

// rate estimates the probability that one run fails, by the rule of succession. The
// estimate is below 1 even if every run failed, because [Prober.Runs] would return 0 for a
// rate of 1.
func (t counts) rate() float64 { return float64(t.failed+1) / float64(t.runs+2) }

// Calibrate runs the original scenario several times to determine its failure rate. It
// returns an error if no run fails.
func (p *Prober) Calibrate(ctx context.Context, s *scenario.Scenario) error {
	var err error
	if p.original, err = p.probe(ctx, s, func(t counts) bool { return t.runs >= firstRuns }); err != nil {
		return err
	}
	if p.original.failed == 0 {
		return fmt.Errorf("the original scenario failed in 0 of %d runs; expected at least 1", p.original.runs)
	}
	return nil
}

// Runs returns the number of passed runs after which a scenario counts as passing. The
// number is larger if the original fails rarely.
func (p *Prober) Runs() int {
	runs := math.Ceil(math.Log(missProbability) / math.Log(1-p.original.rate()))
	return min(int(runs), runsMax)
}

// Confidence returns the probability that at least one of [Prober.Runs] runs fails. It
// assumes a scenario that fails as often as the original.
func (p *Prober) Confidence() float64 {
	return 1 - math.Pow(1-p.original.rate(), float64(p.Runs()))
}

// Fails runs a scenario until it fails, or until it has passed [Prober.Runs] times.
func (p *Prober) Fails(ctx context.Context, s *scenario.Scenario) (bool, error) {
	t, err := p.probe(ctx, s, func(t counts) bool { return t.failed > 0 || t.runs >= p.Runs() })
	return t.failed > 0, err
}

// Confirm runs a scenario a number of times, and returns the number of failed runs.
func (p *Prober) Confirm(ctx context.Context, s *scenario.Scenario, runs int) (failed int, err error) {
	t, err := p.probe(ctx, s, func(t counts) bool { return t.runs >= runs })
	return t.failed, err
}

// probe runs a scenario until enough returns true for the counts of its runs. It also
// counts the runs in the journal.
func (p *Prober) probe(ctx context.Context, s *scenario.Scenario, enough func(counts) bool) (counts, error) {
	data, err := s.Marshal()
	if err != nil {
		return counts{}, err
	}
	sum := sha256.Sum256(data)
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
			return p.known[digest], fmt.Errorf("writing the journal: %w", err)
		}
	}
	return p.known[digest], nil
}
