package check

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// convergedReplicaSet records a converged ReplicaSet with two pods, and begins the phase settle.
func convergedReplicaSet(h *historyBuilder) *history.Object {
	rs := deliveredReplicaSet(h, 2)
	h.phase(history.PhaseSettle)
	h.deliver(h.createAll(rs, 2)...)
	return h.status("web", 2)
}

// Resources and the namespace of the objects in test histories.
const (
	replicaSets = "replicasets.apps"
	controllers = "replicationcontrollers"
	namespace   = "ns"
)

// historyBuilder builds a history record by record. Each record is one millisecond later than
// the previous record. The method wait adds more time.
type historyBuilder struct {
	records   []*history.Record
	at        time.Duration              // the time of the last record
	version   history.Version            // the resourceVersion of the last commit
	ids       uint64                     // the ID of the last request
	pods      int                        // the number of pods that were added
	committed map[string]*history.Object // the latest committed objects, by resource and name
	integrity integrity                  // finds impossible records of processes, steps and faults
	subject   string                     // the name of the process that sends requests and receives watch events
	watches   map[string]uint64          // the request IDs of the process's watches, by resource
	resources []string                   // the resources that each process lists and watches
}

// modelResources are the resources that the controllers with a contract watch.
var modelResources = []string{replicaSets, controllers, objects.PodResource, objects.DeploymentResource, objects.ServiceResource, objects.EndpointsResource}

// newHistoryBuilder begins a history in the phase chaos. A process has started, and has received
// empty lists of all modelResources.
//
// The process has also sent an event with each reason that the check events knows.
func newHistoryBuilder() *historyBuilder {
	h := newHistoryBuilderOf(modelResources...)
	for _, r := range eventsOfAllReasons() {
		h.request(r).answered(201)
	}
	return h
}

// newHistoryBuilderOf begins a history in the phase chaos. A process has started, and has
// received empty lists of the given resources.
func newHistoryBuilderOf(resources ...string) *historyBuilder {
	h := &historyBuilder{committed: map[string]*history.Object{}, version: 100, resources: resources, integrity: *newIntegrity()}
	h.append(history.Record{Start: &history.Start{Format: history.Format, Namespace: namespace, Time: time.Unix(1e9, 0)}})
	h.restart("subject-0")
	h.phase(history.PhaseChaos)
	return h
}

// append adds a record to the history. If the record is impossible without another one, append adds that
// one before it.
func (h *historyBuilder) append(r history.Record) {
	if missing := h.missing(&r); missing != nil {
		h.append(*missing)
		h.missing(&r)
	}
	h.appendOnly(r)
}

// missing returns the record without which a record is impossible, or nil. That is the end of the running
// process, the beginning of the step, or the injection of the fault.
func (h *historyBuilder) missing(r *history.Record) *history.Record {
	switch {
	case r.Process != nil && h.integrity.process(0, r.Process) != "" && r.Process.Event == history.ProcessStarted:
		return &history.Record{Process: &history.Process{Name: r.Process.Name, Event: history.ProcessStopped}}
	case r.Step != nil && h.integrity.workload(0, r.Step) != "" && r.Step.Event != history.StepBegun:
		return &history.Record{Step: &history.Step{Index: r.Step.Index, Detail: r.Step.Detail, Event: history.StepBegun}}
	case r.Fault != nil && h.integrity.fault(0, r.Fault) != "":
		return &history.Record{Fault: &history.Fault{Index: r.Fault.Index, Name: r.Fault.Name, Event: history.FaultInjected}}
	}
	return nil
}

// appendOnly adds a record to the history, with the next sequence number. The record may be impossible.
func (h *historyBuilder) appendOnly(r history.Record) {
	h.at += time.Millisecond
	r.Seq, r.At = int64(len(h.records)+1), h.at
	h.records = append(h.records, &r)
}

func (h *historyBuilder) wait(d time.Duration) { h.at += d }

// stall adds time during which no process on the machine got CPU time.
func (h *historyBuilder) stall(d time.Duration) {
	h.wait(d)
	h.append(history.Record{Stall: &history.Stall{Duration: d}})
}

