package check

import (
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// WrongEndpoints measures how long at least one Service had wrong Endpoints. It applies the
// rules of the check endpoints-exact to each committed state of the run, and ignores why
// the Endpoints are wrong. A Service that must have Endpoints but has none counts.
// Endpoints without a Service do not count.
type WrongEndpoints struct {
	decoder   *objects.Decoder
	committed *objectSet
	namespace string
	wrong     map[objectName]bool // the Services whose Endpoints are wrong now
	at        time.Duration       // time of the previous record
	total     time.Duration
	ended     bool
}

// NewWrongEndpoints returns a WrongEndpoints without any objects.
func NewWrongEndpoints() *WrongEndpoints {
	return &WrongEndpoints{decoder: objects.NewDecoder(), committed: newObjectSet(), wrong: map[objectName]bool{}}
}

// Observe processes the next record. It returns an error if the record contains an object
// that no API server would return.
func (e *WrongEndpoints) Observe(r *history.Record) error {
	if e.ended {
		return nil
	}
	if len(e.wrong) > 0 {
		e.total += r.At - e.at
	}
	e.at = r.At
	switch {
	case r.Start != nil:
		e.namespace = r.Start.Namespace
	case r.Phase != nil:
		e.ended = r.Phase.Name == history.PhaseEnd
	case r.Commit != nil:
		if err := applyCommit(e.committed, e.decoder, r.Commit); err != nil {
			return fmt.Errorf("record %d: %w", r.Seq, err)
		}
		e.checkChangedServices()
	}
	return nil
}

// checkChangedServices compares the Services that the last commit changed.
func (e *WrongEndpoints) checkChangedServices() {
	for name := range e.committed.changedServices {
		delete(e.wrong, name)
		s := e.committed.serviceNamed(name)
		if s != nil && s.Namespace == e.namespace && len(e.committed.pendingService(s)) > 0 {
			e.wrong[name] = true
		}
	}
	e.committed.clearChanges()
}

// Total returns how long at least one Service had wrong Endpoints. It counts until the
// phase end begins, or until the last record if the history is truncated before that phase.
func (e *WrongEndpoints) Total() time.Duration { return e.total }
