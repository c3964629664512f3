package check

import (
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// WrongEndpoints measures for how long the Endpoints of at least one Service were wrong during
// a run.
//
// It compares each committed state of the run with what the check endpoints-exact expects, and
// ignores why the Endpoints are wrong. Missing Endpoints are wrong. Endpoints without a Service
// are not measured.
type WrongEndpoints struct {
	decoder   *objects.Decoder
	committed *objectSet
	namespace string
	wrong     map[objectName]bool // the names of the Services whose Endpoints are wrong now
	at        time.Duration       // the time of the last record
	total     time.Duration       // the result until then
	ended     bool                // true after the phase end has begun
}

// NewWrongEndpoints returns a WrongEndpoints that has observed no record.
func NewWrongEndpoints() *WrongEndpoints {
	return &WrongEndpoints{decoder: objects.NewDecoder(), committed: newObjectSet(), wrong: map[objectName]bool{}}
}

// Observe reads the next record of the history. It returns an error if the record contains an
// object that cannot be decoded.
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

// checkChangedServices compares the Endpoints with the expected ones, for each Service that
// the last commit record affects.
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

// Total returns for how long the Endpoints of at least one Service were wrong. It measures
// until the phase end begins or, if the history ends before that, until the last record.
func (e *WrongEndpoints) Total() time.Duration { return e.total }
