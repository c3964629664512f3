package check

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// Settled determines from the committed state whether a run has converged. Observe and
// Pending are safe for concurrent use.
type Settled struct {
	mu        sync.Mutex
	decoder   *objects.Decoder
	committed *objectSet
	start     history.Start
	at        time.Duration
	err       error
	// convergedServices contains the Services that need no new comparison. They had no
	// differences at the last comparison, and have not changed since then.
	convergedServices map[types.UID]bool
}

// NewSettled returns a Settled without any objects. Its parameters are the controllers under
// test. The default is kube.ControllersNamed().
func NewSettled(controllers ...kube.Controller) *Settled {
	committed := newObjectSet()
	committed.metadata = newMetadataSet(newTestedControllers(controllers))
	if committed.metadata != nil {
		committed.metadata.withBodies = true
	}
	return &Settled{decoder: objects.NewDecoder(), committed: committed, convergedServices: map[types.UID]bool{}}
}

// Observe processes the next record. It retains no part of the record except its
// owner references and bodies, which are immutable.
func (s *Settled) Observe(r *history.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = r.At
	switch {
	case r.Start != nil:
		s.start = *r.Start
	case r.Commit != nil:
		if err := applyCommit(s.committed, s.decoder, r.Commit); err != nil && s.err == nil {
			s.err = fmt.Errorf("record %d: %w", r.Seq, err)
		}
		for name := range s.committed.changedServices {
			delete(s.convergedServices, s.committed.uidByName[name])
		}
		s.committed.clearChanges()
	}
}

// Pending returns one line for each difference from the converged state, sorted by name.
// The result includes differences that the subject cannot resolve itself, such as pods that
// are not ready. When such a pod becomes ready, the subject has to write again, so the run
// has not converged before.
func (s *Settled) Pending() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	if s.err != nil {
		lines = append(lines, s.err.Error())
	}
	for _, p := range s.allPending(s.start.Namespace, s.start.Time.Add(s.at)) {
		lines = append(lines, p.text)
	}
	return lines
}

// allPending returns the differences of all objects in a namespace. It compares Services
// only after all pods have converged, and only once after each change, because a run calls
// Pending often and these comparisons are expensive.
func (s *Settled) allPending(namespace string, now time.Time) (all []pending) {
	state := s.committed
	for _, uid := range sortedByName(state.owners, namespace) {
		all = append(all, state.pendingOwner(state.owners[uid], now)...)
	}
	for _, uid := range sortedByName(state.deployments, namespace) {
		all = append(all, state.pendingDeployment(state.deployments[uid], now)...)
	}
	all = append(all, state.metadata.pendingGeneric(namespace)...)
	if len(all) > 0 {
		return all
	}
	for _, uid := range sortedByName(state.services, namespace) {
		if s.convergedServices[uid] {
			continue
		}
		wrong := state.pendingService(state.services[uid])
		s.convergedServices[uid] = len(wrong) == 0
		all = append(all, wrong...)
	}
	for _, uid := range sortedByName(state.endpoints, namespace) {
		all = append(all, state.pendingOrphan(state.endpoints[uid])...)
	}
	return all
}
