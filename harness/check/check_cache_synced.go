package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// cacheSyncedCheck demands that a controller writes nothing until its informer caches have synced.
// It examines the first writes of each process for each kind of object that the process reconciles.
//
// After one write with all required caches synced, the check examines no further writes for the
// same kind. The function requiredResources returns the required caches. For a controller that
// controllers/CONTRACT.md does not describe, these are the caches of all kinds that the controller
// watches. Package kube lists these kinds.
//
// A cache is not required if the process never lists or watches all objects of the resource. The
// process may then read the objects in another way.
var cacheSyncedCheck = Check{
	ID:            "cache-synced",
	Guarantee:     "A controller writes nothing until its informer caches have synced.",
	Contract:      "The binary",
	Property:      Safety,
	Scope:         general,
	ExercisedWhen: "A process sends its first write for a kind of object, after all caches that the kind requires have synced.",
	Ignores:       "Writes for which the history does not show the reconciled object. Caches of resources that the process never lists or watches as a whole.",
	New:           newCacheSyncedChecker,
}

// cacheSyncedChecker reports a write if a cache that the controller needs for the reconciled
// object has not synced.
type cacheSyncedChecker struct {
	findings
	// exercisedFor contains, for each process, the resources of reconciled objects for which the
	// checker is done. The process has sent a write for such an object after all required caches had
	// synced. The checker does not examine later writes for these resources.
	exercisedFor map[*process]map[string]bool
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

// requiredResources returns the resources whose caches must have synced before the process sends
// the request.
//
// The first element is usually the resource of the object that the controller reconciles. If a
// reconciled ReplicaSet or ReplicationController is not in the cache, its resource is unknown. The
// result then contains only pods. The result is nil if the model does not know for which object the
// process sent the request.
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

// neverSynced reports whether the process has requested all objects of a resource, but has not
// received them yet. It returns false if the process has requested only some of the objects, for
// example with a selector.
func (v *view) neverSynced(resource string) bool {
	return v.requestedAll[resource] && v.reachedVersion[resource] == 0
}
