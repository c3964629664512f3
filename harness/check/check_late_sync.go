package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// lateSyncCheck demands that a controller soon does what its cache shows to be necessary. It
// examines all objects about once per second, while the process that holds the lease is idle and
// its caches contain the committed versions of all objects.
//
// The checks converged, rollout-complete and endpoints-exact examine the objects only at the end of
// the run. A later event may then have hidden that a controller missed an earlier one, or that it
// set no timer.
var lateSyncCheck = Check{
	ID:               "late-sync",
	Guarantee:        "An idle controller whose caches are up to date leaves no object with the wrong pods, ReplicaSets, Endpoints or status for longer than 5 s.",
	Contract:         "ReplicaSet 14, 15, 18, Deployment 17, 19, Endpoints 1",
	Property:         Liveness,
	Scope:            contractOf(kube.OwnsPods, kube.RollsOut, kube.PublishesAddresses),
	ExercisedWhen:    "The process that holds the lease is idle for 5 s, its caches are up to date, and an object exists.",
	Ignores:          "Objects for which a request failed, until the request succeeds or an event enqueues the object. Services whose cached Endpoints were out of date at the last event, and all Services for a minute after more than 10 such events. ReplicaSets and ReplicationControllers with creates or deletes whose effect is not in the cache. Objects that a known upstream issue explains.",
	AllowedBehaviors: []string{"terminating-pods-not-counted", "whole-second-timestamps", "retry-delay"},
	New:              newLateSyncChecker,
}

const (
	// syncWithin is how long an idle process may leave an object in a wrong state. A process syncs
	// an object within milliseconds, or within about a second after a timer has expired.
	syncWithin = 5 * time.Second
	// lateSyncInterval is the time between two examinations of the objects.
	lateSyncInterval = time.Second
	// silentEventsMax is a number of events with old cached Endpoints. After more of them, the rate
	// limiter may delay the retries of every Service. Upstream makes at most 100 retries at once and then 10 per
	// second, and each of these events may cause 10 retries.
	silentEventsMax = 10
	// silentEventsFor is how long after such an event the retries of every Service may be late.
	silentEventsFor = time.Minute
)

// lateSyncChecker reports objects that stay in a wrong state while the process that holds the lease
// does nothing.
type lateSyncChecker struct {
	findings
	kinds      []convergingKind // of the controllers under test
	failed     *failedAttempts  // the failed requests of each work queue key
	examinedAt time.Duration    // when the checker last examined the objects
	// written contains the resourceVersion of the Endpoints that each process last wrote for a Service.
	// silent contains the Services that an event enqueued while the cache lacked this version. The sync
	// of upstream then fails without a request, and the retry may be late. A request for the
	// Service removes the Service from the map.
	written map[workQueueKey]history.Version
	silent  map[workQueueKey]bool
	// silentEvents counts, for each process, the events for which silent was set.
	silentEvents map[*process]silentEvents
	// wrong contains the keys of the objects that are in a wrong state.
	wrong map[workQueueKey]*wrongState
}

// wrongState says since when an object has been in a wrong state. During this time, the process got no
// event and no response of the API server that concerns the object.
type wrongState struct {
	since    time.Duration // on the clock of the process
	reported bool          // true if the checker has reported a violation
}

// silentEvents counts events of a process, each at most silentEventsFor after the one before. The field
// last is the time of the last event, on the clock of the process.
type silentEvents struct {
	count int
	last  time.Duration
}

// delayRetries reports whether the rate limiter may delay the retries of every Service.
func (e silentEvents) delayRetries(at time.Duration) bool {
	return e.count > silentEventsMax && at-e.last <= silentEventsFor
}

func newLateSyncChecker(s Settings) Checker {
	checker := &lateSyncChecker{
		findings: findings{excusesStalls: true},
		failed:   newFailedAttempts(0, func(*call) bool { return true }),
		written:  map[workQueueKey]history.Version{},
		silent:   map[workQueueKey]bool{},

		silentEvents: map[*process]silentEvents{},
		wrong:        map[workQueueKey]*wrongState{},
	}
	tested := newTestedControllers(s.Controllers)
	for _, kind := range []struct {
		trait kube.Trait
		of    func() convergingKind
	}{{kube.OwnsPods, convergingOwners}, {kube.RollsOut, convergingDeployments}, {kube.PublishesAddresses, convergingServices}} {
		if tested.has(kind.trait) {
			checker.kinds = append(checker.kinds, kind.of())
		}
	}
	return checker
}

func (checker *lateSyncChecker) Observe(m *Model, r *history.Record) {
	checker.failed.observe(m, r)
	checker.observeEndpoints(m, r)
	if processStarts(r) {
		dropEndedProcesses(checker.wrong)
		dropEndedProcesses(checker.written)
		dropEndedProcesses(checker.silent)
		maps.DeleteFunc(checker.silentEvents, func(p *process, _ silentEvents) bool { return p.ended })
	}
	for _, event := range m.events {
		checker.failed.recordEvent(m, event.workQueueKey)
		delete(checker.wrong, event.workQueueKey)
	}
	if m.answered != nil {
		delete(checker.wrong, m.answered.queueKey)
	}
	if m.now-checker.examinedAt < lateSyncInterval {
		return
	}
	checker.examinedAt = m.now
	maps.DeleteFunc(checker.written, func(key workQueueKey, _ history.Version) bool { return key.objectGone() })
	maps.DeleteFunc(checker.silent, func(key workQueueKey, _ bool) bool { return key.objectGone() })
	maps.DeleteFunc(checker.wrong, func(key workQueueKey, _ *wrongState) bool { return key.objectGone() })
	for _, name := range slices.Sorted(maps.Keys(m.processes)) {
		checker.examine(m, m.processes[name])
	}
}

