// Package conformance runs the specs of package specs on the clusters of a provider: embedded, kind
// or existing. Its other tests compare the specs with rows, TABLE.md and the documentation.
package conformance

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/specs"
)

// root is the root directory of the repository.
var root = filepath.Join("..", "..")

func init() {
	specs.AddFlags(flag.CommandLine, specs.Options{Root: root, Provider: providers.Default()})
}

// TestConformance runs the specs on the subjects that the flag -subject names.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes; make conformance runs it")
	}
	specs.Run(t)
}
