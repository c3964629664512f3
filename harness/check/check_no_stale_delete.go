package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// noStaleDeleteCheck demands that a controller deletes no data because of an outdated version of
// the object or of its owner. It examines deletes of objects that hold data, and scale-downs of
// StatefulSets. It has two rules.
//
// The first rule concerns two objects with the same name and different UIDs. A process received one
// of them. The process then deletes the other one, which it has never received, or removes a
// finalizer from it. A UID precondition would have made the API server refuse the write.
//
// The second rule concerns the owner of the object, such as a custom resource. Example: a user
// scales the owner from 3 to 2 and back to 3. The leader creates the third PersistentVolumeClaim
// again. After a failover, the cache of the new leader still says 2, and the new leader deletes the
// PersistentVolumeClaim.
//
// The delete was wrong if all these facts hold:
//
//   - A change of the owner was committed, and a controller under test received it.
//   - The object was created later. An older version of the owner is therefore no reason to delete
//     this object.
//   - The process that deleted the object had not created it, and had not received the change
//     of the owner. This happens after a restart with a stale list, or after a failover.
//   - After the delete, the object was created again, although the owner had not changed in the
//     meantime.
//
// A UID precondition does not prevent a violation of the second rule. A controller prevents it by a
// read of the owner from the API server before the delete.
var noStaleDeleteCheck = Check{
	ID:            "no-stale-delete",
	Guarantee:     "A controller does not delete an object that holds data because of an outdated version of the object or of its owner.",
	Contract:      "Kubernetes documentation, Kubernetes API Concepts, Resource versions",
	Property:      Safety,
	Scope:         general,
	ExercisedWhen: "The API server accepts a request of the subject that deletes an object that holds data, removes a finalizer from such an object, or scales a StatefulSet down.",
	Ignores: "Objects other than PersistentVolumes, PersistentVolumeClaims, StatefulSets, Secrets, ConfigMaps and custom resources. Deletes of a whole collection. Removals of finalizers, unless the process has received only an older object with the same name. " +
		"Owners that no controller under test without a contract reconciles. An owner is related to an object by an ownerReference, or by a label of the object whose value is the name of the owner. " +
		"A delete after which no object with the same name is created. A delete after which the owner changes. An owner that is terminating or deleted. An object that a step of the workload names. Deletes without a successful response of the API server.",
	New: newNoStaleDeleteChecker,
}

// noStaleDeleteChecker reports deletes and scale-downs that only an outdated version of the
// object or of its owner explains.
type noStaleDeleteChecker struct {
	findings
	received receivedVersions                // the newest version of each object that each process has received
	owners   map[objectName]*reconciledOwner // objects that a generic controller under test reconciles
	objects  map[objectName]*dataObject      // objects that hold data
	// unanswered contains the writes without a response, by request ID.
	unanswered map[uint64]*dataWrite
	// contradicted contains, for each object, the last successful delete or scale-down that may be
	// wrong. An outdated version of an owner may have caused such a write. The checker reports the
	// write if the object is created or scaled up again.
	contradicted map[objectName]*dataWrite
	// grownBy maps the UID of each object to the process that last created it or scaled it up.
	// This process may delete the object again. The entry is removed when the process starts again.
	grownBy map[types.UID]string
	// unreceived contains the owners whose latest change has reached no process of the subject
	// yet.
	unreceived map[objectName]bool
	// userObjects contains the objects that steps of the workload created or changed. If such an
	// object is created again after a delete, a user may have done so. The checker then does not
	// report that an outdated version of an owner caused the delete.
	userObjects map[objectName]bool
}

// reconciledOwner is the committed state of an object that a generic controller under test
// reconciles, such as a custom resource.
type reconciledOwner struct {
	*history.Object
	// changed is the version in which the owner last changed its UID, generation or
	// deletionTimestamp. If the kind has no generation, it is the current version.
	changed recordVersion
	// knownSeq is the sequence number of the record with which the first process under test
	// received the version reconciledOwner.changed. It is 0 if no process has received this
	// version.
	knownSeq int64
}

// recordVersion is the resourceVersion of a committed object, with the sequence number of the
// commit record.
type recordVersion struct {
	version history.Version
	seq     int64
}

// dataObject is the committed state of an object that holds data, such as a PersistentVolumeClaim
// (see holdsData).
type dataObject struct {
	*history.Object
	created  int64 // sequence number of the record that shows the creation
	replicas int   // spec.replicas of a StatefulSet; 0 for other kinds
	scaledUp int64 // sequence number of the last commit that created the object or raised spec.replicas
}

