package check

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// rules says which rules a simulated controller breaks. A name in parentheses, such as R10, is a
// mutant in harness/mutant that breaks the same rule.
type rules struct {
	noExpectations          bool // decides before it has observed its own creates and deletes
	noBurstLimit            bool // creates or deletes more than 500 pods in one sync
	noSlowStart             bool // creates all missing pods in one batch
	noBackOff               bool // requeues a failed key at once
	countsFailed            bool // counts failed pods as active, and therefore does not replace failed pods
	takesForeign            bool // counts matching pods of other controllers as its own
	noLiveRead              bool // adopts without a live read of the owner (R10)
	keepsFailedExpectations bool // a failed create does not lower the expectations (R16)
	countsTerminating       bool // counts terminating pods when it decides on a scale-down (R2)
	repeatsBatch            bool // creates a whole batch after a restart (R28)
	deletesInAnyOrder       bool // ignores the order of scale-down (R13)
	reportsAllReady         bool // reports every pod as ready
	reportsSpecReplicas     bool // reports spec.replicas as status.replicas
	reportsLaterGeneration  bool // reports an observedGeneration above the generation
	reportsFirstGeneration  bool // never raises observedGeneration after the first status write
	reportsNoFailure        bool // never sets the condition ReplicaFailure
}

// controller is one process of a simulated controller of ReplicaSets or ReplicationControllers.
// To satisfy its expectations, the controller counts the pods that appear in its cache. As
// upstream does, it does not compare their UIDs.
type controller struct {
	*cluster
	rules
	pods, owners map[types.UID]*simObject // the informer caches
	feeds        map[string]*simStream    // watch events from the API server to the proxy, by resource
	caches       map[string]*simStream    // watch events from the proxy to the controller's cache, by resource
	watches      map[string]uint64        // the request IDs of the open watches, by resource
	expected     map[types.UID]*expected  // the expectations, by the UID of the owner
	queued       map[types.UID]bool       // UIDs of the owners whose key is in the work queue
	running      map[types.UID]bool       // UIDs of the owners that a worker is syncing
	failures     map[types.UID]int        // the number of failed syncs in a row, by owner
	firstSync    map[types.UID]bool       // UIDs of the owners that the process has not synced yet
}

// expected contains the expectations for one owner: the number of unobserved creates, and the
// pods with an unobserved delete.
type expected struct {
	creates int
	deletes map[types.UID]bool
}

// restart stops the running process of the controller, if there is one, and starts a new one.
func (s *cluster) restart(r rules) {
	if s.subject != nil {
		s.append(history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessStopped}})
	}
	s.append(history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessStarted}})
	c := &controller{
		cluster: s, rules: r, feeds: map[string]*simStream{}, caches: map[string]*simStream{}, watches: map[string]uint64{},
		pods: map[types.UID]*simObject{}, owners: map[types.UID]*simObject{}, expected: map[types.UID]*expected{},
		queued: map[types.UID]bool{}, running: map[types.UID]bool{}, failures: map[types.UID]int{}, firstSync: map[types.UID]bool{},
	}
	s.subject = c
	for _, resource := range []string{s.resource, objects.PodResource} {
		c.list(resource)
	}
	s.emitEvents()
}

// alive reports whether c is still the running process of the controller.
func (c *controller) alive() bool { return c.subject == c }

// list lists the objects of a resource, puts them into the cache, and opens a watch.
func (c *controller) list(resource string) {
	id := c.sent(history.Request{Verb: "list", Resource: resource})
	c.append(history.Record{Response: &history.Response{ID: id, Code: 200, ServerCode: 200, Reached: true}})
	c.caches[resource] = &simStream{}
	list := &history.List{ID: id, Subject: "subject-0", Resource: resource, Version: c.version}
	for _, object := range c.live(resource) {
		list.Items = append(list.Items, object.Object)
		c.caches[resource].send(c.cluster, time.Millisecond, func() { c.observe(history.Added, object) })
	}
	c.append(history.Record{List: list})
	c.watches[resource] = c.sent(history.Request{Verb: "watch", Resource: resource})
	c.feeds[resource] = &simStream{last: c.now + time.Millisecond}
}