// observeEndpoints notes which Services a process may have synced without a request. Its cache then
// lacked its own last write of the Endpoints. Events of Endpoints do not count, because upstream does
// not enqueue a Service for them.
func (checker *lateSyncChecker) observeEndpoints(m *Model, r *history.Record) {
	if m.sent != nil && m.sent.serviceState != nil {
		delete(checker.silent, m.sent.queueKey)
	}
	if answered := m.answered; answered != nil && answered.serviceState != nil && answered.response.Object != nil {
		checker.written[answered.queueKey] = answered.response.Object.Version
	}
	if r.Delivery != nil && r.Delivery.Resource == objects.EndpointsResource {
		return
	}
	for _, event := range m.events {
		state := event.process.serviceStates[event.service]
		inFlight := state != nil && state.callsInFlight > 0
		if inFlight || event.process.view.reachedVersion[objects.EndpointsResource] < checker.written[event.workQueueKey] {
			checker.silent[event.workQueueKey] = true
			checker.countSilentEvent(event.process, m.clockOf(event.process.name))
		}
	}
}

// countSilentEvent counts an event for which checker.silent was set.
func (checker *lateSyncChecker) countSilentEvent(p *process, at time.Duration) {
	events := checker.silentEvents[p]
	if at-events.last > silentEventsFor {
		events.count = 0
	}
	checker.silentEvents[p] = silentEvents{count: events.count + 1, last: at}
}

// examine searches for objects that the given process has left in a wrong state for too long. A
// process that does not hold the lease need not sync objects.
func (checker *lateSyncChecker) examine(m *Model, p *process) {
	at := m.clockOf(p.name)
	if !p.lease.held || !m.mayWork(p) {
		maps.DeleteFunc(checker.wrong, func(key workQueueKey, _ *wrongState) bool { return key.process == p })
		return
	}
	if !p.idle(at) || !p.view.upToDate(m.committed, m.start.Namespace) {
		return
	}
	objectExists := false
	for _, kind := range checker.kinds {
		for _, uid := range kind.all(m, m.start.Namespace) {
			objectExists = true
			checker.examineObject(m, p, kind, uid, at)
		}
	}
	if objectExists && at-p.lastActivity >= syncWithin {
		checker.exercised++
	}
}

// examineObject reports an object that has been in a wrong state for longer than syncWithin (5 s). The
// parameter uid is the UID of the object.
//
// A known upstream issue excuses every subject, because other checks report such an object at the end of
// the run. But a ReplicaSet whose retry comes late does not explain the status of its Deployment.
func (checker *lateSyncChecker) examineObject(m *Model, p *process, kind convergingKind, uid types.UID, at time.Duration) {
	ref, differences := kind.pending(m, uid)
	key := workQueueKey{process: p, uid: uid}
	if ref.Resource == objects.ServiceResource {
		key = workQueueKey{process: p, service: nameOf(*ref)}
	}
	differences = slices.DeleteFunc(differences, func(d pending) bool { return d.awaited })
	if len(differences) > 0 {
		issue := kind.knownIssue(m, uid)
		otherWaits := issue == longBackOff && kind.waits != nil && !kind.waits(m, uid)
		differences = slices.DeleteFunc(differences, func(d pending) bool { return issue != nil && !(otherWaits && d.ofStatus) })
	}
	state := checker.wrong[key]
	switch {
	case len(differences) == 0 || checker.excused(uid, key, at):
		delete(checker.wrong, key)
	case state == nil:
		checker.wrong[key] = &wrongState{since: at}
	case at-state.since > syncWithin && !state.reported:
		state.reported = true
		checker.addViolation(func() Evidence {
			return Evidence{
				Summary:  fmt.Sprintf("%s; %s did nothing for %s, although its caches were up to date", differences[0].text, p.name, seconds(at-state.since)),
				Expected: fmt.Sprintf("a sync within %v", syncWithin),
				Object:   ref,
				At:       m.now,
				Records:  []int64{m.seq},
			}
		})
	}
}

// excused reports whether the process has a reason not to sync the object now. It may wait for the
// retry of a failed sync, or for the effect of its creates and deletes.
func (checker *lateSyncChecker) excused(uid types.UID, key workQueueKey, at time.Duration) bool {
	owner := key.process.ownerStates[uid]
	silent := key.service != objectName{} && (checker.silent[key] || checker.silentEvents[key.process].delayRetries(at))
	return owner != nil && !owner.expectationsSatisfied(nil) || checker.failed.retryFollows(key) || silent
}
