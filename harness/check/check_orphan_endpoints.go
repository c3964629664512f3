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

// orphanEndpointsCheck demands that a controller deletes Endpoints without a Service, and writes
// none without one. It examines each write of Endpoints. After the faults are healed, it also
// examines all Endpoints without a Service.
//
// It skips the writes of a process that has not listed Services yet. It also skips Endpoints that
// another client created without a Service while the process was running (allowed behavior
// manual-endpoints-edits).
var orphanEndpointsCheck = Check{
	ID:               "orphan-endpoints",
	Guarantee:        "A controller deletes the Endpoints of a deleted Service. When it starts, it deletes Endpoints that have no Service, unless they are a leader-election record. It does not write the Endpoints of a Service without a selector or of type ExternalName.",
	Contract:         "Endpoints 2, 14",
	Property:         Liveness,
	Scope:            contractOf(kube.PublishesAddresses),
	ExercisedWhen:    "The subject deletes Endpoints. Or a watch event enqueues a Service whose Endpoints the subject must not write. Or Endpoints that the subject must delete still exist at the end of the run.",
	AllowedBehaviors: []string{"service-in-cache", "manual-endpoints-edits"},
	New:              newOrphanEndpointsChecker,
}

// orphanEndpointsChecker reports Endpoints that remain without a Service, and writes of Endpoints
// that no cached Service justifies.
//
// The controller must delete Endpoints in two cases. They had no Service when a process started, or
// a process observed the deletion of their Service. If another client creates Endpoints without a
// Service later, these Endpoints may remain until a process starts (allowed behavior
// manual-endpoints-edits).
type orphanEndpointsChecker struct {
	findings                                        // writes that no cached Service justifies
	*convergenceChecker                             // reports Endpoints that remain without a Service
	createdAt           map[types.UID]time.Duration // when each existing Endpoints object was first committed, by UID
	// serviceSince contains the time when each existing Service was first committed, by the name
	// of the Service.
	serviceSince map[objectName]time.Duration
}

func newOrphanEndpointsChecker(s Settings) Checker {
	checker := &orphanEndpointsChecker{
		findings: findings{upstream: s.Upstream}, createdAt: map[types.UID]time.Duration{}, serviceSince: map[objectName]time.Duration{},
	}
	checker.convergenceChecker = newConvergenceChecker(s, convergingKind{
		noneReason: "no Endpoints without a Service had to be deleted at the end of the run",
		changed:    func(state *objectSet) bool { return len(state.changedServices) > 0 },
		all:        checker.orphans,
		pending:    checker.pending,
	})
	return checker
}

// orphans returns the UIDs of the Endpoints in a namespace that have no Service and that a
// process must delete.
func (checker *orphanEndpointsChecker) orphans(m *Model, namespace string) []types.UID {
	return slices.DeleteFunc(sortedByName(m.committed.endpoints, namespace), func(uid types.UID) bool {
		e := m.committed.endpoints[uid]
		if e.LeaderElection || e.Terminating || m.committed.serviceNamed(serviceName(e.Ref)) != nil {
			return true
		}
		_, all := checker.pending(m, uid)
		return len(all) == 0
	})
}

// pending returns the reference of the Endpoints with the given UID, and why a process must still
// delete them. A process must delete Endpoints that had no Service when it started. It must also
// delete Endpoints if it has observed the deletion of their Service.
//
// If several processes must delete the Endpoints, the second result contains only the reasons of
// the process whose name comes first. It is empty if no process must delete them.
func (checker *orphanEndpointsChecker) pending(m *Model, uid types.UID) (*history.Ref, []pending) {
	e := m.committed.endpoints[uid]
	list := pendings{subject: e.String()}
	for _, name := range slices.Sorted(maps.Keys(m.processes)) {
		p := m.processes[name]
		state := p.serviceStates[serviceName(e.Ref)]
		if state == nil || state.service.now == managedService || state.service.now == unmanagedService {
			continue
		}
		atStart := p.startupOrphans[uid] && state.endpoints.now == ordinaryEndpoints && state.service.now == neverSeen
		serviceDeleted := state.service.now == absent && checker.createdAt[uid] <= state.service.since
		list.expect(!atStart, "not deleted, although the Endpoints had no Service when %s started", p.name)
		list.expect(!serviceDeleted, "not deleted, although %s observed the deletion of the Service", p.name)
		if len(list.all) > 0 {
			break
		}
	}
	return &e.Ref, list.all
}

