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
)

const (
	replicaSets = "replicasets.apps"
	controllers = "replicationcontrollers"
	namespace   = "ns"
)

// story writes a history by hand. Its verbs are what happens in a run, each a
// millisecond after the one before.
type story struct {
	records []*history.Record
	at      time.Duration
	version history.Version
	ids     uint64
	pods    int
	truth   map[string]*history.Object // by resource and name
	subject string
	watches map[string]uint64 // of the present subject, by resource
}

// newStory begins where every run does: a subject that has been told that there
// is nothing.
func newStory() *story {
	s := &story{truth: map[string]*history.Object{}, version: 100}
	s.append(history.Record{Start: &history.Start{Format: history.Format, Namespace: namespace, Time: time.Unix(1e9, 0)}})
	s.restart("subject-0")
	s.phase(history.PhaseChaos)
	return s
}

func (s *story) append(r history.Record) {
	s.at += time.Millisecond
	r.Seq, r.At = int64(len(s.records)+1), s.at
	s.records = append(s.records, &r)
}

func (s *story) wait(d time.Duration) { s.at += d }

// stall lets time pass in which nothing on the machine got any.
func (s *story) stall(d time.Duration) {
	s.wait(d)
	s.append(history.Record{Stall: &history.Stall{Duration: d}})
}

func (s *story) phase(name history.PhaseName) {
	s.append(history.Record{Phase: &history.Phase{Name: name}})
}

// restart starts a subject, which lists and watches all there is.
func (s *story) restart(name string) {
	s.begin(name)
	for _, resource := range []string{replicaSets, controllers, podResource, deploymentResource, serviceResource, endpointsResource} {
		s.list(resource)
		s.watch(resource, "")
	}
}

// life tells what becomes of the subject's process.
func (s *story) life(event history.ProcessEvent) {
	s.append(history.Record{Process: &history.Process{Name: s.subject, Event: event}})
}

// begin starts a subject that is yet to ask for anything.
func (s *story) begin(name string) {
	s.subject, s.watches = name, map[string]uint64{}
	s.append(history.Record{Process: &history.Process{Name: name, Event: history.ProcessStarted}})
}

func (s *story) request(r history.Request) *ask {
	s.ids++
	r.ID, r.Subject = s.ids, s.subject
	s.append(history.Record{Request: &r})
	return &ask{story: s, request: r}
}

func (s *story) listed(resource string) []history.Object {
	var items []history.Object
	for _, key := range slices.Sorted(maps.Keys(s.truth)) {
		if o := s.truth[key]; o.Resource == resource {
			items = append(items, *o)
		}
	}
	return items
}

func (s *story) list(resource string) { s.listPart(resource, "", s.listed(resource)) }

func (s *story) listPart(resource, query string, items []history.Object) {
	a := s.request(history.Request{Verb: "list", Resource: resource, Query: query})
	a.answered(200)
	s.append(history.Record{List: &history.List{
		ID: a.request.ID, Subject: s.subject, Resource: resource, Version: s.version, Items: items,
	}})
}

func (s *story) watch(resource, query string) {
	a := s.request(history.Request{Verb: "watch", Resource: resource, Query: query})
	a.answered(200)
	s.watches[resource] = a.request.ID
}

func (s *story) event(resource string, event history.EventType, o history.Object, initialEnd bool) {
	s.append(history.Record{Delivery: &history.Delivery{
		ID: s.watches[resource], Subject: s.subject, Resource: resource, Type: event, Object: o, InitialEventsEnd: initialEnd,
	}})
}

func (s *story) bookmark(resource string, initialEnd bool) {
	s.event(resource, history.Bookmark, history.Object{Ref: history.Ref{Resource: resource, Version: s.version}}, initialEnd)
}

// commit makes an object's new version true.
func (s *story) commit(event history.EventType, o history.Object) *history.Object {
	s.version++
	o.Version = s.version
	key := o.Resource + " " + o.Name
	s.append(history.Record{Commit: &history.Commit{Type: event, Object: o}})
	if event == history.Deleted {
		delete(s.truth, key)
	} else {
		s.truth[key] = &o
	}
	return &o
}

// deliver tells the subject of versions, in the order given.
func (s *story) deliver(objects ...*history.Object) {
	for _, o := range objects {
		s.event(o.Resource, history.Modified, *o, false)
	}
}

