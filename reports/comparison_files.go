package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// ComparedPageName is the file name of the HTML page that summarizes all comparisons.
const ComparedPageName = "compare.html"

// comparedFiles has the reports about all comparisons that WriteComparisons writes: file names,
// and functions that write the content. The page of each pair is not in this list.
var comparedFiles = []struct {
	name   string
	render func(w io.Writer, comparisons []Comparison) error
}{
	{"compare.md", ComparedMarkdown},
	{"compare.json", ComparedJSON},
	{ComparedPageName, ComparedHTML},
}

// WriteComparisons writes the reports of comparisons, and an HTML page for each pair of runs, to a
// directory. If it cannot write one file, it still writes the others, and returns all errors.
func WriteComparisons(dir string, comparisons []Comparison) error {
	var all []error
	write := func(name string, render func(w io.Writer) error) {
		var content bytes.Buffer
		err := render(&content)
		if err == nil {
			err = replace(filepath.Join(dir, name), content.Bytes())
		}
		if err != nil {
			all = append(all, fmt.Errorf("writing %s: %w", name, err))
		}
	}
	for _, file := range comparedFiles {
		write(file.name, func(w io.Writer) error { return file.render(w, comparisons) })
	}
	for i := range comparisons {
		c := &comparisons[i]
		for pair := range c.Pairs {
			write(c.PageName(pair), func(w io.Writer) error { return PairHTML(w, c, pair, dir) })
		}
	}
	return errors.Join(all...)
}
