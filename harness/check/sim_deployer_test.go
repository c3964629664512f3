package check

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// rolloutRules says which rules a simulated Deployment controller breaks.
type rolloutRules struct {
	noSurge                 bool // ignores maxSurge
	noUnavailable           bool // ignores the available replicas
	recreatesAtOnce         bool // strategy Recreate: does not wait until old pods are deleted
	createsDuplicate        bool // creates a second ReplicaSet for the same template
	noStatus                bool // never writes the status
	rewritesStatus          bool // writes the status regularly, although the status has not changed
	incrementsCollisions    bool // handles its own ReplicaSet as a hash collision
	reusesRevision          bool // sets the revision of a ReplicaSet to 1 when it uses this ReplicaSet again
	reportsNegative         bool // may write a negative status.unavailableReplicas
	reportsOnlyNewAvailable bool // counts only the new ReplicaSet's pods in status.availableReplicas
	reportsProgress         bool // sets lastUpdateTime of the condition Progressing to now in each status write
	staleDeadline           bool // measures the progress deadline from the end of the previous rollout
	noDeadline              bool // never reports ProgressDeadlineExceeded
	rollsBackAnywhere       bool // rolls back to an arbitrary revision
	keepsRollbackAnnotation bool // does not remove the rollback annotation
	deletesOldEarly         bool // deletes old ReplicaSets before the rollout is complete
	deletesNewestFirst      bool // deletes old ReplicaSets with the highest revisions first
	neverDeletesOld         bool // deletes no old ReplicaSets
	scalesUpOld             bool // scales up an old ReplicaSet
	scalesNewestFirst       bool // scales down the newest old ReplicaSet first
	scalesOnlySmallest      bool // proportional scaling: scales only the smallest ReplicaSet
	remainderToSmallest     bool // proportional scaling: gives the rounding remainder to the smallest ReplicaSet

	inheritsNothing bool // does not copy annotations to the new ReplicaSet
}

// deployer is one process of a simulated Deployment controller. It manages only the Deployment
// "web", and acts on its cache alone.
type deployer struct {
	*controller // sends the requests and receives the watch events
	sim         *rolloutSim
	rules       rolloutRules
	cache       map[types.UID]*history.Object // the cached objects of all resources, by UID
	queued      bool                          // true if the Deployment is in the work queue
	running     bool                          // true while a worker is syncing the Deployment
	failures    int                           // failed syncs in a row
	duplicated  map[string]bool               // names of the ReplicaSets whose template another ReplicaSet also has
}

// restart stops the running process of the Deployment controller, if there is one, and starts a
// new one.
func (s *rolloutSim) restart(r rolloutRules) {
	if s.subject != nil {
		s.append(history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessStopped}})
	}
	s.append(history.Record{Process: &history.Process{Name: "subject-0", Event: history.ProcessStarted}})
	c := &controller{cluster: s.cluster, feeds: map[string]*simStream{}, caches: map[string]*simStream{}, watches: map[string]uint64{}}
	d := &deployer{controller: c, sim: s, rules: r, cache: map[types.UID]*history.Object{}, duplicated: map[string]bool{}}
	s.subject, s.deployer = c, d
	for _, resource := range rolloutResources {
		id := s.sent(history.Request{Verb: "list", Resource: resource})
		s.append(history.Record{Response: &history.Response{ID: id, Code: 200, ServerCode: 200, Reached: true}})
		list := &history.List{ID: id, Subject: "subject-0", Resource: resource, Version: s.version}
		for _, o := range s.objectsOf(resource, "") {
			list.Items = append(list.Items, *o)
			d.cache[o.UID] = o
		}
		s.append(history.Record{List: list})
		c.watches[resource] = s.sent(history.Request{Verb: "watch", Resource: resource})
		c.feeds[resource] = &simStream{last: s.now + time.Millisecond}
		c.caches[resource] = &simStream{}
	}
	s.emitEvents()
	d.enqueue(5 * time.Millisecond)
	if r.rewritesStatus {
		d.rewrite()
	}
}

