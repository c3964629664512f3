package check

import (
	"bytes"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// podVersions contains the versions of each pod in the recent window, with the fields that
// Endpoints depend on. The latest version is last.
//
// An entry without a pod says that the pod was not in the cache from that time on.
type podVersions struct {
	byPod   map[types.UID][]cachedVersion[podVersion]
	removed []cachedVersion[types.UID] // the pods that were removed from the cache, the earliest removal first
}

// podVersion is one version of a pod, with its addresses. Checks read from it only fields
// that the Endpoints controller reads.
type podVersion struct {
	*objects.Pod
	*objects.PodAddress
}

// newPodVersions returns podVersions without pods.
func newPodVersions() podVersions {
	return podVersions{byPod: map[types.UID][]cachedVersion[podVersion]{}}
}

// add records that the cache now contains the given version of a pod. It does nothing if the
// version differs from the last one in no field that Endpoints depend on.
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

// sameAs reports whether a version of a pod equals this one in all fields that the Endpoints
// controller reads. The parameter body contains the addresses of the other version.
func (version podVersion) sameAs(p *objects.Pod, body []byte) bool {
	return version.Pod != nil && version.Ready == p.Ready && version.Terminating == p.Terminating && maps.Equal(version.Labels, p.Labels) && bytes.Equal(version.Body, body)
}

// remove records that a pod was removed from the cache. It also forgets pods that were
// removed before the recent window.
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
