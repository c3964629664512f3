package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// ownershipCheck demands that controllers respect the controllerRefs of objects. It examines
// committed objects, writes of pods, and deletes. It has four rules:
//
//   - A committed object must not have more than one controller.
//   - A controller of ReplicaSets or ReplicationControllers must delete, adopt and release pods only
//     as the Guarantee says. The check skips a pod that was never in the cache of the process.
//   - A Deployment controller must read a Deployment from the API server before it adopts a
//     ReplicaSet for it. One read may be followed by several adoptions.
//   - A generic controller, which controllers/CONTRACT.md does not describe, must not delete an
//     object of another controller.
//
// For the last rule, the check follows the controllerRef of the object, then that of its owner,
// and so on. The object belongs to another controller if no controller under test watches the kind
// at the end of this chain.
//
// The last rule applies only if a controller under test has controlled an object of the same kind
// before.
var ownershipCheck = Check{
	ID:               "ownership",
	Guarantee:        "An object has at most one controller. A controller deletes no object that another controller controls. A controller of ReplicaSets or ReplicationControllers deletes only pods that its owner controls. It releases only pods that no longer match the selector, and none while their owner is terminating. It adopts only active orphans that match, after it has read the owner from the API server, and with blockOwnerDeletion. A Deployment controller adopts a ReplicaSet only if its last read of the Deployment from the API server returned the same Deployment, and it was not terminating. A patch that adopts or releases a pod contains the UID of the pod.",
	Contract:         "ReplicaSet 5, Deployment 21",
	Property:         Safety,
	Scope:            general,
	ExercisedWhen:    "A controller of ReplicaSets or ReplicationControllers deletes, adopts, releases or otherwise writes a pod that its cache contains. Or a Deployment controller adopts a ReplicaSet. Or a controller without a contract deletes an object that its cache contains, and the controllers under test have controlled an object of the same kind.",
	Ignores:          "Writes other than deletes by a controller without a contract. Deletes of an object that was never in the cache of the process, or of a kind of which no controller under test has controlled an object.",
	AllowedBehaviors: []string{"inactive-pods", "delete-without-precondition", "overlapping-selectors"},
	New:              newOwnershipChecker,
}

// ownershipChecker reports objects with two controllers. It also reports deletes, adoptions and
// releases that no cached version of the object justifies.
//
// The checker examines adoptions, releases and other changes only for pods of ReplicaSets and
// ReplicationControllers. Other controllers may set labels or conditions of objects that they do
// not control.
type ownershipChecker struct{ findings }

func newOwnershipChecker(Settings) Checker { return &ownershipChecker{} }

func (checker *ownershipChecker) Observe(m *Model, r *history.Record) {
	if r.Commit != nil {
		checker.oneController(m, r)
	}
	c := m.sent
	switch {
	case c == nil:
	case (r.Request.Verb == "patch" || r.Request.Verb == "update") && r.Request.Resource == objects.ReplicaSetResource && r.Request.Subresource == "" && m.tested.has(kube.RollsOut):
		checker.adoptsReplicaSet(m, c, r.Request)
	case c.ownerState == nil && (c.pod == nil || m.tested.genericWrites(kube.Pod) || !m.tested.reconciles(kube.ReplicaSet) && !m.tested.reconciles(kube.ReplicationController)):
		checker.deletesNoForeign(m, c)
	case c.pod == nil: // the pod was never in the cache
	case c.verb == callDeletePod:
		checker.deletesItsOwn(m, c)
	case c.verb == callAdoptOrRelease && c.ownershipChange.anyPod:
		checker.exercised++
		checker.report(m, c, "changed the owner references of", " with a patch without the pod's UID", "the UID of the pod in the patch, so that the patch fails for another pod with the same name")
	case c.verb == callAdoptOrRelease && c.ownershipChange.adopts:
		checker.adoptsAnOrphan(m, c)
	case c.verb == callAdoptOrRelease:
		checker.releasesItsOwn(m, c)
	}
}