// rewrite enqueues the Deployment every 300 ms, so that a controller with the rule
// rewritesStatus writes the status regularly.
func (d *deployer) rewrite() {
	d.enqueue(0)
	if d.alive() {
		d.after(300*time.Millisecond, d.rewrite)
	}
}

// sendEvent sends a watch event from the API server to the proxy. The proxy delivers the event
// to the controller after a delay.
func (d *deployer) sendEvent(kind history.EventType, o *history.Object) {
	lag := time.Millisecond
	if d.chaos {
		lag += d.upTo(map[string]time.Duration{
			objects.PodResource: d.sim.podLag, objects.ReplicaSetResource: d.sim.setLag, objects.DeploymentResource: d.sim.ownerLag,
		}[o.Resource])
	}
	d.feeds[o.Resource].send(d.cluster, lag, func() {
		if !d.alive() {
			return
		}
		d.append(history.Record{Delivery: &history.Delivery{
			ID: d.watches[o.Resource], Subject: "subject-0", Resource: o.Resource, Type: kind, Object: *o,
		}})
		d.caches[o.Resource].send(d.cluster, d.upTo(2*time.Millisecond), func() {
			d.cache[o.UID] = o
			if kind == history.Deleted {
				delete(d.cache, o.UID)
			}
			if o.Resource != objects.PodResource || kind == history.Deleted {
				d.enqueue(500 * time.Microsecond)
			}
		})
	})
}

// cached returns the object with the given name from the cache, or nil if the cache does not
// contain it.
func (d *deployer) cached(resource, name string) *history.Object {
	for _, o := range d.cache {
		if o.Resource == resource && o.Name == name {
			return o
		}
	}
	return nil
}

// enqueue adds the Deployment to the work queue. The sync begins when the time after has passed.
func (d *deployer) enqueue(after time.Duration) {
	if d.queued || !d.alive() {
		return
	}
	d.queued = true
	d.after(after, d.work)
}

// work syncs the Deployment if it is in the work queue and no worker is syncing it.
func (d *deployer) work() {
	if !d.queued || d.running || !d.alive() {
		return
	}
	d.queued, d.running = false, true
	d.sync(func(ok bool) {
		d.running = false
		if ok {
			d.failures = 0
		} else {
			delay := 5 * time.Millisecond << min(d.failures, 12)
			d.failures++
			d.after(delay, func() { d.enqueue(0) })
		}
		d.work() // if an event enqueued the key during the sync
	})
}

// syncState contains the objects that one sync has read from the cache.
type syncState struct {
	object   *history.Object               // the Deployment
	d        *objects.Deployment           // the decoded Deployment
	cached   map[types.UID]*history.Object // a copy of the cache
	sets     []*objects.Owner              // the ReplicaSets of the Deployment
	newSet   *objects.Owner                // the ReplicaSet with the Deployment's pod template; nil if there is none
	oldSets  []*objects.Owner              // the other ReplicaSets
	finished func(ok bool)                 // ends the sync
}

// plan is a write of a ReplicaSet that a sync has decided on but not sent yet.
type plan struct {
	set *objects.Owner // nil if the write creates the ReplicaSet
	to  int            // the new spec.replicas
}

// sync executes a rollback if the Deployment has the rollback annotation. Otherwise it scales
// the ReplicaSets and writes the status. It calls done at the end.
func (d *deployer) sync(done func(ok bool)) {
	o := d.cached(objects.DeploymentResource, "web")
	decoded, err := d.sim.decoder.Decode(o)
	if err != nil {
		panic(err)
	}
	r := &syncState{object: o, d: decoded.(*objects.Deployment), cached: maps.Clone(d.cache), finished: done}
	for _, uid := range slices.Sorted(maps.Keys(d.cache)) {
		if set := d.cache[uid]; set.Resource == objects.ReplicaSetResource && set.ControllerRef() != nil {
			decoded, err := d.sim.decoder.Owner(objects.OwnerKindByResource(objects.ReplicaSetResource), set)
			if err != nil {
				panic(err)
			}
			r.sets = append(r.sets, decoded)
		}
	}
	slices.SortStableFunc(r.sets, func(a, b *objects.Owner) int { return a.Created.Compare(b.Created) })
	current, old := splitByTemplate(r.d, r.sets)
	r.oldSets = old
	r.newSet = oldestOf(current, r.d.Template)
	if r.d.RollbackTo >= 0 && !r.d.Paused {
		d.rollBack(r)
		return
	}
	if r.newSet != nil && !d.rules.inheritsNothing && !r.inherited() {
		d.annotate(r)
		return
	}
	if r.newSet != nil && !r.d.Paused && r.d.Revision != r.newSet.Revision {
		d.number(r)
		return
	}
	d.writePlans(r, d.plan(r))
}

