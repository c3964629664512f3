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

// Prober tells whether scenarios fail that may fail now and then only, by running
// them as often as it takes. It keeps a journal of what it found out, and runs
// nothing again that stands in it.
type Prober struct {
	// Run runs a scenario once and reports whether it failed in the way that is
	// looked for.
	Run func(context.Context, *scenario.Scenario) (bool, error)
	// Journal is written a line for every run.
	Journal io.Writer

	known    map[string]tally
	original tally
}

// tally is how often a scenario failed in how many runs.
type tally struct{ failed, runs int }

// entry is a line of the journal: a run, of the scenario with that digest.
type entry struct {
	Scenario string `json:"scenario"` // SHA-256 of its file
	Failed   bool   `json:"failed"`
}

const (
	// firstRuns is how often the original is run, to see how often it fails.
	firstRuns = 3
	// doubt is how likely a scenario that fails as often as the original may be taken
	// for one that does not.
	doubt = 0.05
	// runsMax bounds the runs of one scenario.
	runsMax = 10
)

// Resume takes in a journal. Its last line may have been cut short.
func (p *Prober) Resume(journal io.Reader) error {
	p.known = map[string]tally{}
	lines := json.NewDecoder(journal)
	for {
		var e entry
		switch err := lines.Decode(&e); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("expected a journal of runs: %w", err)
		}
		t := p.known[e.Scenario]
		p.known[e.Scenario] = t.and(e.Failed)
	}
}

func (t tally) and(failed bool) tally {
	t.runs++
	if failed {
		t.failed++
	}
	return t
}

// rate is how likely the scenario is to fail in one run, by what is known: one that
// failed every time so far is not taken to fail always.
func (t tally) rate() float64 { return float64(t.failed+1) / float64(t.runs+2) }

// Calibrate runs the original. Its error says that it did not fail.
func (p *Prober) Calibrate(ctx context.Context, s *scenario.Scenario) error {
	var err error
	if p.original, err = p.probe(ctx, s, func(t tally) bool { return t.runs >= firstRuns }); err != nil {
		return err
	}
	if p.original.failed == 0 {
		return fmt.Errorf("it did not fail in %d runs", p.original.runs)
	}
	return nil
}

// Runs is how often a scenario is run that does not fail, before it is taken for
// one that does not.
func (p *Prober) Runs() int {
	runs := math.Ceil(math.Log(doubt) / math.Log(1-p.original.rate()))
	return min(int(runs), runsMax)
}

// Confidence is how sure it is that a scenario does not fail as often as the
// original, once it has not failed in so many runs.
func (p *Prober) Confidence() float64 {
	return 1 - math.Pow(1-p.original.rate(), float64(p.Runs()))
}

// Fails runs a scenario until it fails, or has not often enough.
func (p *Prober) Fails(ctx context.Context, s *scenario.Scenario) (bool, error) {
	t, err := p.probe(ctx, s, func(t tally) bool { return t.failed > 0 || t.runs >= p.Runs() })
	return t.failed > 0, err
}

// Confirm runs a scenario so many times in all, and says how often it failed.
func (p *Prober) Confirm(ctx context.Context, s *scenario.Scenario, runs int) (failed int, err error) {
	t, err := p.probe(ctx, s, func(t tally) bool { return t.runs >= runs })
	return t.failed, err
}

// probe runs a scenario until enough is known of it.
func (p *Prober) probe(ctx context.Context, s *scenario.Scenario, enough func(tally) bool) (tally, error) {
	data, err := s.Marshal()
	if err != nil {
		return tally{}, err
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	if p.known == nil {
		p.known = map[string]tally{}
	}
	for !enough(p.known[digest]) {
		failed, err := p.Run(ctx, s)
		if err == nil {
			err = ctx.Err() // what was broken off says nothing
		}
		if err != nil {
			return p.known[digest], err
		}
		p.known[digest] = p.known[digest].and(failed)
		if err := json.NewEncoder(p.Journal).Encode(entry{digest, failed}); err != nil {
			return p.known[digest], fmt.Errorf("writing the journal: %w", err)
		}
	}
	return p.known[digest], nil
}
