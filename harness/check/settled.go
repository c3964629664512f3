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
	mu    sync.Mutex
	facts *decoder
	truth *world
	start history.Start
	at    time.Duration
	err   error
	// served is the Services in order, as of when they were last looked at.
	served map[types.UID]bool
}

// NewSettled returns a Settled that has seen nothing.
func NewSettled() *Settled {
	return &Settled{facts: newDecoder(), truth: newWorld(), served: map[types.UID]bool{}}
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
		if err := setTruth(s.truth, s.facts, r.Commit); err != nil && s.err == nil {
			s.err = fmt.Errorf("record %d: %w", r.Seq, err)
		}
		for name := range s.truth.published {
			delete(s.served, s.truth.names[name])
		}
		s.truth.settle()
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

// pending is something about an object that is not as it is to become.
type pending struct {
	text string
	// awaited: it is not the subject's turn; the pods' nodes have to act first.
	awaited bool
}

// pendings collects what is pending about one object.
type pendings struct {
	subject string
	all     []pending
}

// expect notes what is the subject's to do, if it is not so.
func (l *pendings) expect(ok bool, format string, args ...any) { l.add(ok, false, format, args...) }

func (l *pendings) add(ok, awaited bool, format string, args ...any) {
	if !ok {
		l.all = append(l.all, pending{text: l.subject + ": " + fmt.Sprintf(format, args...), awaited: awaited})
	}
}

// allPending says what is not yet as it is to become in a namespace. Services are
// looked at only when their pods have come to rest, and once for each change:
// they are the costly ones, and the run asks after every record.
func (s *Settled) allPending(namespace string, now time.Time) (all []pending) {
	w := s.truth
	for _, uid := range inOrder(w.owners, namespace) {
		all = append(all, w.pending(w.owners[uid], now)...)
	}
	for _, uid := range inOrder(w.deployments, namespace) {
		all = append(all, w.pendingDeployment(w.deployments[uid], now)...)
	}
	if len(all) > 0 {
		return all
	}
	for _, uid := range inOrder(w.services, namespace) {
		if s.served[uid] {
			continue
		}
		wrong := w.pendingService(w.services[uid])
		s.served[uid] = len(wrong) == 0
		all = append(all, wrong...)
	}
	for _, uid := range inOrder(w.endpoints, namespace) {
		all = append(all, w.pendingOrphan(w.endpoints[uid])...)
	}
	return all
}

// pending says what is not yet as it is to become with an owner. An owner that
// is being deleted is nobody's any more.
func (w *world) pending(o *owner, now time.Time) []pending {
	if o.terminating {
		return nil
	}
	t := w.tally(o.UID)
	available, soon := w.available(o, now)
	list := pendings{subject: o.String()}
	list.expect(t.controlled == o.replicas, "%d of %d pods active%s", t.controlled, o.replicas, w.ended(o))
	list.expect(t.replicas == t.controlled, "%d of its pods to be released", t.controlled-t.replicas)
	list.expect(t.orphans == 0, "%d matching pods to be adopted", t.orphans)
	s := o.status
	list.expect(s.ObservedGeneration == o.generation, "status.observedGeneration is %d at generation %d", s.ObservedGeneration, o.generation)
	for _, field := range []struct {
		name       string
		said, true int
	}{
		{"replicas", s.Replicas, t.replicas},
		{"fullyLabeledReplicas", s.FullyLabeledReplicas, t.labeled},
		{"readyReplicas", s.ReadyReplicas, t.ready},
		{"availableReplicas", s.AvailableReplicas, available},
	} {
		list.expect(field.said == field.true, "status.%s is %d, in truth %d", field.name, field.said, field.true)
	}
	list.expect(!o.failing, "the condition ReplicaFailure is still there")
	list.add(t.ready >= t.replicas, true, "%d of %d pods ready", t.ready, t.replicas)
	list.add(soon == 0, true, "%d ready pods not yet available", soon)
	list.add(t.dying == 0, true, "%d pods being deleted", t.dying)
	return list.all
}

// ended says how many pods of an owner have failed or succeeded, as far as they
// are still there: who counts them as active replaces none of them.
func (w *world) ended(o *owner) string {
	n := 0
	for _, p := range w.controlled[o.UID] {
		if !p.active && !p.terminating {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d failed or succeeded", n)
}

// available counts the ready pods of an owner that have been so for long
// enough, and those that have not.
func (w *world) available(o *owner, now time.Time) (available, soon int) {
	if o.minReady == 0 {
		return w.tally(o.UID).ready, 0
	}
	for _, p := range w.controlled[o.UID] {
		switch {
		case !p.active || !p.ready || !o.selector.Matches(p.labels):
		case p.readySince.Add(o.minReady).After(now):
			soon++
		default:
			available++
		}
	}
	return available, soon
}
