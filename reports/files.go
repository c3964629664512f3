package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

// These are the names of files in a run directory: the HTML page, the verdicts and the history.
// [WriteFiles] writes the page and the verdicts. The run itself writes the history.
const (
	PageName     = "report.html"
	verdictsName = "verdicts.json"
	historyName  = "history.jsonl"
)

// files has the reports that WriteFiles writes about one or more runs: file names, and functions
// that write the content.
//
// The argument detail of a function render returns the [Detail] of a run, such as the timeline
// and the logs. Only the page of a single run shows it.
var files = []struct {
	name   string
	render func(w io.Writer, s series, dir string, detail func(*Run) *Detail) error
}{
	{verdictsName, func(w io.Writer, s series, _ string, _ func(*Run) *Detail) error { return s.json(w) }},
	{"junit.xml", func(w io.Writer, s series, _ string, _ func(*Run) *Detail) error { return JUnit(w, s.runs) }},
	{"summary.md", func(w io.Writer, s series, dir string, _ func(*Run) *Detail) error { return s.markdown(w, dir) }},
	{PageName, writePage},
}

// FileNames returns the names of the files that [WriteFiles] writes.
func FileNames() []string {
	var names []string
	for _, file := range files {
		names = append(names, file.name)
	}
	return names
}

// writePage writes the HTML page of one or more runs. The page of a single run also shows the
// [Detail] that the argument detail returns.
func writePage(w io.Writer, s series, dir string, detail func(*Run) *Detail) error {
	if len(s.runs) == 1 {
		return s.html(w, detail(&s.runs[0]), dir)
	}
	return s.html(w, nil, dir)
}

// WriteFiles writes the reports of runs to a directory, and replaces earlier reports. If it cannot
// write one of the reports, that report's earlier version remains. It still writes the other
// reports, and returns all errors.
func WriteFiles(dir string, runs ...Run) error {
	return writeFiles(dir, series{runs: runs}, ReadDetail)
}

// WriteInterrupted writes the reports of a series of runs that was interrupted, as [WriteFiles]
// does. The argument interrupted says when, such as "interrupted after 7 of 40 runs". The reports
// contain this text. If no run failed, the verdict of the series is unknown.
func WriteInterrupted(dir, interrupted string, runs ...Run) error {
	return writeFiles(dir, series{runs, interrupted}, ReadDetail)
}

// WriteRun writes the reports of one run to the run's directory, as [WriteFiles] does.
//
// The argument draft is a timeline that was built during the run. If the draft has all records
// that the timeline must show, WriteRun does not read the whole history again.
func WriteRun(run Run, draft *timeline.Draft) error {
	return writeFiles(run.Directory, series{runs: []Run{run}}, func(run *Run) *Detail { return finishDetail(run, draft) })
}

// writeFiles writes the reports of runs to a directory. The argument detail returns the [Detail]
// of a run. writeFiles calls it only if there is a single run; see writePage.
func writeFiles(dir string, s series, detail func(*Run) *Detail) error {
	var failed []string // the names of the files that could not be written
	var all []error
	for _, file := range files {
		var content bytes.Buffer
		err := file.render(&content, s, dir, detail)
		if err == nil {
			err = replace(filepath.Join(dir, file.name), content.Bytes())
		}
		if err != nil {
			failed, all = append(failed, file.name), append(all, err)
		}
	}
	return failedWrites(dir, failed, all)
}

// failedWrites returns one error about the files of a directory that could not be written. If all
// have the same reason, such as a full disk, the error says this reason once.
func failedWrites(dir string, names []string, reasons []error) error {
	if len(names) == 0 {
		return nil
	}
	same := !slices.ContainsFunc(reasons, func(err error) bool { return err.Error() != reasons[0].Error() })
	if same {
		return fmt.Errorf("writing %s in %s: %w", strings.Join(names, ", "), dir, reasons[0])
	}
	all := make([]error, len(names))
	for i, name := range names {
		all[i] = fmt.Errorf("writing %s: %w", filepath.Join(dir, name), reasons[i])
	}
	return errors.Join(all...)
}

// replace writes a file atomically. It writes a temporary file in the same directory, and then
// renames this file to the path target.
func replace(target string, content []byte) error {
	unfinished := target + ".new"
	err := os.WriteFile(unfinished, content, 0o644)
	if err == nil {
		err = os.Rename(unfinished, target)
	}
	if err != nil {
		var path *fs.PathError
		var link *os.LinkError
		switch { // drop the path from the error, because the caller's message names the file
		case errors.As(err, &path):
			err = path.Err
		case errors.As(err, &link):
			err = link.Err
		}
		switch {
		case isDirectory(target):
			err = errors.New("found a directory; expected a file")
		case isDirectory(unfinished):
			err = fmt.Errorf("found a directory at %s, the name of the unfinished file; remove the directory", unfinished)
		}
		_ = os.Remove(unfinished) // an error would have the same cause, or none: the file may not exist
		return err
	}
	return nil
}

// isDirectory reports whether a path is that of a directory.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