// dataWrite is a request of a controller under test that creates, changes or deletes an object that
// holds data.
type dataWrite struct {
	*history.Request
	name   objectName
	seq    int64       // sequence number of the request record
	target dataObject  // the committed state of the object when the process sent the write
	cached history.Ref // the newest version of an object with this name that the process had received
	// owner is an owner of the written object whose last change the process had not received when
	// it sent the write. If there is no such owner, it is nil. dataWrite.changed is the first
	// version with that change. dataWrite.read is the newest version of the owner that the process
	// may have received.
	owner   *history.Ref
	changed recordVersion
	read    history.Version
}

func newNoStaleDeleteChecker(Settings) Checker {
	return &noStaleDeleteChecker{
		received: receivedVersions{}, owners: map[objectName]*reconciledOwner{}, objects: map[objectName]*dataObject{},
		unanswered: map[uint64]*dataWrite{}, contradicted: map[objectName]*dataWrite{}, userObjects: map[objectName]bool{},
		grownBy: map[types.UID]string{}, unreceived: map[objectName]bool{},
	}
}

func (checker *noStaleDeleteChecker) Observe(m *Model, r *history.Record) {
	checker.received.observe(m, r)
	switch {
	case r.Commit != nil:
		checker.commit(m, r.Commit)
	case r.Step != nil && r.Step.Object != nil:
		checker.userObjects[nameOf(*r.Step.Object)] = true
	case r.Request != nil && mayAffectData(r.Request):
		checker.sent(m, r.Request)
	case r.Response != nil && checker.unanswered[r.Response.ID] != nil:
		checker.answered(m, checker.unanswered[r.Response.ID], r.Response)
		delete(checker.unanswered, r.Response.ID)
	case processStarts(r):
		maps.DeleteFunc(checker.grownBy, func(_ types.UID, process string) bool { return process == r.Process.Name })
	}
	checker.recordKnown(m)
}

// statefulSetResource is the resource of StatefulSets in history records.
const statefulSetResource = "statefulsets.apps"

// holdsData reports whether users usually lose data if an object of the given resource is lost.
// It returns true for a custom resource, unless its API group ends in k8s.io or package kube has a
// table row for it.
func holdsData(resource string) bool {
	switch resource {
	case "persistentvolumes", "persistentvolumeclaims", statefulSetResource, "secrets", "configmaps":
		return true
	}
	_, group, _ := strings.Cut(resource, ".")
	_, known := kube.ByResource(resource)
	return strings.Contains(group, ".") && !strings.HasSuffix("."+group, ".k8s.io") && !known
}

// mayAffectData reports whether a request may create, delete or scale an object that holds data, or
// change its finalizers. The check no-stale-delete must remember these requests. See holdsData.
func mayAffectData(r *history.Request) bool {
	switch {
	case !r.IsWrite():
		return false
	case r.Verb == "delete" || r.Verb == "create":
		return r.Subresource == "" && r.ObjectName() != "" && holdsData(r.Resource)
	}
	return (r.Verb == "update" || r.Verb == "patch") && r.Subresource != "status" && holdsData(r.Resource)
}

// replicasIn returns the spec.replicas of an object. It returns 0 if the object is nil or lacks
// the field.
func replicasIn(o *history.Object) int {
	var body struct{ Spec struct{ Replicas int } }
	if o == nil || objects.Unmarshal(o.Body, &body) != nil {
		return 0
	}
	return body.Spec.Replicas
}

