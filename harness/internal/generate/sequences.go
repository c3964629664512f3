package generate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/admission"
	"github.com/kube-gauntlet/gauntlet/faults/nodes"
	podfaults "github.com/kube-gauntlet/gauntlet/faults/pods"
	"github.com/kube-gauntlet/gauntlet/faults/processes"
	"github.com/kube-gauntlet/gauntlet/faults/requests"
	"github.com/kube-gauntlet/gauntlet/faults/watches"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// userSequence is a series of steps with faults that begin at these steps. Independent draws of
// steps and faults rarely give such a combination, and some bugs appear in no other.
type userSequence struct {
	weight int // the relative probability of the sequence
	// kinds has the fault types that the sequence injects. The field capabilities has what the
	// cluster must support, so that the sequence can inject these faults with its parameters.
	kinds        []faults.Type
	capabilities []cluster.Capability
	// do appends the steps and faults. It appends nothing if no existing object is suitable.
	do func(*users)
}

// userSequences has all sequences. Most generated scenarios have four of them. A scenario that is
// longer than the profile's own duration has more.
var userSequences = []userSequence{
	{weight: 3, do: (*users).scaleDownUnready, kinds: []faults.Type{podfaults.Churn}, capabilities: []cluster.Capability{cluster.ControlsContainers}},
	{weight: 2, do: (*users).scaleDownCheap},
	{weight: 1, do: (*users).scaleDownPending, kinds: []faults.Type{nodes.Cordon}},
	{weight: 2, do: (*users).scaleDownSlowly, kinds: []faults.Type{watches.Delay, requests.Slow, podfaults.Churn}, capabilities: []cluster.Capability{cluster.ControlsContainers}},
	{weight: 2, do: (*users).scaleDownGone, kinds: []faults.Type{watches.Delay, podfaults.Churn}},
	{weight: 1, do: (*users).rollOutFailed, kinds: []faults.Type{podfaults.Churn}},
	{weight: 2, do: (*users).rollOutUnready, kinds: []faults.Type{podfaults.Churn}, capabilities: []cluster.Capability{cluster.ControlsContainers}},
	{weight: 2, do: (*users).stall, kinds: []faults.Type{requests.Error}},
	{weight: 2, do: (*users).rejectAll, kinds: []faults.Type{requests.Error}},
	{weight: 3, do: (*users).restartSlowly, kinds: []faults.Type{processes.Restart, requests.Slow}},
	{weight: 2, do: (*users).orphanEndpoints, kinds: []faults.Type{processes.Restart}},
	{weight: 2, do: (*users).replaceUnseen, kinds: []faults.Type{watches.Delay}},
	{weight: 1, do: (*users).deleteSlowly},
	{weight: 2, do: (*users).deleteEndpoints},
	{weight: 1, do: (*users).annotateDeployment},
	{weight: 1, do: (*users).flapUnseen, kinds: []faults.Type{watches.Delay, podfaults.Churn}, capabilities: []cluster.Capability{cluster.ControlsContainers}},
	{weight: 1, do: (*users).touchUnready, kinds: []faults.Type{podfaults.Churn}, capabilities: []cluster.Capability{cluster.ControlsContainers}},
	{weight: 2, do: (*users).rollBackUnseen, kinds: []faults.Type{watches.Delay, podfaults.Churn}},
	{weight: 1, do: (*users).rollOutTaken, kinds: []faults.Type{admission.Name}},
	{weight: 2, do: (*users).rollOutUnanswered, kinds: []faults.Type{watches.Delay, requests.Lost}},
}

// lastChange is a fault that changes one or two pods of an object when users change nothing any
// more. A controller that ignores this change rarely receives another event that makes it look at
// the object again.
type lastChange struct {
	weight       int // the relative probability of the change
	kind         faults.Type
	capabilities []cluster.Capability // what the cluster must support for the parameters
	params       string               // parameters of the fault, as fields of a YAML mapping
}