// number sets the Deployment's revision to that of its new ReplicaSet, and continues the sync.
func (d *deployer) number(r *syncState) {
	o := *r.object
	o.Annotations = maps.Clone(o.Annotations)
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	o.Annotations[objects.RevisionAnnotation] = fmt.Sprint(r.newSet.Revision)
	d.update(o, "", false, func(code int, written *simObject) {
		if code != 200 {
			r.finished(false)
			return
		}
		r.object = &written.Object
		d.writePlans(r, d.plan(r))
	})
}

// inherited reports whether the new ReplicaSet has all annotations of the Deployment.
func (r *syncState) inherited() bool {
	for key, value := range r.d.Annotations {
		if r.newSet.Annotations[key] != value {
			return false
		}
	}
	return true
}

// annotate copies the Deployment's annotations to the new ReplicaSet. The watch event of this
// write enqueues the Deployment again.
func (d *deployer) annotate(r *syncState) {
	o := *r.cached[r.newSet.UID]
	o.Annotations = maps.Clone(o.Annotations)
	maps.Copy(o.Annotations, r.d.Annotations)
	d.update(o, "", false, func(code int, _ *simObject) { r.finished(code == 200) })
}

// rollBack writes the pod template of the requested revision to the Deployment, and removes the
// rollback annotation. If no ReplicaSet has the revision, it only removes the annotation. If no
// ReplicaSet has the present template, it first creates one.
func (d *deployer) rollBack(r *syncState) {
	if r.newSet == nil {
		d.create(r, 0, func(code int, _ *simObject) { r.finished(code == 201) })
		return
	}
	revision := r.d.RollbackTo
	if revision == 0 && !d.rules.rollsBackAnywhere {
		revision = lastRevision(r.sets)
	}
	o := *r.object
	o.Annotations = maps.Clone(o.Annotations)
	for _, set := range r.sets {
		if (set.Revision == revision || d.rules.rollsBackAnywhere) && !set.Template.Same(r.d.Template) {
			o = edited(o, "spec", fields{"template": podTemplate("web", set.Labels[objects.PodTemplateHashLabel], "")})
			maps.DeleteFunc(o.Annotations, func(key, _ string) bool { return r.d.Annotations[key] != "" })
			maps.Copy(o.Annotations, set.Annotations)
		}
	}
	if !d.rules.keepsRollbackAnnotation {
		delete(o.Annotations, objects.RollbackAnnotation)
	}
	d.update(o, "", string(o.Body) != string(r.object.Body), func(code int, _ *simObject) { r.finished(code == 200) })
}

// deleteOld deletes one old ReplicaSet after another until revisionHistoryLimit old ReplicaSets
// remain. It then writes the status.
func (d *deployer) deleteOld(r *syncState) {
	slices.SortFunc(r.oldSets, func(a, b *objects.Owner) int {
		if d.rules.deletesNewestFirst {
			a, b = b, a
		}
		return cmp.Compare(a.Revision, b.Revision)
	})
	above := r.oldSets[:max(0, len(r.oldSets)-r.d.RevisionHistoryLimit)]
	if d.rules.neverDeletesOld {
		above = nil
	}
	for _, set := range above {
		if set.Replicas != 0 || set.Status.Replicas != 0 || set.Generation > set.Status.ObservedGeneration {
			continue
		}
		d.call(history.Request{Verb: "delete", Resource: objects.ReplicaSetResource, Namespace: namespace, Name: set.Name}, func() (int, *simObject) {
			if now := d.sim.objects[set.UID]; now != nil {
				d.sim.commit(history.Deleted, *now)
				return 200, nil
			}
			return 404, nil
		}, func(code int, _ *simObject) {
			if code != 200 && code != 404 {
				r.finished(false)
				return
			}
			r.oldSets = slices.DeleteFunc(r.oldSets, func(other *objects.Owner) bool { return other == set })
			d.deleteOld(r)
		})
		return
	}
	d.writeDeploymentStatus(r)
}

