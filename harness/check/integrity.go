package check

import (
	"bytes"
	"cmp"
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
//   - a response, list, watch event, end of a watch or fault whose request is not in the history
//   - a list, watch event or end of a watch whose request has another verb, resource or process
//   - a watch event after the end of the watch
//   - a second request or response with the same ID
//   - a second beginning of the phase chaos, or another phase before it
//   - a step that begins before the previous one has ended, or that ends without having begun
//   - a step whose object is in another namespace than the start record names
//   - a fault that fires or is healed before it is injected
//   - a process that starts twice, or that is stopped or paused before it starts
//   - a record with an earlier time than the previous record
//   - a delay or a stall that is longer than the run until then
//   - a record after the end record
//   - a committed version that contradicts the previous one, such as a pod that goes from Failed to
//     Running
type integrity struct {
	seq      int64         // the sequence number of the latest record
	at       time.Duration // the time of the latest record
	ended    bool          // whether the end record was read
	gap      bool          // whether records may be missing
	requests *requestTable
	latest   map[types.UID]latestVersion // the latest committed version of each existing object, by UID
	start    *history.Start              // the content of the start record; nil before it
	chaos    bool                        // whether the phase chaos has begun
	step     int                         // the index of the step that has begun and not ended; -1 if there is none
	injected map[int]bool                // by index: the faults that have been injected
	running  map[string]bool             // by name: true for a running process, false for one that has ended
	uids     map[objectName]types.UID    // the UID of each object in latest, by resource, namespace and name
}

// requestState is what the records that belong to a request must have, and whether they exist.
type requestState struct {
	subject, verb, resource string
	answered                bool // whether the request has its response
	closed                  bool // whether the request is a watch that has ended
}

// latestVersion contains the fields of an object's latest committed version that restrict what
// the next version may contain.
type latestVersion struct {
	seq        int64 // the sequence number of the record that contains the version
	version    history.Version
	generation int64
	deleting   time.Time // the deletionTimestamp; zero if the object is not being deleted
	finalPhase string    // the phase of a pod if it is Failed or Succeeded; otherwise empty
}

func newIntegrity() *integrity {
	return &integrity{
		requests: newRequestTable(), latest: map[types.UID]latestVersion{}, uids: map[objectName]types.UID{},
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
	if i.ended {
		return fmt.Sprintf("record %d comes after the end record", r.Seq)
	}
	switch {
	case r.Start != nil:
		i.start = r.Start
	case r.Gap != nil:
		i.gap = true
	case r.End != nil:
		i.ended = true
	case r.Stall != nil:
		return i.tooLong(r, "a stall of", r.Stall.Duration)
	case r.Phase != nil:
		return i.phase(r.Seq, r.Phase.Name)
	case r.Step != nil:
		return cmp.Or(i.workload(r.Seq, r.Step), i.namespace(r.Seq, r.Step.Object))
	case r.Fault != nil && r.Fault.Request != 0:
		return cmp.Or(i.fault(r.Seq, r.Fault), i.withoutRequest(r.Seq, "a fault", r.Fault.Request))
	case r.Fault != nil:
		return i.fault(r.Seq, r.Fault)
	case r.Process != nil:
		return i.process(r.Seq, r.Process)
	case r.Request != nil:
		return i.request(r.Seq, r.Request)
	case r.Response != nil:
		return i.response(r.Seq, r.Response)
	case r.List != nil:
		return i.belongs(r.Seq, "a list", "list", r.List.ID, r.List.Subject, r.List.Resource)
	case r.Delivery != nil:
		return cmp.Or(i.delivery(r.Seq, r.Delivery), i.tooLong(r, "a watch event that faults delayed by", r.Delivery.Held))
	case r.WatchClosed != nil:
		return i.watchClosed(r.Seq, r.WatchClosed)
	case r.Commit != nil:
		return i.commit(r.Seq, r.Commit)
	}
	return ""
}

// tooLong returns an error text if a time before a record is longer than the run until then. The
// parameter content describes the record for this text.
func (i *integrity) tooLong(r *history.Record, content string, lasted time.Duration) string {
	if lasted <= r.At {
		return ""
	}
	return fmt.Sprintf("record %d is %s %v, but the run has lasted only %v", r.Seq, content, lasted, r.At)
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

// namespace returns an error text if the start record does not name the namespace of a step's object. Checks would then ignore the objects of the workload.
func (i *integrity) namespace(seq int64, object *history.Ref) string {
	if i.start == nil || i.start.Namespace == "" || object == nil || object.Namespace == "" || object.Namespace == i.start.Namespace {
		return ""
	}
	return fmt.Sprintf("record %d is a step with the object %s, but the start record names the namespace %s", seq, object, i.start.Namespace)
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

// request returns an error text if another request has the same ID.
func (i *integrity) request(seq int64, r *history.Request) string {
	if i.requests.exists(r.ID) {
		return fmt.Sprintf("record %d is a second request with the ID %d", seq, r.ID)
	}
	i.requests.set(r.ID, requestState{subject: r.Subject, verb: r.Verb, resource: r.Resource})
	return ""
}

// response returns an error text if a response does not belong to its request. It is then the second
// response, or has an object of another resource.
func (i *integrity) response(seq int64, r *history.Response) string {
	request, exists := i.requests.state(r.ID)
	switch {
	case request.answered, !exists && i.requests.endedLongAgo(r.ID):
		return fmt.Sprintf("record %d is a second response to request %d", seq, r.ID)
	case !exists:
		return i.withoutRequest(seq, "a response", r.ID)
	case r.Object != nil && r.Object.Resource != request.resource:
		return fmt.Sprintf("record %d has an object of %s, but request %d is for %s", seq, r.Object.Resource, r.ID, request.resource)
	}
	request.answered = true
	i.requests.set(r.ID, request)
	return ""
}

// delivery returns an error text if a watch event does not belong to its request. The same holds for an
// event after the end of the watch.
func (i *integrity) delivery(seq int64, d *history.Delivery) string {
	request, _ := i.requests.state(d.ID)
	switch wrong := i.belongs(seq, "a watch event", "watch", d.ID, d.Subject, d.Resource); {
	case wrong != "":
		return wrong
	case request.closed:
		return fmt.Sprintf("record %d is a watch event of request %d, whose watch has ended", seq, d.ID)
	case d.Type.HasObject() && d.Object.Resource != d.Resource:
		return fmt.Sprintf("record %d is a watch event of %s with an object of %s", seq, d.Resource, d.Object.Resource)
	}
	return ""
}

// watchClosed returns an error text if the end of a watch does not belong to its request.
func (i *integrity) watchClosed(seq int64, c *history.WatchClosed) string {
	wrong := i.belongs(seq, "the end of a watch", "watch", c.ID, c.Subject, c.Resource)
	if request, exists := i.requests.state(c.ID); exists {
		request.closed = true
		i.requests.set(c.ID, request)
	}
	return wrong
}

// belongs returns an error text if a record and its request differ in verb, process or resource. The
// parameter content describes the record for this text, such as "a list".
func (i *integrity) belongs(seq int64, content, verb string, id uint64, subject, resource string) string {
	request, exists := i.requests.state(id)
	switch {
	case !exists && i.requests.endedLongAgo(id):
		return fmt.Sprintf("record %d is %s of request %d, which ended more than %d requests before", seq, content, id, recentRequests)
	case !exists:
		return i.withoutRequest(seq, content, id)
	case request.verb != verb || request.subject != subject || request.resource != resource:
		return fmt.Sprintf("record %d is %s of %s for process %q, but request %d is a %s of %s by process %q", seq, content, resource, subject, id, request.verb, request.resource, request.subject)
	}
	return ""
}

// withoutRequest returns an error text if the history contains no request with the given ID, and
// otherwise "". The parameter content describes the record for this text, such as "a response".
func (i *integrity) withoutRequest(seq int64, content string, id uint64) string {
	if i.requests.exists(id) {
		return ""
	}
	return fmt.Sprintf("record %d is %s of request %d, which the history does not contain", seq, content, id)
}

// commit compares a committed version with the previous version of the object. It returns a text
// that describes a contradiction, or "" if there is none.
//
// A version contradicts the previous one in six cases:
//
//   - Its resourceVersion is not higher.
//   - Its name belonged to an object with another UID, which was not deleted.
//   - An existing object is created, or an unknown one is modified or deleted. A missing part of the
//     history ([history.Gap]) explains an unknown object.
//   - A pod left the phase Failed or Succeeded.
//   - The generation decreased.
//   - The deletionTimestamp was removed. A changed deletionTimestamp is no contradiction, because a
//     second delete of a pod sets it again.
func (i *integrity) commit(seq int64, c *history.Commit) string {
	o, name := &c.Object, nameOf(c.Object.Ref)
	before, exists := i.latest[o.UID]
	former, named := i.uids[name]
	if !exists && !named && !i.gap && c.Type != history.Added {
		return fmt.Sprintf("record %d is a %s version of %s, which was not created before", seq, c.Type, refText(o))
	}
	if c.Type == history.Deleted {
		delete(i.latest, o.UID)
		delete(i.uids, name)
		return ""
	}
	now := latestVersion{seq: seq, version: o.Version, generation: o.Generation, deleting: o.Deleting, finalPhase: finalPhaseOf(o)}
	i.latest[o.UID], i.uids[name] = now, o.UID
	var wrong string // what no controller and no user can have done
	switch {
	case named && former != o.UID:
		before = i.latest[former]
		wrong = fmt.Sprintf("changed its UID from %s to %s without a deletion", former, o.UID)
	case !exists:
	case c.Type == history.Added:
		wrong = "was created twice"
	case now.version <= before.version:
		wrong = fmt.Sprintf("changed its resourceVersion from %d to %d", before.version, now.version)
	case before.finalPhase != "" && now.finalPhase != before.finalPhase:
		wrong = fmt.Sprintf("changed its phase from %s to %s", before.finalPhase, phaseOf(o))
	case now.generation < before.generation:
		wrong = fmt.Sprintf("changed its generation from %d to the lower %d", before.generation, now.generation)
	case !before.deleting.IsZero() && now.deleting.IsZero():
		wrong = "lost its deletionTimestamp"
	}
	if wrong == "" {
		return ""
	}
	return fmt.Sprintf("%s %s (records %d and %d), which never happens in Kubernetes", refText(o), wrong, before.seq, seq)
}

// refText returns the reference to an object as text, such as "pod default/web" or "services default/web".
func refText(o *history.Object) string {
	if o.Resource == objects.PodResource {
		return "pod " + o.Namespace + "/" + o.Name
	}
	return o.Ref.String()
}

// finalPhaseOf returns a pod's status.phase if the pod never leaves it, and otherwise "". It decodes only
// pods whose status may have such a phase, which are few.
func finalPhaseOf(o *history.Object) string {
	for _, phase := range []string{objects.PodFailed, objects.PodSucceeded} {
		if bytes.Contains(o.Body, []byte(phase)) && phaseOf(o) == phase {
			return phase
		}
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