// lastChanges has the changes that may end a workload. No two of them change pods of the same
// object.
var lastChanges = []lastChange{
	// The controller deletes no pod of the object at this time. Otherwise, a pod without owner could
	// block the controller's expectations (known upstream issue delete-after-owner-change).
	{weight: 3, kind: podfaults.Disown, params: "how: strip, times: 2"},
	{weight: 1, kind: podfaults.Disown, params: "how: give, times: 1"},
	{weight: 2, kind: podfaults.Relabel, params: "times: 1"},
	{weight: 2, kind: podfaults.Churn, params: "action: delete, times: 1"},
	{weight: 1, kind: podfaults.Churn, params: "action: fail, times: 1"},
	{weight: 2, kind: podfaults.Churn, params: "action: unready, times: 1, downtime: 1s", capabilities: []cluster.Capability{cluster.ControlsContainers}},
}

// finish ends the workload with faults that change pods, at most one fault for each object with
// replicas. Each fault begins after all replicas of its object are available. finish uses each item
// of u.last at most once. In a workload of hours, finish changes nothing, because faults may still
// be active.
func (u *users) finish() {
	if u.profile.long {
		return
	}
	u.finishes = len(u.steps)
	owners := u.existing(active)
	u.Shuffle(len(owners), func(i, j int) { owners[i], owners[j] = owners[j], owners[i] })
	left := slices.Clone(u.last)
	for _, o := range owners {
		if len(left) == 0 {
			return
		}
		i := weighted(u.Rand, left, func(c lastChange) int { return c.weight })
		u.untilAvailable(o)
		if len(u.steps) == u.finishes+1 {
			u.steps[u.finishes].After = finishPause
		}
		u.inject(left[i].kind.Name, scenario.Done, 3*time.Second, fmt.Sprintf("{selector: app=%s, every: 500ms, %s}", o.Name, left[i].params))
		left = slices.Delete(left, i, i+1)
	}
}

// finishPause is longer than most faults that begin near the end of a workload.
const finishPause = 3 * time.Second

// sequences returns the sequences whose faults the generator may inject on the provider.
func (o *Options) sequences() []userSequence {
	return slices.DeleteFunc(slices.Clone(userSequences), func(s userSequence) bool { return !o.permits(s.capabilities, s.kinds...) })
}

// lastChanges returns the last changes that the generator may make on the provider.
func (o *Options) lastChanges() []lastChange {
	return slices.DeleteFunc(slices.Clone(lastChanges), func(c lastChange) bool { return !o.permits(c.capabilities, c.kind) })
}

// permits reports whether the provider has the capabilities, and the options permit all of the
// given fault types.
func (o *Options) permits(capabilities []cluster.Capability, kinds ...faults.Type) bool {
	return o.Provider.Capabilities.Has(capabilities...) && !slices.ContainsFunc(kinds, func(kind faults.Type) bool {
		return !slices.ContainsFunc(o.supported, func(drawn faults.Type) bool { return drawn.Name == kind.Name })
	})
}

// sequence draws one of the sequences and appends its steps and faults. It appends nothing if no
// sequence is possible, or if the sequences so far already have half of the faults that a scenario
// may have.
func (u *users) sequence() {
	if len(u.faults) >= faultsMax/2 {
		return
	}
	left := slices.Clone(u.sequences)
	for before := len(u.steps); len(left) > 0 && len(u.steps) == before; {
		i := weighted(u.Rand, left, func(s userSequence) int { return s.weight })
		left[i].do(u)
		left = slices.Delete(left, i, i+1)
	}
}

// inject adds a fault that begins at the last step of the workload. The argument at says whether
// the fault begins at the beginning or at the end of this step. The fault is healed after the given
// duration. The argument params is a YAML mapping with the fault's parameters.
func (u *users) inject(name string, at scenario.Edge, duration time.Duration, params string) {
	parsed, err := scenario.ParseParams(name, name, []byte(params))
	u.err = errors.Join(u.err, err)
	u.faults = append(u.faults, scenario.Fault{
		Name: name, Params: parsed, For: duration,
		When: &scenario.Trigger{Step: &scenario.StepTrigger{Index: len(u.steps) - 1, At: at}},
	})
}

