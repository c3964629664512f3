package check

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// answeredWrite is a successful create or delete of a pod. The field at is the time of its response
// on the clock of the process.
type answeredWrite struct {
	call *call
	pod  types.UID
	at   time.Duration
}

// recordSuccess stores a successful create or delete of a pod for lag (1 s). Meanwhile the
// connection may break before the process reads the response.
func (p *process) recordSuccess(c *call, pod types.UID, at time.Duration) {
	p.successes = append(slices.DeleteFunc(p.successes, func(earlier answeredWrite) bool { return earlier.at < at-lag }), answeredWrite{c, pod, at})
}

// connectionBroke records that a fault broke the connection of the process. The proxy sent the last
// responses, but the process may not have read them (allowed behavior lost-response).
//
// It returns the creates and deletes of pods that may have failed for the process. The argument at
// is the time on the clock of the process.
func (p *process) connectionBroke(at time.Duration) (lost []*call) {
	for _, success := range p.successes {
		if success.at >= at-lag {
			success.call.ownerState.recordPossiblyLost(success, at)
			lost = append(lost, success.call)
		}
	}
	p.successes = nil
	return lost
}

// recordPossiblyLost treats a successful create or delete of a pod as one without a response. A pod
// that is in the cache already stays counted.
func (state *ownerState) recordPossiblyLost(success answeredWrite, at time.Duration) {
	switch success.call.verb {
	case callCreatePod:
		if state.creates.unobserved[success.pod] != nil {
			delete(state.creates.unobserved, success.pod)
		} else { // the process may now take this pod for another that it creates
			state.extraObserved++
			state.extraObservedAt = at
		}
		state.statusBounds.createFailed = true
	case callDeletePod:
		if state.deletes.unobserved[success.pod] != nil {
			delete(state.deletes.unobserved, success.pod)
			delete(state.process.deleting, success.pod)
		}
		state.statusBounds.deleteFailed = true
	}
	state.statusBounds.failures.add(at, 1)
}
