package check

import (
	"bytes"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// podVersions contains the cached versions of each pod on which one process may have acted (the
// recent window), oldest first. A new version begins only when a field that Endpoints depend on has
// changed.
//
// A version without a pod means that the cache did not contain the pod from that time on.
type podVersions struct {
	byPod   map[types.UID][]cachedVersion[podVersion]
	removed []cachedVersion[types.UID] // UIDs of the pods that the cache no longer contains, sorted by the time of removal
}

// podVersion is one version of a pod, with the pod's IP addresses and ports. Checks read only
// fields that the Endpoints controller reads.
type podVersion struct {
	*objects.Pod
	*objects.PodAddress
}

// newPodVersions returns a podVersions that contains no pods.
func newPodVersions() podVersions {
	return podVersions{byPod: map[types.UID][]cachedVersion[podVersion]{}}
}

// add stores the given version of a pod, which the cache now contains. It does nothing if no field
// on which Endpoints depend differs from the last version. The parameter body is the pod as JSON.
func (versions *podVersions) add(p *objects.Pod, body []byte, at time.Duration) {
	cached := versions.byPod[p.UID]
	if n := len(cached); n > 0 && cached[n-1].value.sameAs(p, body) {
		return
	}
	if len(cached) == 0 {
		cached = []cachedVersion[podVersion]{{}} // the cache did not contain the pod before
	}
	versions.byPod[p.UID] = append(keepSince(cached, at-decisionWindowMax), cachedVersion[podVersion]{at, podVersion{p, &objects.PodAddress{Body: body}}})
}

// sameAs reports whether another version of the pod is equal in all fields that the Endpoints
// controller reads. The parameters p and body contain the other version. A version that is equal
// need not be stored.
func (version podVersion) sameAs(p *objects.Pod, body []byte) bool {
	return version.Pod != nil && version.Ready == p.Ready && version.Terminating == p.Terminating && maps.Equal(version.Labels, p.Labels) && bytes.Equal(version.Body, body)
}

// remove stores the time at which a pod left the cache. It also forgets pods that were removed too
// long ago for the process to act on them.
func (versions *podVersions) remove(uid types.UID, at time.Duration) {
	if versions.byPod[uid] == nil {
		return
	}
	versions.byPod[uid] = append(keepSince(versions.byPod[uid], at-decisionWindowMax), cachedVersion[podVersion]{since: at})
	versions.removed = append(versions.removed, cachedVersion[types.UID]{at, uid})
	old := 0
	for ; versions.removed[old].since < at-decisionWindowMax; old++ {
		uid := versions.removed[old].value
		if cached := versions.byPod[uid]; len(cached) > 0 && cached[len(cached)-1].value.Pod == nil {
			delete(versions.byPod, uid)
		}
	}
	versions.removed = versions.removed[old:]
}