// untilAvailable appends a step that waits until all replicas of an object are available. For a
// Deployment, which must not be paused, it waits until the rollout is complete.
func (u *users) untilAvailable(o *object) {
	u.enqueue(o)
	if deployment(o) {
		u.awaitAfterLast(o, scenario.Complete)
	} else {
		u.awaitAfterLast(o, scenario.Available)
	}
}

// awaitAfterLast lets the last step wait for a condition of an object. In a workload of hours, the
// step does not wait, because faults can delay the condition for longer than a wait may last.
func (u *users) awaitAfterLast(o *object, until scenario.Until) {
	if !u.profile.long {
		u.steps[len(u.steps)-1].Await = &scenario.Await{Target: o.Target, Until: until, Within: time.Minute} // a back-off may be long
	}
}

// active reports whether an object has pods that its controller changes: it has replicas, and is not
// paused.
func active(o *object) bool { return owner(o) && !o.paused && o.replicas > 0 }

// rollOutNext appends a step that changes the pod template of a Deployment to a new version. It
// returns a pointer to the step.
func (u *users) rollOutNext(o *object) *scenario.Step {
	o.versions++
	return u.step(&scenario.Rollout{Target: o.Target, Version: fmt.Sprintf("v%d", o.versions)})
}

// scalable reports whether an object has at least 4 replicas and may be scaled down.
func (u *users) scalable(o *object) bool {
	return owner(o) && o.replicas >= 4 && !o.paused && !u.profile.scalesUpOnly(o.create)
}

// resize appends a step that adds a number to the replicas of an object. The number is the argument
// by, which may be negative. The argument after is the pause before the step.
func (u *users) resize(o *object, by int, after time.Duration) {
	o.replicas += by
	u.step(&scenario.Scale{Target: o.Target, Replicas: ptr.To(o.replicas)}).After = after
}

// scaleDownUnready appends steps that scale an object down while some of its pods are not ready. In
// some cases, the pods have become ready again after a restart. The controller must delete pods in
// the order of their states.
func (u *users) scaleDownUnready() {
	o := u.pick(u.scalable)
	if o == nil {
		return
	}
	u.untilAvailable(o)
	times := 1 + u.IntN(o.replicas/2)
	churn := func(action string, downtime, duration time.Duration) {
		u.inject(podfaults.Churn.Name, scenario.Done, duration,
			fmt.Sprintf("{action: %s, selector: app=%s, every: 100ms, times: %d, downtime: %s}", action, o.Name, times, downtime))
	}
	pause := 3 * time.Second
	switch u.IntN(3) {
	case 0: // the pods are unready during the scale-down
		churn("unready", longDowntime, 5*time.Second)
	case 1: // the pods have become ready again, most of them one after another
		churn("restart", 300*time.Millisecond, 2*time.Second)
	default: // the pods become ready again at the same time, and only some of them have restarted
		churn("restart", longDowntime, 2*time.Second)
		churn("unready", longDowntime, 2*time.Second)
		pause = 5 * time.Second
	}
	u.resize(o, -1-u.IntN(times), pause)
}

// longDowntime is longer than the faults that use it. Pods then stay unready until the fault is
// healed, and become ready at the same time.
const longDowntime = 30 * time.Second

