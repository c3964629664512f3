package subjects

import (
	"maps"
	"slices"
	"sync"
	_ "unsafe" // for go:linkname

	"k8s.io/client-go/tools/cache"
)

// informerNames is the table of client-go in which kube-controller-manager registers the name of its
// informers. client-go has no function that removes the name of a replica that ended while it
// started its controllers.
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
