//go:build !ours

package subjects

import (
	"testing"

	"k8s.io/client-go/tools/cache"
)

// TestReleaseInformerNames checks that a replica can register a name that an earlier replica has
// not released.
func TestReleaseInformerNames(t *testing.T) {
	for range 2 {
		if _, err := cache.NewInformerName("test"); err != nil {
			t.Fatal(err)
		}
		releaseInformerNames()
	}
}