// scaleDownCheap appends steps that create pods and an object that adopts them. Further steps set a
// low pod-deletion-cost on these pods, and scale the object down.
func (u *users) scaleDownCheap() {
	room := u.room()
	if len(u.free) == 0 || room < 6 {
		return
	}
	name := u.free[0]
	u.free = u.free[1:]
	cheap := &scenario.Create{
		Target: scenario.Target{Kind: scenario.Pod, Name: name + "-cheap"}, Count: 1 + u.IntN(3), Labels: map[string]string{"app": name},
	}
	u.createObject(cheap)
	create := u.newOwner(scenario.Target{Kind: faults.Pick(u.Rand, scenario.ReplicaSet, scenario.ReplicationController), Name: name}, room)
	*create.Replicas = max(*create.Replicas, cheap.Count+2)
	u.createObject(create)
	o := u.objects[len(u.objects)-1]
	u.untilAvailable(o)
	u.step(&scenario.Annotate{Target: cheap.Target, Annotations: map[string]string{"controller.kubernetes.io/pod-deletion-cost": "-10"}})
	u.resize(o, -cheap.Count, 2500*time.Millisecond)
}

// scaleDownPending appends steps that scale an object up while all nodes are unschedulable, and
// then down again. The controller must first delete the pods that have no node yet.
func (u *users) scaleDownPending() {
	o := u.pick(u.scalable)
	cordons := func(f scenario.Fault) bool { return f.Name == nodes.Cordon.Name }
	if o == nil || u.room() < 2 || slices.ContainsFunc(u.faults, cordons) {
		return
	}
	u.untilAvailable(o)
	u.inject(nodes.Cordon.Name, scenario.Done, 6*time.Second, fmt.Sprintf("{count: %d}", clusterNodes))
	more := 1 + u.IntN(min(5, u.room()-1))
	u.resize(o, more, 500*time.Millisecond)
	u.resize(o, -1-u.IntN(more), 3500*time.Millisecond)
}

// scaleDownSlowly appends steps that scale an object down by two pods. The API server receives the
// second delete late, and the controller receives events of pods late. Meanwhile, other pods become
// unready, so that they would be the next to delete.
func (u *users) scaleDownSlowly() {
	o := u.pick(func(o *object) bool { return plain(o) && o.replicas >= 4 })
	if o == nil {
		return
	}
	u.untilAvailable(o)
	u.resize(o, -2, 500*time.Millisecond)
	pods := resource(kube.Pod)
	u.inject(watches.Delay.Name, scenario.Begun, 7*time.Second, fmt.Sprintf("{resource: %s, delay: 1500ms}", pods))
	u.inject(requests.Slow.Name, scenario.Begun, 7*time.Second,
		fmt.Sprintf("{verb: delete, resource: %s, owner: %s/%s, nth: 1, delay: 2500ms}", pods, o.Kind, o.Name))
	u.inject(podfaults.Churn.Name, scenario.Done, 4*time.Second,
		fmt.Sprintf("{action: unready, selector: app=%s, every: 50ms, times: %d, downtime: %s}", o.Name, 1+o.replicas/2, longDowntime))
	u.faults[len(u.faults)-1].From = 200 * time.Millisecond // the controller has chosen both pods
	u.enqueue(o).After = 7 * time.Second
}

// scaleDownGone appends steps that scale an object down twice, while a user deletes pods of the
// object at once. The controller receives events of pods late, and so deletes pods that are gone.
func (u *users) scaleDownGone() {
	o := u.pick(func(o *object) bool { return plain(o) && o.replicas >= 6 })
	if o == nil {
		return
	}
	u.untilAvailable(o)
	u.inject(watches.Delay.Name, scenario.Done, 6*time.Second, fmt.Sprintf("{resource: %s, delay: 1200ms}", resource(kube.Pod)))
	u.inject(podfaults.Churn.Name, scenario.Done, 5*time.Second,
		fmt.Sprintf("{action: delete, selector: app=%s, every: 60ms, gracePeriodSeconds: 0}", o.Name))
	u.faults[len(u.faults)-1].From = 500 * time.Millisecond
	third := o.replicas / 3
	u.resize(o, -third, time.Second)
	u.resize(o, -third, 2500*time.Millisecond)
}

