package check

import (
	"bytes"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// podVersions contains the versions of each pod in the recent window, the latest last. A
// version without a pod means that the cache did not contain the pod at that time.
type podVersions struct {
	byPod   map[types.UID][]cachedVersion[podVersion]
	removed []cachedVersion[types.UID] // pods that were removed from the cache, oldest first
}

// podVersion is one version of a pod, with its addresses. It has only the fields that the
// Endpoints controller reads.
type podVersion struct {
	*objects.Pod
	*objects.PodAddress
}

func newPodVersions() podVersions {
	return podVersions{byPod: map[types.UID][]cachedVersion[podVersion]{}}
}

// add records a version of a pod that was put into the cache.
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

// sameAs reports whether the two versions are equal in all fields that the Endpoints
// controller reads.
func (version podVersion) sameAs(p *objects.Pod, body []byte) bool {
	return version.Pod != nil && version.Ready == p.Ready && version.Terminating == p.Terminating && maps.Equal(version.Labels, p.Labels) && bytes.Equal(version.Body, body)
}

// remove records that a pod was removed from the cache. It also deletes the entries of pods
// that were removed before the recent window.
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
