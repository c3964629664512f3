package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// cacheSyncedCheck is the row of cache-synced in All.
var cacheSyncedCheck = Check{
	ID:        "cache-synced",
	Guarantee: "Before a process has been told once of all owners, pods, ReplicaSets, Services and Endpoints that decide about an object, it writes nothing for it.",
	Contract:  "The binary",
	Property:  Safety,
	New:       newCacheSyncedChecker,
}

// cacheSyncedChecker: a process writes nothing for an object before it has been told, once,
// of all there is of each resource that decides about the object, as far as it has
// asked for that. One that never lists a resource may go by something else.
type cacheSyncedChecker struct {
	findings
	exercisedFor map[*process]map[string]bool // what was written for, in each life
}

func newCacheSyncedChecker(Settings) Checker {
	return &cacheSyncedChecker{exercisedFor: map[*process]map[string]bool{}}
}

func (checker *cacheSyncedChecker) Observe(m *Model, r *history.Record) {
	if m.died != nil {
		delete(checker.exercisedFor, m.died)
	}
	c := m.sent
	if c == nil || !r.Request.IsWrite() {
		return
	}
	decides := c.requiredResources()
	if len(decides) == 0 || checker.exercisedFor[c.process][decides[0]] {
		return
	}
	for _, resource := range decides {
		if !c.process.view.neverSynced(resource) {
			continue
		}
		checker.addViolation(func() Evidence {
			return m.evidenceOf(requestRef(r.Request), fmt.Sprintf("%s wrote to %s (%s) before it had been told which %s there are",
				c.process.name, requestRef(r.Request), r.Request.Verb, resource), "no write before all that decides about it is known")
		})
		return
	}
	checker.exercised++
	if checker.exercisedFor[c.process] == nil {
		checker.exercisedFor[c.process] = map[string]bool{}
	}
	checker.exercisedFor[c.process][decides[0]] = true
}

// requiredResources is of which resources a process must know all to decide on a call, the
// one that it is for first; none if it is for nothing that the checks know.
func (c *call) requiredResources() []string {
	switch {
	case c.rollout != nil:
		return []string{deploymentResource, replicaSetResource}
	case c.serviceState != nil:
		return []string{serviceResource, podResource, endpointsResource}
	case c.ownerState == nil:
		return nil
	}
	o := c.ownerState.owner()
	if o == nil {
		return []string{podResource}
	}
	return []string{o.Resource, podResource}
}

// neverSynced reports whether the process has asked for all there is of a resource, and
// has never been told.
func (v *view) neverSynced(resource string) bool {
	return v.requestedAll[resource] && v.reachedVersion[resource] == 0
}