// rolling reports whether an object is a Deployment that changes its pods by rolling updates, unless
// a step has changed its strategy.
func (u *users) rolling(o *object) bool {
	return deployment(o) && active(o) && o.create.Strategy == scenario.RollingUpdate
}

// rollOutUnready appends steps that roll out a Deployment of which most pods are unready, and remain
// so. The controller must delete these pods first.
func (u *users) rollOutUnready() {
	o := u.pick(func(o *object) bool { return u.rolling(o) && o.replicas >= 4 && !u.profile.scalesUpOnly(o.create) })
	if o == nil {
		return
	}
	u.step(&scenario.Configure{
		Target: o.Target, ProgressDeadlineSeconds: ptr.To(4),
		Strategy: scenario.RollingUpdate, MaxSurge: scenario.Number(1), MaxUnavailable: scenario.Number(1),
	})
	u.untilAvailable(o)
	u.inject(podfaults.Churn.Name, scenario.Done, 12*time.Second,
		fmt.Sprintf("{action: unready, selector: app=%s, every: 50ms, times: %d, downtime: %s}", o.Name, o.replicas*2/3, longDowntime))
	u.rollOutNext(o).After = 2 * time.Second
	u.enqueue(o).After = 8 * time.Second
}

// rollOutFailed appends steps that roll out a Deployment with the strategy Recreate, of which some
// pods have failed. The controller must not wait until these pods are gone.
func (u *users) rollOutFailed() {
	o := u.pick(func(o *object) bool {
		return deployment(o) && active(o) && o.replicas >= 2 && !u.profile.scalesUpOnly(o.create)
	})
	if o == nil {
		return
	}
	u.step(&scenario.Configure{Target: o.Target, Strategy: scenario.Recreate})
	u.untilAvailable(o)
	u.inject(podfaults.Churn.Name, scenario.Done, 1500*time.Millisecond,
		fmt.Sprintf("{action: fail, selector: app=%s, every: 200ms, times: %d}", o.Name, 1+u.IntN(3)))
	u.rollOutNext(o).After = 2500 * time.Millisecond
	u.enqueue(o).After = 4 * time.Second
}

// stall appends steps that start a rollout of a Deployment with a short progress deadline. The
// previous rollout has then been complete for longer than the deadline. In two thirds of the cases, a
// fault makes all creates of pods in the new rollout fail for longer than the deadline.
func (u *users) stall() {
	o := u.pick(u.rolling)
	if o == nil {
		return
	}
	deadline := 3 + u.IntN(2)
	u.step(&scenario.Configure{Target: o.Target, ProgressDeadlineSeconds: ptr.To(deadline)})
	u.untilAvailable(o)
	u.rollOutNext(o).After = time.Duration(deadline+1) * time.Second
	if u.IntN(3) == 0 {
		return
	}
	// The check deployment-status allows 3 seconds for the report, and the rollout makes some progress.
	failing := time.Duration(deadline+6) * time.Second
	u.inject(requests.Error.Name, scenario.Begun, failing, fmt.Sprintf("{verb: create, resource: pods, owner: ReplicaSet/%s-*, code: 500, probability: 1.0}", o.Name))
	u.enqueue(o).After = failing + time.Second
}

// rejectAll appends steps that change up to three objects, and faults that reject requests of their
// controllers. The faults reject most creates and deletes. Updates of ReplicaSets
// succeed, because rejected updates trigger known upstream issues.
func (u *users) rejectAll() {
	begin := u.pick(func(o *object) bool { return owner(o) && !o.paused })
	if begin == nil {
		return
	}
	if u.withoutService(begin) {
		u.createService(begin)
	}
	u.untilAvailable(begin)
	for _, verb := range []string{"create", "update", "delete"} {
		for _, kind := range rejectedKinds[verb] {
			u.inject(requests.Error.Name, scenario.Done, 2500*time.Millisecond,
				fmt.Sprintf("{verb: %s, resource: %s, code: 503, probability: 1.0}", verb, resource(kind)))
		}
	}
	first := len(u.steps)
	for range 3 {
		if u.IntN(2) == 0 {
			u.rollOut()
		} else {
			u.scale()
		}
	}
	for i := range u.steps[first:] {
		u.steps[first+i].Await = nil
	}
	u.enqueue(begin).After = 3 * time.Second
	u.awaitAfterLast(begin, scenario.Scaled)
}

