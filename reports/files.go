package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The names of files in the directory of a run.
const (
	PageName     = "report.html"
	verdictsName = "verdicts.json"
	historyName  = "history.jsonl"
)

// files are the reports that a directory of runs gets.
var files = []struct {
	name   string
	render func(w io.Writer, runs []Run, dir string) error
}{
	{verdictsName, func(w io.Writer, runs []Run, _ string) error { return JSON(w, runs) }},
	{"junit.xml", func(w io.Writer, runs []Run, _ string) error { return JUnit(w, runs) }},
	{"summary.md", Markdown},
	{PageName, writePage},
}

// writePage writes the page, with all that is known of a single run.
func writePage(w io.Writer, runs []Run, dir string) error {
	var detail *Detail
	if len(runs) == 1 {
		detail = ReadDetail(&runs[0])
	}
	return HTML(w, runs, detail, dir)
}

// WriteFiles writes the reports of runs into a directory, in place of those that
// are there. One that cannot be written does not keep out the others, and
// leaves the one before it whole.
func WriteFiles(dir string, runs ...Run) error {
	var all []error
	for _, file := range files {
		var content bytes.Buffer
		err := file.render(&content, runs, dir)
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
