package generate

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/nodes"
	podfaults "github.com/kube-gauntlet/gauntlet/faults/pods"
	"github.com/kube-gauntlet/gauntlet/faults/processes"
	"github.com/kube-gauntlet/gauntlet/faults/requests"
	"github.com/kube-gauntlet/gauntlet/faults/watches"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

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

// scaleDownSlowly appends steps that scale an object down by two pods. The API server receives one
// of the deletes late, and the controller receives events of pods late. Meanwhile, other pods become
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
	unready := u.inject(podfaults.Churn.Name, scenario.Done, 4*time.Second,
		fmt.Sprintf("{action: unready, selector: app=%s, every: 50ms, times: %d, downtime: %s}", o.Name, 1+o.replicas/2, longDowntime))
	unready.From = 200 * time.Millisecond // the controller has chosen both pods
	u.enqueue(o).After = 7 * time.Second
}

// scaleDownDeletedPods appends steps that scale an object down twice, while a user deletes pods of the
// object at once. The controller receives events of pods late, and so deletes pods that are gone.
func (u *users) scaleDownDeletedPods() {
	o := u.pick(func(o *object) bool { return plain(o) && o.replicas >= 6 })
	if o == nil {
		return
	}
	u.untilAvailable(o)
	u.inject(watches.Delay.Name, scenario.Done, 6*time.Second, fmt.Sprintf("{resource: %s, delay: 1200ms}", resource(kube.Pod)))
	deletes := u.inject(podfaults.Churn.Name, scenario.Done, 5*time.Second,
		fmt.Sprintf("{action: delete, selector: app=%s, every: 60ms, gracePeriodSeconds: 0}", o.Name))
	deletes.From = 500 * time.Millisecond
	third := o.replicas / 3
	u.resize(o, -third, time.Second)
	u.resize(o, -third, 2500*time.Millisecond)
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
	// The new leader waits for the lease, then for its first list.
	for _, kind := range slow {
		u.inject(requests.Slow.Name, scenario.Begun, u.profile.leaseDuration()+5*time.Second, fmt.Sprintf("{verb: watch, resource: %s, delay: 1500ms}", resource(kind)))
	}
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
