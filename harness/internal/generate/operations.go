package generate

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// userOperation is an operation that the generator may draw for the workload. The function do
// appends one or two steps. It appends none if no existing object is suitable.
type userOperation struct {
	weight int // the relative probability of the operation
	do     func(*users)
}

// userOperations has all operations of users, such as scale, with the weights of the random
// choice.
var userOperations = []userOperation{
	{8, (*users).scale},
	{7, (*users).rollOut},
	{2, (*users).pauseOrResume},
	{1, (*users).rollBack},
	{2, (*users).addOwner},
	{3, (*users).addService},
	{2, (*users).reselect},
	{1, (*users).addPods},
	{1, (*users).relabelPods},
	{1, func(u *users) { u.touch() }},
	{2, (*users).configure},
	{2, (*users).republish},
	{1, (*users).remove},
	{1, (*users).replace},
}

// addOwner appends a step that creates a ReplicaSet, ReplicationController or Deployment with an
// unused name. The selector is app=NAME, where NAME is the object's name. Therefore no two of
// these objects have the same selector.
func (u *users) addOwner() {
	room := u.room()
	if len(u.free) == 0 || room < 2 {
		return
	}
	name := u.free[0]
	u.free = u.free[1:]
	kind := faults.Pick(u.Rand, scenario.Deployment, scenario.Deployment, scenario.ReplicaSet, scenario.ReplicationController)
	u.createObject(u.newOwner(scenario.Target{Kind: kind, Name: name}, room))
	u.await(&u.steps[len(u.steps)-1], u.objects[len(u.objects)-1])
}

// newOwner draws the operation that creates an object with replicas, such as a Deployment. The
// argument room is the number of replicas that the workload can still add. The object gets from 1
// replica to half of room.
func (u *users) newOwner(target scenario.Target, room int) *scenario.Create {
	replicas := 1 + u.IntN(max(1, room/2))
	labels := map[string]string{"app": target.Name}
	create := &scenario.Create{Target: target, Replicas: &replicas, Labels: labels, Selector: labels}
	if u.IntN(5) == 0 {
		create.MinReadySeconds = 1
	}
	if target.Kind != scenario.Deployment {
		return create
	}
	create.Version = "v1"
	create.Strategy = scenario.RollingUpdate
	if u.IntN(4) == 0 {
		create.Strategy = scenario.Recreate
	} else if u.IntN(3) > 0 {
		u.bounds(create)
	}
	if u.IntN(4) == 0 {
		limit := u.IntN(3)
		create.RevisionHistoryLimit = &limit
	}
	return create
}

// bounds draws maxSurge and maxUnavailable of a new Deployment. It never sets both fields to 0,
// because the API server rejects such a Deployment.
func (u *users) bounds(create *scenario.Create) {
	create.MaxSurge, create.MaxUnavailable = u.share(), u.share()
	switch u.IntN(4) {
	case 0:
		create.MaxSurge = scenario.Number(0)
		if u.IntN(2) == 0 { // such a small percentage of the replicas often rounds down to 0 too
			create.MaxUnavailable = scenario.Percent(faults.Pick(u.Rand, 1, 10))
		}
	case 1:
		create.MaxUnavailable = scenario.Number(0)
	}
}

// share draws a value for maxSurge or maxUnavailable. The value is a number of pods or a
// percentage of the replicas, above 0.
func (u *users) share() *scenario.IntOrString {
	if u.IntN(2) == 0 {
		return scenario.Number(1 + u.IntN(4))
	}
	return scenario.Percent(faults.Pick(u.Rand, 1, 10, 25, 34, 50, 100))
}

// scale appends a step that sets the replicas of a random object with replicas.
func (u *users) scale() {
	o := u.pick(owner)
	replicas := u.newReplicas(o)
	o.replicas = replicas
	u.await(u.step(&scenario.Scale{Target: o.Target, Replicas: &replicas}), o)
}

// newReplicas draws a new number of replicas for an object. The sum of all replicas stays at
// most the maximum of the profile.
//
// The number is sometimes 0, and may equal the old number.
func (u *users) newReplicas(o *object) int {
	if u.profile.scalesUpOnly(o.create) {
		return o.replicas + u.IntN(max(1, u.room()/2))
	}
	if u.IntN(10) == 0 {
		return 0
	}
	return u.IntN(max(1, (o.replicas+u.room())*2/3) + 1)
}

