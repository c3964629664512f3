package check

import (
	"fmt"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// WrongEndpoints measures for how long the Endpoints of at least one Service were wrong during a
// run.
//
// It applies the criteria of the check endpoints-exact to every version in etcd, whatever the
// reason for the wrong Endpoints. Missing Endpoints are wrong. Endpoints without a Service are
// ignored.
type WrongEndpoints struct {
	decoder   *objects.Decoder
	committed *objectSet
	namespace string
	wrong     map[objectName]bool // true for each Service whose Endpoints are wrong now
	at        time.Duration       // the time of the last record
	total     time.Duration       // for how long Endpoints were wrong until the last record
	ended     bool                // true after the last phase (PhaseEnd) has begun; later records are ignored
}

// NewWrongEndpoints returns a WrongEndpoints that has read no record.
func NewWrongEndpoints() *WrongEndpoints {
	return &WrongEndpoints{decoder: objects.NewDecoder(), committed: newObjectSet(), wrong: map[objectName]bool{}}
}

// Observe reads the next record of the history. It adds the time since the previous record to the
// total, if some Endpoints were wrong in that time. It returns an error if an object in the record
// cannot be decoded.
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
			return fmt.Errorf("line %d: %w", r.Seq, err)
		}
		e.checkChangedServices()
	}
	return nil
}

// checkChangedServices compares the Endpoints with the expected Endpoints, for each Service that
// the current commit record may affect.
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

// Total returns for how long the Endpoints of at least one Service were wrong. It measures until
// the last phase (end) begins. If the history ends before that phase, it measures until the last
// record.
func (e *WrongEndpoints) Total() time.Duration { return e.total }
