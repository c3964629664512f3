package replicaset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
)

// Burst is the largest number of pods that one sync creates or deletes for an owner.
const Burst = 500

// step is the number of pods that one sync creates or deletes. At most one of the two
// is positive.
type step struct {
	creates int
	deletes int
}

// plan returns how many pods to create or delete, at most burst.
func plan(wanted, active, burst int) step {
	if missing := wanted - active; missing > 0 {
		return step{creates: min(missing, burst)}
	}
	return step{deletes: min(active-wanted, burst)}
}

// nextAvailable returns the time until the next ready pod becomes available. ok is
// false if no pod is waiting to become available.
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
