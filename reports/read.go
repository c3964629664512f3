package reports

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// ReadDirectory reads the verdicts that WriteFiles left in a directory: those of
// one run, or of many.
func ReadDirectory(dir string) ([]Run, error) {
	path := filepath.Join(dir, verdictsName)
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && isRunDirectory(dir) {
		return nil, fmt.Errorf("%s: found a run without verdicts; gauntlet check judges it", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading verdicts: expected a directory of runs, as run, check or nightly leave it: %w", err)
	}
	var report jsonReport
	if err := json.Unmarshal(content, &report); err != nil {
		return nil, fmt.Errorf("%s: expected verdicts: %w", path, err)
	}
	if report.Schema != schema {
		return nil, fmt.Errorf("%s: expected schema %d, found %d; gauntlet check writes it anew", path, schema, report.Schema)
	}
	runs := make([]Run, 0, len(report.Runs))
	for _, r := range report.Runs {
		runs = append(runs, r.run())
	}
	if len(runs) == 1 && isRunDirectory(dir) { // it may have been moved since
		runs[0].Directory = dir
	}
	return runs, nil
}

func isRunDirectory(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, historyName))
	return err == nil
}

// run is what the JSON was made from.
func (r *jsonRun) run() Run {
	run := Run{
		Scenario:    r.Scenario,
		Description: r.Description,
		Subject:     r.Subject,
		Provider:    r.Provider,
		Seed:        r.Seed,
		Directory:   r.Directory,
		Size:        r.Size,
		Started:     r.Started,
		Duration:    time.Duration(r.DurationSeconds * float64(time.Second)).Round(time.Microsecond),
		Versions:    r.Versions,
		Verdict:     r.Verdict,
		Reason:      r.Reason,
		Reproduce:   r.Again,
	}
	for _, result := range r.Results {
		run.Results = append(run.Results, result.Result)
	}
	return run
}