// plan returns the writes of ReplicaSets that the update strategy asks for, as computed from the
// cached objects.
func (d *deployer) plan(r *syncState) []plan {
	switch {
	case r.d.Paused || scalingPending(r.d, r.sets):
		return d.proportionally(r)
	case r.newSet != nil && r.newSet.Revision <= highestRevision(r.oldSets):
		return []plan{{r.newSet, r.newSet.Replicas}} // the write sets a higher revision
	case r.d.Recreate:
		return d.recreate(r)
	}
	sum := sumOf(r.sets, specReplicas)
	room := max(0, r.d.MaxPods()-sum)
	if d.rules.noSurge {
		room = r.d.Replicas
	}
	switch {
	case r.newSet == nil || d.rules.createsDuplicate && !d.duplicated[r.newSet.Name]:
		return []plan{{nil, min(r.d.Replicas, room)}}
	case r.newSet.Replicas > r.d.Replicas:
		return []plan{{r.newSet, r.d.Replicas}}
	case d.rules.scalesUpOld && room > 0 && len(r.oldSets) > 0 && r.newSet.Replicas < r.d.Replicas:
		d.rules.scalesUpOld = false // only once
		return []plan{{r.oldSets[0], r.oldSets[0].Replicas + 1}}
	case r.newSet.Replicas < r.d.Replicas && room > 0:
		return []plan{{r.newSet, min(r.d.Replicas, r.newSet.Replicas+room)}}
	}
	return d.down(r)
}

// down returns the writes that scale down old ReplicaSets, the oldest ReplicaSet first.
// Unavailable pods are removed first.
func (d *deployer) down(r *syncState) (plans []plan) {
	if d.rules.scalesNewestFirst {
		slices.Reverse(r.oldSets)
	}
	if d.rules.noUnavailable {
		for _, set := range r.oldSets {
			if set.Replicas > 0 {
				plans = append(plans, plan{set, 0})
			}
		}
		return plans
	}
	spare := sumOf(r.sets, specReplicas) - r.d.MinAvailable() - max(0, r.newSet.Replicas-availableReplicas(r.newSet))
	healthy := sumOf(r.sets, func(set *objects.Owner) int { return min(availableReplicas(set), set.Replicas) }) - r.d.MinAvailable()
	for _, set := range r.oldSets {
		unavailable := max(0, min(spare, set.Replicas-availableReplicas(set)))
		available := max(0, min(spare-unavailable, healthy, set.Replicas-max(0, set.Replicas-availableReplicas(set))))
		if unavailable+available > 0 {
			spare, healthy = spare-unavailable-available, healthy-available
			plans = append(plans, plan{set, set.Replicas - unavailable - available})
		}
	}
	return plans
}

