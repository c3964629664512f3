package check

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// deletionCompletesCheck demands that the controllers under test remove their finalizers from
// terminating objects in time. A finalizer is theirs if, during the run, one of their successful writes
// added it to an existing object of the same resource, or removed it from one. A finalizer that they only
// set in new objects may be for another program.
//
// The check ignores all other finalizers, because the history does not show who must remove them.
// It also ignores terminating objects without finalizers: a kubelet or the garbage collector
// removes these objects.
//
// The controllers have the time Settings.Within for each deletion. This time begins when the object
// becomes terminating, or when all faults are healed, whichever is later. The verdict is unknown if
// the run ended before this time was over for some object.
var deletionCompletesCheck = Check{
	ID:            "deletion-completes",
	Guarantee:     "Within the scenario's bound after the faults are healed, a controller removes the finalizers that it added from each object that is being deleted.",
	Contract:      "Kubernetes documentation, Finalizers",
	Property:      Liveness,
	Scope:         general,
	ExercisedWhen: "An object that has a finalizer of the subject is deleted.",
	Ignores:       "Finalizers that no successful write of the subject added during the run. Finalizers that the subject only set in objects that it created, and never removed: another program may serve them. Objects without finalizers, which a kubelet or the garbage collector removes. An object whose deletion began too late for the bound; the verdict is then unknown.",
	New:           newDeletionCompletesChecker,
}

// deletionCompletesChecker reports objects that are terminating for too long because a finalizer
// was not removed. The controllers under test added the finalizer, so they must remove it. The
// checker reports an object only if the time for its deletion (the field within) is over.
type deletionCompletesChecker struct {
	findings
	within time.Duration  // how long a deletion may take, counted from its beginning, or from settleAt if that is later
	writes inFlightWrites // writes of the subject that have no response yet
	// finalizers contains the finalizers that the subject must remove. Each key consists of a resource
	// and the name of a finalizer.
	finalizers map[[2]string]bool
	removals   map[uint64][]string            // the finalizers that each write without a response removes, by request ID
	objects    map[types.UID]*finalizedObject // existing objects that have or had finalizers
	settleAt   time.Duration                  // when all faults were healed and the settle phase began; 0 before that time
	tooEarly   string                         // a terminating object whose time for deletion was not over at the end of the run; "" if there is none
}

// finalizedObject is the latest committed version of an object that has finalizers, or had
// finalizers earlier. If the object is terminating, one of these finalizers may block its deletion.
type finalizedObject struct {
	history.Ref
	finalizers []string   // the current finalizers
	former     []string   // the finalizers of the version before the current one
	deleted    recordTime // when the object began to terminate; seq is 0 if it is not terminating
}

func newDeletionCompletesChecker(s Settings) Checker {
	return &deletionCompletesChecker{
		within: s.Within, writes: inFlightWrites{}, finalizers: map[[2]string]bool{}, removals: map[uint64][]string{}, objects: map[types.UID]*finalizedObject{},
	}
}

func (checker *deletionCompletesChecker) Observe(m *Model, r *history.Record) {
	if r.Request != nil && r.Request.IsWrite() {
		checker.noteRemovals(r.Request)
	}
	if request := checker.writes.observe(r); request != nil {
		checker.recordOwn(request, r.Response)
	}
	if r.Response != nil {
		delete(checker.removals, r.Response.ID)
	}
	switch {
	case r.Commit != nil:
		checker.commit(m, r.Commit)
	case r.Phase != nil && r.Phase.Name == history.PhaseSettle:
		checker.settleAt = m.now
	case r.Phase != nil && r.Phase.Name == history.PhaseEnd:
		checker.end(m)
	}
}

// recordOwn records the finalizers that a controller under test added to an existing object, or removed from
// one. This controller must later remove them from each object.
func (checker *deletionCompletesChecker) recordOwn(request *history.Request, response *history.Response) {
	written := response.Object
	for _, f := range checker.removals[request.ID] {
		if !slices.Contains(written.Finalizers, f) {
			checker.finalizers[[2]string{written.Resource, f}] = true
		}
	}
	if response.Code == http.StatusCreated {
		return
	}
	var before []string
	if o := checker.objects[written.UID]; o != nil {
		before = o.finalizers
		if o.Version >= written.Version { // the commit record came before the response, so o.finalizers already includes the write
			before = o.former
		}
	}
	for _, f := range written.Finalizers {
		requested := strings.Contains(string(request.Patch), f) || request.Object != nil && slices.Contains(request.Object.Finalizers, f)
		if requested && !slices.Contains(before, f) {
			checker.finalizers[[2]string{written.Resource, f}] = true
		}
	}
}

