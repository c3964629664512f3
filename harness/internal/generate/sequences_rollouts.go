package generate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults/admission"
	podfaults "github.com/kube-gauntlet/gauntlet/faults/pods"
	"github.com/kube-gauntlet/gauntlet/faults/requests"
	"github.com/kube-gauntlet/gauntlet/faults/watches"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// rollOutNext appends a step that changes the pod template of a Deployment to a new version. It
// returns a pointer to the step.
func (u *users) rollOutNext(o *object) *scenario.Step {
	o.versions++
	return u.step(&scenario.Rollout{Target: o.Target, Version: fmt.Sprintf("v%d", o.versions)})
}

// rolling reports whether an object was created as a Deployment with rolling updates, and has pods.
// A step may have changed its strategy.
func rolling(o *object) bool {
	return deployment(o) && active(o) && o.create.Strategy == scenario.RollingUpdate
}

// rollOutUnready appends steps that roll out a Deployment of which most pods are unready, and remain
// so. The controller must delete these pods first.
func (u *users) rollOutUnready() {
	o := u.pick(func(o *object) bool { return rolling(o) && o.replicas >= 4 && !u.profile.scalesUpOnly(o.create) })
	if o == nil {
		return
	}
	u.untilAvailable(o)
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
	u.untilAvailable(o) // otherwise the known upstream issue recreate-scaling may occur
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
	o := u.pick(rolling)
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
	// Each progress restarts the deadline, and the check deployment-status allows 3 seconds for the report.
	failing := time.Duration(deadline+6) * time.Second
	u.inject(requests.Error.Name, scenario.Begun, failing, fmt.Sprintf("{verb: create, resource: pods, owner: ReplicaSet/%s-*, code: 500, probability: 1.0}", o.Name))
	u.enqueue(o).After = failing + time.Second
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
	deletes := u.inject(podfaults.Churn.Name, scenario.Begun, 2*time.Second, fmt.Sprintf("{action: delete, selector: app=%s, every: 200ms}", o.Name))
	deletes.From = time.Second // the event of the user's rollback is a second late too
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

// rollOutNameTaken appends steps that start a rollout. A ReplicaSet of another owner already has the
// name of the new ReplicaSet.
func (u *users) rollOutNameTaken() {
	o := u.pick(func(o *object) bool { return deployment(o) && active(o) })
	if o == nil {
		return
	}
	u.untilAvailable(o)
	u.rollOutNext(o)
	u.inject(admission.Name.Name, scenario.Begun, 2*time.Second, fmt.Sprintf("{owner: Deployment/%s}", o.Name))
	u.enqueue(o).After = 3 * time.Second
}
