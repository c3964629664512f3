package check

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// integrity finds impossible records in a history. Conclusions from an impossible record, or from
// records after it, would be wrong.
//
// A record is impossible if it is:
//
//   - a response, list, watch event or end of a watch whose request is not in the history
//   - a second request or response with the same ID
//   - a second beginning of the phase chaos, or another phase before it
//   - a step that begins before the previous one has ended, or that ends without having begun
//   - a fault that fires or is healed before it is injected
//   - a process that starts twice, or that is stopped or paused before it starts
//   - a record with an earlier time than the previous record
//   - a committed version that contradicts the previous one, such as a pod that goes from Failed to
//     Running
type integrity struct {
	seq      int64                       // the sequence number of the latest record
	at       time.Duration               // the time of the latest record
	answered map[uint64]bool             // by request ID: true if the request has its response, false if it has not
	latest   map[types.UID]latestVersion // the latest committed version of each existing object, by UID
	chaos    bool                        // whether the phase chaos has begun
	step     int                         // the index of the step that has begun and not ended; -1 if there is none
	injected map[int]bool                // by index: the faults that have been injected
	running  map[string]bool             // by name: true for a running process, false for one that has ended
	uids     map[objectName]types.UID    // the UID of each object in latest, by resource, namespace and name
}

// latestVersion contains the fields of an object's latest committed version that restrict what
// the next version may contain.
type latestVersion struct {
	seq        int64 // the sequence number of the record that contains the version
	version    history.Version
	generation int64
	deleting   time.Time // the deletionTimestamp; zero if the object is not being deleted
	phase      string    // the phase of a pod; empty for other objects
}

func newIntegrity() *integrity {
	return &integrity{
		answered: map[uint64]bool{}, latest: map[types.UID]latestVersion{}, uids: map[objectName]types.UID{},
		step: -1, injected: map[int]bool{}, running: map[string]bool{},
	}
}

// observe reads the next record of the history. It returns a text that says why the record is
// impossible, or "" if the record is possible.
func (i *integrity) observe(r *history.Record) string {
	previous, at := i.seq, i.at
	i.seq, i.at = r.Seq, r.At
	if r.At < at {
		return fmt.Sprintf("record %d has the time %v, but the previous record %d has the later time %v", r.Seq, r.At, previous, at)
	}
	switch {
	case r.Phase != nil:
		return i.phase(r.Seq, r.Phase.Name)
	case r.Step != nil:
		return i.workload(r.Seq, r.Step)
	case r.Fault != nil:
		return i.fault(r.Seq, r.Fault)
	case r.Process != nil:
		return i.process(r.Seq, r.Process)
	case r.Request != nil:
		if _, exists := i.answered[r.Request.ID]; exists {
			return fmt.Sprintf("record %d is a second request with the ID %d", r.Seq, r.Request.ID)
		}
		i.answered[r.Request.ID] = false
	case r.Response != nil:
		if i.answered[r.Response.ID] {
			return fmt.Sprintf("record %d is a second response to request %d", r.Seq, r.Response.ID)
		}
		defer func() { i.answered[r.Response.ID] = true }()
		return i.withoutRequest(r.Seq, "a response", r.Response.ID)
	case r.List != nil:
		return i.withoutRequest(r.Seq, "a list", r.List.ID)
	case r.Delivery != nil:
		return i.withoutRequest(r.Seq, "a watch event", r.Delivery.ID)
	case r.WatchClosed != nil:
		return i.withoutRequest(r.Seq, "the end of a watch", r.WatchClosed.ID)
	case r.Commit != nil:
		return i.commit(r.Seq, r.Commit)
	}
	return ""
}

// phase returns an error text if a phase cannot begin now. The phase chaos is the first one, and only the
// other phases may begin again.
func (i *integrity) phase(seq int64, name history.PhaseName) string {
	chaos := name == history.PhaseChaos
	switch {
	case chaos && i.chaos:
		return fmt.Sprintf("record %d is a second beginning of the phase %s", seq, name)
	case !chaos && !i.chaos:
		return fmt.Sprintf("record %d is the beginning of the phase %s, but the phase %s has not begun", seq, name, history.PhaseChaos)
	}
	i.chaos = true
	return ""
}

// workload returns an error text if a step begins before the previous one has ended, or ends without
// having begun.
func (i *integrity) workload(seq int64, s *history.Step) string {
	switch {
	case s.Event == history.StepBegun && i.step >= 0:
		return fmt.Sprintf("record %d is the beginning of step %d, but step %d has not ended", seq, s.Index, i.step)
	case s.Event == history.StepBegun:
		i.step = s.Index
	case s.Index != i.step:
		return fmt.Sprintf("record %d is the event %s of step %d (%s), which has not begun", seq, s.Event, s.Index, s.Detail)
	case s.Event != history.StepLate:
		i.step = -1
	}
	return ""
}

