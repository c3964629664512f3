package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// orphanEndpointsCheck is the row of orphan-endpoints in All.
var orphanEndpointsCheck = Check{
	ID:               "orphan-endpoints",
	Guarantee:        "Endpoints whose Service is gone are deleted; those of leader elections and of Services that select nothing are left alone.",
	Contract:         "Endpoints 2, 14",
	Property:         Liveness,
	AllowedBehaviors: []string{"service-in-cache", "manual-endpoints-edits"},
	New:              newOrphanEndpointsChecker,
}

// orphanEndpointsChecker: Endpoints without a Service go, and nobody else's are
// touched.
//
// They must go if a process of the subject found them when it started, or was
// told that their Service is gone. What was made without a Service later is left
// until the next start (trap 33).
type orphanEndpointsChecker struct {
	findings // writes that nothing called for
	*convergenceChecker
	createdAt map[types.UID]time.Duration // when each Endpoints came to be
	// serviceSince is since when there is a Service of each name.
	serviceSince map[objectName]time.Duration
}

func newOrphanEndpointsChecker(s Settings) Checker {
	checker := &orphanEndpointsChecker{
		findings: findings{upstream: s.Upstream}, createdAt: map[types.UID]time.Duration{}, serviceSince: map[objectName]time.Duration{},
	}
	checker.convergenceChecker = newConvergenceChecker(s, convergingKind{
		noneReason: "no Endpoints were without a Service",
		changed:    func(objects *objectSet) bool { return len(objects.changedServices) > 0 },
		all:        checker.orphans,
		pending:    checker.pending,
	})
	return checker
}

// orphans returns the Endpoints that have no Service, though some process knows
// that they are to go.
func (checker *orphanEndpointsChecker) orphans(m *Model, namespace string) []types.UID {
	return slices.DeleteFunc(sortedByName(m.committed.endpoints, namespace), func(uid types.UID) bool {
		e := m.committed.endpoints[uid]
		if e.leaderElection || e.terminating || m.committed.serviceNamed(serviceName(e.Ref)) != nil {
			return true
		}
		_, all := checker.pending(m, uid)
		return len(all) == 0
	})
}

// pending says whether some process knows that the Endpoints are to go.
func (checker *orphanEndpointsChecker) pending(m *Model, uid types.UID) (*history.Ref, []pending) {
	e := m.committed.endpoints[uid]
	list := pendings{subject: e.String()}
	for _, name := range slices.Sorted(maps.Keys(m.processes)) {
		p := m.processes[name]
		known := p.serviceStates[serviceName(e.Ref)]
		if known == nil || known.service.now == managedService || known.service.now == unmanagedService {
			continue
		}
		found := p.startupOrphans[uid] && known.endpoints.now == ordinaryEndpoints && known.service.now == neverSeen
		serviceGone := known.service.now == absent && checker.createdAt[uid] <= known.service.since
		list.expect(!found, "still there, though it had no Service when %s started", p.name)
		list.expect(!serviceGone, "still there, though %s was told that its Service is gone", p.name)
		if len(list.all) > 0 {
			break
		}
	}
	return &e.Ref, list.all
}

func (checker *orphanEndpointsChecker) Observe(m *Model, r *history.Record) {
	if r.Commit != nil && r.Commit.Object.Resource == endpointsResource {
		uid := r.Commit.Object.UID
		if _, known := checker.createdAt[uid]; !known {
			checker.createdAt[uid] = m.processTime
		}
		if r.Commit.Type == history.Deleted {
			delete(checker.createdAt, uid)
		}
	}
	if r.Commit != nil && r.Commit.Object.Resource == serviceResource {
		checker.recordService(m, r.Commit)
	}
	for _, event := range m.events {
		known := event.process.serviceStates[event.service]
		elsewhere := m.start.Namespace != "" && event.service.namespace != m.start.Namespace // such as the API server's own
		if known != nil && !elsewhere && known.mayBeForeign() {
			checker.exercised++
		}
	}
	if c := m.sent; c != nil && c.serviceState != nil && c.process.view.reachedVersion[serviceResource] > 0 {
		checker.checkWrite(m, c, r.Request.Verb)
	}
	checker.convergenceChecker.Observe(m, r)
}

// recordService takes in what has become of a Service.
func (checker *orphanEndpointsChecker) recordService(m *Model, t *history.Commit) {
	name := nameOf(t.Object.Ref)
	if _, known := checker.serviceSince[name]; !known {
		checker.serviceSince[name] = m.now
	}
	if t.Type == history.Deleted {
		delete(checker.serviceSince, name)
	}
}

// inUse reports whether Endpoints that a process deletes are those of a Service that
// it has never been shown, though it has been there for so long that whoever had
// looked for it would have found it.
func (checker *orphanEndpointsChecker) inUse(m *Model, c *call) bool {
	since, there := checker.serviceSince[c.serviceState.name]
	s := m.committed.serviceNamed(c.serviceState.name)
	return c.serviceState.service.now == neverSeen && there && s != nil && s.managed() &&
		m.now-since > c.process.batchTime && !c.process.clientMayRetry(m.processTime) && m.pauses[c.process.name] == nil
}

// checkWrite judges a write to Endpoints.
func (checker *orphanEndpointsChecker) checkWrite(m *Model, c *call, verb string) {
	state := c.serviceState
	switch {
	case verb != "delete" && state.service.was(state.from, managedService):
		return
	case verb != "delete" && state.service.was(state.from, unmanagedService):
		checker.report(m, c, verb, "of a Service without a selector or of type ExternalName", "them left alone")
	case verb != "delete":
		checker.report(m, c, verb, "without a Service", "Endpoints only for Services")
	case !state.service.was(state.from, neverSeen, absent):
		checker.report(m, c, verb, "of a Service that is there", "them deleted only once their Service is gone")
	case !state.service.was(state.from, absent) && !state.endpoints.was(state.from, absent, ordinaryEndpoints):
		checker.report(m, c, verb, "that are a leader election's record", "it left alone")
	case checker.inUse(m, c):
		checker.addKnownViolation(earlyLeftovers, func() Evidence {
			return checker.evidence(m, c, verb, "of a Service that is there and that it was not shown yet", "a look for the Service before its Endpoints are deleted")
		})
	}
	checker.exercised++
}

func (checker *orphanEndpointsChecker) report(m *Model, c *call, verb, whose, expected string) {
	checker.addViolation(func() Evidence { return checker.evidence(m, c, verb, whose, expected) })
}

func (checker *orphanEndpointsChecker) evidence(m *Model, c *call, verb, whose, expected string) Evidence {
	ref := history.Ref{Resource: endpointsResource, Namespace: c.serviceState.name.namespace, Name: c.serviceState.name.name}
	return Evidence{
		Summary:  fmt.Sprintf("%s sent %s of %s, %s", c.process.name, verb, ref, whose),
		Expected: expected,
		Object:   &ref,
		At:       m.now,
		Records:  []int64{m.seq},
	}
}

// Result is the worse of what was seen on the way and in the end. That writes
// were right puts it to the test, too.
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
