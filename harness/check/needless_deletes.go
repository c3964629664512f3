package check

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// needlessDeletes is the part of the check needless-writes that concerns deletes. It ignores pods,
// because a second delete of a pod can shorten the grace period.
type needlessDeletes struct {
	// terminating contains the last committed version of each object that has a deletionTimestamp.
	terminating map[objectName]history.Ref
	// received contains the UIDs of the objects that each process has received with a
	// deletionTimestamp.
	received map[processObject]types.UID
	// unanswered contains the deletes of terminating objects that have no response yet, by request
	// ID.
	unanswered map[uint64]*terminatingDelete
	// answered contains the successful deletes of terminating objects. Each slice has the
	// sequence numbers of the requests.
	answered map[processObject][]int64
}

// processObject names an object from the view of one process.
type processObject struct {
	process string
	name    objectName
}

// terminatingDelete is a delete of an object that the process has received with a
// deletionTimestamp.
type terminatingDelete struct {
	processObject
	target history.Ref // the committed version of the object when the process sent the delete
	seq    int64       // the sequence number of the request
}

func newNeedlessDeletes() needlessDeletes {
	return needlessDeletes{
		terminating: map[objectName]history.Ref{}, received: map[processObject]types.UID{},
		unanswered: map[uint64]*terminatingDelete{}, answered: map[processObject][]int64{},
	}
}

// observeDelete reads the next record of the history, and reports a delete that exceeds
// needlessMax.
func (checker *needlessWritesChecker) observeDelete(m *Model, r *history.Record) {
	d := &checker.deletes
	switch {
	case r.Commit != nil:
		d.commit(r.Commit)
	case r.Delivery != nil && r.Delivery.Type.HasObject():
		d.receive(r.Delivery.Subject, &r.Delivery.Object)
	case r.List != nil:
		for i := range r.List.Items {
			d.receive(r.List.Subject, &r.List.Items[i])
		}
	case r.Request != nil:
		d.send(r.Seq, r.Request)
	case r.Response != nil:
		sent := d.unanswered[r.Response.ID]
		delete(d.unanswered, r.Response.ID)
		if o := r.Response.Object; o != nil && m.answered != nil {
			d.receive(m.answered.process.name, o)
		}
		if sent != nil {
			checker.answeredDelete(m, sent, r.Response)
		}
	case processStarts(r):
		maps.DeleteFunc(d.unanswered, func(_ uint64, sent *terminatingDelete) bool { return sent.process == r.Process.Name })
		maps.DeleteFunc(d.received, func(of processObject, _ types.UID) bool { return of.process == r.Process.Name })
		maps.DeleteFunc(d.answered, func(of processObject, _ []int64) bool { return of.process == r.Process.Name })
	}
}

// commit stores the committed version of an object with a deletionTimestamp, and forgets the
// object when it is gone.
func (d *needlessDeletes) commit(c *history.Commit) {
	name := nameOf(c.Object.Ref)
	switch {
	case c.Type != history.Deleted && c.Object.Terminating() && name.resource != objects.PodResource:
		d.terminating[name] = c.Object.Ref
	case d.terminating[name].UID != "":
		delete(d.terminating, name)
		forget := func(of processObject) bool { return of.name == name }
		maps.DeleteFunc(d.received, func(of processObject, _ types.UID) bool { return forget(of) })
		maps.DeleteFunc(d.answered, func(of processObject, _ []int64) bool { return forget(of) })
	}
}

// receive notes that a process received a version of an object, if this version has a
// deletionTimestamp.
func (d *needlessDeletes) receive(process string, o *history.Object) {
	if name := nameOf(o.Ref); o.Terminating() && d.terminating[name].UID == o.UID {
		d.received[processObject{process, name}] = o.UID
	}
}

// send notes a delete of an object that the process has received with a deletionTimestamp.
func (d *needlessDeletes) send(seq int64, r *history.Request) {
	if r.Verb != "delete" || r.Subresource != "" || r.IsDryRun() {
		return
	}
	name := objectName{resource: r.Resource, namespace: r.Namespace, name: r.Name}
	target, of := d.terminating[name], processObject{r.Subject, name}
	if target.UID == "" || d.received[of] != target.UID {
		return
	}
	d.unanswered[r.ID] = &terminatingDelete{processObject: of, target: target, seq: seq}
}

// answeredDelete counts a successful delete that left the object unchanged. It reports the delete
// if the process has sent too many of them.
func (checker *needlessWritesChecker) answeredDelete(m *Model, sent *terminatingDelete, response *history.Response) {
	checker.exercised++
	d, o := &checker.deletes, response.Object
	if !response.OK() || d.terminating[sent.name] != sent.target || o != nil && o.UID == sent.target.UID && o.Version != sent.target.Version {
		return
	}
	counted := d.answered[sent.processObject]
	if len(counted) > needlessMax {
		return // one violation for each object and process
	}
	counted = append(counted, sent.seq)
	d.answered[sent.processObject] = counted
	if len(counted) <= needlessMax {
		return
	}
	checker.addViolation(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s sent %d deletes of %s after it had received its deletionTimestamp", sent.process, len(counted), sent.target),
			Expected: fmt.Sprintf("at most %d such deletes", needlessMax),
			Object:   &sent.target,
			At:       m.now,
			Records:  append([]int64{}, counted[len(counted)-needlessMax:]...),
		}
	})
}