// fault returns an error text if a fault fires or is healed before it is injected. A fault may fail
// before.
func (i *integrity) fault(seq int64, f *history.Fault) string {
	switch {
	case f.Event == history.FaultInjected:
		i.injected[f.Index] = true
	case f.Event != history.FaultFailed && !i.injected[f.Index]:
		return fmt.Sprintf("record %d is the event %s of fault %d (%s), which was not injected before", seq, f.Event, f.Index, f.Name)
	}
	return ""
}

// process returns an error text if a process starts twice, or is stopped or paused before it starts. A
// history may contain the death of a process whose start it does not contain, such as kwok.
func (i *integrity) process(seq int64, p *history.Process) string {
	running, started := i.running[p.Name]
	switch {
	case p.Event == history.ProcessStarted && running:
		return fmt.Sprintf("record %d is the event %s of process %s, which was running", seq, p.Event, p.Name)
	case p.Event != history.ProcessStarted && p.Event != history.ProcessDied && !started:
		return fmt.Sprintf("record %d is the event %s of process %s, which never started", seq, p.Event, p.Name)
	}
	switch p.Event { // the records of a pause and of the end may come in either order
	case history.ProcessStarted:
		i.running[p.Name] = true
	case history.ProcessStopped, history.ProcessDied:
		i.running[p.Name] = false
	}
	return ""
}

// withoutRequest returns an error text if the history contains no request with the given ID, and
// otherwise "". The parameter content describes the record for this text, such as "a response".
func (i *integrity) withoutRequest(seq int64, content string, id uint64) string {
	if _, exists := i.answered[id]; exists {
		return ""
	}
	return fmt.Sprintf("record %d is %s of request %d, which the history does not contain", seq, content, id)
}

// commit compares a committed version with the previous version of the object. It returns a text
// that describes a contradiction, or "" if there is none.
//
// A version contradicts the previous one in five cases:
//
//   - Its resourceVersion is not higher.
//   - Its name belonged to an object with another UID, which was not deleted.
//   - A pod left the phase Failed or Succeeded.
//   - The generation decreased.
//   - The deletionTimestamp was removed. A changed deletionTimestamp is no contradiction, because a
//     second delete of a pod sets it again.
func (i *integrity) commit(seq int64, c *history.Commit) string {
	o, name := &c.Object, nameOf(c.Object.Ref)
	before, exists := i.latest[o.UID]
	former, named := i.uids[name]
	if c.Type == history.Deleted {
		delete(i.latest, o.UID)
		delete(i.uids, name)
		return ""
	}
	now := latestVersion{seq: seq, version: o.Version, generation: o.Generation, deleting: o.Deleting, phase: phaseOf(o)}
	i.latest[o.UID], i.uids[name] = now, o.UID
	ref := o.Ref.String()
	if o.Resource == objects.PodResource {
		ref = "pod " + o.Namespace + "/" + o.Name
	}
	evidence := fmt.Sprintf("(records %d and %d), which never happens in Kubernetes", before.seq, seq)
	switch {
	case named && former != o.UID:
		return fmt.Sprintf("%s changed its UID from %s to %s without a deletion (records %d and %d), which never happens in Kubernetes", ref, former, o.UID, i.latest[former].seq, seq)
	case !exists:
		return ""
	case now.version <= before.version:
		return fmt.Sprintf("%s changed its resourceVersion from %d to %d %s", ref, before.version, now.version, evidence)
	case isTerminalPhase(before.phase) && now.phase != before.phase:
		return fmt.Sprintf("%s changed its phase from %s to %s %s", ref, before.phase, now.phase, evidence)
	case now.generation < before.generation:
		return fmt.Sprintf("%s changed its generation from %d to the lower %d %s", ref, before.generation, now.generation, evidence)
	case !before.deleting.IsZero() && now.deleting.IsZero():
		return fmt.Sprintf("%s lost its deletionTimestamp %s", ref, evidence)
	}
	return ""
}

// phaseOf returns a pod's status.phase, such as Running. It returns "" for objects of other
// kinds, and for a pod that cannot be decoded.
func phaseOf(o *history.Object) string {
	if o.Resource != objects.PodResource || len(o.Body) == 0 {
		return ""
	}
	var pod struct{ Status struct{ Phase string } }
	if objects.Unmarshal(o.Body, &pod) != nil {
		return ""
	}
	return pod.Status.Phase
}

// isTerminalPhase reports whether a pod can never leave this phase. The terminal phases are Failed
// and Succeeded.
func isTerminalPhase(phase string) bool {
	return phase == objects.PodFailed || phase == objects.PodSucceeded
}
