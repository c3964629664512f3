package replicaset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
)

// Burst is the maximum number of pods that one sync creates or deletes for an owner.
const Burst = 500

// step contains the numbers of pods that one sync creates and deletes. At least one of the two
// is 0.
type step struct {
	creates int
	deletes int
}

// plan returns how many pods a sync must create or delete. The argument wanted is the desired
// number of active pods, and the argument active is their current number. The argument burst is
// the maximum number of pods that one sync creates or deletes.
func plan(wanted, active, burst int) step {
	if missing := wanted - active; missing > 0 {
		return step{creates: min(missing, burst)}
	}
	return step{deletes: min(active-wanted, burst)}
}

// nextAvailable returns the time until the next pod becomes available. No event occurs at that
// time, so the controller then syncs the owner again. The result ok is false if no ready pod is
// waiting to become available.
func nextAvailable(pods []*corev1.Pod, minReady time.Duration, now time.Time) (wait time.Duration, ok bool) {
	for _, pod := range pods {
		at, known := podutil.AvailableAt(pod, minReady)
		if !known || !at.After(now) {
			continue
		}
		if until := at.Sub(now); !ok || until < wait {
			wait, ok = until, true
		}
	}
	return wait, ok
}