// sendEvent sends a watch event from the API server to the proxy. The proxy delivers the event
// to the controller after a delay.
func (c *controller) sendEvent(kind history.EventType, object *simObject) {
	lag := time.Millisecond
	if c.chaos {
		lag += c.upTo(map[bool]time.Duration{true: c.podLag, false: c.ownerLag}[object.Resource == objects.PodResource])
	}
	c.feeds[object.Resource].send(c.cluster, lag, func() {
		if !c.alive() {
			return
		}
		c.append(history.Record{Delivery: &history.Delivery{
			ID: c.watches[object.Resource], Subject: "subject-0", Resource: object.Resource, Type: kind, Object: object.Object,
		}})
		c.caches[object.Resource].send(c.cluster, c.upTo(2*time.Millisecond), func() { c.observe(kind, object) })
	})
}

// observe puts a new version of an object into the cache, updates the expectations, and enqueues
// the affected owners.
func (c *controller) observe(kind history.EventType, object *simObject) {
	if !c.alive() {
		return
	}
	if object.Resource != objects.PodResource {
		c.firstSync[object.UID] = c.owners[object.UID] == nil
		c.owners[object.UID] = object
		c.enqueue(object.UID)
		return
	}
	old := c.pods[object.UID]
	switch {
	case kind == history.Deleted:
		delete(c.pods, object.UID)
		c.observeDelete(object)
	default:
		c.pods[object.UID] = object
		if object.Terminating() {
			c.observeDelete(object)
		} else if e := c.expected[object.controller()]; e != nil && old == nil {
			e.creates--
		}
	}
	c.enqueueOwners(old, object)
}

// observeDelete records that the controller has observed an expected delete of a pod. It ignores
// the pod's controllerRef, because a terminating pod may lose it.
func (c *controller) observeDelete(object *simObject) {
	for uid, e := range c.expected {
		if e.deletes[object.UID] {
			delete(e.deletes, object.UID)
			c.enqueue(uid)
		}
	}
}

// enqueueOwners enqueues the owners that control a pod or may adopt the pod. The parameters old
// and now are the pod's former and new version.
func (c *controller) enqueueOwners(old, now *simObject) {
	for uid, o := range c.owners {
		claimed := now.controller() == uid || old != nil && old.controller() == uid
		if claimed || now.controller() == "" && now.app() == o.Name {
			defer c.enqueue(uid)
		}
	}
}

// enqueue adds the key of an owner to the work queue.
func (c *controller) enqueue(uid types.UID) {
	if c.queued[uid] || !c.alive() {
		return
	}
	c.queued[uid] = true
	c.after(500*time.Microsecond, func() { c.work(uid) })
}

// work syncs the owner with this UID if its key is queued and no worker is syncing the owner.
func (c *controller) work(uid types.UID) {
	if !c.queued[uid] || c.running[uid] || !c.alive() {
		return
	}
	c.queued[uid], c.running[uid] = false, true
	c.sync(uid, func(ok bool) {
		c.running[uid] = false
		switch {
		case ok:
			c.failures[uid] = 0
		case c.noBackOff:
			c.enqueue(uid)
		default:
			delay := 5 * time.Millisecond << min(c.failures[uid], 17)
			c.failures[uid]++
			c.after(delay, func() { c.enqueue(uid) })
		}
		c.work(uid) // if an event enqueued the key during the sync
	})
}

// sync adopts orphans, then creates or deletes pods, and finally writes the owner's status. At
// the end it calls done, with ok = false after a failed request.
func (c *controller) sync(uid types.UID, done func(ok bool)) {
	o := c.owners[uid]
	e := c.expected[uid]
	settled := e == nil || c.noExpectations || e.creates <= 0 && len(e.deletes) == 0
	var claimed, orphans []*simObject
	terminating := 0
	for _, id := range slices.Sorted(maps.Keys(c.pods)) {
		p := c.pods[id]
		foreign := c.takesForeign && p.controller() == foreign().UID
		switch {
		case p.Terminating():
			if p.controller() == uid {
				terminating++
			}
		case p.app() != o.Name || p.failed && !c.countsFailed:
		case p.controller() == uid || foreign:
			claimed = append(claimed, p)
		case p.controller() == "":
			orphans = append(orphans, p)
		}
	}
	c.adopt(o, orphans, func(ok bool) {
		if !ok {
			done(false)
			return
		}
		claimed = append(claimed, orphans...)
		finish := func(managed bool) {
			c.writeStatus(o, claimed, !managed && !c.reportsNoFailure, func(written bool) { done(managed && written) })
		}
		if !settled {
			finish(true)
			return
		}
		c.manage(o, claimed, terminating, finish)
	})
}