// rollOut appends a step that changes the pod template of a Deployment to a new or an earlier
// version. With a probability of 1/6, the same step also scales the Deployment.
func (u *users) rollOut() {
	o := u.pick(deployment)
	if o == nil {
		return
	}
	version := o.versions + 1
	if o.versions > 1 && u.IntN(4) == 0 {
		version = 1 + u.IntN(o.versions-1)
	}
	o.versions = max(o.versions, version)
	rollout := &scenario.Rollout{Target: o.Target, Version: fmt.Sprintf("v%d", version)}
	if u.IntN(6) == 0 {
		replicas := u.newReplicas(o)
		o.replicas, rollout.Replicas = replicas, &replicas
	}
	u.await(u.step(rollout), o)
}

// pauseOrResume appends a step that pauses a random Deployment. If the Deployment is paused
// already, the step resumes the Deployment instead.
func (u *users) pauseOrResume() {
	o := u.pick(deployment)
	if o == nil {
		return
	}
	if o.paused = !o.paused; o.paused {
		u.step(&scenario.Pause{Target: o.Target})
	} else {
		u.step(&scenario.Resume{Target: o.Target})
	}
}

// rollBack appends a step that returns a Deployment to its previous revision. The Deployment
// must have had several versions of its pod template and must not be paused.
func (u *users) rollBack() {
	if o := u.pick(func(o *object) bool { return deployment(o) && o.versions > 1 && !o.paused }); o != nil {
		u.step(&scenario.Rollback{Target: o.Target})
	}
}

// addService appends a step that creates a Service for an object with replicas. It chooses an
// object that has no such Service yet. Some of these Services are of type ExternalName.
func (u *users) addService() {
	o := u.pick(u.withoutService)
	if o == nil {
		return
	}
	if s := u.createService(o); !s.create.Headless && u.IntN(5) == 0 {
		s.create.ExternalName = s.Name + ".example.com"
	}
}

// withoutService reports whether an object has replicas, and no Service has its name.
func (u *users) withoutService(o *object) bool {
	return owner(o) && !slices.ContainsFunc(u.objects, func(s *object) bool { return service(s) && s.Name == o.Name })
}

// createService appends a step that creates a Service with the name of an object with replicas, and
// returns the Service. The Service selects the pods of the object with replicas. Some headless
// Services have no ports.
func (u *users) createService(o *object) *object {
	create := &scenario.Create{
		Target:                   scenario.Target{Kind: scenario.Service, Name: o.Name},
		Selector:                 map[string]string{"app": o.Name},
		Ports:                    firstPorts,
		Headless:                 u.IntN(4) == 0,
		PublishNotReadyAddresses: u.IntN(6) == 0,
	}
	switch {
	case create.Headless && u.IntN(2) == 0:
		create.Ports = []scenario.Port{}
	case u.IntN(3) == 0:
		create.Ports = faults.Pick(u.Rand, morePorts...)
	}
	if u.IntN(3) == 0 {
		create.Labels = map[string]string{"team": "paint"}
	}
	u.createObject(create)
	return u.objects[len(u.objects)-1]
}

// reselect appends a step that changes the selector of a random Service. The new selector
// matches the pods of a random object with replicas.
func (u *users) reselect() {
	if s, o := u.pick(service), u.pick(owner); s != nil {
		s.changed = true
		u.step(&scenario.Select{Target: s.Target, Selector: map[string]string{"app": o.Name}})
	}
}

// configure appends a step that changes one field of the spec of a random object with replicas.
// The field may be the update strategy of a Deployment.
func (u *users) configure() {
	o := u.pick(owner)
	u.await(u.step(u.configuration(o)), o)
}

// configuration draws a configure operation for an object with replicas. It never sets maxSurge
// to 0; [Profile.scalesUpOnly] says why.
func (u *users) configuration(o *object) *scenario.Configure {
	configure := &scenario.Configure{Target: o.Target}
	what := 0
	if deployment(o) {
		what = u.IntN(4)
	}
	switch {
	case what == 1 && !u.profile.scalesUpOnly(o.create):
		configure.Strategy = faults.Pick(u.Rand, scenario.RollingUpdate, scenario.RollingUpdate, scenario.Recreate)
		if configure.Strategy == scenario.RollingUpdate {
			configure.MaxSurge, configure.MaxUnavailable = u.share(), u.share()
		}
	case what == 2:
		configure.RevisionHistoryLimit = ptr.To(u.IntN(3))
	case what == 3:
		configure.ProgressDeadlineSeconds = ptr.To(60 + u.IntN(600))
	default:
		configure.MinReadySeconds = ptr.To(u.IntN(3))
	}
	return configure
}

