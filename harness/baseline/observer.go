package baseline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// Observer reads the history of one run, and derives facts such as the number of Services at the
// end. A baseline contains the facts that several runs without faults have in common.
type Observer struct {
	// FailedStep describes the first workload step that failed. It is empty if no step failed.
	FailedStep string
	// LateStep describes the last workload step whose awaited condition was not met in time. It is empty
	// if there was none.
	LateStep string

	late       int             // index of the last step whose awaited condition was not met in time; -1 if there is none
	failedStep *history.Record // the record of the step that FailedStep describes; nil if no step failed
	start      history.Start
	gone       map[types.UID]bool         // UIDs of the objects that no longer exist
	live       map[string]*history.Object // last committed version of each existing object, by a key such as "services default/web"
	// unobserved has the keys of the effects of each existing object that the controllers under test
	// created, but whose resource the history does not observe. The keys of the map are such as
	// "secrets default/web".
	unobserved map[string]string
	writes     map[uint64]*write     // writes without a response, by request ID
	written    []string              // resources that the controllers under test write
	counts     map[string]*effects   // effects on each object, by a key such as "services default/web"
	responses  map[string]*responses // the responses that counts is about, by the same key
	// fromOldView has the UIDs of the existing objects that the controllers under test may have created
	// from an old view. The value says how often they had deleted an object with this name.
	fromOldView map[types.UID]int
	// replaced has the values of fromOldView of the objects that the controllers under test deleted, by a
	// key such as "services default/web".
	replaced map[string][]int
	// staleFaults has the indexes of the faults in StaleViewFaults that have fired and are not healed.
	// staleUntil is when the last of them was healed.
	staleFaults  map[int]bool
	staleUntil   time.Duration
	now          time.Duration      // the time of the last record
	staleViews   bool               // true if one of the faults in StaleViewFaults fired
	failedWrites map[string]bool    // the existing objects to which a write failed, other than a create or delete, by a key such as "services default/web"
	deletes      map[types.UID]bool // UIDs of the objects that the controllers under test deleted and that still exist
}

// write is a request that the controllers under test sent.
type write struct {
	verb      string
	object    string    // the object to write, such as "services default/web"
	key       string    // the key of the object's effects, which is equal in every run, such as "pods default/web-*"
	uid       types.UID // the UID of the object to delete; empty for a create
	generated bool      // true if the name of the object to create differs between runs
	// unobserved is true for the delete of an object in Observer.unobserved.
	unobserved bool
	// afterFailedWrite is true for the delete of an object with a generated name after a failed write of the
	// object.
	afterFailedWrite bool
}

// NewObserver returns an observer that has read no record of a run yet.
func NewObserver() *Observer {
	return &Observer{late: -1, live: map[string]*history.Object{}, writes: map[uint64]*write{}, counts: map[string]*effects{}, responses: map[string]*responses{}, unobserved: map[string]string{}, failedWrites: map[string]bool{}, deletes: map[types.UID]bool{}, gone: map[types.UID]bool{}, fromOldView: map[types.UID]int{}, staleFaults: map[int]bool{}, replaced: map[string][]int{}}
}

// Observe reads the next record of the run's history, and updates the facts that End and Effects
// return.
func (o *Observer) Observe(r *history.Record) {
	o.now = r.At
	switch {
	case r.Start != nil:
		o.start = *r.Start
	case r.Commit != nil:
		o.commit(r.Commit)
	case r.Fault != nil && r.Fault.Event == history.FaultFired && slices.Contains(StaleViewFaults, r.Fault.Name):
		o.staleViews, o.staleFaults[r.Fault.Index] = true, true
	case r.Fault != nil && r.Fault.Event == history.FaultHealed && o.staleFaults[r.Fault.Index]:
		o.staleUntil = r.At
		delete(o.staleFaults, r.Fault.Index)
	case r.Request != nil && r.Request.IsWrite():
		o.send(r.Request)
	case r.Response != nil && o.writes[r.Response.ID] != nil:
		w := o.writes[r.Response.ID]
		if created := r.Response.Object; w.verb == "patch" && created != nil { // the patch may not contain the metadata
			w.key, w.generated = stableKey(created), created.HasGeneratedName()
		}
		before := o.effectsOn(w.key)
		o.answer(w, r.Response)
		o.record(w.key, before, r)
		delete(o.writes, r.Response.ID)
	case r.Step != nil && r.Step.Event == history.StepLate:
		o.late = r.Step.Index
		o.LateStep = fmt.Sprintf("step %d (%s)", r.Step.Index, r.Step.Detail)
	case r.Step != nil && r.Step.Event == history.StepFailed && o.failedStep == nil:
		o.failedStep = r
		o.FailedStep = fmt.Sprintf("step %d (%s) failed: %s", r.Step.Index, r.Step.Detail, r.Step.Error)
	}
}