func (s *story) deliverGone(o *history.Object) { s.event(o.Resource, history.Deleted, *o, false) }

// replicaSet makes a ReplicaSet that selects its pods by app=NAME.
func (s *story) replicaSet(name string, replicas int) *history.Object {
	return s.owner(replicaSets, name, name, replicas)
}

func (s *story) owner(resource, name, app string, replicas int) *history.Object {
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
	return s.commit(history.Added, o)
}

// revise commits a version of the object with parts of its spec or status changed.
func (s *story) revise(name, part string, fields map[string]any) *history.Object {
	o := s.find(name)
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
	return s.commit(history.Modified, changed)
}

func (s *story) scale(name string, replicas int) *history.Object {
	return s.revise(name, "spec", map[string]any{"replicas": replicas})
}

// status commits a status of n pods, all ready.
func (s *story) status(name string, n int) *history.Object {
	return s.revise(name, "status", map[string]any{
		"replicas": n, "fullyLabeledReplicas": n, "readyReplicas": n, "availableReplicas": n,
		"observedGeneration": s.find(name).Generation,
	})
}

func (s *story) find(name string) *history.Object {
	for _, o := range s.truth {
		if o.Name == name {
			return o
		}
	}
	panic("nothing is called " + name)
}

func controlledBy(o *history.Object) []history.Owner {
	kind := "ConfigMap"
	if k := kindByResource(o.Resource); k != nil {
		kind = k.name
	}
	return []history.Owner{{Kind: kind, Name: o.Name, UID: o.UID, Controller: true}}
}

// foreign is an owner of a kind that the subject does not run.
func foreign() *history.Object {
	return &history.Object{Ref: history.Ref{Resource: "configmaps", Namespace: namespace, Name: "foreign", UID: "foreign-uid"}}
}

// pod makes a running pod of an owner, or of nobody; by whom is left open.
func (s *story) pod(owner *history.Object, app string) *history.Object {
	s.pods++
	o := history.Object{
		Ref: history.Ref{
			Resource: podResource, Namespace: namespace,
			Name: fmt.Sprintf("%s-%d", app, s.pods), UID: types.UID(fmt.Sprintf("%s-%d-uid", app, s.pods)),
		},
		Labels: map[string]string{"app": app},
		Body:   podBody("Running", true),
	}
	if owner != nil {
		o.Owners = controlledBy(owner)
	}
	return s.commit(history.Added, o)
}

func podBody(phase string, ready bool) json.RawMessage {
	status := "False"
	if ready {
		status = "True"
	}
	return fmt.Appendf(nil, `{"spec":{"nodeName":"node-0"},"status":{"phase":%q,"conditions":[{"type":"Ready","status":%q}]}}`, phase, status)
}

// running makes n pods of an owner that the subject has been told of.
func (s *story) running(owner *history.Object, n int) []*history.Object {
	var pods []*history.Object
	for range n {
		pods = append(pods, s.pod(owner, owner.Name))
	}
	s.deliver(pods...)
	s.wait(2 * time.Second)
	return pods
}

func (s *story) fail(pod *history.Object) *history.Object {
	failed := *s.find(pod.Name)
	failed.Body = podBody("Failed", false)
	return s.commit(history.Modified, failed)
}

func (s *story) terminate(o *history.Object) *history.Object {
	terminating := *s.find(o.Name)
	terminating.Deleting = time.Unix(1e9, 0)
	return s.commit(history.Modified, terminating)
}

func (s *story) strip(pod *history.Object) *history.Object {
	stripped := *s.find(pod.Name)
	stripped.Owners = nil
	return s.commit(history.Modified, stripped)
}

func (s *story) relabel(pod *history.Object, app string) *history.Object {
	relabelled := *s.find(pod.Name)
	relabelled.Labels = map[string]string{"app": app}
	return s.commit(history.Modified, relabelled)
}

// ask is a request of the subject.
type ask struct {
	story   *story
	request history.Request
	made    *history.Object // by a create that was committed
}

// create asks for a pod of an owner.
func (s *story) create(owner *history.Object) *ask {
	return s.request(history.Request{Verb: "create", Resource: podResource, Namespace: namespace, Object: &history.Object{
		GenerateName: owner.Name + "-", Owners: controlledBy(owner), Labels: map[string]string{"app": owner.Name},
	}})
}

