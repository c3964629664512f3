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
)

// rolloutRules are the rules that a simulated Deployment controller breaks.
type rolloutRules struct {
	noSurge                 bool // ignores maxSurge
	noUnavailable           bool // ignores the available replicas
	recreatesAtOnce         bool // Recreate: does not wait until old pods are deleted
	createsDuplicate        bool // creates a second ReplicaSet for the same template
	noStatus                bool // never writes the status
	rewritesStatus          bool // writes the status regularly, although it has not changed
	incrementsCollisions    bool // handles its own ReplicaSet as a hash collision
	reusesRevision          bool // gives a ReplicaSet that it reuses revision 1
	reportsNegative         bool // may report a negative number of unavailable replicas
	reportsOnlyNewAvailable bool // reports only the new ReplicaSet's available replicas
	reportsProgress         bool // always renews the lastUpdateTime of the condition Progressing
	staleDeadline           bool // measures the progress deadline from the end of the previous rollout
	noDeadline              bool // never reports ProgressDeadlineExceeded
	rollsBackAnywhere       bool // rolls back to an arbitrary revision
	keepsRollbackAnnotation bool // does not remove the rollback annotation
	deletesOldEarly         bool // deletes old ReplicaSets before the rollout is complete
	deletesNewestFirst      bool // deletes the highest revisions first
	neverDeletesOld         bool // deletes no old ReplicaSets
	scalesUpOld             bool // scales up an old ReplicaSet
	scalesNewestFirst       bool // scales down the newest old ReplicaSet first
	scalesOnlySmallest      bool // proportional scaling: scales only the smallest ReplicaSet
	remainderToSmallest     bool // proportional scaling: the smallest ReplicaSet gets the remainder

	inheritsNothing bool // does not copy annotations to the new ReplicaSet
}

// deployer is one process with a simulated Deployment controller. It reads only its
// cache.
type deployer struct {
	*controller // for requests and streams
	sim         *rolloutSim
	rules       rolloutRules
	cache       map[types.UID]*history.Object
	queued      bool
	running     bool
	failures    int
	duplicated  map[string]bool // ReplicaSets for whose template it has created a second one
}

// restart stops the subject, if it runs, and starts a new process.
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
	d.enqueue(5 * time.Millisecond)
	if r.rewritesStatus {
		d.rewrite()
	}
}

// rewrite enqueues the Deployment every 300 ms.
func (d *deployer) rewrite() {
	d.enqueue(0)
	if d.alive() {
		d.after(300*time.Millisecond, d.rewrite)
	}
}

// sendEvent sends an event to the proxy, which delivers it after a delay.
func (d *deployer) sendEvent(kind history.EventType, o *history.Object) {
	lag := time.Millisecond
	if d.chaos {
		lag += d.upTo(map[string]time.Duration{
			podResource: d.sim.podLag, replicaSetResource: d.sim.setLag, deploymentResource: d.sim.ownerLag,
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
			if o.Resource != podResource || kind == history.Deleted {
				d.enqueue(500 * time.Microsecond)
			}
		})
	})
}

// cached returns the cached object with a name, or nil.
func (d *deployer) cached(resource, name string) *history.Object {
	for _, o := range d.cache {
		if o.Resource == resource && o.Name == name {
			return o
		}
	}
	return nil
}

func (d *deployer) enqueue(after time.Duration) {
	if d.queued || !d.alive() {
		return
	}
	d.queued = true
	d.after(after, d.work)
}

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

// syncState contains the objects that one sync reads.
type syncState struct {
	object   *history.Object // the cached Deployment
	cached   map[types.UID]*history.Object
	d        *deployment
	sets     []*owner
	newSet   *owner
	oldSets  []*owner
	finished func(ok bool)
}

// plan is one write of a ReplicaSet.
type plan struct {
	set *owner // nil: create a new one
	to  int
}

func (d *deployer) sync(done func(ok bool)) {
	o := d.cached(deploymentResource, "web")
	decoded, err := d.sim.decoder.decode(o)
	if err != nil {
		panic(err)
	}
	r := &syncState{object: o, d: decoded.(*deployment), cached: maps.Clone(d.cache), finished: done}
	for _, uid := range slices.Sorted(maps.Keys(d.cache)) {
		if set := d.cache[uid]; set.Resource == replicaSetResource && set.ControllerRef() != nil {
			decoded, err := d.sim.decoder.owner(kindByResource(replicaSetResource), set)
			if err != nil {
				panic(err)
			}
			r.sets = append(r.sets, decoded)
		}
	}
	slices.SortStableFunc(r.sets, func(a, b *owner) int { return a.created.Compare(b.created) })
	current, old := r.d.splitByTemplate(r.sets)
	r.oldSets = old
	r.newSet = oldestOf(current, r.d.template)
	if r.d.rollback >= 0 && !r.d.paused {
		d.rollBack(r)
		return
	}
	if r.newSet != nil && !d.rules.inheritsNothing && !r.inherited() {
		d.annotate(r)
		return
	}
	d.writePlans(r, d.plan(r))
}