// rejectedKinds has the kinds of the objects that controllers create, update or delete, by verb.
var rejectedKinds = map[string][]string{
	"create": {kube.Pod, kube.ReplicaSet, kube.Endpoints},
	"update": {kube.Endpoints},
	"delete": {kube.Pod},
}

// restartSlowly appends a step that changes an object, and a fault that kills the leader at that
// time. After the restart, the fault proxy delays the watch requests of one or two resources. The
// controllers thus receive the objects of these resources later than other objects.
func (u *users) restartSlowly() {
	o := u.pick(active)
	if o == nil {
		return
	}
	u.untilAvailable(o)
	if deployment(o) && u.IntN(3) > 0 {
		u.rollOutNext(o)
	} else {
		u.resize(o, u.newReplicas(o)-o.replicas, 0)
	}
	slow := []string{kube.Pod}
	if deployment(o) {
		slow = faults.Pick(u.Rand, []string{kube.ReplicaSet}, []string{kube.ReplicaSet, kube.Pod}, slow)
	}
	u.inject(processes.Restart.Name, scenario.Done, 3*time.Second, "{how: kill, downtime: 200ms}")
	// The new leader waits for the lease of 5 seconds, then for its first list.
	for _, kind := range slow {
		u.inject(requests.Slow.Name, scenario.Begun, 10*time.Second, fmt.Sprintf("{verb: watch, resource: %s, delay: 1500ms}", resource(kind)))
	}
}

// orphanEndpoints appends steps that create two Endpoints objects without a Service. The first has
// the annotation of a leader election. The second is created while the controllers are down. After
// their start, the controllers must delete only the second object.
func (u *users) orphanEndpoints() {
	u.createObject(&scenario.Create{Target: scenario.Target{Kind: scenario.Endpoints, Name: fmt.Sprintf("lock%d", len(u.steps))}, Leader: true})
	u.inject(processes.Restart.Name, scenario.Done, 3*time.Second, "{how: terminate, replica: all, downtime: 2s}")
	u.createObject(&scenario.Create{Target: scenario.Target{Kind: scenario.Endpoints, Name: fmt.Sprintf("orphan%d", len(u.steps))}})
	u.steps[len(u.steps)-1].After = time.Second
	u.objects = u.objects[:len(u.objects)-1] // steps must not use the second object, because the controllers delete it
	u.touch()
	u.steps[len(u.steps)-1].After = 10 * time.Second // the new leader waits for the lease, then deletes the object
}

// replaceUnseen appends steps that scale an object down, delete it, and create it again under the
// same name. The controller receives either the events of the pods or the events of the object
// seconds later.
func (u *users) replaceUnseen() {
	o := u.pick(func(o *object) bool { return plain(o) && o.replicas >= 4 })
	if o == nil {
		return
	}
	u.untilAvailable(o)
	u.resize(o, -1-u.IntN(o.replicas-1), 0)
	delayed := faults.Pick(u.Rand, kube.Pod, kube.Pod, kube.Pod, kube.Pod, string(o.Kind))
	u.inject(watches.Delay.Name, scenario.Begun, 4*time.Second, fmt.Sprintf("{resource: %s, delay: 3s}", resource(delayed)))
	gone := u.deleteObject(o)
	gone.Operation.(*scenario.Delete).Propagation = faults.Pick(u.Rand, scenario.Background, scenario.Background, scenario.Orphan)
	gone.After, gone.Await = time.Second, &scenario.Await{Target: o.Target, Until: scenario.Gone, Within: 30 * time.Second}
	u.createObject(u.newOwner(o.Target, max(2, u.room())))
}

