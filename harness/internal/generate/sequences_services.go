package generate

import (
	"fmt"
	"slices"
	"time"

	podfaults "github.com/kube-gauntlet/gauntlet/faults/pods"
	"github.com/kube-gauntlet/gauntlet/faults/processes"
	"github.com/kube-gauntlet/gauntlet/faults/watches"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// orphanEndpoints appends steps that create two Endpoints objects without a Service. The first has
// the annotation of a leader election. The second is created while the controllers are down. After
// their start, the controllers must delete only the second object.
func (u *users) orphanEndpoints() {
	u.createObject(&scenario.Create{Target: scenario.Target{Kind: scenario.Endpoints, Name: fmt.Sprintf("lock%d", len(u.steps))}, Leader: true})
	u.inject(processes.Restart.Name, scenario.Done, 3*time.Second, "{how: terminate, replica: all, downtime: 2s}")
	u.createObject(&scenario.Create{Target: scenario.Target{Kind: scenario.Endpoints, Name: fmt.Sprintf("orphan%d", len(u.steps))}})
	u.steps[len(u.steps)-1].After = time.Second
	u.objects = u.objects[:len(u.objects)-1]                    // steps must not use the second object, because the controllers delete it
	u.touch().After = u.profile.leaseDuration() + 5*time.Second // the new leader waits for the lease, then deletes the object
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

// flapUnseen makes a pod behind a Service unready for about a second. The controller receives its own
// updates of the Endpoints 2 seconds late, so the cached Endpoints already have the address again.
func (u *users) flapUnseen() {
	o := u.served()
	if o == nil {
		return
	}
	u.untilAvailable(o)
	u.inject(watches.Delay.Name, scenario.Done, 4*time.Second, fmt.Sprintf("{resource: %s, delay: 2s}", resource(kube.Endpoints)))
	unready := u.inject(podfaults.Churn.Name, scenario.Done, 700*time.Millisecond, fmt.Sprintf("{action: unready, selector: app=%s, every: 400ms, times: 1, downtime: %s}", o.Name, longDowntime))
	unready.From = 500 * time.Millisecond
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
	u.touch().After = 4 * time.Second
}

// served returns a random object with pods, such as a Deployment, that has a Service. The Service has
// the same name, does not publish not-ready addresses, and was not changed by a step. If there is no
// such object, served appends a step that creates such a Service for a random object that never had
// one. It returns nil if there is no such object either.
func (u *users) served() *object {
	o := u.pick(func(o *object) bool {
		return active(o) && slices.ContainsFunc(u.objects, func(s *object) bool {
			return service(s) && s.Name == o.Name && !s.changed && s.create.ExternalName == "" && !s.create.PublishNotReadyAddresses
		})
	})
	if o == nil {
		if o = u.pick(func(o *object) bool { return active(o) && !u.hadService(o) }); o != nil {
			create := u.createService(o).create
			create.PublishNotReadyAddresses, create.Ports = false, firstPorts
		}
	}
	return o
}
