package check

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// integrity finds impossible records. Conclusions from such a record and from later ones would
// be wrong.
//
// There are three kinds of impossible records:
//
//   - a response, list, watch event or end of a watch without its request
//   - a record with an earlier time than the previous record
//   - a committed version that contradicts an earlier one, such as a pod that goes from Failed
//     to Running
type integrity struct {
	seq      int64                       // the sequence number of the latest record
	at       time.Duration               // the time of the latest record
	answered map[uint64]bool             // whether each request has its response, by ID
	latest   map[types.UID]latestVersion // the latest committed version of each existing object
	uids     map[objectName]types.UID    // the UIDs of the objects in latest
}

// latestVersion contains the fields of a committed version that later ones must not contradict.
type latestVersion struct {
	seq        int64 // the sequence number of the record
	generation int64
	deleting   time.Time
	phase      string // the phase of a pod; empty for other objects
}

func newIntegrity() *integrity {
	return &integrity{answered: map[uint64]bool{}, latest: map[types.UID]latestVersion{}, uids: map[objectName]types.UID{}}
}

// observe reads the next record. It returns what is wrong with the record, or "" if nothing is
// wrong.
func (i *integrity) observe(r *history.Record) string {
	previous, at := i.seq, i.at
	i.seq, i.at = r.Seq, r.At
	if r.At < at {
		return fmt.Sprintf("the time of record %d is %v, before that of record %d, %v", r.Seq, r.At, previous, at)
	}
	switch {
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

// withoutRequest returns an error text if no request has the given ID, and otherwise "". The
// parameter what names the content of the record with this ID, such as a response.
func (i *integrity) withoutRequest(seq int64, what string, id uint64) string {
	if _, exists := i.answered[id]; exists {
		return ""
	}
	return fmt.Sprintf("record %d is %s of request %d, which the history does not contain", seq, what, id)
}

// commit compares a committed version with the latest one, and returns the contradiction.
//
// The deletionTimestamp of a pod may change, because a second delete of the pod sets it again.
func (i *integrity) commit(seq int64, c *history.Commit) string {
	o, name := &c.Object, nameOf(c.Object.Ref)
	before, exists := i.latest[o.UID]
	former, named := i.uids[name]
	if c.Type == history.Deleted {
		delete(i.latest, o.UID)
		delete(i.uids, name)
		return ""
	}
	now := latestVersion{seq: seq, generation: o.Generation, deleting: o.Deleting, phase: phaseOf(o)}
	i.latest[o.UID], i.uids[name] = now, o.UID
	ref := o.Ref.String()
	if o.Resource == objects.PodResource {
		ref = "pod " + o.Namespace + "/" + o.Name
	}
	evidence := fmt.Sprintf("(records %d and %d), which Kubernetes never does", before.seq, seq)
	switch {
	case named && former != o.UID:
		return fmt.Sprintf("%s went from UID %s to UID %s without a deletion (records %d and %d), which Kubernetes never does", ref, former, o.UID, i.latest[former].seq, seq)
	case !exists:
		return ""
	case isTerminalPhase(before.phase) && now.phase != before.phase:
		return fmt.Sprintf("%s went from %s to %s %s", ref, before.phase, now.phase, evidence)
	case now.generation < before.generation:
		return fmt.Sprintf("%s went from generation %d to generation %d %s", ref, before.generation, now.generation, evidence)
	case !before.deleting.IsZero() && now.deleting.IsZero():
		return fmt.Sprintf("%s lost its deletionTimestamp %s", ref, evidence)
	}
	return ""
}

// phaseOf returns the phase of a pod. It returns "" for other objects, and for a pod that cannot
// be decoded.
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

// isTerminalPhase reports whether a pod never leaves a phase.
func isTerminalPhase(phase string) bool {
	return phase == objects.PodFailed || phase == objects.PodSucceeded
}