// starve adds time during which only subject-0 got no CPU time.
func (h *historyBuilder) starve(d time.Duration) {
	h.wait(d)
	h.append(history.Record{Stall: &history.Stall{Duration: d, Process: "subject-0"}})
}

func (h *historyBuilder) phase(name history.PhaseName) {
	h.append(history.Record{Phase: &history.Phase{Name: name}})
}

// restart starts the process with this name, which then lists and watches all resources. It ends
// a running process with this name.
func (h *historyBuilder) restart(name string) {
	h.begin(name)
	for _, resource := range h.resources {
		h.list(resource)
		h.watch(resource, "")
	}
}

// processEvent records that the process h.subject was paused, resumed or stopped, or that it
// died.
func (h *historyBuilder) processEvent(event history.ProcessEvent) {
	h.append(history.Record{Process: &history.Process{Name: h.subject, Event: event}})
}

// begin starts the process with this name. The process sends no request yet.
func (h *historyBuilder) begin(name string) {
	h.subject, h.watches = name, map[string]uint64{}
	h.append(history.Record{Process: &history.Process{Name: name, Event: history.ProcessStarted}})
}

// request records a request of the process. Call a method of the result to record the response.
func (h *historyBuilder) request(r history.Request) *requestStep {
	h.ids++
	r.ID, r.Subject = h.ids, h.subject
	h.append(history.Record{Request: &r})
	return &requestStep{builder: h, request: r}
}

// listed returns the committed objects of a resource, sorted by name.
func (h *historyBuilder) listed(resource string) []history.Object {
	var items []history.Object
	for _, key := range slices.Sorted(maps.Keys(h.committed)) {
		if o := h.committed[key]; o.Resource == resource {
			items = append(items, *o)
		}
	}
	return items
}

// list records a list request and its response, which contains all committed objects of a
// resource.
func (h *historyBuilder) list(resource string) { h.listPart(resource, "", h.listed(resource)) }

// listPart records a list request with the given query, and its response, which contains the
// given objects.
func (h *historyBuilder) listPart(resource, query string, items []history.Object) {
	step := h.request(history.Request{Verb: "list", Resource: resource, Query: query})
	step.answered(200)
	h.append(history.Record{List: &history.List{
		ID: step.request.ID, Subject: h.subject, Resource: resource, Version: h.version, Items: items,
	}})
}

// watch records that the process opened a watch.
func (h *historyBuilder) watch(resource, query string) {
	step := h.request(history.Request{Verb: "watch", Resource: resource, Query: query})
	step.answered(200)
	h.watches[resource] = step.request.ID
}

// breakConnection records that the connection of the process breaks, which ends its watch of the
// resource. The process then lists and watches the resource again.
func (h *historyBuilder) breakConnection(resource string) {
	h.append(history.Record{WatchClosed: &history.WatchClosed{ID: h.watches[resource], Subject: h.subject, Resource: resource, Broken: true}})
	h.list(resource)
	h.watch(resource, "")
}

// event records the delivery of a watch event to the process.
func (h *historyBuilder) event(resource string, event history.EventType, o history.Object, initialEnd bool) {
	h.append(history.Record{Delivery: &history.Delivery{
		ID: h.watches[resource], Subject: h.subject, Resource: resource, Type: event, Object: o, InitialEventsEnd: initialEnd,
	}})
}

// bookmark records the delivery of a bookmark with the latest resourceVersion. If initialEnd is
// true, the bookmark ends the initial events of a watch with sendInitialEvents=true.
func (h *historyBuilder) bookmark(resource string, initialEnd bool) {
	h.event(resource, history.Bookmark, history.Object{Ref: history.Ref{Resource: resource, Version: h.version}}, initialEnd)
}

// commit records that etcd committed a version of an object, with the next resourceVersion.
func (h *historyBuilder) commit(event history.EventType, o history.Object) *history.Object {
	h.version++
	o.Version = h.version
	key := o.Resource + " " + o.Name
	switch before := h.committed[key]; {
	case before == nil && event == history.Modified: // impossible
		event = history.Added
	case before != nil && before.UID == o.UID && event == history.Added: // impossible
		event = history.Modified
	}
	h.append(history.Record{Commit: &history.Commit{Type: event, Object: o}})
	if event == history.Deleted {
		delete(h.committed, key)
	} else {
		h.committed[key] = &o
	}
	return &o
}