// proportionally returns the writes that scale each active ReplicaSet in proportion after
// spec.replicas has changed. The largest ReplicaSet gets the rounding remainder. Each write sets
// the desired-replicas annotation.
func (d *deployer) proportionally(r *syncState) (plans []plan) {
	target := 0
	var active []*objects.Owner
	for _, set := range r.sets {
		if set.Replicas > 0 {
			active = append(active, set)
		}
	}
	if r.d.Replicas > 0 {
		target = r.d.MaxPods()
	}
	if len(active) == 1 {
		target = r.d.Replicas
	}
	missing := target - sumOf(active, specReplicas)
	if missing > 0 {
		slices.Reverse(active) // among equal sizes, the newest goes first
	}
	slices.SortStableFunc(active, func(a, b *objects.Owner) int {
		if d.rules.remainderToSmallest {
			a, b = b, a
		}
		return cmp.Compare(b.Replicas, a.Replicas)
	})
	if r.d.Recreate && len(active) > 1 {
		missing = 0
	}
	for _, set := range active {
		gain := 0
		if before := cmp.Or(set.MaxReplicas, r.d.Status.Replicas); before > 0 && len(active) > 1 && !d.rules.scalesOnlySmallest {
			gain = int(math.Round(float64(set.Replicas)*float64(target)/float64(before))) - set.Replicas
		}
		if missing < 0 {
			gain = min(max(gain, missing), 0)
		} else {
			gain = max(min(gain, missing), 0)
		}
		missing -= gain
		plans = append(plans, plan{set, set.Replicas + gain})
	}
	for i := range plans { // the largest first
		n := len(plans) - 1 - i
		if !d.rules.scalesOnlySmallest {
			n = i
		}
		remainder := max(missing, -plans[n].to)
		plans[n].to += remainder
		missing -= remainder
	}
	return slices.DeleteFunc(plans, func(p plan) bool { return p.to == p.set.Replicas && p.set.DesiredReplicas == r.d.Replicas })
}

// recreate returns the writes for the strategy Recreate. These scale all old ReplicaSets to 0.
// When the old pods are gone, they scale up the new ReplicaSet.
func (d *deployer) recreate(r *syncState) (plans []plan) {
	for _, set := range r.oldSets {
		if set.Replicas > 0 {
			plans = append(plans, plan{set, 0})
		}
	}
	if !d.rules.recreatesAtOnce && (len(plans) > 0 || d.oldRunning(r)) {
		return plans
	}
	if r.newSet == nil {
		return append(plans, plan{nil, r.d.Replicas})
	}
	if r.newSet.Replicas != r.d.Replicas {
		plans = append(plans, plan{r.newSet, r.d.Replicas})
	}
	return plans
}

// oldRunning reports whether the cache contains a pod that belongs to an old ReplicaSet.
func (d *deployer) oldRunning(r *syncState) bool {
	for _, o := range d.cache {
		ref := o.ControllerRef()
		if o.Resource == objects.PodResource && slices.ContainsFunc(r.oldSets, func(set *objects.Owner) bool { return set.UID == ref.UID }) {
			return true
		}
	}
	return false
}

// writePlans sends the planned writes one after another, and then writes the status. A failed
// write ends the sync.
func (d *deployer) writePlans(r *syncState, plans []plan) {
	if len(plans) == 0 {
		ended := r.newSet != nil && rolloutEnded(r.d, nil, nil)
		undecided := r.d.Paused && r.d.RollbackTo >= 0 // the rollback may need an old ReplicaSet
		if (ended || r.d.Paused) && !undecided || d.rules.deletesOldEarly {
			d.deleteOld(r)
		} else {
			d.writeDeploymentStatus(r)
		}
		return
	}
	then := func(code int, _ *simObject) {
		if code != 200 && code != 201 {
			r.finished(false)
			return
		}
		d.writePlans(r, plans[1:])
	}
	if plans[0].set == nil {
		d.create(r, plans[0].to, then)
		return
	}
	o := edited(*r.cached[plans[0].set.UID], "spec", fields{"replicas": plans[0].to})
	o.Annotations = maps.Clone(o.Annotations)
	o.Annotations[objects.DesiredReplicasAnnotation] = fmt.Sprint(r.d.Replicas)
	o.Annotations[objects.MaxReplicasAnnotation] = fmt.Sprint(r.d.MaxPods())
	if r.newSet == plans[0].set {
		if next := highestRevision(r.oldSets) + 1; next > r.newSet.Revision {
			o.Annotations[objects.RevisionAnnotation] = fmt.Sprint(next)
			o.Annotations[objects.RevisionHistoryAnnotation] = appendRevision(r.newSet.RevisionHistory, r.newSet.Revision)
		}
	}
	if d.rules.reusesRevision {
		o.Annotations[objects.RevisionAnnotation] = "1"
	}
	d.update(o, "", plans[0].to != plans[0].set.Replicas, then)
}

