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
	facts     *decoder
	truth     *world
	namespace string
	wrong     map[objectName]bool // the Services whose Endpoints are wrong now
	at        time.Duration       // of the record before
	total     time.Duration
	ended     bool
}

// NewWrongEndpoints returns a WrongEndpoints that has seen nothing.
func NewWrongEndpoints() *WrongEndpoints {
	return &WrongEndpoints{facts: newDecoder(), truth: newWorld(), wrong: map[objectName]bool{}}
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
		if err := setTruth(e.truth, e.facts, r.Commit); err != nil {
			return fmt.Errorf("record %d: %w", r.Seq, err)
		}
		e.look()
	}
	return nil
}

// look sees to the Services that the last version concerns.
func (e *WrongEndpoints) look() {
	for name := range e.truth.published {
		delete(e.wrong, name)
		s := e.truth.serviceNamed(name)
		if s != nil && s.Namespace == e.namespace && len(e.truth.pendingService(s)) > 0 {
			e.wrong[name] = true
		}
	}
	e.truth.settle()
}

// Total is the time up to the end of observation, or to the last record, during which
// at least one Service had Endpoints that were wrong.
func (e *WrongEndpoints) Total() time.Duration { return e.total }