// commit stores a committed version of an object, with which the checker compares later writes. It
// forgets deleted objects. It ignores an object that holds no data, unless a generic controller
// under test reconciles it. A generic controller is one without a contract.
//
// A version may show that an object was created or scaled up again. commit then calls undone, which
// may report the earlier delete or scale-down.
func (checker *noStaleDeleteChecker) commit(m *Model, c *history.Commit) {
	o, name := &c.Object, nameOf(c.Object.Ref)
	if c.Type == history.Deleted {
		delete(checker.owners, name)
		delete(checker.objects, name)
		delete(checker.unreceived, name)
		delete(checker.grownBy, o.UID)
		return
	}
	if m.tested.genericKindOf(o.Resource) != "" {
		owner, former := &reconciledOwner{Object: o, changed: recordVersion{o.Version, m.seq}}, checker.owners[name]
		if former != nil && o.Generation > 0 && former.UID == o.UID && former.Generation == o.Generation && former.Terminating() == o.Terminating() {
			owner.changed, owner.knownSeq = former.changed, former.knownSeq
		}
		checker.owners[name] = owner
		if owner.knownSeq == 0 {
			checker.unreceived[name] = true
		}
	}
	if !holdsData(o.Resource) {
		return
	}
	now, former := &dataObject{Object: o, created: m.seq, scaledUp: m.seq}, checker.objects[name]
	if o.Resource == statefulSetResource {
		now.replicas = replicasIn(o)
	}
	if former != nil && former.UID == o.UID {
		now.created = former.created
		if now.replicas <= former.replicas {
			now.scaledUp = former.scaledUp
		}
	}
	checker.objects[name] = now
	checker.undone(m, now)
}

// recordKnown finds owners whose latest change has now reached a process under test. It removes
// these owners from unreceived, and sets their field knownSeq. The checker compares later writes
// only with a change that some process has received.
func (checker *noStaleDeleteChecker) recordKnown(m *Model) {
	for name := range checker.unreceived {
		owner := checker.owners[name]
		for _, received := range checker.received {
			if received[name].Version >= owner.changed.version {
				owner.knownSeq = m.seq
				delete(checker.unreceived, name)
			}
		}
	}
}

// sent stores a write that a process sends. It marks the write as suspicious if the process has not
// received the last change of an owner (see contradict). It does not mark the write if the process
// itself created the object or scaled it up.
func (checker *noStaleDeleteChecker) sent(m *Model, r *history.Request) {
	name := objectName{r.Resource, r.Namespace, r.Name}
	if r.Verb == "create" {
		name.name = r.ObjectName()
	}
	w := &dataWrite{Request: r, name: name, seq: m.seq, cached: checker.received[r.Subject][name]}
	checker.unanswered[r.ID] = w
	target := checker.objects[name]
	if target == nil || target.Terminating() {
		return // there is no object that the write can destroy
	}
	w.target = *target
	if checker.grownBy[target.UID] == r.Subject {
		return // the process created the object or scaled it up itself, and may undo this
	}
	since := target.created
	if r.Verb != "delete" {
		since = target.scaledUp
	}
	for _, owner := range checker.ownersOf(target) {
		checker.contradict(m, w, owner, since)
	}
}

// ownersOf returns the owners of an object, sorted by name. An owner is a reconciled object in the
// same namespace to which the object has an ownerReference. A reconciled object in this namespace
// also counts as an owner if one of the object's labels has its name as the value.
func (checker *noStaleDeleteChecker) ownersOf(o *dataObject) []*reconciledOwner {
	var found []*reconciledOwner
	for name, owner := range checker.owners {
		if name.namespace == o.Namespace && owner.UID != o.UID && (hasOwner(o.Object, owner.UID) || hasLabelValue(o.Object, name.name)) {
			found = append(found, owner)
		}
	}
	slices.SortFunc(found, func(a, b *reconciledOwner) int { return strings.Compare(a.String(), b.String()) })
	return found
}

// hasOwner reports whether an object has an ownerReference with the given UID, with or without
// controller=true.
func hasOwner(o *history.Object, uid types.UID) bool {
	return slices.ContainsFunc(o.Owners, func(owner history.Owner) bool { return owner.UID == uid })
}

// hasLabelValue reports whether any label of an object has the given value, such as the name of a
// custom resource.
func hasLabelValue(o *history.Object, value string) bool {
	return slices.Contains(slices.Collect(maps.Values(o.Labels)), value)
}

// contradict marks the write w as suspicious: it sets w.owner, w.changed and w.read. A write is
// suspicious if two conditions hold. The process that sent it had not received the last change of
// the owner. Some process under test had received this change before the object was created or
// scaled up. The parameter since is the sequence number of that creation or scale-up.
//
// A terminating owner makes no write suspicious.
func (checker *noStaleDeleteChecker) contradict(m *Model, w *dataWrite, owner *reconciledOwner, since int64) {
	process := m.processes[w.Subject]
	if process == nil || owner.Terminating() || owner.knownSeq == 0 || owner.knownSeq >= since {
		return
	}
	read := max(checker.received[w.Subject][nameOf(owner.Ref)].Version, process.view.reachedVersion[owner.Resource])
	if read < owner.changed.version {
		ref := owner.Ref
		w.owner, w.changed, w.read = &ref, owner.changed, read
	}
}

