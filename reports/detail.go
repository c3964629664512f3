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

// Detail holds the parts of the page of a single run that are not in its verdicts. A part
// that cannot be read is omitted, and Missing says why. Verdicts do not depend on these
// parts.
type Detail struct {
	Timeline *timeline.Timeline // nil without a history
	Scenario string             // the content of scenario.yaml
	// ShrunkScenario is the smallest scenario with the same failure, if gauntlet shrink found
	// one, and ShrunkFile is its path.
	ShrunkScenario, ShrunkFile string
	// Diagnostics is the state at the end of a run that failed or did not converge. Logs
	// are the logs of all components around the first violation. If there is no violation,
	// Logs are the ends of the logs.
	Diagnostics, Logs []Log
	Missing           []string // one line for each missing part, with the reason
}

// ReadDetail reads the details of a run from its directory.
func ReadDetail(run *Run) *Detail {
	drawn, err := timeline.Build(history.ReadFile(filepath.Join(run.Directory, historyName)), run.Results)
	return newDetail(run, drawn, err)
}

// finishDetail returns what [ReadDetail] returns. It finishes the draft of the timeline if
// the draft covers the results, because that is faster than reading the history again.
func finishDetail(run *Run, draft *timeline.Draft) *Detail {
	if !draft.Covers(run.Results) {
		return ReadDetail(run)
	}
	var drawn *timeline.Timeline
	cited, err := history.ReadSelected(filepath.Join(run.Directory, historyName), timeline.Cited(run.Results))
	if err == nil {
		drawn, err = draft.Finish(run.Results, cited)
	}
	return newDetail(run, drawn, err)
}

// newDetail returns the details of a run with the given timeline, and reads all other
// parts. If there is no timeline, err is the reason.
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

// parts returns a log for each file of a directory, sorted by name. The function part reads
// one file.
func (d *Detail) parts(dir string, part func(path string) (Log, error)) []Log {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d.note("no "+filepath.Base(dir), err)
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

// note records that a part is missing because of an error. It does not quote the error if
// the file does not exist. This is normal, because a campaign deletes the directories of
// runs that passed.
func (d *Detail) note(what string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		d.Missing = append(d.Missing, what+": the file is not in the run directory")
	default:
		d.Missing = append(d.Missing, fmt.Sprintf("%s: %v", what, err))
	}
}
