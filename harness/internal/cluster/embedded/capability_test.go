package embedded

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/clustertest"
)

// TestCapabilities verifies that Cluster implements exactly the interfaces that its capabilities
// require.
func TestCapabilities(t *testing.T) {
	if err := clustertest.CheckCapabilities(&Cluster{}); err != nil {
		t.Error(err)
	}
}
