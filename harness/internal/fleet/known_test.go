package fleet

import (
	"strings"
	"testing"

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