func (s *story) creates(owner *history.Object, n int) []*ask {
	var asks []*ask
	for range n {
		asks = append(asks, s.create(owner))
	}
	return asks
}

// delete asks for the end of a pod.
func (s *story) delete(pod *history.Object) *ask {
	return s.request(history.Request{Verb: "delete", Resource: podResource, Namespace: namespace, Name: pod.Name})
}

func (s *story) adopt(pod, owner *history.Object) *ask {
	return s.patch(pod, fmt.Sprintf(`{"metadata":{"uid":%q,"ownerReferences":[{"kind":"ReplicaSet","uid":%q,"controller":true}]}}`, pod.UID, owner.UID))
}

func (s *story) release(pod, owner *history.Object) *ask {
	return s.patch(pod, fmt.Sprintf(`{"metadata":{"uid":%q,"ownerReferences":[{"$patch":"delete","uid":%q}]}}`, pod.UID, owner.UID))
}

func (s *story) patch(pod *history.Object, patch string) *ask {
	return s.request(history.Request{
		Verb: "patch", Resource: podResource, Namespace: namespace, Name: pod.Name,
		PatchType: "application/strategic-merge-patch+json", Patch: json.RawMessage(patch),
	})
}

func (s *story) writeStatus(owner *history.Object) *ask {
	return s.request(history.Request{Verb: "update", Resource: owner.Resource, Subresource: "status", Namespace: namespace, Name: owner.Name})
}

// says asks for parts of an owner's status to be changed, from the version given.
func (s *story) says(owner *history.Object, status fields) *ask {
	a := edited(*owner, "status", status)
	return s.request(history.Request{
		Verb: "update", Resource: owner.Resource, Subresource: "status", Namespace: namespace, Name: owner.Name, Object: &a,
	})
}

// readLive asks the API server for an owner and is told its present version.
func (s *story) readLive(owner *history.Object) {
	a := s.request(history.Request{Verb: "get", Resource: owner.Resource, Namespace: namespace, Name: owner.Name})
	s.append(history.Record{Response: &history.Response{
		ID: a.request.ID, Code: 200, ServerCode: 200, Reached: true, Object: s.find(owner.Name),
	}})
}

// commits makes what a create asks for true; the answer is yet to come.
func (a *ask) commits() *ask {
	a.made = a.story.pod(a.story.find(a.request.Object.Owners[0].Name), a.request.Object.Owners[0].Name)
	return a
}

// answered ends the request with a code.
func (a *ask) answered(code int) *ask {
	response := &history.Response{ID: a.request.ID, Code: code, ServerCode: code, Reached: true}
	if response.OK() {
		response.Object = a.made
	}
	a.story.append(history.Record{Response: response})
	return a
}

// deferred ends the request with a code, and asks the client to repeat it.
func (a *ask) deferred(code int) {
	seconds := 1
	a.story.append(history.Record{Response: &history.Response{ID: a.request.ID, Code: code, RetryAfter: &seconds}})
}

// shutOut refuses the request, for the namespace is terminating.
func (a *ask) shutOut() {
	a.story.append(history.Record{Response: &history.Response{
		ID: a.request.ID, Code: 403, ServerCode: 403, Reached: true, Reason: "Forbidden", Cause: "NamespaceTerminating"}})
}

// lost ends the request without an answer.
func (a *ask) lost() *ask {
	a.story.append(history.Record{Response: &history.Response{ID: a.request.ID, Reached: true}})
	return a
}

// succeed commits and answers creates, and returns their pods.
func succeed(asks ...*ask) []*history.Object {
	var pods []*history.Object
	for _, a := range asks {
		pods = append(pods, a.commits().answered(201).made)
	}
	return pods
}

// create makes pods for an owner in slow-start batches, not observed.
func (s *story) createAll(owner *history.Object, n int) []*history.Object {
	var pods []*history.Object
	for batch := 1; n > 0; batch *= 2 {
		batch = min(batch, n)
		n -= batch
		pods = append(pods, succeed(s.creates(owner, batch)...)...)
	}
	return pods
}

// end closes the history as a run does.
func (s *story) end() *story {
	s.phase(history.PhaseEnd)
	return s
}

func (s *story) all() iter.Seq2[*history.Record, error] {
	return func(yield func(*history.Record, error) bool) {
		for _, r := range s.records {
			if !yield(r, nil) {
				return
			}
		}
	}
}
