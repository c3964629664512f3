// Package embeddedtest starts embedded clusters for the tests of other packages.
package embeddedtest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// Start starts an embedded cluster with one node, and stops the cluster when the test ends.
//
// The argument without lists controllers that the cluster's kube-controller-manager does not run.
// If the list is empty, kube-controller-manager does not run [kube.DefaultControllers].
func Start(t *testing.T, without ...kube.Controller) *embedded.Cluster {
	t.Helper()
	dir := t.TempDir()
	c, err := embedded.Start(t.Context(), embedded.Options{Nodes: 1, Controllers: without, Dir: dir, LogDir: filepath.Join(dir, "logs")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}
