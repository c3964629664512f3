package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// cacheSyncedCheck examines each write for an object until the caches for that kind of
// object have synced. For a controller without a contract, these are the caches of all kinds
// that its row in the registry lists as watched.
//
// It skips a resource if the process never lists or watches all objects of it, because the
// process may then get the state from elsewhere.
var cacheSyncedCheck = Check{
	ID:        "cache-synced",
	Guarantee: "A controller writes nothing until its informer caches have synced.",
	Contract:  "The binary",
	Property:  Safety,
	Scope:     general,
	New:       newCacheSyncedChecker,
}

// cacheSyncedChecker reports writes for an object before all caches that the object
// depends on have synced.
type cacheSyncedChecker struct {
	findings
	exercisedFor map[*process]map[string]bool // resources for which each process has sent writes after its caches had synced
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
	required := c.requiredResources()
	if len(required) == 0 || checker.exercisedFor[c.process][required[0]] {
		return
	}
	for _, resource := range required {
		if !c.process.view.neverSynced(resource) {
			continue
		}
		checker.addViolation(func() Evidence {
			return m.evidenceOf(requestRef(r.Request), fmt.Sprintf("%s sent %s %s before its cache of %s had synced",
				c.process.name, r.Request.Verb, requestRef(r.Request), resource), "no write before the caches have synced")
		})
		return
	}
	checker.exercised++
	if checker.exercisedFor[c.process] == nil {
		checker.exercisedFor[c.process] = map[string]bool{}
	}
	checker.exercisedFor[c.process][required[0]] = true
}

// requiredResources returns the resources whose caches must have synced before a call.
//
// The first element is the resource of the object that the controller was reconciling. The
// result is nil if that object is unknown.
func (c *call) requiredResources() []string {
	switch {
	case c.rollout != nil:
		return []string{objects.DeploymentResource, objects.ReplicaSetResource}
	case c.serviceState != nil:
		return []string{objects.ServiceResource, objects.PodResource, objects.EndpointsResource}
	case c.generic != nil:
		return c.process.tested.requiredFor(c.generic.kind)
	case c.ownerState == nil:
		return nil
	}
	o := c.ownerState.owner()
	if o == nil {
		return []string{objects.PodResource}
	}
	return []string{o.Resource, objects.PodResource}
}

// neverSynced reports whether the cache of a resource has not synced. It returns false
// if the process has not listed or watched all objects of the resource.
func (v *view) neverSynced(resource string) bool {
	return v.requestedAll[resource] && v.reachedVersion[resource] == 0
}
