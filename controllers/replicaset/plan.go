package replicaset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
)

// Burst is the most pods that one sync creates or deletes for an owner.
const Burst = 500

// step is what one sync does about the number of pods: it creates some, or
// deletes some, or neither.
type step struct {
	creates int
	deletes int
}

// plan compares the number of pods wanted with the number there, and says what
// to do about the difference, at most burst at a time.
func plan(wanted, active, burst int) step {
	if missing := wanted - active; missing > 0 {
		return step{creates: min(missing, burst)}
	}
	return step{deletes: min(active-wanted, burst)}
}

// nextAvailable returns how long after now the first of the ready pods that are
// not available yet becomes so; ok is false when there is none.
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
