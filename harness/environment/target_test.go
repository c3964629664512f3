package environment

import (
	"os"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// TestCheckTargetOfSubjectFile checks that only the provider embedded accepts a program with a
// subject file. The error of any other provider must recommend this one, and no other.
func TestCheckTargetOfSubjectFile(t *testing.T) {
	itself, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	target, err := subject.Operator(subject.Definition{Executable: itself})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range providers.Names() {
		provider, err := providers.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		err = CheckTarget(provider, target)
		if name == providers.Embedded {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if want := "found provider " + name + "; expected --provider=embedded, which"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}