func (checker *orphanEndpointsChecker) Observe(m *Model, r *history.Record) {
	if r.Commit != nil && r.Commit.Object.Resource == objects.EndpointsResource {
		uid := r.Commit.Object.UID
		if _, exists := checker.createdAt[uid]; !exists {
			checker.createdAt[uid] = m.processTime
		}
		if r.Commit.Type == history.Deleted {
			delete(checker.createdAt, uid)
		}
	}
	if r.Commit != nil && r.Commit.Object.Resource == objects.ServiceResource {
		checker.recordService(m, r.Commit)
	}
	for _, event := range m.events {
		state := event.process.serviceStates[event.service]
		// Some events concern objects that do not belong to the run, such as the Service
		// kubernetes in the namespace default. These objects do not exercise the check.
		otherNamespace := m.start.Namespace != "" && event.service.namespace != m.start.Namespace
		if state != nil && !otherNamespace && state.mayBeForeign() {
			checker.exercised++
		}
	}
	if c := m.sent; c != nil && c.serviceState != nil && c.process.view.reachedVersion[objects.ServiceResource] > 0 {
		checker.checkWrite(m, c, r.Request.Verb)
	}
	checker.convergenceChecker.Observe(m, r)
}

// recordService records when a Service was first committed. It forgets this time after the deletion
// of the Service. The method deletesInUse needs the time to find out whether the Service existed at
// a certain time.
func (checker *orphanEndpointsChecker) recordService(m *Model, commit *history.Commit) {
	name := nameOf(commit.Object.Ref)
	if _, exists := checker.serviceSince[name]; !exists {
		checker.serviceSince[name] = m.now
	}
	if commit.Type == history.Deleted {
		delete(checker.serviceSince, name)
	}
}

// deletesInUse reports whether the call deletes the Endpoints of an existing Service that was never
// in the process's cache. A correct controller reads the Service from the API server before the
// delete.
//
// The result is true only if the Service certainly existed when the process decided on the delete.
// The decision is at most batchTime older than the request. The Service must therefore be older
// than batchTime, not counting stalls (times without CPU). The result is false if the process was
// ever paused, or if client-go may be resending a failed request.
func (checker *orphanEndpointsChecker) deletesInUse(m *Model, c *call) bool {
	since, exists := checker.serviceSince[c.serviceState.name]
	s := m.committed.serviceNamed(c.serviceState.name)
	return c.serviceState.service.now == neverSeen && exists && s != nil && s.Managed() &&
		m.now-since-m.stalls.since(since, machine, c.process.name) > c.process.batchTime && !c.process.clientMayRetry(m.processTime) && m.pauses[c.process.name] == nil
}

// checkWrite reports a create, update or delete of Endpoints that no recent cached version of
// the Service justifies. The parameter verb is "create", "update" or "delete".
func (checker *orphanEndpointsChecker) checkWrite(m *Model, c *call, verb string) {
	state := c.serviceState
	switch {
	case verb != "delete" && state.service.was(state.from, managedService):
		return
	case verb != "delete" && state.service.was(state.from, unmanagedService):
		checker.report(m, c, verb, "whose Service has no selector or is of type ExternalName", "no write of these Endpoints")
	case verb != "delete":
		checker.report(m, c, verb, "which have no Service", "Endpoints only for existing Services")
	case !state.service.was(state.from, neverSeen, absent):
		checker.report(m, c, verb, "whose Service exists", "a delete only after the Service is deleted")
	case !state.service.was(state.from, absent) && !state.endpoints.was(state.from, absent, ordinaryEndpoints):
		checker.report(m, c, verb, "which are a leader-election record", "no delete of leader-election records")
	case checker.deletesInUse(m, c):
		checker.addKnownViolation(earlyLeftovers, func() Evidence {
			return checker.evidence(m, c, verb, "whose Service exists but is not yet in the cache of the process", "a read of the Service from the API server before the delete")
		})
	}
	checker.exercised++
}

// report reports a wrong write of Endpoints. The string problem says what is wrong, such as "which
// have no Service". The string expected describes what the check expected instead.
func (checker *orphanEndpointsChecker) report(m *Model, c *call, verb, problem, expected string) {
	checker.addViolation(func() Evidence { return checker.evidence(m, c, verb, problem, expected) })
}

// evidence returns evidence of a violation by a write of Endpoints. The string verb is that of the
// request, such as "delete". The string problem says what is wrong, such as "which have no
// Service". The string expected describes what the check expected instead.
func (checker *orphanEndpointsChecker) evidence(m *Model, c *call, verb, problem, expected string) Evidence {
	ref := history.Ref{Resource: objects.EndpointsResource, Namespace: c.serviceState.name.namespace, Name: c.serviceState.name.name}
	return Evidence{
		Summary:  fmt.Sprintf("%s sent %s %s, %s", c.process.name, verb, ref, problem),
		Expected: expected,
		Object:   &ref,
		At:       m.now,
		Records:  []int64{m.seq},
	}
}

// Result returns the verdict on two things: wrong writes of Endpoints, and Endpoints that remain
// without a Service.
//
// If there is a wrong write, it decides the verdict. Otherwise the verdict says whether the
// Endpoints that a process had to delete were gone in time. If no process had to delete any, the
// verdict depends only on the writes. In all cases, Result.Exercised includes the allowed writes.
func (checker *orphanEndpointsChecker) Result() Result {
	result := checker.convergenceChecker.result
	switch {
	case checker.violations > 0:
		return checker.findings.Result()
	case result.Verdict == NotExercised:
		return checker.findings.Result()
	}
	result.Exercised += checker.exercised
	return result
}
