package check

import (
	"bytes"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// faces is how pods have been shown of late, the latest last. A face without a pod
// says that there was none.
type faces struct {
	of   map[types.UID][]shown[face]
	gone []shown[types.UID] // pods that went, the first to go first
}

func newFaces() faces { return faces{of: map[types.UID][]shown[face]{}} }

// show takes in a version of a pod.
func (f *faces) show(p *pod, body []byte, at time.Duration) {
	known := f.of[p.UID]
	if n := len(known); n > 0 && known[n-1].value.like(p, body) {
		return
	}
	if len(known) == 0 {
		known = []shown[face]{{}} // before this there was none
	}
	f.of[p.UID] = append(recent(known, at-memory), shown[face]{at, face{p, &address{body: body}}})
}

// like reports whether a version of the pod says the same to Endpoints.
func (f face) like(p *pod, body []byte) bool {
	return f.pod != nil && f.ready == p.ready && f.terminating == p.terminating && maps.Equal(f.labels, p.labels) && bytes.Equal(f.body, body)
}

// drop takes in that a pod is gone. Those that went too long ago to be in anybody's
// mind are forgotten.
func (f *faces) drop(uid types.UID, at time.Duration) {
	if f.of[uid] == nil {
		return
	}
	f.of[uid] = append(recent(f.of[uid], at-memory), shown[face]{since: at})
	f.gone = append(f.gone, shown[types.UID]{at, uid})
	old := 0
	for ; f.gone[old].since < at-memory; old++ {
		uid := f.gone[old].value
		if known := f.of[uid]; len(known) > 0 && known[len(known)-1].value.pod == nil {
			delete(f.of, uid)
		}
	}
	f.gone = f.gone[old:]
}

// face is a pod as Endpoints may show it: one version of it, and how it can be
// reached.
type face struct {
	*pod
	*address
}