// deliver records the delivery of a watch event for each object, in this order.
func (h *historyBuilder) deliver(objects ...*history.Object) {
	for _, o := range objects {
		h.event(o.Resource, history.Modified, *o, false)
	}
}

// deliverGone records the delivery of the watch event that says that an object was deleted.
func (h *historyBuilder) deliverGone(o *history.Object) {
	h.event(o.Resource, history.Deleted, *o, false)
}

// replicaSet records the commit of a ReplicaSet with the selector app=NAME. It records no watch
// event.
func (h *historyBuilder) replicaSet(name string, replicas int) *history.Object {
	return h.owner(replicaSets, name, name, replicas)
}

// owner records the commit of a ReplicaSet or ReplicationController with the selector app=APP.
// It records no watch event.
func (h *historyBuilder) owner(resource, name, app string, replicas int) *history.Object {
	selector := fmt.Sprintf(`{"matchLabels":{"app":%q}}`, app)
	if resource == controllers {
		selector = fmt.Sprintf(`{"app":%q}`, app)
	}
	o := history.Object{
		Ref:        history.Ref{Resource: resource, Namespace: namespace, Name: name, UID: types.UID(name + "-uid")},
		Generation: 1,
		Body: fmt.Appendf(nil, `{"spec":{"replicas":%d,"selector":%s,"template":{"metadata":{"labels":{"app":%q}}}}}`,
			replicas, selector, app),
	}
	return h.commit(history.Added, o)
}

// revise records the commit of a new version of an object. The parameter part is "spec" or
// "status", and fields contains the changed fields of that part.
func (h *historyBuilder) revise(name, part string, fields map[string]any) *history.Object {
	o := h.find(name)
	var body map[string]map[string]any
	if err := json.Unmarshal(o.Body, &body); err != nil {
		panic(err)
	}
	if body[part] == nil {
		body[part] = map[string]any{}
	}
	maps.Copy(body[part], fields)
	changed := *o
	changed.Body, _ = json.Marshal(body)
	if part == "spec" {
		changed.Generation++
	}
	return h.commit(history.Modified, changed)
}

// scale records the commit of a ReplicaSet or ReplicationController with a new spec.replicas.
func (h *historyBuilder) scale(name string, replicas int) *history.Object {
	return h.revise(name, "spec", map[string]any{"replicas": replicas})
}

// status records the commit of the status of an owner of pods. The status reports n pods, all of
// them ready and available.
func (h *historyBuilder) status(name string, n int) *history.Object {
	return h.revise(name, "status", map[string]any{
		"replicas": n, "fullyLabeledReplicas": n, "readyReplicas": n, "availableReplicas": n,
		"observedGeneration": h.find(name).Generation,
	})
}

// find returns the committed object with the given name. It panics if there is none.
func (h *historyBuilder) find(name string) *history.Object {
	for _, o := range h.committed {
		if o.Name == name {
			return o
		}
	}
	panic("no object has the name " + name)
}

// controlledBy returns ownerReferences whose controllerRef names the object o.
func controlledBy(o *history.Object) []history.Owner {
	kind := "ConfigMap"
	if k := objects.OwnerKindByResource(o.Resource); k != nil {
		kind = k.Name
	}
	return []history.Owner{{Kind: kind, Name: o.Name, UID: o.UID, Controller: true}}
}

// foreign returns a ConfigMap for use as controller of pods. No controller under test reconciles
// ConfigMaps.
func foreign() *history.Object {
	return &history.Object{Ref: history.Ref{Resource: "configmaps", Namespace: namespace, Name: "foreign", UID: "foreign-uid"}}
}

// pod records the commit of a running pod of an owner, or of an orphan if owner is nil. The
// history contains no create request for this pod.
func (h *historyBuilder) pod(owner *history.Object, app string) *history.Object {
	h.pods++
	o := history.Object{
		Ref: history.Ref{
			Resource: objects.PodResource, Namespace: namespace,
			Name: fmt.Sprintf("%s-%d", app, h.pods), UID: types.UID(fmt.Sprintf("%s-%d-uid", app, h.pods)),
		},
		Labels: map[string]string{"app": app},
		Body:   podBody("Running", true),
	}
	if owner != nil {
		o.Owners = controlledBy(owner)
	}
	return h.commit(history.Added, o)
}

