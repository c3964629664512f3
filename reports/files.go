package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

// The names of files in a run directory.
const (
	PageName     = "report.html"
	verdictsName = "verdicts.json"
	historyName  = "history.jsonl"
)

// files are the reports that WriteFiles writes to the directory of one or more runs. Only
// the HTML page calls detail, for the parts of a single run that are not in its verdicts.
var files = []struct {
	name   string
	render func(w io.Writer, runs []Run, dir string, detail func(*Run) *Detail) error
}{
	{verdictsName, func(w io.Writer, runs []Run, _ string, _ func(*Run) *Detail) error { return JSON(w, runs) }},
	{"junit.xml", func(w io.Writer, runs []Run, _ string, _ func(*Run) *Detail) error { return JUnit(w, runs) }},
	{"summary.md", func(w io.Writer, runs []Run, dir string, _ func(*Run) *Detail) error { return Markdown(w, runs, dir) }},
	{PageName, writePage},
}

// writePage writes the HTML page, with details if there is a single run.
func writePage(w io.Writer, runs []Run, dir string, detail func(*Run) *Detail) error {
	if len(runs) == 1 {
		return HTML(w, runs, detail(&runs[0]), dir)
	}
	return HTML(w, runs, nil, dir)
}

// WriteFiles writes the reports of runs to a directory and replaces earlier reports. If one
// report cannot be written, its earlier version remains, and the others are still written.
func WriteFiles(dir string, runs ...Run) error { return writeFiles(dir, runs, ReadDetail) }

// WriteRun writes the reports of a run to its directory, like WriteFiles. It builds the
// timeline from the draft, and reads the history again only if the draft does not cover the
// results.
func WriteRun(run Run, draft *timeline.Draft) error {
	return writeFiles(run.Directory, []Run{run}, func(run *Run) *Detail { return finishDetail(run, draft) })
}

func writeFiles(dir string, runs []Run, detail func(*Run) *Detail) error {
	var all []error
	for _, file := range files {
		var content bytes.Buffer
		err := file.render(&content, runs, dir, detail)
		if err == nil {
			err = replace(filepath.Join(dir, file.name), content.Bytes())
		}
		if err != nil {
			all = append(all, fmt.Errorf("writing %s: %w", file.name, err))
		}
	}
	return errors.Join(all...)
}

// replace writes a file atomically.
func replace(path string, content []byte) error {
	unfinished := path + ".new"
	err := os.WriteFile(unfinished, content, 0o644)
	if err == nil {
		err = os.Rename(unfinished, path)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(unfinished))
	}
	return nil
}