// deleteSlowly appends a step that deletes an object in the foreground or background. The object or
// its pods exist for some time afterwards, in which the controller must not create other pods.
func (u *users) deleteSlowly() {
	o := u.pick(func(o *object) bool { return owner(o) && !o.paused && o.replicas > 1 })
	if o == nil || len(u.existing(owner)) < 2 {
		return
	}
	u.untilAvailable(o)
	u.deleteObject(o).Operation.(*scenario.Delete).Propagation = faults.Pick(u.Rand, scenario.Foreground, scenario.Foreground, scenario.Background)
}

// rollBackUnseen appends steps that roll a Deployment back. The controller receives its own update
// of the Deployment a second later. Meanwhile, a fault deletes pods, so that the controller syncs
// with a cached Deployment that still requests the rollback.
func (u *users) rollBackUnseen() {
	o := u.pick(func(o *object) bool {
		return deployment(o) && active(o) && ptr.Deref(o.create.RevisionHistoryLimit, 1) > 0
	})
	if o == nil {
		return
	}
	u.rollOutNext(o)
	u.untilAvailable(o)
	u.step(&scenario.Rollback{Target: o.Target}).After = time.Second
	u.inject(watches.Delay.Name, scenario.Begun, 3*time.Second, fmt.Sprintf("{resource: %s, delay: 1s}", resource(kube.Deployment)))
	u.inject(podfaults.Churn.Name, scenario.Begun, 2*time.Second, fmt.Sprintf("{action: delete, selector: app=%s, every: 200ms}", o.Name))
	u.faults[len(u.faults)-1].From = time.Second // the event of the user's rollback is a second late too
}

// deleteEndpoints appends steps that create Endpoints, and then a Service with the same name. The
// last step deletes the Endpoints, after the controller had time to write addresses to them. The
// controller must create the Endpoints again.
func (u *users) deleteEndpoints() {
	o := u.pick(func(o *object) bool { return active(o) && !u.hadService(o) })
	if o == nil {
		return
	}
	u.untilAvailable(o)
	u.createObject(&scenario.Create{Target: scenario.Target{Kind: scenario.Endpoints, Name: o.Name}})
	endpoints := u.objects[len(u.objects)-1]
	u.createService(o)
	deletion := u.deleteObject(endpoints)
	deletion.After, deletion.Operation.(*scenario.Delete).Propagation = 2*time.Second, scenario.Background
}

// hadService reports whether a step has created a Service with the name of an object. A deleted
// Service, or its Endpoints, may still exist for a while.
func (u *users) hadService(o *object) bool {
	return slices.ContainsFunc(u.steps, func(step scenario.Step) bool {
		create, ok := step.Operation.(*scenario.Create)
		return ok && create.Kind == scenario.Service && create.Name == o.Name
	})
}

// annotateDeployment sets annotations of a Deployment. The controller copies some of them to the
// ReplicaSets. The function then starts a rollout, and removes an annotation.
func (u *users) annotateDeployment() {
	o := u.pick(func(o *object) bool { return deployment(o) && active(o) })
	if o == nil {
		return
	}
	u.untilAvailable(o)
	u.step(&scenario.Annotate{Target: o.Target, Annotations: map[string]string{"example.com/team": "paint", corev1.LastAppliedConfigAnnotation: "{}"}})
	u.rollOutNext(o).After = time.Second
	removal := u.step(&scenario.Annotate{Target: o.Target, Annotations: map[string]string{"example.com/note": "two words"}, Remove: []string{"example.com/team"}})
	removal.After = 3 * time.Second // a rollout can take longer than a step may wait for it
}