// manage creates or deletes pods until the owner has spec.replicas pods.
func (c *controller) manage(o *simObject, claimed []*simObject, terminating int, done func(ok bool)) {
	limit := 500
	if c.noBurstLimit {
		limit = 1 << 20
	}
	counted := len(claimed)
	if c.repeatsBatch && c.firstSync[o.UID] {
		counted = 0
	}
	c.firstSync[o.UID] = false
	excess := counted - o.replicas
	if c.countsTerminating && excess > 0 {
		excess = min(excess+terminating, len(claimed))
	}
	switch {
	case excess < 0:
		n := min(-excess, limit)
		c.expected[o.UID] = &expected{creates: n}
		c.create(o, n, 1, done)
	case excess > 0:
		if !c.deletesInAnyOrder {
			slices.SortStableFunc(claimed, func(a, b *simObject) int { return compareBool(a.ready, b.ready) })
		}
		c.delete(o, claimed[:min(excess, limit)], done)
	default:
		done(true)
	}
}

// create sends creates of n pods in slow-start batches. It sends no further batch after a failed
// create.
func (c *controller) create(o *simObject, n, batch int, done func(ok bool)) {
	e := c.expected[o.UID]
	batch = min(batch, n)
	if c.noSlowStart {
		batch = n
	}
	if batch == 0 {
		done(true)
		return
	}
	answers, failed := 0, 0
	for range batch {
		request := history.Request{Verb: "create", Resource: objects.PodResource, Namespace: namespace, Object: &history.Object{
			GenerateName: o.Name + "-", Owners: controlledBy(&o.Object), Labels: o.Labels,
		}}
		c.call(request, func() (int, *simObject) { return 201, c.addPod(o.Name, controlledBy(&o.Object)) }, func(code int, _ *simObject) {
			answers++
			if code != 201 {
				failed++
				if !c.keepsFailedExpectations {
					e.creates--
				}
			}
			switch {
			case answers < batch:
			case failed > 0:
				e.creates -= n - batch
				done(false)
			default:
				c.create(o, n-batch, 2*batch, done)
			}
		})
	}
}

// delete sends deletes of all given pods at once.
func (c *controller) delete(o *simObject, pods []*simObject, done func(ok bool)) {
	e := &expected{deletes: map[types.UID]bool{}}
	c.expected[o.UID] = e
	for _, p := range pods {
		e.deletes[p.UID] = true
	}
	answers, failed := 0, false
	for _, p := range pods {
		effect := func() (int, *simObject) {
			now := c.liveObjects[p.UID]
			if now == nil {
				return 404, nil
			}
			c.kill(now)
			return 200, nil
		}
		c.call(history.Request{Verb: "delete", Resource: objects.PodResource, Namespace: namespace, Name: p.Name}, effect, func(code int, _ *simObject) {
			answers++
			if code != 200 {
				delete(e.deletes, p.UID)
				failed = failed || code != 404
			}
			if answers == len(pods) {
				done(!failed)
			}
		})
	}
}