// update sends an update of an object. The parameter respecified is true if the update changes
// the spec, so that the API server increases the generation.
func (d *deployer) update(o history.Object, subresource string, respecified bool, then func(int, *simObject)) {
	request := history.Request{
		Verb: "update", Resource: o.Resource, Subresource: subresource, Namespace: namespace, Name: o.Name, Object: &o,
	}
	d.call(request, func() (int, *simObject) {
		now := d.sim.objects[o.UID]
		switch {
		case now == nil:
			return 404, nil
		case now.Version != o.Version:
			return 409, nil
		case string(now.Body) == string(o.Body) && maps.Equal(now.Annotations, o.Annotations):
			return 200, &simObject{Object: *now} // the API server creates no new version for an update without changes
		}
		written := o
		if respecified {
			written.Generation++
		}
		return 200, &simObject{Object: *d.sim.commit(history.Modified, written)}
	}, then)
}

// create sends a create of the new ReplicaSet. If a ReplicaSet without a controllerRef has the
// same name, create increments the Deployment's status.collisionCount.
func (d *deployer) create(r *syncState, replicas int, then func(int, *simObject)) {
	var body struct{ Spec struct{ Template fields } }
	if err := objects.Unmarshal(r.object.Body, &body); err != nil {
		panic(err)
	}
	version := body.Spec.Template["spec"].(fields)["image"].(string)
	o := newReplicaSetOf("web", version, replicas, r.d.Replicas)
	if d.rules.createsDuplicate && r.newSet != nil {
		d.duplicated[r.newSet.Name] = true
		o.Name += "-duplicate"
	}
	if collisions := r.d.Status.CollisionCount; collisions > 0 {
		o.Name += fmt.Sprint("-", collisions)
	}
	o.Annotations[objects.MaxReplicasAnnotation] = fmt.Sprint(r.d.MaxPods())
	o.Annotations[objects.RevisionAnnotation] = fmt.Sprint(highestRevision(r.sets) + 1)
	if !d.rules.inheritsNothing {
		maps.Copy(o.Annotations, r.d.Annotations)
	}
	o.UID, o.Owners = "", []history.Owner{{Kind: objects.DeploymentKind, Name: "web", UID: r.object.UID, Controller: true}}
	requested := o
	d.call(history.Request{Verb: "create", Resource: objects.ReplicaSetResource, Namespace: namespace, Object: &requested}, func() (int, *simObject) {
		if d.sim.named(objects.ReplicaSetResource, o.Name) != nil {
			return 409, nil
		}
		return 201, &simObject{Object: *d.sim.commit(history.Added, o)}
	}, func(code int, result *simObject) {
		if holder := d.cached(objects.ReplicaSetResource, o.Name); code == 409 && (d.rules.incrementsCollisions || holder != nil && holder.ControllerRef() == nil) {
			d.incrementCollisionCount(r)
			return
		}
		if code >= 400 && code != 409 && !d.rules.noStatus {
			d.reportCreateError(r)
			return
		}
		then(code, result)
	})
}

// reportCreateError sets the reason of the condition Progressing after a failed create of a
// ReplicaSet, and ends the sync.
func (d *deployer) reportCreateError(r *syncState) {
	available := r.d.Status.Condition(objects.AvailableCondition)
	conditions := []any{fields{
		"type": objects.ProgressingCondition, "status": "False", "reason": objects.ReplicaSetCreateErrorReason,
		"lastUpdateTime": time.Unix(1e9, 0).Add(d.now).UTC().Format(time.RFC3339),
	}}
	if available.Type != "" {
		conditions = append(conditions, fields{"type": available.Type, "status": available.Status, "reason": available.Reason})
	}
	d.update(edited(*r.object, "status", fields{"conditions": conditions}), "status", false, func(int, *simObject) { r.finished(false) })
}

// incrementCollisionCount increments status.collisionCount, so that the next sync creates a
// ReplicaSet with another name.
func (d *deployer) incrementCollisionCount(r *syncState) {
	o := edited(*r.object, "status", fields{"collisionCount": r.d.Status.CollisionCount + 1})
	d.update(o, "status", false, func(int, *simObject) { r.finished(false) })
}

