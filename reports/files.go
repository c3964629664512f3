package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// files are the reports that a directory of runs gets.
var files = []struct {
	name   string
	render func(io.Writer, []Run) error
}{
	{"verdicts.json", JSON},
	{"junit.xml", JUnit},
	{"summary.md", Markdown},
	{"report.html", HTML},
}

// WriteFiles writes the reports of runs into a directory, in place of those that
// are there. One that cannot be written does not keep out the others, and
// leaves the one before it whole.
func WriteFiles(dir string, runs ...Run) error {
	var all []error
	for _, file := range files {
		var content bytes.Buffer
		err := file.render(&content, runs)
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
