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

// Settled decides whether the objects in etcd have converged: whether the controllers have
// nothing left to do for them. A running scenario uses it to find the end of its settle phase.
// Observe and Pending are safe for concurrent use.
type Settled struct {
	mu        sync.Mutex // guards all other fields
	decoder   *objects.Decoder
	committed *objectSet // the latest version of each object in etcd
	start     history.Start
	at        time.Duration // time of the last record
	err       error         // the first error from decoding an object; nil if there was none
	// convergedServices contains the UID of each Service whose Endpoints were correct at the last
	// comparison. A Service is removed when the Service, its pods or its Endpoints change.
	convergedServices map[types.UID]bool
}

// NewSettled returns a Settled that has read no record. The parameter controllers lists the
// controllers under test. An empty list means those that controllers/CONTRACT.md describes.
func NewSettled(controllers ...kube.Controller) *Settled {
	decoder, committed := objects.NewDecoder(), newObjectSet()
	committed.metadata = newMetadataSet(newTestedControllers(controllers))
	if committed.metadata != nil {
		committed.metadata.decoder = decoder
	}
	return &Settled{decoder: decoder, committed: committed, convergedServices: map[types.UID]bool{}}
}

// Observe reads the next record of the history. Observe does not modify the record, but stores
// objects of it. The caller must not change these objects afterwards.
func (s *Settled) Observe(r *history.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = r.At
	switch {
	case r.Start != nil:
		s.start = *r.Start
	case r.Commit != nil:
		if err := applyCommit(s.committed, s.decoder, r.Commit); err != nil && s.err == nil {
			s.err = fmt.Errorf("line %d: %w", r.Seq, err)
		}
		for name := range s.committed.changedServices {
			delete(s.convergedServices, s.committed.uidByName[name])
		}
		s.committed.clearChanges()
	}
}

// Pending returns one line for each way in which an object differs from its converged state. It
// returns no lines if all objects have converged. The lines are grouped by kind and sorted by
// object name. If an object could not be decoded, the first line is the error.
//
// A controller cannot resolve some differences itself, such as a pod that is not ready. Pending
// returns these differences too, because the controller has to write the owner's status when the
// pod becomes ready.
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

// allPending returns how all objects in a namespace differ from their converged state. The
// parameter now is the wall-clock time of the last record.
//
// A run calls Pending often, and comparing the Endpoints of a Service is slow. allPending
// therefore compares Services only after all other objects have converged. It compares a Service
// again only after a change.
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