// inherited reports whether the new ReplicaSet has the Deployment's annotations.
func (r *syncState) inherited() bool {
	for key, value := range r.d.annotations {
		if r.newSet.annotations[key] != value {
			return false
		}
	}
	return true
}

// annotate copies the Deployment's annotations to the new ReplicaSet. The event of that
// write enqueues the Deployment again.
func (d *deployer) annotate(r *syncState) {
	o := *r.cached[r.newSet.UID]
	o.Annotations = maps.Clone(o.Annotations)
	maps.Copy(o.Annotations, r.d.annotations)
	d.update(o, "", false, func(code int, _ *simObject) { r.finished(code == 200) })
}

// rollBack restores the template of the requested revision. It removes the annotation in
// any case.
func (d *deployer) rollBack(r *syncState) {
	revision := r.d.rollback
	if revision == 0 && !d.rules.rollsBackAnywhere {
		revision = lastRevision(r.sets)
	}
	o := *r.object
	for _, set := range r.sets {
		if set.revision == revision || d.rules.rollsBackAnywhere {
			o = edited(o, "spec", fields{"template": podTemplate("web", set.labels[hashLabel], "")})
		}
	}
	o.Annotations = maps.Clone(o.Annotations)
	if !d.rules.keepsRollbackAnnotation {
		delete(o.Annotations, rollbackAnnotation)
	}
	d.update(o, "", string(o.Body) != string(r.object.Body), func(code int, _ *simObject) { r.finished(code == 200) })
}

// deleteOld deletes old ReplicaSets above revisionHistoryLimit, one after another.
func (d *deployer) deleteOld(r *syncState) {
	slices.SortFunc(r.oldSets, func(a, b *owner) int {
		if d.rules.deletesNewestFirst {
			a, b = b, a
		}
		return cmp.Compare(a.revision, b.revision)
	})
	above := r.oldSets[:max(0, len(r.oldSets)-r.d.historyLimit)]
	if d.rules.neverDeletesOld {
		above = nil
	}
	for _, set := range above {
		if set.replicas != 0 || set.status.Replicas != 0 || set.generation > set.status.ObservedGeneration {
			continue
		}
		d.call(history.Request{Verb: "delete", Resource: replicaSetResource, Namespace: namespace, Name: set.Name}, func() (int, *simObject) {
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
			r.oldSets = slices.DeleteFunc(r.oldSets, func(other *owner) bool { return other == set })
			d.deleteOld(r)
		})
		return
	}
	d.writeDeploymentStatus(r)
}

// plan returns the writes of ReplicaSets that the cached objects require.
func (d *deployer) plan(r *syncState) []plan {
	switch {
	case r.d.paused || r.d.scalingPending(r.sets):
		return d.proportionally(r)
	case r.newSet != nil && r.newSet.revision <= highestRevision(r.oldSets):
		return []plan{{r.newSet, r.newSet.replicas}} // the write sets a higher revision
	case r.d.recreate:
		return d.recreate(r)
	}
	sum := sumOf(r.sets, specReplicas)
	room := max(0, r.d.maxPods()-sum)
	if d.rules.noSurge {
		room = r.d.replicas
	}
	switch {
	case r.newSet == nil || d.rules.createsDuplicate && !d.duplicated[r.newSet.Name]:
		return []plan{{nil, min(r.d.replicas, room)}}
	case r.newSet.replicas > r.d.replicas:
		return []plan{{r.newSet, r.d.replicas}}
	case d.rules.scalesUpOld && room > 0 && len(r.oldSets) > 0 && r.newSet.replicas < r.d.replicas:
		d.rules.scalesUpOld = false // only once
		return []plan{{r.oldSets[0], r.oldSets[0].replicas + 1}}
	case r.newSet.replicas < r.d.replicas && room > 0:
		return []plan{{r.newSet, min(r.d.replicas, r.newSet.replicas+room)}}
	}
	return d.down(r)
}