// commit updates the facts with a committed version of an object. If the object has disappeared
// and the controllers under test have not deleted it, commit counts it as lost.
func (o *Observer) commit(c *history.Commit) {
	key := c.Object.Ref.String()
	delete(o.unobserved, key) // the response to its create came before this record
	if c.Type != history.Deleted {
		o.live[key] = &c.Object
		return
	}
	delete(o.live, key)
	delete(o.failedWrites, key)
	o.gone[c.Object.UID] = true
	if !o.deletes[c.Object.UID] {
		o.effectsOf(stableKey(&c.Object)).lost++
	}
	delete(o.deletes, c.Object.UID)
}

// Unfinished returns a text about the failed step, if the run did not carry out every operation of
// the workload. It returns "" if no step failed, or if only a wait for a condition (await) failed
// after all operations. In both cases, the run must end with the objects of the baseline.
//
// The parameter lastOperation is the index of the last step with an operation, such as create.
func (o *Observer) Unfinished(lastOperation int) string {
	if o.failedStep != nil && o.failedStep.Step.Awaited != nil && o.failedStep.Step.Index >= lastOperation {
		return ""
	}
	return o.FailedStep
}

// Unmet returns the record of a failed step that awaits a condition. The condition was not met, not even
// after all faults were healed. Unmet returns nil if there is no such step.
func (o *Observer) Unmet() *history.Record {
	if o.failedStep == nil || o.failedStep.Step.Awaited == nil || o.failedStep.Step.Index != o.late {
		return nil
	}
	return o.failedStep
}

