//go:build !ours

package subjects

import (
	"maps"
	"slices"
	"sync"
	_ "unsafe" // for go:linkname

	"k8s.io/client-go/tools/cache"
)

// informerNames is the table of client-go in which kube-controller-manager registers the name of its
// informers. kube-controller-manager does not release the name if it ends while it starts its
// controllers, and nothing else has a reference to the name.
//
//go:linkname informerNames k8s.io/client-go/tools/cache.informerNameRegistry
var informerNames struct {
	sync.Mutex
	names map[string]*cache.InformerName
}

// releaseInformerNames lets another replica of this process register the names of its informers. For
// a replica that still has informers, only their metrics end.
func releaseInformerNames() {
	informerNames.Lock()
	names := slices.Collect(maps.Values(informerNames.names))
	informerNames.Unlock() // Release locks the table too
	for _, name := range names {
		name.Release()
	}
}
