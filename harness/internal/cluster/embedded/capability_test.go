package embedded

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/clustertest"
)

// TestCapabilities checks that Cluster implements exactly the interfaces of its capabilities.
func TestCapabilities(t *testing.T) {
	if err := clustertest.CheckCapabilities(&Cluster{}); err != nil {
		t.Error(err)
	}
}
