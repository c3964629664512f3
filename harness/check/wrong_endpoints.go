package check

import (
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// WrongEndpoints measures for how long the Endpoints of some Service were not what
// endpoints-exact asks for once faults are healed: from the truth alone, at any time
// of a run, whoever is to blame. A Service without Endpoints counts; Endpoints
// without a Service do not.
type WrongEndpoints struct {
	decoder   *decoder
	committed *objectSet
	namespace string
	wrong     map[objectName]bool // the Services whose Endpoints are wrong now
	at        time.Duration       // of the record before
	total     time.Duration
	ended     bool
}

// NewWrongEndpoints returns a WrongEndpoints that has seen nothing.
func NewWrongEndpoints() *WrongEndpoints {
	return &WrongEndpoints{decoder: newDecoder(), committed: newObjectSet(), wrong: map[objectName]bool{}}
}

// Observe takes in the next record. An error means that the history holds something
// that no cluster says.
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

// checkChangedServices sees to the Services that the last version concerns.
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

// Total is the time up to the end of observation, or to the last record, during which
// at least one Service had Endpoints that were wrong.
func (e *WrongEndpoints) Total() time.Duration { return e.total }
