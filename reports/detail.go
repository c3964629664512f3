package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
	// Diagnostics is what a run that has not converged left; Logs are those of all
	// components.
	Diagnostics, Logs []Log
	Missing           []string // a line each
}

// Log is the end of a file.
type Log struct {
	Name string // with the directory that it is in
	Tail string
	// Omitted is how much of it comes before the tail, in bytes.
	Omitted int64
}

// tailMax is how much of each log is on the page, in bytes.
const tailMax = 12 << 10

// ReadDetail reads what is in the directory of a run.
func ReadDetail(run *Run) *Detail {
	detail := new(Detail)
	var err error
	detail.Timeline, err = timeline.Build(history.ReadFile(filepath.Join(run.Directory, historyName)), run.Results)
	detail.note("no timeline", err)
	scenario, err := os.ReadFile(filepath.Join(run.Directory, "scenario.yaml"))
	detail.Scenario = string(scenario)
	detail.note("no scenario", err)
	detail.Diagnostics = detail.tails(filepath.Join(run.Directory, "diagnostics"))
	detail.Logs = detail.tails(filepath.Join(run.Directory, "logs"))
	return detail
}

// tails reads the ends of all files of a directory, by name.
func (d *Detail) tails(dir string) []Log {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d.note("nothing of "+filepath.Base(dir), err)
	var all []Log
	for _, entry := range entries {
		log, err := tail(filepath.Join(dir, entry.Name()))
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

// tail reads the last whole lines of a log.
func tail(path string) (Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return Log{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Log{}, err
	}
	log := Log{Name: filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)), Omitted: max(info.Size()-tailMax, 0)}
	content, err := io.ReadAll(io.NewSectionReader(file, log.Omitted, tailMax))
	if err != nil {
		return Log{}, err
	}
	if i := bytes.IndexByte(content, '\n'); log.Omitted > 0 && i >= 0 {
		content, log.Omitted = content[i+1:], log.Omitted+int64(i)+1
	}
	log.Tail = string(bytes.ToValidUTF8(content, []byte("\uFFFD")))
	return log, nil
}
