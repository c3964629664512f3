package reports

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/reports/timeline"
)

func TestWriteFiles(t *testing.T) {
	dir := t.TempDir()
	for _, sample := range []string{"one-failed", "one-passed"} { // the second replaces the first
		if err := WriteFiles(dir, samples[sample][0]); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
			if entry.Name() == PageName || entry.Name() == "summary.md" { // these files contain links that depend on the directory
				continue
			}
			got, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join("testdata", sample, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", entry.Name(), sample, diff)
			}
		}
		if want := []string{"junit.xml", "report.html", "summary.md", "verdicts.json"}; !slices.Equal(names, want) {
			t.Errorf("files %v; want %v", names, want)
		}
	}
}

// TestWriteRun checks that WriteRun writes the same page with and without a timeline that was built
// during the run. The test cases are complete, truncated and missing histories.
func TestWriteRun(t *testing.T) {
	for _, name := range []string{"whole", "broken", "absent"} {
		t.Run(name, func(t *testing.T) {
			r := laggingRun(t, 3)
			path := filepath.Join(r.Directory, historyName)
			var err error
			switch name {
			case "broken":
				err = os.WriteFile(path, []byte("hello\n"), 0o644)
			case "absent":
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			var pages [2]string
			for i, write := range []func() error{
				func() error { return WriteFiles(r.Directory, r) },
				func() error { return WriteRun(r, timeline.NewDraft(history.ReadFile(path))) },
			} {
				if err := write(); err != nil {
					t.Fatal(err)
				}
				page, err := os.ReadFile(filepath.Join(r.Directory, PageName))
				if err != nil {
					t.Fatal(err)
				}
				pages[i] = string(page)
			}
			if diff := cmp.Diff(pages[0], pages[1]); diff != "" {
				t.Errorf("the page (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReplaceFails checks that the error has one line without the path, and that no other file
// remains.
func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	file, page := filepath.Join(dir, "file"), filepath.Join(dir, "page")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(page, 0o700)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(file, "page"): "not a directory",
		page:                        "found a directory; expected a file",
	} {
		if err := replace(path, nil); err == nil || err.Error() != want {
			t.Errorf("%s: error %v; want %s", path, err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("found the files %v, error %v; want only the two of the test", entries, err)
	}
}

// TestFailedWrites checks that an error says a reason once if all files have this reason.
func TestFailedWrites(t *testing.T) {
	full, denied := errors.New("no space left on device"), errors.New("permission denied")
	for _, test := range []struct {
		names   []string
		reasons []error
		want    string
	}{
		{[]string{"a"}, []error{full}, "writing a in dir: no space left on device"},
		{[]string{"a", "b"}, []error{full, full}, "writing a, b in dir: no space left on device"},
		{[]string{"a", "b"}, []error{full, denied}, "writing dir/a: no space left on device\nwriting dir/b: permission denied"},
	} {
		if err := failedWrites("dir", test.names, test.reasons); err == nil || err.Error() != test.want {
			t.Errorf("%v: error %v, want %s", test.names, err, test.want)
		}
	}
	if err := failedWrites("dir", nil, nil); err != nil {
		t.Errorf("no failure: error %v", err)
	}
}

// TestWriteFilesFails checks that WriteFiles returns an error if it cannot write one report. It
// must still write the other reports.
func TestWriteFilesFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "junit.xml", "occupied"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := WriteFiles(dir, samples["one-passed"][0])
	if want := "writing junit.xml in " + dir + ": found a directory; expected a file"; err == nil || err.Error() != want {
		t.Errorf("error %v; want %q", err, want)
	}
	for _, name := range []string{"verdicts.json", "summary.md", "report.html"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := WriteFiles(filepath.Join(dir, "absent"), samples["one-passed"][0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v; want %v", err, fs.ErrNotExist)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