// writeDeploymentStatus writes the Deployment's status if it differs from the cached status.
func (d *deployer) writeDeploymentStatus(r *syncState) {
	ready, specs := sumOf(r.sets, availableReplicas), sumOf(r.sets, specReplicas)
	status := objects.DeploymentStatus{
		ObservedGeneration: r.d.Generation, CollisionCount: r.d.Status.CollisionCount,
		Replicas: sumOf(r.sets, statusReplicas), ReadyReplicas: sumOf(r.sets, func(set *objects.Owner) int { return set.Status.ReadyReplicas }),
		AvailableReplicas: ready, UnavailableReplicas: max(0, specs-ready),
	}
	if r.newSet != nil {
		status.UpdatedReplicas = statusReplicas(r.newSet)
	}
	if d.rules.reportsNegative {
		status.UnavailableReplicas = r.d.Replicas - ready
	}
	if d.rules.reportsOnlyNewAvailable && r.newSet != nil {
		status.AvailableReplicas = availableReplicas(r.newSet)
	}
	available := objects.ConditionWithTime{Condition: availability(status.AvailableReplicas >= r.d.MinAvailable())}
	status.Conditions = []objects.ConditionWithTime{d.progress(r, &status), available}
	if reflect.DeepEqual(status, r.d.Status) && !d.rules.rewritesStatus || d.rules.noStatus {
		r.finished(true)
		return
	}
	conditions := []any{}
	for _, c := range status.Conditions {
		conditions = append(conditions, fields{"type": c.Type, "status": c.Status, "reason": c.Reason, "lastUpdateTime": c.LastUpdateTime.Format(time.RFC3339)})
	}
	o := edited(*r.object, "status", fields{
		"observedGeneration": status.ObservedGeneration, "replicas": status.Replicas, "updatedReplicas": status.UpdatedReplicas,
		"readyReplicas": status.ReadyReplicas, "availableReplicas": status.AvailableReplicas,
		"unavailableReplicas": status.UnavailableReplicas, "conditions": conditions,
	})
	o.Version = r.d.Version // the version that the sync started from, even if the cache has a newer one
	d.update(o, "status", false, func(code int, _ *simObject) { r.finished(code == 200) })
}

// progress returns the condition Progressing for the new status. It also enqueues the Deployment
// for the time when the progress deadline ends.
func (d *deployer) progress(r *syncState, status *objects.DeploymentStatus) objects.ConditionWithTime {
	current := r.d.Status.ConditionWithTime(objects.ProgressingCondition)
	now := time.Unix(1e9, 0).Add(d.now).Truncate(time.Second).UTC()
	condition := func(status, reason string) objects.ConditionWithTime {
		if current.Reason == reason && reason != objects.ReplicaSetUpdatedReason {
			return current
		}
		return objects.ConditionWithTime{Condition: objects.Condition{Type: objects.ProgressingCondition, Status: status, Reason: reason}, LastUpdateTime: now}
	}
	write := statusWrite{from: r.d, written: &objects.Deployment{Replicas: r.d.Replicas, Status: *status}}
	due := current.LastUpdateTime.Add(r.d.ProgressDeadline)
	switch {
	case r.d.Paused && current.Reason != objects.DeadlineExceededReason:
		return condition("Unknown", objects.DeploymentPausedReason)
	case r.d.Paused:
		return current
	case current.Reason == objects.DeploymentPausedReason:
		return condition("Unknown", objects.DeploymentResumedReason)
	case current.Reason == objects.NewReplicaSetAvailableReason && status.Replicas == status.UpdatedReplicas:
		return current
	case write.complete():
		return condition("True", objects.NewReplicaSetAvailableReason)
	case write.progressed() || d.rules.reportsProgress:
		return condition("True", objects.ReplicaSetUpdatedReason)
	case current.Reason == "":
		return condition("True", "FoundNewReplicaSet")
	case current.Reason == objects.NewReplicaSetAvailableReason && !d.rules.staleDeadline || current.Reason == objects.DeadlineExceededReason || d.rules.noDeadline:
		return current
	case now.After(due):
		return condition("False", objects.DeadlineExceededReason)
	}
	d.after(due.Sub(now)+2*time.Second, func() { d.enqueue(0) })
	return current
}
