package baseline

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// Observer reads the history of a run, and states the facts that a baseline has.
type Observer struct {
	// FailedStep is the first step of the workload that failed, in words. It is empty if none did.
	FailedStep string

	start   history.Start
	live    map[string]*history.Object // last committed version of each object, by key
	writes  map[uint64]*write          // creates and deletes without a response so far, by request ID
	written []string                   // resources that the subject writes
	counts  map[string]*effects        // by key of the object
	deletes map[types.UID]bool         // objects that the subject deleted
}

// write is a create or delete that the subject sent.
type write struct {
	verb string
	key  string
	uid  types.UID // the object that a delete concerns
}

// NewObserver returns an observer of a new run.
func NewObserver() *Observer {
	return &Observer{live: map[string]*history.Object{}, writes: map[uint64]*write{}, counts: map[string]*effects{}, deletes: map[types.UID]bool{}}
}

// Observe reads the next record of the run.
func (o *Observer) Observe(r *history.Record) {
	switch {
	case r.Start != nil:
		o.start = *r.Start
	case r.Commit != nil:
		o.commit(r.Commit)
	case r.Request != nil && r.Request.IsWrite():
		o.send(r.Request)
	case r.Response != nil && o.writes[r.Response.ID] != nil:
		o.answer(o.writes[r.Response.ID], r.Response)
		delete(o.writes, r.Response.ID)
	case r.Step != nil && r.Step.Event == history.StepFailed && o.FailedStep == "":
		o.FailedStep = fmt.Sprintf("step %d (%s) failed: %s", r.Step.Index, r.Step.Detail, r.Step.Error)
	}
}

// commit reads a committed version of an object.
func (o *Observer) commit(c *history.Commit) {
	key := c.Object.Ref.String()
	if c.Type != history.Deleted {
		o.live[key] = &c.Object
		return
	}
	delete(o.live, key)
	if c.Object.GenerateName == "" && !o.deletes[c.Object.UID] {
		o.effectsOf(key).lost++
	}
	delete(o.deletes, c.Object.UID)
}

// Written returns the resources that the subject has written so far, except leases and events.
func (o *Observer) Written() []string { return slices.Clone(o.written) }

// End returns the objects that exist now. Objects are counted, and of objects with a fixed name
// there is a fact for each field.
//
// Fields are only those of the given resources. Status, annotations and the fields of pods and of
// their addresses are left out, because they depend on times and on the scheduler. Nodes, leases,
// events, pods that have ended, and pods without a controller are left out, too.
func (o *Observer) End(withFields []string) Facts {
	counts, facts := map[string]int{}, Facts{}
	for _, object := range o.live {
		if !counted(object) {
			continue
		}
		key := history.Ref{Resource: object.Resource, Namespace: object.Namespace, Name: object.StableName()}.String()
		counts[key]++
		if object.GenerateName == "" && slices.Contains(withFields, object.Resource) && !slices.Contains(scheduled, object.Resource) {
			facts.addFields(key, object)
		}
	}
	for key, n := range counts {
		facts[key] = fmt.Sprint(n)
	}
	return facts
}

// counted reports whether an object counts for the end of a run.
func counted(o *history.Object) bool {
	switch {
	case history.IsBookkeeping(o.Resource) || o.IsLeaderLock() || o.Resource == "nodes":
		return false
	case o.Resource != objects.PodResource:
		return true
	}
	var pod struct{ Status struct{ Phase string } }
	err := objects.Unmarshal(o.Body, &pod)
	return err == nil && pod.Status.Phase != "Failed" && pod.Status.Phase != "Succeeded" && (o.GenerateName == "" || o.ControllerRef() != nil)
}

// scheduled are the resources whose fields depend on the scheduler.
var scheduled = []string{objects.PodResource, "endpoints", "endpointslices.discovery.k8s.io"}

// addFields adds the fields of an object to the facts.
func (f Facts) addFields(key string, o *history.Object) {
	for path, value := range objects.Fields(o) {
		if top, _, _ := strings.Cut(path, "/"); top != "status" && !strings.HasPrefix(path, "metadata/annotations/") && !strings.HasPrefix(path, "metadata/ownerReferences/") {
			f.add(key+" "+path, value)
		}
	}
	for _, owner := range o.Owners {
		f.add(fmt.Sprintf("%s metadata/ownerReferences/%s/%s", key, owner.Kind, owner.Name), "set")
	}
}
