package check

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// adoptAndReleaseCheck demands that a controller tries to adopt and release pods before it writes
// the owner's status. The owner is a ReplicaSet or ReplicationController. The check examines each
// write of its status. It also examines each create of a pod if the process has read the owner from the
// API server, and the owner may not adopt pods.
//
// The check skips a write in four cases:
//
//   - The owner is terminating.
//   - The selector of the owner has changed since the process started.
//   - The resourceVersion in the write is not that of the owner in the cache.
//   - The process has also read the cached version with a GET, as after a conflict. The controller
//     may then write a status that it computed before, without a new sync.
var adoptAndReleaseCheck = Check{
	ID:               "adopt-and-release",
	Guarantee:        "Before a controller writes the status of a ReplicaSet or ReplicationController, it tries to adopt each active pod in its cache that matches and has no controller. It also tries to release each of its pods that no longer matches the selector. It creates no pods for an owner that could not adopt an orphan in its cache.",
	Contract:         "ReplicaSet 5, 6",
	Property:         Safety,
	Scope:            contractOf(kube.OwnsPods),
	ExercisedWhen:    "The subject writes the status of a ReplicaSet or ReplicationController that is not terminating, based on the latest version in its cache. Or it creates a pod although the owner could not adopt an orphan.",
	AllowedBehaviors: []string{"inactive-pods", "overlapping-selectors"},
	New:              newAdoptAndReleaseChecker,
}

// adoptAndReleaseChecker reports a status write if the controller did not first try each adoption
// or release that was due.
//
// A sync adopts and releases pods before it writes the status. A patch or update of the pod counts
// as an attempt, even if the API server rejects it.
//
// A status write is based on one version of the owner. The sync began after the process had
// received this version, and may miss a pod that changed shortly before. The checker therefore
// ignores an adoption or release that became due later than lag (1 s) before the process received
// the version.
type adoptAndReleaseChecker struct {
	findings
	lastAttempt map[*process]map[types.UID]time.Duration // when each process last tried to adopt or release each pod
}

func newAdoptAndReleaseChecker(Settings) Checker {
	return &adoptAndReleaseChecker{lastAttempt: map[*process]map[types.UID]time.Duration{}}
}

func (checker *adoptAndReleaseChecker) Observe(m *Model, r *history.Record) {
	if r.Process != nil {
		maps.DeleteFunc(checker.lastAttempt, func(p *process, _ map[types.UID]time.Duration) bool { return p.ended })
	}
	c := m.sent
	if c == nil {
		return
	}
	if c.verb == callCreatePod && c.ownerState != nil {
		checker.createsAfterFailedAdoption(m, c)
		return
	}
	if c.verb == callAdoptOrRelease && c.pod != nil {
		checker.recordAttempt(c, m.processTime)
	}
	if c.reportedOwner(r.Request) == nil {
		return
	}
	state, o := c.ownerState, c.ownerState.owner()
	if o.Terminating || state.selectorChanged {
		return
	}
	checker.exercised++
	if p := checker.notAttempted(c, state.statusBounds.since-lag); p != nil {
		checker.addViolation(func() Evidence {
			return m.evidenceOf(podRef(p), fmt.Sprintf("%s: %s wrote the status without an earlier attempt to %s %s", o, c.process.name, missingAction(p), podName(p)),
				"an attempt to "+missingAction(p)+" the pod before the status write")
		})
	}
}

// createsAfterFailedAdoption reports a create of a pod if the owner could not adopt an orphan. The
// process has read the owner from the API server, and the owner was terminating, gone, or another
// one. An orphan that the owner must adopt was in the cache before this read, and still is. A sync of
// this owner must then fail before it creates a pod.
func (checker *adoptAndReleaseChecker) createsAfterFailedAdoption(m *Model, c *call) {
	o, view := c.ownerState.owner(), c.process.view
	if o == nil || o.Terminating || c.ownerState.selectorChanged || view.podCountsOf(o.UID).orphans == 0 {
		return
	}
	read, ok := c.process.lastReads[objectName{o.Resource, o.Namespace, o.Name}]
	if !ok || read.afterFailure || read.mayAdopt(o.UID) {
		return
	}
	for uid, p := range view.orphans[o.Namespace] {
		since := view.adoptableOrReleasableSince(uid, o)
		if !toAdoptOrRelease(o, p) || since == 0 || since > read.sentAt {
			continue
		}
		checker.exercised++
		checker.addViolation(func() Evidence {
			return m.evidenceOf(podRef(p), fmt.Sprintf("%s: %s created a pod, and could not adopt %s: the API server had %s", o, c.process.name, podName(p), describeRead(read)),
				"no create of a pod until the owner has adopted the orphan, or the orphan does not match any more")
		})
		return
	}
}

