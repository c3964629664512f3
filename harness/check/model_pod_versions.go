package check

import (
	"bytes"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// podVersions is how pods have been shown of late, the latest last. A face without a pod
// says that there was none.
type podVersions struct {
	byPod   map[types.UID][]cachedVersion[podVersion]
	removed []cachedVersion[types.UID] // pods that went, the first to go first
}

// podVersion is a pod as Endpoints may show it: one version of it, and how it can be
// reached.
type podVersion struct {
	*pod
	*podAddress
}

func newPodVersions() podVersions {
	return podVersions{byPod: map[types.UID][]cachedVersion[podVersion]{}}
}

// add takes in a version of a pod.
func (versions *podVersions) add(p *pod, body []byte, at time.Duration) {
	known := versions.byPod[p.UID]
	if n := len(known); n > 0 && known[n-1].value.sameAs(p, body) {
		return
	}
	if len(known) == 0 {
		known = []cachedVersion[podVersion]{{}} // before this there was none
	}
	versions.byPod[p.UID] = append(keepSince(known, at-decisionWindowMax), cachedVersion[podVersion]{at, podVersion{p, &podAddress{body: body}}})
}

// sameAs reports whether a version of the pod says the same to Endpoints.
func (version podVersion) sameAs(p *pod, body []byte) bool {
	return version.pod != nil && version.ready == p.ready && version.terminating == p.terminating && maps.Equal(version.labels, p.labels) && bytes.Equal(version.body, body)
}

// remove takes in that a pod is gone. Those that went too long ago to be in anybody's
// mind are forgotten.
func (versions *podVersions) remove(uid types.UID, at time.Duration) {
	if versions.byPod[uid] == nil {
		return
	}
	versions.byPod[uid] = append(keepSince(versions.byPod[uid], at-decisionWindowMax), cachedVersion[podVersion]{since: at})
	versions.removed = append(versions.removed, cachedVersion[types.UID]{at, uid})
	old := 0
	for ; versions.removed[old].since < at-decisionWindowMax; old++ {
		uid := versions.removed[old].value
		if known := versions.byPod[uid]; len(known) > 0 && known[len(known)-1].value.pod == nil {
			delete(versions.byPod, uid)
		}
	}
	versions.removed = versions.removed[old:]
}