// Conditions returns the conditions in the status of an existing object, such as "Ready=False
// (MissingData)", sorted by type. It returns "" if the object has none.
func (o *Observer) Conditions(ref history.Ref) string {
	object := o.live[ref.String()]
	if object == nil {
		return ""
	}
	generic, err := objects.NewDecoder().Generic(object)
	if err != nil {
		return "" // a custom resource may have any content
	}
	var texts []string
	for _, c := range generic.Conditions {
		texts = append(texts, strings.TrimSuffix(fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason), " ()"))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// Written returns the resources of the objects that the controllers under test have written so far.
// It omits leases, events and access reviews. If they have written the status of such objects, the
// list also has an entry such as "deployments.apps/status".
func (o *Observer) Written() []string { return slices.Clone(o.written) }

// End returns facts about the objects that exist now. For each name, one fact contains the number
// of objects with this name. Objects with generated names count together. An object
// with a fixed name also has one fact for each field, if the list withFields contains its resource.
//
// The fields of the status are included only if the list contains the resource with "/status".
//
// End leaves out fields that depend on times, on the scheduler or on earlier states. These are
// annotations, messages of conditions, and all fields of pods, Endpoints, EndpointSlices and
// ControllerRevisions of a controller. It also leaves out nodes, leases, events, ended pods, and pods with a
// generated name but without a controller.
//
// End also leaves out objects that the garbage collector must still delete. The collector may start to
// watch the objects of a custom resource about 30 s after its definition exists. A short run may end
// before the collector deletes objects.
func (o *Observer) End(withFields []string) Facts {
	counts, facts := map[string]int{}, Facts{}
	byUID := map[types.UID]*history.Object{}
	for _, object := range o.live {
		byUID[object.UID] = object
	}
	for _, object := range o.live {
		if !counted(object) || o.isGarbage(object, byUID) {
			continue
		}
		key := stableKey(object)
		counts[key]++
		if !HasGeneratedName(key) && slices.Contains(withFields, object.Resource) && !slices.Contains(scheduled, object.Resource) {
			facts.addFields(key, object, slices.Contains(withFields, object.Resource+statusSuffix))
		}
	}
	for key, n := range counts {
		facts[key] = fmt.Sprint(n)
	}
	return facts
}

// isGarbage reports whether the garbage collector must still delete an object. All its owners are
// then gone, or are garbage themselves. Endpoints have no owner, and are garbage with their Service.
//
// An object with a deletionTimestamp and a finalizer is not garbage. A controller may have to remove
// the finalizer.
func (o *Observer) isGarbage(object *history.Object, byUID map[types.UID]*history.Object) bool {
	if object.Resource == "endpoints" && len(object.Owners) == 0 {
		service := o.live[history.Ref{Resource: "services", Namespace: object.Namespace, Name: object.Name}.String()]
		return service != nil && o.isGarbage(service, byUID)
	}
	held := object.Terminating() && len(object.Finalizers) > 0
	return !held && o.lostOwners(object, byUID, 0)
}

// ownerDepthMax is the maximum number of owners above an object that lostOwners follows.
const ownerDepthMax = 10

// lostOwners reports whether an object has owners, and all of them are gone or have lost their own
// owners. The argument byUID contains all existing objects.
func (o *Observer) lostOwners(object *history.Object, byUID map[types.UID]*history.Object, depth int) bool {
	if len(object.Owners) == 0 || depth == ownerDepthMax {
		return false
	}
	return !slices.ContainsFunc(object.Owners, func(owner history.Owner) bool {
		existing := byUID[owner.UID]
		return !o.gone[owner.UID] && (existing == nil || !o.lostOwners(existing, byUID, depth+1))
	})
}

// stableKey returns a key for the object that is equal in every run, such as "pods default/web-*".
//
// All ControllerRevisions of one controller have the same key. Some programs put a counter into their
// names, which depends on how often the history of revisions has changed.
func stableKey(o *history.Object) string {
	name := o.StableName()
	if owner := o.ControllerRef(); owner != nil && o.Resource == revisionResource {
		name = owner.Name + "-*"
	}
	return history.Ref{Resource: o.Resource, Namespace: o.Namespace, Name: name}.String()
}

// revisionResource is the resource of the objects in which StatefulSets, DaemonSets and other objects
// keep earlier states of their templates.
const revisionResource = "controllerrevisions.apps"

// counted reports whether [Observer.End] counts an object. It does not count nodes, leases, events,
// ended pods, and pods with a generated name but without a controller.
func counted(o *history.Object) bool {
	switch {
	case history.IsBookkeeping(o.Resource) || o.IsLeaderLock() || o.Resource == "nodes":
		return false
	case o.Resource != objects.PodResource:
		return true
	}
	return !ended(o) && (o.GenerateName == "" || o.ControllerRef() != nil)
}

// ended reports whether an object is a pod that has ended, or cannot be decoded.
func ended(o *history.Object) bool {
	if o.Resource != objects.PodResource {
		return false
	}
	var pod struct{ Status struct{ Phase string } }
	err := objects.Unmarshal(o.Body, &pod)
	return err != nil || pod.Status.Phase == "Failed" || pod.Status.Phase == "Succeeded"
}

// scheduled lists the resources whose fields depend on the scheduler, such as pods.
// [Observer.End] leaves these fields out, because they differ between runs.
var scheduled = []string{objects.PodResource, "endpoints", "endpointslices.discovery.k8s.io"}

// statusSuffix follows a resource in the list [Baseline.Written], if the controllers under test
// write the status of such objects.
const statusSuffix = "/status"

// addFields adds one fact for each field of an object, except annotations and details of
// ownerReferences. It adds the status only if withStatus is true. Each key consists of the
// parameter key and the path of the field, such as "services default/web spec/type".
func (f Facts) addFields(key string, o *history.Object, withStatus bool) {
	for path, value := range objects.Fields(o) {
		top, _, _ := strings.Cut(path, "/")
		switch {
		case strings.HasPrefix(path, "metadata/annotations/") || strings.HasPrefix(path, "metadata/ownerReferences/"):
		case top != "status":
			f.add(key+" "+path, value)
		case withStatus && !dependsOnHistory(path):
			f.add(key+" "+path, statusValue(o, path, value))
		}
	}
	for _, owner := range o.Owners {
		f.add(fmt.Sprintf("%s metadata/ownerReferences/%s/%s", key, owner.Kind, owner.Name), "set")
	}
}

// currentGeneration is the value of an observedGeneration that is equal to the generation of its
// object. The number itself would differ between runs, because it depends on how many updates led
// to the same spec.
const currentGeneration = "current"

// dependsOnHistory reports whether a field of a status may depend on earlier states of the object.
// Two correct runs may differ in such a field. A message may quote an error, and a condition may
// date from an earlier generation.
func dependsOnHistory(path string) bool {
	return strings.HasSuffix(path, "/message") || strings.HasSuffix(path, "/observedGeneration") && path != "status/observedGeneration"
}

// statusValue returns the value of a field of an object's status, in the form in which runs are
// compared. It sorts the items of a list, because their order does not matter. For an
// observedGeneration that is up to date, it returns currentGeneration.
func statusValue(o *history.Object, path, value string) string {
	if path == "status/observedGeneration" && value == fmt.Sprint(o.Generation) {
		return currentGeneration
	}
	var items []json.RawMessage
	if !strings.HasPrefix(value, "[") || json.Unmarshal([]byte(value), &items) != nil {
		return value
	}
	slices.SortFunc(items, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	sorted, err := json.Marshal(items)
	if err != nil {
		return value
	}
	return string(sorted)
}