// adopt reads the owner from the API server, and then adopts the orphans one after another.
func (c *controller) adopt(o *simObject, orphans []*simObject, done func(ok bool)) {
	if len(orphans) == 0 {
		done(true)
		return
	}
	var next func(i int)
	next = func(i int) {
		if i == len(orphans) {
			done(true)
			return
		}
		p := orphans[i]
		effect := func() (int, *simObject) {
			now := c.liveObjects[p.UID]
			switch {
			case now == nil:
				return 404, nil
			case now.controller() != "" && now.controller() != o.UID:
				return 422, nil
			}
			adopted := *now
			adopted.Owners = controlledBy(&o.Object)
			return 200, c.put(history.Modified, adopted)
		}
		request := (&historyBuilder{}).adopt(&p.Object, &o.Object).request
		c.call(request, effect, func(code int, _ *simObject) {
			if code == 200 {
				next(i + 1)
			} else {
				done(false)
			}
		})
	}
	if c.noLiveRead {
		next(0)
		return
	}
	read := history.Request{Verb: "get", Resource: o.Resource, Namespace: namespace, Name: o.Name}
	c.call(read, func() (int, *simObject) { return 200, c.liveObjects[o.UID] }, func(code int, _ *simObject) {
		if code == 200 {
			next(0)
		} else {
			done(false)
		}
	})
}

// writeStatus writes the owner's status if it differs from the cached status.
func (c *controller) writeStatus(o *simObject, claimed []*simObject, failing bool, done func(ok bool)) {
	ready := 0
	for _, p := range claimed {
		if p.ready {
			ready++
		}
	}
	status := objects.OwnerStatus{Replicas: len(claimed), FullyLabeledReplicas: len(claimed), ReadyReplicas: ready, AvailableReplicas: ready, ObservedGeneration: o.Generation}
	switch {
	case c.reportsAllReady:
		status.ReadyReplicas, status.AvailableReplicas = len(claimed), len(claimed)
	case c.reportsSpecReplicas:
		status.Replicas = o.replicas
	case c.reportsLaterGeneration:
		status.ObservedGeneration++
	case c.reportsFirstGeneration && o.status.ObservedGeneration > 0:
		status.ObservedGeneration = o.status.ObservedGeneration
	}
	failure := ""
	switch {
	case failing && len(claimed) > o.replicas:
		failure = failedDelete
	case failing:
		failure = failedCreate
	}
	if o.status == status && o.failure == failure {
		done(true)
		return
	}
	updated := *o
	updated.status, updated.failure = status, failure
	updated.Body = ownerBody(&updated)
	request := history.Request{
		Verb: "update", Resource: o.Resource, Subresource: "status", Namespace: namespace, Name: o.Name, Object: &updated.Object,
	}
	c.call(request, func() (int, *simObject) {
		now := *c.liveObjects[o.UID]
		if now.Version != o.Version {
			return 409, nil
		}
		now.status, now.failure = status, failure
		return 200, c.put(history.Modified, now)
	}, func(code int, _ *simObject) { done(code == 200) })
}

// call sends a request through the proxy. The proxy may refuse the request or lose the response.
// If a refusal has a Retry-After header, the client resends the request, and the controller does
// not notice.
//
// The API server executes the request by calling effect. When the response arrives, call calls
// then.
func (c *controller) call(r history.Request, effect func() (int, *simObject), then func(code int, result *simObject)) {
	if !c.alive() {
		return
	}
	id := c.sent(r)
	reply := func(response history.Response, result *simObject, repeat bool) {
		response.ID = id
		if result != nil && response.OK() {
			response.Object = &result.Object
		}
		c.append(history.Record{Response: &response})
		switch {
		case !c.alive():
		case repeat:
			c.after(time.Second, func() { c.call(r, effect, then) })
		default:
			c.after(c.upTo(time.Millisecond), func() { then(response.Code, result) })
		}
	}
	c.after(c.upTo(3*time.Millisecond), func() {
		if c.chance(c.refused) {
			code := c.codes[c.random.IntN(len(c.codes))]
			repeat := (code == 429 || code == 503) && c.chance(0.5)
			response := history.Response{Code: code}
			if repeat {
				seconds := 1
				response.RetryAfter = &seconds
			}
			reply(response, nil, repeat)
			return
		}
		code, result := effect()
		lost := c.chance(c.lost)
		c.after(c.upTo(5*time.Millisecond), func() {
			if lost {
				reply(history.Response{Reached: true}, nil, false)
			} else {
				reply(history.Response{Code: code, ServerCode: code, Reached: true}, result, false)
			}
		})
	})
}