// podBody returns the spec and status of a pod in the given phase.
func podBody(phase string, ready bool) json.RawMessage {
	status := "False"
	if ready {
		status = "True"
	}
	return fmt.Appendf(nil, `{"spec":{"nodeName":"node-0"},"status":{"phase":%q,"conditions":[{"type":"Ready","status":%q}]}}`, phase, status)
}

// running records the commit and the delivery of n running pods of an owner. It then adds two
// seconds without records.
func (h *historyBuilder) running(owner *history.Object, n int) []*history.Object {
	var pods []*history.Object
	for range n {
		pods = append(pods, h.pod(owner, owner.Name))
	}
	h.deliver(pods...)
	h.wait(2 * time.Second)
	return pods
}

// failPod records the commit of a pod with the phase Failed.
func (h *historyBuilder) failPod(pod *history.Object) *history.Object {
	failed := *h.find(pod.Name)
	failed.Body = podBody("Failed", false)
	return h.commit(history.Modified, failed)
}

// terminate records the commit of an object with a deletionTimestamp.
func (h *historyBuilder) terminate(o *history.Object) *history.Object {
	terminating := *h.find(o.Name)
	terminating.Deleting = time.Unix(1e9, 0)
	return h.commit(history.Modified, terminating)
}

// removeOwner records the commit of a pod without ownerReferences.
func (h *historyBuilder) removeOwner(pod *history.Object) *history.Object {
	orphaned := *h.find(pod.Name)
	orphaned.Owners = nil
	return h.commit(history.Modified, orphaned)
}

// relabel records the commit of a pod with the label app=APP.
func (h *historyBuilder) relabel(pod *history.Object, app string) *history.Object {
	relabeled := *h.find(pod.Name)
	relabeled.Labels = map[string]string{"app": app}
	return h.commit(history.Modified, relabeled)
}

// requestStep is a request that the process has sent. Its methods record what happens next, such
// as a response.
type requestStep struct {
	builder *historyBuilder
	request history.Request
	made    *history.Object // the pod or ReplicaSet that the request created or changed; nil if none is committed yet
}

// create records that the process sends a create of a pod for an owner.
func (h *historyBuilder) create(owner *history.Object) *requestStep {
	return h.request(history.Request{Verb: "create", Resource: objects.PodResource, Namespace: namespace, Object: &history.Object{
		GenerateName: owner.Name + "-", Owners: controlledBy(owner), Labels: map[string]string{"app": owner.Name},
	}})
}

// creates records that the process sends n creates of pods for an owner.
func (h *historyBuilder) creates(owner *history.Object, n int) []*requestStep {
	var steps []*requestStep
	for range n {
		steps = append(steps, h.create(owner))
	}
	return steps
}

// delete records that the process sends a delete of a pod.
func (h *historyBuilder) delete(pod *history.Object) *requestStep {
	return h.request(history.Request{Verb: "delete", Resource: objects.PodResource, Namespace: namespace, Name: pod.Name})
}

// adopt records that the process sends a patch that adopts a pod.
func (h *historyBuilder) adopt(pod, owner *history.Object) *requestStep {
	return h.patch(pod, fmt.Sprintf(`{"metadata":{"uid":%q,"ownerReferences":[{"kind":"ReplicaSet","uid":%q,"controller":true,"blockOwnerDeletion":true}]}}`, pod.UID, owner.UID))
}

// release records that the process sends a patch that releases a pod.
func (h *historyBuilder) release(pod, owner *history.Object) *requestStep {
	return h.patch(pod, fmt.Sprintf(`{"metadata":{"uid":%q,"ownerReferences":[{"$patch":"delete","uid":%q}]}}`, pod.UID, owner.UID))
}

// namesake returns a copy of an object with another UID.
func namesake(o *history.Object) *history.Object {
	other := *o
	other.UID += "-other"
	return &other
}