// oneController reports a committed object with more than one controller, that is, several
// ownerReferences with controller=true.
func (checker *ownershipChecker) oneController(m *Model, r *history.Record) {
	controllers := 0
	for _, o := range r.Commit.Object.Owners {
		if o.Controller {
			controllers++
		}
	}
	if controllers > 1 {
		ref := r.Commit.Object.Ref
		checker.addViolation(func() Evidence {
			return Evidence{
				Summary:  fmt.Sprintf("%s has %d owner references with controller=true", ref, controllers),
				Expected: "at most one owner reference with controller=true",
				Object:   &ref,
				At:       m.now,
				Records:  []int64{m.seq},
			}
		})
	}
}

// deletesItsOwn reports a delete of a pod that no ReplicaSet or ReplicationController controlled.
// The delete is allowed if a recent cached version of the pod has such a controller. It is also
// allowed if the process itself has adopted the pod.
func (checker *ownershipChecker) deletesItsOwn(m *Model, c *call) {
	checker.exercised++
	if _, adopted := c.process.adopted[c.pod.UID]; adopted {
		return
	}
	if !c.anyCachedState(func(s cachedPodState) bool { return m.tested.manages(s.pod) }) {
		checker.report(m, c, "deleted", "", "deletes only of pods that a ReplicaSet or ReplicationController controls")
	}
}

// adoptsAnOrphan reports a wrong adoption of a pod. The new ownerReference must have
// blockOwnerDeletion=true. An adoption is right only if the pod was an orphan in some recent cached
// version. The orphan must be active, and the owner's selector must match it.
//
// After the process received that version, it must have read the owner from the API server. The
// owner must not be terminating in the response to this read.
//
// The method skips an adoption if the owner already controls the pod in the latest cached version.
func (checker *ownershipChecker) adoptsAnOrphan(m *Model, c *call) {
	checker.exercised++
	if states := c.process.view.cachedPodStates(c.pod.UID); len(states) > 0 && states[len(states)-1].pod.Controller.UID == c.ownershipChange.owner {
		return // according to the latest cached version, the write changes nothing
	}
	if c.ownershipChange.notBlocking {
		checker.report(m, c, "adopted", " with an owner reference without blockOwnerDeletion=true", "blockOwnerDeletion=true in the new owner reference")
		return
	}
	o := c.ownerState.owner()
	free := func(s cachedPodState) bool {
		return s.pod.Orphan() && s.pod.Active && (o == nil || c.ownerState.selectorChanged || o.Selector.Matches(s.pod.Labels))
	}
	if !c.anyCachedState(free) {
		checker.report(m, c, "adopted", "", "adoption only of active pods that the selector matches and that have no controller")
		return
	}
	read, ok := c.process.liveReads[c.ownershipChange.owner]
	confirmed := func(s cachedPodState) bool { return free(s) && ok && !read.terminating && s.since < read.sentSeq }
	if !c.anyCachedState(confirmed) {
		checker.report(m, c, "adopted", fmt.Sprintf(" for %s without a read of the owner from the API server since the pod became an orphan", c.ownerState.name()),
			"a read of the owner from the API server after the pod became an orphan, and no deletionTimestamp in the response")
	}
}