// describeRead returns what the API server answered when the process read an owner that may not
// adopt pods.
func describeRead(read lastRead) string {
	switch {
	case read.uid == "":
		return "no such owner"
	case read.terminating:
		return "a deletionTimestamp of the owner"
	}
	return "another owner of this name"
}

// missingAction returns what the controller must do with a pod: "adopt" for an orphan,
// otherwise "release".
func missingAction(p *objects.Pod) string {
	if p.Orphan() {
		return "adopt"
	}
	return "release"
}

// recordAttempt records when the process tried to adopt or release a pod. The checker looks for
// this attempt when the process writes the owner's status. recordAttempt also forgets the pods that
// are no longer in the cache of the process.
func (checker *adoptAndReleaseChecker) recordAttempt(c *call, at time.Duration) {
	attempted := checker.lastAttempt[c.process]
	if attempted == nil {
		attempted = map[types.UID]time.Duration{}
		checker.lastAttempt[c.process] = attempted
	}
	maps.DeleteFunc(attempted, func(uid types.UID, _ time.Duration) bool { return c.process.view.pods[uid] == nil })
	attempted[c.pod.UID] = at
}

// notAttempted returns a pod that the process should have tried to adopt or release by the time
// dueBy.
//
// The adoption or release was due at the time dueBy or earlier, and is still due now. An attempt
// since then counts even if the API server rejected it. If there are several such pods,
// notAttempted returns the pod whose name comes first. If there is none, it returns nil.
func (checker *adoptAndReleaseChecker) notAttempted(c *call, dueBy time.Duration) (first *objects.Pod) {
	o, view := c.ownerState.owner(), c.process.view
	counts := view.podCountsOf(o.UID)
	if counts.orphans == 0 && counts.controlled == counts.replicas {
		return nil
	}
	inspect := func(pods map[types.UID]*objects.Pod) {
		for uid, p := range pods {
			if first != nil && first.Name <= p.Name || !toAdoptOrRelease(o, p) {
				continue
			}
			from := view.adoptableOrReleasableSince(uid, o)
			if at, attempted := checker.lastAttempt[c.process][uid]; from <= dueBy && !(attempted && at >= from) {
				first = p
			}
		}
	}
	inspect(view.controlled[o.UID])
	inspect(view.orphans[o.Namespace])
	return first
}

// adoptableOrReleasableSince returns when the need to adopt or release a cached pod began. The
// parameter o is the owner that must do so, and uid is the UID of the pod. The result is 0 if the
// owner need not adopt or release the pod now.
//
// The method knows only the versions of the pod that the cache contained recently
// (podVersionsSince). If the need began earlier, the result is the time of the oldest of these
// versions.
func (v *view) adoptableOrReleasableSince(uid types.UID, o *objects.Owner) time.Duration {
	since := time.Duration(0)
	states := v.podVersionsSince[uid]
	for i := len(states) - 1; i >= 0 && toAdoptOrRelease(o, states[i].value); i-- {
		since = states[i].since
	}
	return since
}

// toAdoptOrRelease reports whether an owner (the parameter o) must adopt or release a pod (the
// parameter p).
//
// The owner must adopt an active orphan in its namespace that its selector matches. It must
// release an active pod that it controls and that its selector does not match.
func toAdoptOrRelease(o *objects.Owner, p *objects.Pod) bool {
	return p.Active && (p.Orphan() && p.Namespace == o.Namespace || p.Controller.UID == o.UID) &&
		p.Orphan() == o.Selector.Matches(p.Labels)
}
