package reports

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// FuzzReadDirectory reads random bytes as verdicts.json. If the bytes are valid, every report of
// the runs must be written without a panic.
func FuzzReadDirectory(f *testing.F) {
	golden, err := filepath.Glob(filepath.Join("testdata", "*", verdictsName))
	if err != nil || len(golden) == 0 {
		f.Fatalf("found %d files %s, error %v", len(golden), verdictsName, err)
	}
	for _, path := range golden {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, verdictsName), content, 0o644); err != nil {
			t.Fatal(err)
		}
		runs, err := ReadDirectory(dir)
		if err != nil || len(runs) == 0 {
			return
		}
		for name, err := range map[string]error{
			"Terminal":              Terminal(io.Discard, runs, 80),
			"JSON":                  JSON(io.Discard, runs),
			"JUnit":                 JUnit(io.Discard, runs),
			"Markdown":              Markdown(io.Discard, runs, dir),
			"HTML":                  HTML(io.Discard, runs, nil, dir),
			"Annotations":           Annotations(io.Discard, runs),
			"FailureGroups":         FailureGroups(io.Discard, len(runs), runs),
			"FailureGroupsMarkdown": FailureGroupsMarkdown(io.Discard, len(runs), runs),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
