package kind

import (
	"os"
	"path/filepath"
	"testing"
)

// TestThaw checks that thawBelow unfreezes all frozen cgroups and writes no other file.
func TestThaw(t *testing.T) {
	root := t.TempDir()
	states := map[string]struct{ before, after string }{
		".":                   {"THAWED\n", "THAWED\n"},
		"kubelet/pod1":        {"FROZEN\n", "THAWED\n"},
		"kubelet/pod1/pause":  {"FREEZING\n", "THAWED\n"},
		"kubelet/pod2/thawed": {"THAWED", "THAWED"},
	}
	for group, state := range states {
		if err := os.MkdirAll(filepath.Join(root, group), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{"freezer.state": state.before, "tasks": "FROZEN"} {
			if err := os.WriteFile(filepath.Join(root, group, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := thawBelow(root); err != nil {
		t.Fatal(err)
	}
	for group, state := range states {
		for name, want := range map[string]string{"freezer.state": state.after, "tasks": "FROZEN"} {
			if got, err := os.ReadFile(filepath.Join(root, group, name)); string(got) != want || err != nil {
				t.Errorf("%s/%s contains %q (error %v), want %q", group, name, got, err, want)
			}
		}
	}
	if err := thawBelow(filepath.Join(root, "missing")); err != nil {
		t.Errorf("thawBelow() of a missing cgroup: %v, want no error", err)
	}
}