// adoptsReplicaSet reports a wrong adoption of a ReplicaSet by a Deployment. The last read of the
// Deployment from the API server must have returned the same Deployment, and it must not be
// terminating. The method skips a ReplicaSet that is no orphan in the cache of the process, and a
// Deployment that is not in this cache.
func (checker *ownershipChecker) adoptsReplicaSet(m *Model, c *call, r *history.Request) {
	view := c.process.view
	set := view.ownerNamed(r.Resource, r.Namespace, r.Name)
	change, err := ownershipChangeOf(r)
	if err != nil || set == nil || set.Controller.UID != "" || !change.adopts {
		return
	}
	d := view.deployments[change.owner]
	if d == nil {
		return
	}
	checker.exercised++
	read, ok := c.process.lastReads[objectName{objects.DeploymentResource, d.Namespace, d.Name}]
	if ok && read.mayAdopt(d.UID) {
		return
	}
	checker.addViolation(func() Evidence {
		found := "without a read of the Deployment from the API server"
		switch {
		case ok && read.uid == "":
			found = "although the API server had no such Deployment"
		case ok && read.uid != d.UID:
			found = fmt.Sprintf("although the API server had another Deployment of this name, with the UID %s instead of %s", read.uid, d.UID)
		case ok:
			found = "although the Deployment was terminating"
		}
		return m.evidenceOf(&set.Ref, fmt.Sprintf("%s adopted %s for %s %s", c.process.name, set, d, found),
			"a read of the Deployment from the API server before the adoption, with the same UID and no deletionTimestamp in the response")
	})
}

// releasesItsOwn reports a wrong release of a pod, or another wrong write that is no delete or
// adoption.
//
// In some recent cached version, a ReplicaSet or ReplicationController under test must control
// the pod. For a release, this owner's selector must not match the pod in that version, and the
// owner must not be terminating.
func (checker *ownershipChecker) releasesItsOwn(m *Model, c *call) {
	checker.exercised++
	if !c.anyCachedState(func(s cachedPodState) bool { return m.tested.manages(s.pod) }) {
		checker.report(m, c, "wrote to", "", "writes only to pods that a ReplicaSet or ReplicationController controls")
		return
	}
	if !c.ownershipChange.releases || c.ownerState == nil || c.ownerState.selectorChanged || c.ownerState.owner() == nil {
		return
	}
	o := c.ownerState.owner()
	if c.ownerState.deleteBound.sinceIdle.low == unlimited {
		checker.report(m, c, "released", fmt.Sprintf(" from %s, which is terminating", o), "no release by an owner that is terminating")
		return
	}
	if !c.anyCachedState(func(s cachedPodState) bool { return s.pod.Controller.UID == o.UID && !o.Selector.Matches(s.pod.Labels) }) {
		checker.report(m, c, "released", fmt.Sprintf(" from %s", o), "release only of pods that the selector does not match")
	}
}

// report reports a wrong write of a pod. The string verb says what the process did, such as
// "adopted". The string detail completes this text, and may be empty. The string expected describes
// what the check expected instead. The evidence also names the controller that the pod has in the
// cache of the process.
func (checker *ownershipChecker) report(m *Model, c *call, verb, detail, expected string) {
	checker.addViolation(func() Evidence {
		controller := "no controller"
		if !c.pod.Orphan() {
			controller = fmt.Sprintf("controller %s %s", c.pod.Controller.Kind, c.pod.Controller.Name)
		}
		return Evidence{
			Summary:  fmt.Sprintf("%s %s %s%s; in its cache the pod has %s", c.process.name, verb, podName(c.pod), detail, controller),
			Expected: expected,
			Object:   podRef(c.pod),
			At:       m.now,
			Records:  []int64{c.process.view.podStateSince[c.pod.UID], m.seq},
		}
	})
}

// deletesNoForeign reports a delete by a generic controller if the deleted object belongs to
// another controller. A generic controller is one that controllers/CONTRACT.md does not describe,
// such as the Job controller. The method follows the controllerRefs in the cache of the process. It
// skips an object if no generic controller under test controls objects of the same resource in this
// cache.
func (checker *ownershipChecker) deletesNoForeign(m *Model, c *call) {
	if c.generic == nil || !c.generic.deletes || c.generic.object == nil {
		return
	}
	view, o := c.process.view, c.generic.object
	if !view.metadata.childResources[o.Resource] {
		return
	}
	checker.exercised++
	if !view.metadata.foreign(o) {
		return
	}
	checker.addViolation(func() Evidence {
		return m.evidenceOf(&o.Ref, fmt.Sprintf("%s deleted %s; in its cache the object has %s", c.process.name, o, o.describeController()),
			"deletes only of objects that no other controller controls")
	})
}