// flapUnseen makes a pod behind a Service unready for about a second. The controller receives its own
// updates of the Endpoints 2 seconds late, so the cached Endpoints already have the address again.
func (u *users) flapUnseen() {
	o := u.served()
	if o == nil {
		return
	}
	u.untilAvailable(o)
	u.inject(watches.Delay.Name, scenario.Done, 4*time.Second, fmt.Sprintf("{resource: %s, delay: 2s}", resource(kube.Endpoints)))
	u.inject(podfaults.Churn.Name, scenario.Done, 700*time.Millisecond, fmt.Sprintf("{action: unready, selector: app=%s, every: 400ms, times: 1, downtime: %s}", o.Name, longDowntime))
	u.faults[len(u.faults)-1].From = 500 * time.Millisecond
	u.enqueue(o).After = 5 * time.Second
}

// touchUnready makes pods behind a Service unready, and changes a label of the Service meanwhile. The
// addresses that the controller writes then are wrong as soon as the pods are ready again.
func (u *users) touchUnready() {
	o := u.served()
	if o == nil {
		return
	}
	u.untilAvailable(o)
	u.inject(podfaults.Churn.Name, scenario.Done, 3*time.Second, fmt.Sprintf("{action: unready, selector: app=%s, every: 200ms, times: 2, downtime: %s}", o.Name, longDowntime))
	u.step(&scenario.Label{Target: scenario.Target{Kind: scenario.Service, Name: o.Name}, Labels: map[string]string{"team": "walls"}}).After = 1500 * time.Millisecond
	u.touch()
	u.steps[len(u.steps)-1].After = 4 * time.Second
}

// served returns a random object with pods behind a Service of the same name, which lists only ready
// addresses. If there is none, it appends a step that creates such a Service. It returns nil if that
// is not possible.
func (u *users) served() *object {
	o := u.pick(func(o *object) bool {
		return active(o) && slices.ContainsFunc(u.objects, func(s *object) bool {
			return service(s) && s.Name == o.Name && s.create.ExternalName == "" && !s.create.PublishNotReadyAddresses
		})
	})
	if o == nil {
		if o = u.pick(func(o *object) bool { return active(o) && !u.hadService(o) }); o != nil {
			u.createService(o).create.PublishNotReadyAddresses = false
		}
	}
	return o
}

// rollOutUnanswered appends steps that start a rollout. A fault drops the response to the create of
// the new ReplicaSet. Another fault delays the watch event of this ReplicaSet.
func (u *users) rollOutUnanswered() {
	o := u.pick(func(o *object) bool { return deployment(o) && active(o) })
	if o == nil {
		return
	}
	u.untilAvailable(o)
	u.rollOutNext(o)
	u.inject(watches.Delay.Name, scenario.Begun, 3*time.Second, fmt.Sprintf("{resource: %s, delay: 1s}", resource(kube.ReplicaSet)))
	u.inject(requests.Lost.Name, scenario.Begun, 3*time.Second, fmt.Sprintf("{verb: create, resource: %s, how: reset, breaks: request, times: 1}", resource(kube.ReplicaSet)))
	// The next step begins after the faults. A Deployment that adopts ReplicaSets while their events
	// are missing may get two ReplicaSets with the same template.
	u.enqueue(o).After = 4 * time.Second
}

// rollOutTaken appends steps that start a rollout. A ReplicaSet of another owner already has the
// name of the new ReplicaSet.
func (u *users) rollOutTaken() {
	o := u.pick(func(o *object) bool { return deployment(o) && active(o) })
	if o == nil {
		return
	}
	u.untilAvailable(o)
	u.rollOutNext(o)
	u.inject(admission.Name.Name, scenario.Begun, 2*time.Second, fmt.Sprintf("{owner: Deployment/%s}", o.Name))
	u.enqueue(o).After = 3 * time.Second
}

// changeService appends a step that changes a random Service, some seconds after the last other
// change. If the workload has no Service, it calls the method finish instead.
func (u *users) changeService() {
	before := len(u.steps)
	if u.IntN(2) == 0 {
		u.reselect()
	} else {
		u.republish()
	}
	if len(u.steps) == before { // no Service exists
		u.finish()
		return
	}
	u.steps[before].After = finishPause
}
