package reports

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

// Detail is what the page of a single run shows beyond its verdicts. Nothing of
// it decides anything, so whatever cannot be read is left out, and Missing says
// why.
type Detail struct {
	Timeline *timeline.Timeline // nil if there is no history
	Scenario string             // as the run directory has it
	// ShrunkScenario is the smallest scenario that fails as the run did, if it was looked for,
	// and SmallestFile where it is.
	ShrunkScenario, ShrunkFile string
	// Diagnostics is how a run stood at its end that failed or had not converged; Logs
	// are those of all components, around the first violation, or else their ends.
	Diagnostics, Logs []Log
	Missing           []string // a line each
}

// ReadDetail reads what is in the directory of a run.
func ReadDetail(run *Run) *Detail {
	drawn, err := timeline.Build(history.ReadFile(filepath.Join(run.Directory, historyName)), run.Results)
	return newDetail(run, drawn, err)
}

// finishDetail is ReadDetail of a run whose timeline is drafted.
func finishDetail(run *Run, draft *timeline.Draft) *Detail {
	if !draft.Covers(run.Results) {
		return ReadDetail(run)
	}
	var drawn *timeline.Timeline
	cited, err := history.Some(filepath.Join(run.Directory, historyName), timeline.Cited(run.Results))
	if err == nil {
		drawn, err = draft.Finish(run.Results, cited)
	}
	return newDetail(run, drawn, err)
}

// newDetail reads the rest, given the timeline or why there is none.
func newDetail(run *Run, drawn *timeline.Timeline, err error) *Detail {
	detail := &Detail{Timeline: drawn}
	detail.note("no timeline", err)
	scenario, err := os.ReadFile(filepath.Join(run.Directory, "scenario.yaml"))
	detail.Scenario = string(scenario)
	detail.note("no scenario", err)
	detail.ShrunkFile = filepath.Join(run.Directory, "shrink", "smallest.yaml")
	smallest, err := os.ReadFile(detail.ShrunkFile)
	detail.ShrunkScenario = string(smallest)
	if !errors.Is(err, fs.ErrNotExist) { // few runs are shrunk
		detail.note("no smallest scenario", err)
	}
	detail.Diagnostics = detail.parts(filepath.Join(run.Directory, "diagnostics"), readTail)
	part := readTail
	if w := logWindowAround(detail.Timeline); w != nil {
		part = w.read
	}
	detail.Logs = detail.parts(filepath.Join(run.Directory, "logs"), part)
	return detail
}

// parts reads a part of each file of a directory, by name.
func (d *Detail) parts(dir string, part func(path string) (Log, error)) []Log {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d.note("nothing of "+filepath.Base(dir), err)
	var all []Log
	for _, entry := range entries {
		log, err := part(filepath.Join(dir, entry.Name()))
		if err != nil {
			d.note("no "+entry.Name(), err)
			continue
		}
		all = append(all, log)
	}
	return all
}

// note says that something is missing. A run without its directory is no news:
// most of them are gone when nights are looked at.
func (d *Detail) note(what string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		d.Missing = append(d.Missing, what+": the file is not in the run directory")
	default:
		d.Missing = append(d.Missing, fmt.Sprintf("%s: %v", what, err))
	}
}
