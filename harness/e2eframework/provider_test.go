package e2eframework_test

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/e2eframework"
)

// TestNew checks that New knows the providers of this package, and refuses all others.
func TestNew(t *testing.T) {
	for _, name := range []string{"embedded", "existing", "kind"} {
		if p, err := e2eframework.New(name); err != nil || p == nil {
			t.Errorf("New(%q) = %v, error %v", name, p, err)
		}
	}
	for name, want := range map[string]string{
		"virtual": `provider "virtual": expected embedded, existing or kind`,
		"kidn":    `provider "kidn": expected embedded, existing or kind; did you mean kind?`,
	} {
		if _, err := e2eframework.New(name); err == nil || err.Error() != want {
			t.Errorf("New(%q): error %v, want %s", name, err, want)
		}
	}
}