// patch records that the process sends a strategic merge patch of an object.
func (h *historyBuilder) patch(pod *history.Object, patch string) *requestStep {
	return h.request(history.Request{
		Verb: "patch", Resource: pod.Resource, Namespace: namespace, Name: pod.Name,
		PatchType: "application/strategic-merge-patch+json", Patch: json.RawMessage(patch),
	})
}

// writeStatus records that the process sends an update of an owner's status. The request
// contains no status fields.
func (h *historyBuilder) writeStatus(owner *history.Object) *requestStep {
	return h.request(history.Request{Verb: "update", Resource: owner.Resource, Subresource: "status", Namespace: namespace, Name: owner.Name})
}

// updateStatus records that the process sends an update of the given fields of an owner's
// status. The update contains the resourceVersion of owner.
func (h *historyBuilder) updateStatus(owner *history.Object, status fields) *requestStep {
	o := edited(*owner, "status", status)
	return h.request(history.Request{
		Verb: "update", Resource: owner.Resource, Subresource: "status", Namespace: namespace, Name: owner.Name, Object: &o,
	})
}

// readLive records that the process reads an owner from the API server, and that the response
// contains the committed version.
func (h *historyBuilder) readLive(owner *history.Object) {
	h.read(owner, h.find(owner.Name))
}

// read records that the process reads an owner from the API server. The response contains the object
// found. If found is nil, the API server answers that there is no such object.
func (h *historyBuilder) read(owner, found *history.Object) {
	step := h.request(history.Request{Verb: "get", Resource: owner.Resource, Namespace: namespace, Name: owner.Name})
	code := 200
	if found == nil {
		code = 404
	}
	h.append(history.Record{Response: &history.Response{
		ID: step.request.ID, Code: code, ServerCode: code, Reached: true, Object: found,
	}})
}

// commitPod records the commit of the pod that a create request creates. It records no response.
func (step *requestStep) commitPod() *requestStep {
	step.made = step.builder.pod(step.builder.find(step.request.Object.Owners[0].Name), step.request.Object.Owners[0].Name)
	return step
}

// answered records a response with the given status code.
func (step *requestStep) answered(code int) *requestStep {
	response := &history.Response{ID: step.request.ID, Code: code, ServerCode: code, Reached: true}
	if response.OK() {
		response.Object = step.made
	}
	step.builder.append(history.Record{Response: response})
	return step
}

// deferred records a response with the given status code and a Retry-After header.
func (step *requestStep) deferred(code int) {
	seconds := 1
	step.builder.append(history.Record{Response: &history.Response{ID: step.request.ID, Code: code, RetryAfter: &seconds}})
}

// refusedAsTerminating records a 403 response, because the namespace is terminating.
func (step *requestStep) refusedAsTerminating() {
	step.builder.append(history.Record{Response: &history.Response{
		ID: step.request.ID, Code: 403, ServerCode: 403, Reached: true, Reason: "Forbidden", Cause: "NamespaceTerminating"}})
}

// lost records that the API server received the request, but that the process gets no response.
func (step *requestStep) lost() *requestStep {
	step.builder.append(history.Record{Response: &history.Response{ID: step.request.ID, Reached: true}})
	return step
}

// succeed records successful responses to create requests, and the commits of the created pods.
// It returns these pods.
func succeed(steps ...*requestStep) []*history.Object {
	var pods []*history.Object
	for _, step := range steps {
		pods = append(pods, step.commitPod().answered(201).made)
	}
	return pods
}

// createAll records that the process creates n pods of an owner in slow-start batches. It
// records no watch events.
func (h *historyBuilder) createAll(owner *history.Object, n int) []*history.Object {
	var pods []*history.Object
	for batch := 1; n > 0; batch *= 2 {
		batch = min(batch, n)
		n -= batch
		pods = append(pods, succeed(h.creates(owner, batch)...)...)
	}
	return pods
}

// end begins the phase end, which every complete history has.
func (h *historyBuilder) end() *historyBuilder {
	h.phase(history.PhaseEnd)
	return h
}

// all returns the records of the history in the form that Run needs.
func (h *historyBuilder) all() iter.Seq2[*history.Record, error] {
	return func(yield func(*history.Record, error) bool) {
		for _, r := range h.records {
			if !yield(r, nil) {
				return
			}
		}
	}
}