// republish appends a publish step. This step changes the ports, the type or
// publishNotReadyAddresses of a random Service.
func (u *users) republish() {
	if s := u.pick(service); s != nil {
		s.changed = true
		u.step(u.publication(s))
	}
}

// publication draws a publish operation that changes one random field of a Service. It does not
// change the type of a headless Service, so that the Service stays headless.
func (u *users) publication(s *object) *scenario.Publish {
	publish := &scenario.Publish{Target: s.Target}
	switch what := u.IntN(4); {
	case what == 0:
		publish.PublishNotReadyAddresses = ptr.To(u.IntN(2) == 0)
	case what == 1 && !s.create.Headless:
		publish.Type = faults.Pick(u.Rand, scenario.NodePort, scenario.ExternalName, scenario.ClusterIP)
		if publish.Type == scenario.ExternalName {
			publish.ExternalName = s.Name + ".example.com"
		}
	default:
		publish.Ports = faults.Pick(u.Rand, morePorts...)
	}
	return publish
}

// morePorts has lists of Service ports. A generated step that changes a Service replaces its ports
// by one of these lists, and some Services are created with one of them.
var morePorts = [][]scenario.Port{
	{{Name: "http", Port: 8000, TargetPort: scenario.PortName("metrics"), Protocol: scenario.TCP}},
	{{Name: "metrics", Port: 9090, TargetPort: scenario.Number(9090), Protocol: scenario.TCP}},
	{firstPorts[0], {Name: "metrics", Port: 9090, TargetPort: scenario.PortName("metrics"), Protocol: scenario.TCP}},
	{{Name: "nothing", Port: 53, TargetPort: scenario.PortName("dns"), Protocol: scenario.UDP}},
	firstPorts,
}

// firstPorts are the ports of a new Service.
var firstPorts = []scenario.Port{{Name: "http", Port: 80, TargetPort: scenario.PortName("http"), Protocol: scenario.TCP}}

// addPods appends a step that creates pods with the labels of an owner: a ReplicaSet or
// ReplicationController.
//
// Some of these pods have no controller, so the owner may adopt them. The controller of the other
// pods is a ConfigMap, so the owner must not change them.
func (u *users) addPods() {
	o := u.pick(plain)
	if o == nil {
		return
	}
	u.createObject(&scenario.Create{
		Target:     scenario.Target{Kind: scenario.Pod, Name: fmt.Sprintf("orphan%d", len(u.steps))},
		Count:      1 + u.IntN(3),
		Labels:     map[string]string{"app": o.Name},
		Controller: faults.Pick(u.Rand, scenario.NoController, scenario.NoController, scenario.ForeignController),
	})
}

// relabelPods appends a step that changes the labels of pods which the workload created. A
// ReplicaSet or ReplicationController then releases or adopts these pods.
func (u *users) relabelPods() {
	if p, o := u.pick(pods), u.pick(plain); p != nil && o != nil {
		u.step(&scenario.Label{Target: p.Target, Labels: map[string]string{"app": faults.Pick(u.Rand, o.Name, "nobody")}})
	}
}

// touch appends a step that changes the label "touched" of a random object with replicas. The
// object's controller then enqueues the object. touch returns a pointer to the step.
func (u *users) touch() *scenario.Step { return u.enqueue(u.pick(owner)) }

// enqueue appends a step that sets the label "touched" of an object. The object's controller
// then receives a watch event and enqueues the object. No selector uses this label. enqueue returns
// a pointer to the step.
func (u *users) enqueue(o *object) *scenario.Step {
	return u.step(&scenario.Label{Target: o.Target, Labels: map[string]string{"touched": fmt.Sprintf("at-%d", len(u.steps))}})
}

// remove appends a step that deletes a random object. It never deletes a pod or the last object
// with replicas.
func (u *users) remove() {
	last := len(u.existing(owner)) == 1
	if o := u.pick(func(o *object) bool { return !pods(o) && !(owner(o) && last) }); o != nil {
		u.deleteObject(o)
	}
}

// replace appends two steps, which delete an object with replicas and create it again under the
// same name. The first step waits until the object is gone. The steps test, for example, how a new
// Deployment adopts the ReplicaSets of the deleted one.
func (u *users) replace() {
	o := u.pick(owner)
	u.deleteObject(o).Await = &scenario.Await{Target: o.Target, Until: scenario.Gone, Within: 30 * time.Second}
	u.createObject(u.newOwner(o.Target, max(2, u.room())))
}
