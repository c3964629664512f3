package check

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Settled tells from the truth, as it is recorded, whether a run has converged.
// Its Observe may follow a recorder while Pending is called from elsewhere.
type Settled struct {
	mu        sync.Mutex
	decoder   *decoder
	committed *objectSet
	start     history.Start
	at        time.Duration
	err       error
	// convergedServices is the Services in order, as of when they were last looked at.
	convergedServices map[types.UID]bool
}

// NewSettled returns a Settled that has seen nothing.
func NewSettled() *Settled {
	return &Settled{decoder: newDecoder(), committed: newObjectSet(), convergedServices: map[types.UID]bool{}}
}

// Observe takes in the next record. It keeps nothing of it
// but bodies of pods and Endpoints, which never change.
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

// Pending says what has not converged, a line each, in order of names; nothing
// when all has. It includes what the subject can only wait for, such as pods
// that are not ready, so that a run does not begin to ask for quiet too early.
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

// allPending says what is not yet as it is to become in a namespace. Services are
// looked at only when their pods have come to rest, and once for each change:
// they are the costly ones, and the run asks after every record.
func (s *Settled) allPending(namespace string, now time.Time) (all []pending) {
	objects := s.committed
	for _, uid := range sortedByName(objects.owners, namespace) {
		all = append(all, objects.pendingOwner(objects.owners[uid], now)...)
	}
	for _, uid := range sortedByName(objects.deployments, namespace) {
		all = append(all, objects.pendingDeployment(objects.deployments[uid], now)...)
	}
	if len(all) > 0 {
		return all
	}
	for _, uid := range sortedByName(objects.services, namespace) {
		if s.convergedServices[uid] {
			continue
		}
		wrong := objects.pendingService(objects.services[uid])
		s.convergedServices[uid] = len(wrong) == 0
		all = append(all, wrong...)
	}
	for _, uid := range sortedByName(objects.endpoints, namespace) {
		all = append(all, objects.pendingOrphan(objects.endpoints[uid])...)
	}
	return all
}
