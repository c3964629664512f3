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

// The names of files in the directory of a run.
const (
	PageName     = "report.html"
	verdictsName = "verdicts.json"
	historyName  = "history.jsonl"
)

// files are the reports that a directory of runs gets. Detail is how to come by what the
// page of a single run shows.
var files = []struct {
	name   string
	render func(w io.Writer, runs []Run, dir string, detail func(*Run) *Detail) error
}{
	{verdictsName, func(w io.Writer, runs []Run, _ string, _ func(*Run) *Detail) error { return JSON(w, runs) }},
	{"junit.xml", func(w io.Writer, runs []Run, _ string, _ func(*Run) *Detail) error { return JUnit(w, runs) }},
	{"summary.md", func(w io.Writer, runs []Run, dir string, _ func(*Run) *Detail) error { return Markdown(w, runs, dir) }},
	{PageName, writePage},
}

// writePage writes the page, with all that is known of a single run.
func writePage(w io.Writer, runs []Run, dir string, detail func(*Run) *Detail) error {
	if len(runs) == 1 {
		return HTML(w, runs, detail(&runs[0]), dir)
	}
	return HTML(w, runs, nil, dir)
}

// WriteFiles writes the reports of runs into a directory, in place of those that
// are there. One that cannot be written does not keep out the others, and
// leaves the one before it whole.
func WriteFiles(dir string, runs ...Run) error { return writeFiles(dir, runs, ReadDetail) }

// WriteRun writes the reports of a run into its directory, as WriteFiles does, from the
// draft of its timeline. The history is read again only if the draft does not serve.
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

// replace puts a file in the place of another in one step.
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
