package fleet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// TestNewGroups checks that an acknowledged failure group is not new again in its series. In another
// series, it is new.
func TestNewGroups(t *testing.T) {
	store := Directory(t.TempDir())
	check := func(series string, ids []string, want int) *Night {
		t.Helper()
		var groups []reports.Group
		for _, id := range ids {
			groups = append(groups, reports.Group{ID: id})
		}
		fresh, err := NewGroups(t.Context(), store, series, groups)
		if err != nil || len(fresh) != want || fresh == nil {
			t.Errorf("series %s, groups %q: new groups %v, %v; want %d", series, ids, fresh, err, want)
		}
		return &Night{Series: series, NewGroups: fresh}
	}
	night := check("nightly", []string{"a", "b"}, 2)
	check("nightly", []string{"a", "b"}, 2) // nobody has acknowledged them
	if err := Acknowledge(t.Context(), store, night); err != nil {
		t.Fatal(err)
	}
	check("nightly", []string{"a", "b"}, 0)
	check("nightly", []string{"a", "c"}, 1)
	check("night", []string{"a"}, 1)
	check("nightly", nil, 0)
}

// TestNamesInStore checks that a directory refuses names that lead out of it.
func TestNamesInStore(t *testing.T) {
	store := Directory(t.TempDir())
	for _, name := range []string{"../x", "a/../../x", "/x", ""} {
		if err := store.Put(t.Context(), name, nil); err == nil || !strings.Contains(err.Error(), `expected a name without ".."`) {
			t.Errorf("put of %q: error %v; want that the name is refused", name, err)
		}
		if _, err := store.Get(t.Context(), name); err == nil || !strings.Contains(err.Error(), `expected a name without ".."`) {
			t.Errorf("get of %q: error %v; want that the name is refused", name, err)
		}
	}
}

// TestIrregularFiles checks that a directory refuses a pipe and a huge file, and follows the link to a
// campaign.
func TestIrregularFiles(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	store := Directory(dir)
	large := filepath.Join(dir, "large")
	if err := errors.Join(
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
		os.WriteFile(large, nil, 0o600), os.Truncate(large, 1<<40),
		os.WriteFile(filepath.Join(elsewhere, campaignName), nil, 0o600), os.Symlink(elsewhere, filepath.Join(dir, "linked")),
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"pipe": inputfile.ErrIrregular, "linked": inputfile.ErrIrregular, "large": inputfile.ErrTooLarge, "absent": fs.ErrNotExist} {
		if _, err := store.Get(t.Context(), name); !errors.Is(err, want) {
			t.Errorf("%s: error %v; want %v", name, err, want)
		}
	}
	names, err := store.List(t.Context(), "linked/")
	if want := []string{"linked/" + campaignName}; err != nil || !slices.Equal(names, want) {
		t.Errorf("names %q, error %v; want %q", names, err, want)
	}
}

// TestCheckResult checks that a file counts only as the result of its own run.
func TestCheckResult(t *testing.T) {
	c := Campaign{Scenario: "burst", Provider: "embedded"}
	unit := Unit{Seed: 7, Subject: "ours"}
	valid := reports.Run{Seed: 7, Subject: "ours", Scenario: "burst", Provider: "embedded"}
	for want, change := range map[string]func(*reports.Run){
		"": func(r *reports.Run) { r.Provider = "" },
		"found the result of seed 8; expected seed 7":                   func(r *reports.Run) { r.Seed = 8 },
		"found the result of subject upstream; expected subject ours":   func(r *reports.Run) { r.Subject = "upstream" },
		"found the result of scenario calm; expected scenario burst":    func(r *reports.Run) { r.Scenario = "calm" },
		"found the result of provider kind; expected provider embedded": func(r *reports.Run) { r.Provider = "kind" },
	} {
		run := valid
		change(&run)
		if err := c.checkResult(&run, unit); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("error %v; want %q", err, want)
		}
	}
}