// noteRemovals notes which finalizers a request removes from the version on which it is based. It skips the
// finalizers of the garbage collector, and a request whose base is not the latest committed version.
func (checker *deletionCompletesChecker) noteRemovals(request *history.Request) {
	o := checker.target(request)
	if o == nil || request.Subresource != "" {
		return
	}
	for _, f := range o.finalizers {
		removes := !strings.Contains(string(request.Patch), f)
		if request.Object != nil {
			removes = request.Object.Version == o.Version && !slices.Contains(request.Object.Finalizers, f)
		}
		if removes && f != metav1.FinalizerDeleteDependents && f != metav1.FinalizerOrphanDependents {
			checker.removals[request.ID] = append(checker.removals[request.ID], f)
		}
	}
}

// target returns the object with finalizers that a request may change. It returns nil if there is none, or if
// the request is a patch that does not mention finalizers.
func (checker *deletionCompletesChecker) target(request *history.Request) *finalizedObject {
	if request.Object != nil {
		return checker.objects[request.Object.UID]
	}
	if !strings.Contains(string(request.Patch), "finalizers") {
		return nil
	}
	for _, o := range checker.objects {
		if o.Resource == request.Resource && o.Namespace == request.Namespace && o.Name == request.Name {
			return o
		}
	}
	return nil
}

// commit stores the finalizers of a committed version, and the time when the object began to
// terminate. It removes a deleted object. If a finalizer of the subject had delayed the deletion,
// commit counts the object as exercised.
func (checker *deletionCompletesChecker) commit(m *Model, c *history.Commit) {
	o := checker.objects[c.Object.UID]
	switch {
	case c.Type == history.Deleted:
		if o != nil && o.deleted.seq > 0 && checker.blockedBy(o.Resource, o.former, o.finalizers) != "" {
			checker.exercised++
		}
		delete(checker.objects, c.Object.UID)
		return
	case o == nil && len(c.Object.Finalizers) == 0:
		return
	case o == nil:
		o = &finalizedObject{}
		checker.objects[c.Object.UID] = o
	}
	o.Ref, o.former, o.finalizers = c.Object.Ref, o.finalizers, c.Object.Finalizers
	if c.Object.Terminating() && o.deleted.seq == 0 {
		o.deleted = recordTime{at: m.now, seq: m.seq}
	}
}

// blockedBy returns a finalizer that the controllers under test must remove before a deletion can
// complete. It returns the first finalizer in the given lists that is theirs; see recordOwn. The result is "" if the lists contain no such finalizer.
func (checker *deletionCompletesChecker) blockedBy(resource string, lists ...[]string) string {
	for _, f := range slices.Concat(lists...) {
		if checker.finalizers[[2]string{resource, f}] {
			return f
		}
	}
	return ""
}

// end reports each object that is still terminating at the end of the run because of a finalizer.
// Only finalizers of the subject count. If the time for the deletion is not over, end stores the
// object in tooEarly instead.
func (checker *deletionCompletesChecker) end(m *Model) {
	for _, uid := range sortedByName(checker.objects, "") {
		o := checker.objects[uid]
		finalizer := checker.blockedBy(o.Resource, o.finalizers)
		if o.deleted.seq == 0 || finalizer == "" {
			continue
		}
		checker.exercised++
		since := max(o.deleted.at, checker.settleAt)
		if checker.settleAt == 0 || m.now-since-m.stalls.longest(since) < checker.within-tolerance {
			checker.tooEarly = o.String()
			continue
		}
		checker.addViolation(func() Evidence {
			e := m.evidenceOf(&o.Ref, fmt.Sprintf("%s has been terminating for %s and still has the finalizer %s, which the subject must remove", o.Ref, seconds(m.now-o.deleted.at), finalizer),
				fmt.Sprintf("the removal of the finalizer within %v after the faults are healed", checker.within))
			e.Records = append(e.Records, o.deleted.seq)
			return e
		})
	}
}

// Result returns the verdict of the check. The verdict is unknown if there is no violation, but the
// run ended before some deletion had to be complete.
func (checker *deletionCompletesChecker) Result() Result {
	result := checker.findings.Result()
	if result.Verdict == Pass && checker.tooEarly != "" {
		result.Verdict, result.Reason = Unknown, fmt.Sprintf("%s is still terminating, but the run ended before the %v for its deletion were over", checker.tooEarly, checker.within)
	}
	return result
}

// ObjectRef returns the reference to the latest committed version of the object. The function
// sortedByName sorts objects by this reference.
func (o *finalizedObject) ObjectRef() *history.Ref { return &o.Ref }
