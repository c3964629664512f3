package reports

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

// Detail has the parts of a run's HTML page that do not come from verdicts.json, such as the
// timeline. Only the page of a single run shows these parts. If a part cannot be read, the page
// omits the part, and the field Missing says why.
type Detail struct {
	Timeline *timeline.Timeline // nil if the run has no readable history
	Scenario string             // the contents of scenario.yaml
	// ShrunkScenario is the smallest scenario with the same failure, as YAML. It is empty unless
	// gauntlet shrink has found one.
	ShrunkScenario string
	// ShrunkFile is the path of the file that contains ShrunkScenario. The file need not exist.
	ShrunkFile string
	// Diagnostics has the end of each file in the directory diagnostics. The files describe the
	// cluster at the end of a run that failed or did not converge.
	Diagnostics []Log
	// Logs has an excerpt of each component's log: the lines around the first violation. For a run
	// without a violation, the excerpt is the end of the log.
	Logs []Log
	// Missing has one line for each part of the page that could not be read. The line says why.
	Missing []string
}

// ReadDetail returns the parts of a run's HTML page that do not come from verdicts.json. It reads
// the scenario, the diagnostics and the logs from the run's directory, and builds the timeline
// from the whole history. If a part cannot be read, the field Missing of the result says why.
func ReadDetail(run *Run) *Detail {
	drawn, err := timeline.Build(history.ReadFile(filepath.Join(run.Directory, historyName)), run.Results)
	return newDetail(run, drawn, err)
}

// finishDetail returns the same details as [ReadDetail], but faster. Instead of building a new
// timeline, it completes a draft of the timeline that was built while the checks read the
// history. The draft lacks only the violations.
//
// finishDetail reads only the records that the evidence cites. If the draft lacks records that
// the timeline must show, finishDetail calls ReadDetail.
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

// newDetail returns the details of a run with the given timeline. It reads everything else from the
// run directory. If the timeline could not be built, the argument drawn is nil, and err says why.
func newDetail(run *Run, drawn *timeline.Timeline, err error) *Detail {
	detail := &Detail{Timeline: drawn}
	detail.note("no timeline", err)
	scenario, err := inputfile.Read(filepath.Join(run.Directory, "scenario.yaml"))
	detail.Scenario = string(scenario)
	detail.note("no scenario", err)
	detail.ShrunkFile = filepath.Join(run.Directory, "shrink", "smallest.yaml")
	smallest, err := inputfile.Read(detail.ShrunkFile)
	detail.ShrunkScenario = string(smallest)
	if !errors.Is(err, fs.ErrNotExist) { // most runs have no such file, because they were not shrunk
		detail.note("no smallest scenario", err)
	}
	detail.Diagnostics = detail.parts(filepath.Join(run.Directory, "diagnostics"), readTail)
	read := readTail
	if w := logWindowAround(detail.Timeline, run.Results); w != nil {
		read = w.read
	}
	detail.Logs = detail.parts(filepath.Join(run.Directory, "logs"), read)
	return detail
}

// parts returns the contents of the files in a directory, sorted by file name. Its argument read
// returns the content of one file, or an excerpt. parts returns nil if the directory does not
// exist. For an unreadable file, it adds a line to d.Missing.
func (d *Detail) parts(dir string, read func(path string) (Log, error)) []Log {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d.note("no "+filepath.Base(dir), err)
	var all []Log
	for _, entry := range entries {
		log, err := read(filepath.Join(dir, entry.Name()))
		if err != nil {
			d.note("no "+entry.Name(), err)
			continue
		}
		all = append(all, log)
	}
	return all
}

// note adds a line to d.Missing, which the page shows, unless err is nil. The argument what says
// what the page lacks, such as "no timeline".
//
// A campaign deletes the directories of runs that passed. If a file does not exist, the line
// therefore has a fixed text instead of the error.
func (d *Detail) note(what string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		d.Missing = append(d.Missing, what+": the file is not in the run directory")
	default:
		d.Missing = append(d.Missing, fmt.Sprintf("%s: %v", what, err))
	}
}