// down scales down old ReplicaSets, the oldest first. In each, unavailable pods go first.
func (d *deployer) down(r *syncState) (plans []plan) {
	if d.rules.scalesNewestFirst {
		slices.Reverse(r.oldSets)
	}
	if d.rules.noUnavailable {
		for _, set := range r.oldSets {
			if set.replicas > 0 {
				plans = append(plans, plan{set, 0})
			}
		}
		return plans
	}
	spare := sumOf(r.sets, specReplicas) - r.d.minAvailable() - max(0, r.newSet.replicas-availableReplicas(r.newSet))
	healthy := sumOf(r.sets, func(set *owner) int { return min(availableReplicas(set), set.replicas) }) - r.d.minAvailable()
	for _, set := range r.oldSets {
		unavailable := max(0, min(spare, set.replicas-availableReplicas(set)))
		available := max(0, min(spare-unavailable, healthy, set.replicas-max(0, set.replicas-availableReplicas(set))))
		if unavailable+available > 0 {
			spare, healthy = spare-unavailable-available, healthy-available
			plans = append(plans, plan{set, set.replicas - unavailable - available})
		}
	}
	return plans
}

// proportionally scales each ReplicaSet in proportion to the change of spec.replicas. The
// largest gets the rounding remainder. Each write sets the annotation desired-replicas.
func (d *deployer) proportionally(r *syncState) (plans []plan) {
	target := 0
	var active []*owner
	for _, set := range r.sets {
		if set.replicas > 0 {
			active = append(active, set)
		}
	}
	if r.d.replicas > 0 {
		target = r.d.maxPods()
	}
	if len(active) == 1 {
		target = r.d.replicas
	}
	missing := target - sumOf(active, specReplicas)
	if missing > 0 {
		slices.Reverse(active) // among equal sizes, the newest goes first
	}
	slices.SortStableFunc(active, func(a, b *owner) int {
		if d.rules.remainderToSmallest {
			a, b = b, a
		}
		return cmp.Compare(b.replicas, a.replicas)
	})
	if r.d.recreate && len(active) > 1 {
		missing = 0
	}
	for _, set := range active {
		gain := 0
		if before := cmp.Or(set.maxReplicas, r.d.status.Replicas); before > 0 && len(active) > 1 && !d.rules.scalesOnlySmallest {
			gain = int(math.Round(float64(set.replicas)*float64(target)/float64(before))) - set.replicas
		}
		if missing < 0 {
			gain = min(max(gain, missing), 0)
		} else {
			gain = max(min(gain, missing), 0)
		}
		missing -= gain
		plans = append(plans, plan{set, set.replicas + gain})
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
	return slices.DeleteFunc(plans, func(p plan) bool { return p.to == p.set.replicas && p.set.desiredReplicas == r.d.replicas })
}

func (d *deployer) recreate(r *syncState) (plans []plan) {
	for _, set := range r.oldSets {
		if set.replicas > 0 {
			plans = append(plans, plan{set, 0})
		}
	}
	if !d.rules.recreatesAtOnce && (len(plans) > 0 || d.oldRunning(r)) {
		return plans
	}
	if r.newSet == nil {
		return append(plans, plan{nil, r.d.replicas})
	}
	if r.newSet.replicas != r.d.replicas {
		plans = append(plans, plan{r.newSet, r.d.replicas})
	}
	return plans
}

func (d *deployer) oldRunning(r *syncState) bool {
	for _, o := range d.cache {
		ref := o.ControllerRef()
		if o.Resource == podResource && slices.ContainsFunc(r.oldSets, func(set *owner) bool { return set.UID == ref.UID }) {
			return true
		}
	}
	return false
}

// writePlans sends the planned writes one after another, and then writes the status. It
// stops after a failure.
func (d *deployer) writePlans(r *syncState, plans []plan) {
	if len(plans) == 0 {
		ended := r.newSet != nil && r.d.rolloutEnded(nil, nil)
		if ended || r.d.paused || d.rules.deletesOldEarly {
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
	o.Annotations[desiredReplicasAnnotation] = fmt.Sprint(r.d.replicas)
	o.Annotations[maxReplicasAnnotation] = fmt.Sprint(r.d.maxPods())
	if r.newSet == plans[0].set {
		o.Annotations[revisionAnnotation] = fmt.Sprint(max(r.newSet.revision, highestRevision(r.oldSets)+1))
	}
	if d.rules.reusesRevision {
		o.Annotations[revisionAnnotation] = "1"
	}
	d.update(o, "", plans[0].to != plans[0].set.replicas, then)
}

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

func (d *deployer) create(r *syncState, replicas int, then func(int, *simObject)) {
	var body struct{ Spec struct{ Template fields } }
	if err := unmarshalSome(r.object.Body, &body); err != nil {
		panic(err)
	}
	version := body.Spec.Template["spec"].(fields)["image"].(string)
	o := newReplicaSetOf("web", version, replicas, r.d.replicas)
	if d.rules.createsDuplicate && r.newSet != nil {
		d.duplicated[r.newSet.Name] = true
		o.Name += "-duplicate"
	}
	if collisions := r.d.status.CollisionCount; collisions > 0 {
		o.Name += fmt.Sprint("-", collisions)
	}
	o.Annotations[maxReplicasAnnotation] = fmt.Sprint(r.d.maxPods())
	o.Annotations[revisionAnnotation] = fmt.Sprint(highestRevision(r.sets) + 1)
	if !d.rules.inheritsNothing {
		maps.Copy(o.Annotations, r.d.annotations)
	}
	o.UID, o.Owners = "", []history.Owner{{Kind: deploymentKind, Name: "web", UID: r.object.UID, Controller: true}}
	requested := o
	d.call(history.Request{Verb: "create", Resource: replicaSetResource, Namespace: namespace, Object: &requested}, func() (int, *simObject) {
		if d.sim.named(replicaSetResource, o.Name) != nil {
			return 409, nil
		}
		return 201, &simObject{Object: *d.sim.commit(history.Added, o)}
	}, func(code int, result *simObject) {
		if holder := d.cached(replicaSetResource, o.Name); code == 409 && (d.rules.incrementsCollisions || holder != nil && holder.ControllerRef() == nil) {
			d.incrementCollisionCount(r)
			return
		}
		then(code, result)
	})
}

// incrementCollisionCount increments collisionCount, so that the next sync uses another name.
func (d *deployer) incrementCollisionCount(r *syncState) {
	o := edited(*r.object, "status", fields{"collisionCount": r.d.status.CollisionCount + 1})
	d.update(o, "status", false, func(int, *simObject) { r.finished(false) })
}

// writeDeploymentStatus writes the status if it has changed.
func (d *deployer) writeDeploymentStatus(r *syncState) {
	ready, specs := sumOf(r.sets, availableReplicas), sumOf(r.sets, specReplicas)
	status := deploymentStatus{
		ObservedGeneration: r.d.generation, CollisionCount: r.d.status.CollisionCount,
		Replicas: sumOf(r.sets, statusReplicas), ReadyReplicas: sumOf(r.sets, func(set *owner) int { return set.status.ReadyReplicas }),
		AvailableReplicas: ready, UnavailableReplicas: max(0, specs-ready),
	}
	if r.newSet != nil {
		status.UpdatedReplicas = statusReplicas(r.newSet)
	}
	if d.rules.reportsNegative {
		status.UnavailableReplicas = r.d.replicas - ready
	}
	if d.rules.reportsOnlyNewAvailable && r.newSet != nil {
		status.AvailableReplicas = availableReplicas(r.newSet)
	}
	available := deploymentConditionWithTime{deploymentCondition: availability(status.AvailableReplicas >= r.d.minAvailable())}
	status.Conditions = []deploymentConditionWithTime{d.progress(r, &status), available}
	if reflect.DeepEqual(status, r.d.status) && !d.rules.rewritesStatus || d.rules.noStatus {
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

// progress returns the condition Progressing, and enqueues the Deployment again for the
// deadline.
func (d *deployer) progress(r *syncState, status *deploymentStatus) deploymentConditionWithTime {
	current := r.d.status.conditionWithTime("Progressing")
	now := time.Unix(1e9, 0).Add(d.now).Truncate(time.Second).UTC()
	condition := func(status, reason string) deploymentConditionWithTime {
		if current.Reason == reason && reason != replicaSetUpdated {
			return current
		}
		return deploymentConditionWithTime{deploymentCondition{"Progressing", status, reason}, now}
	}
	write := statusWrite{from: r.d, written: &deployment{replicas: r.d.replicas, status: *status}}
	due := current.LastUpdateTime.Add(r.d.deadline)
	switch {
	case r.d.paused && current.Reason != deadlineExceeded:
		return condition("Unknown", deploymentPaused)
	case r.d.paused:
		return current
	case current.Reason == deploymentPaused:
		return condition("Unknown", deploymentResumed)
	case current.Reason == newReplicaSetAvailable && status.Replicas == status.UpdatedReplicas:
		return current
	case write.complete():
		return condition("True", newReplicaSetAvailable)
	case write.progressed() || d.rules.reportsProgress:
		return condition("True", replicaSetUpdated)
	case current.Reason == "":
		return condition("True", "FoundNewReplicaSet")
	case current.Reason == newReplicaSetAvailable && !d.rules.staleDeadline || current.Reason == deadlineExceeded || d.rules.noDeadline:
		return current
	case now.After(due):
		return condition("False", deadlineExceeded)
	}
	d.after(due.Sub(now)+2*time.Second, func() { d.enqueue(0) })
	return current
}