// answered processes the response to a write that created, changed or deleted data. It reports a
// write that destroyed an object of which the process had received only a predecessor: an older
// object with the same name and another UID. It adds a suspicious write to the map contradicted: an
// outdated version of an owner may have caused this write. The method undone reports the write if
// the object is created or scaled up again.
func (checker *noStaleDeleteChecker) answered(m *Model, w *dataWrite, r *history.Response) {
	if r.ServerCode < 200 || r.ServerCode >= 300 {
		return
	}
	if w.grows(r.Object) {
		checker.grownBy[r.Object.UID] = w.Subject
	}
	act := w.destroys(r.Object)
	if act == "" {
		return
	}
	checker.exercised++
	if w.cached.UID != "" && w.cached.UID != w.target.UID && w.cached.Version < w.target.Version {
		checker.addViolation(func() Evidence {
			return Evidence{
				Summary:  fmt.Sprintf("%s %s %s with UID %s; the process had received only an older object with this name, UID %s", w.Subject, act, w.target.Ref, w.target.UID, w.cached.UID),
				Expected: "a request with a UID precondition",
				Object:   &w.target.Ref, At: m.now, Records: []int64{w.target.created, w.seq, m.seq},
			}
		})
	} else if w.owner != nil && act != removedFinalizer {
		checker.contradicted[w.name] = w
	}
}

// grows reports whether the write created the object or scaled up a StatefulSet. The parameter
// made is the object in the response.
func (w *dataWrite) grows(made *history.Object) bool {
	return made != nil && (w.Verb == "create" || w.Resource == statefulSetResource && replicasIn(made) > w.target.replicas)
}

// removedFinalizer is the result of the method destroys for a write that removed a finalizer.
const removedFinalizer = "removed a finalizer of"

// destroys describes in words what the write did to the object. The result is "deleted", "scaled
// down", "removed a finalizer of", or "" if the write destroyed nothing. The parameter made is
// the object in the response.
func (w *dataWrite) destroys(made *history.Object) string {
	lost := func(finalizer string) bool { return !slices.Contains(made.Finalizers, finalizer) }
	switch {
	case w.target.Object == nil || w.Verb == "create":
		return ""
	case w.Verb == "delete":
		return "deleted"
	case made == nil:
		return ""
	case w.Resource == statefulSetResource && replicasIn(made) < w.target.replicas:
		return "scaled down"
	case w.Subresource == "" && slices.ContainsFunc(w.target.Finalizers, lost):
		return removedFinalizer
	}
	return ""
}

// undone reports a wrong delete or scale-down of an object when the object is created or scaled up
// again. The parameter latest is the new version of the object, which shows this.
//
// The map contradicted contains the deletes and scale-downs that may be wrong, because an outdated
// version of an owner may have caused them. undone reports nothing if this owner has changed again
// or no longer exists. It also reports nothing if a step of the workload names the object, because
// a user may have created it again.
func (checker *noStaleDeleteChecker) undone(m *Model, latest *dataObject) {
	name := nameOf(latest.Ref)
	w := checker.contradicted[name]
	if w == nil {
		return
	}
	created := w.Verb == "delete" && latest.UID != w.target.UID
	scaled := w.Verb != "delete" && latest.UID == w.target.UID && latest.replicas >= w.target.replicas && latest.scaledUp > w.seq
	if !created && !scaled {
		return
	}
	delete(checker.contradicted, name)
	owner := checker.owners[nameOf(*w.owner)]
	if owner == nil || owner.changed != w.changed || checker.userObjects[name] {
		return
	}
	checker.addViolation(func() Evidence {
		act, grown, since := "deleted", "created", w.target.created
		if scaled {
			act, grown, since = "scaled down", "scaled up", w.target.scaledUp
		}
		return Evidence{
			Summary: fmt.Sprintf("%s %s %s, but had received %s only up to version %d; a process of the subject had received version %d before the object was %s; later, the object was %s again",
				w.Subject, act, w.target.Ref, owner.Ref, w.read, w.changed.version, grown, grown),
			Expected: fmt.Sprintf("a read of %s from the API server before the write", owner.Ref),
			Object:   &w.target.Ref, At: m.now, Records: []int64{w.changed.seq, since, w.seq, m.seq},
		}
	})
}
