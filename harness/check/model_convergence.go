package check

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// pending is one difference between an object and its converged state, such as a wrong
// status.replicas.
type pending struct {
	text string // names the object, what was found, and what was expected
	// awaited is true if the subject cannot resolve the difference itself. The subject has to wait
	// until pods become ready, become available or terminate.
	awaited bool
	// ofStatus is true if the difference is in the status of a Deployment.
	ofStatus bool
}

// pendings collects the differences between one object and its converged state, such as a wrong
// status.replicas.
type pendings struct {
	subject string // the object, as kind namespace/name, with which each text begins
	all     []pending
}

// expect adds a difference unless the parameter ok is true. A controller must be able to resolve
// this difference itself, without waiting for pods. The parameters format and args describe the
// difference, as in fmt.Sprintf.
func (list *pendings) expect(ok bool, format string, args ...any) {
	list.add(ok, false, format, args...)
}

// add adds a difference unless the parameter ok is true. The parameter awaited is true if a
// controller cannot resolve this difference itself, but must wait for pods.
func (list *pendings) add(ok, awaited bool, format string, args ...any) {
	if !ok {
		list.all = append(list.all, pending{text: list.subject + ": " + fmt.Sprintf(format, args...), awaited: awaited})
	}
}

// differs reports whether a ReplicaSet, ReplicationController or Deployment differs from its converged
// state. The parameter now is the present time.
func (state *objectSet) differs(uid types.UID, now time.Time) bool {
	if o := state.owners[uid]; o != nil {
		return len(state.pendingOwner(o, now)) > 0
	}
	d := state.deployments[uid]
	return d != nil && len(state.pendingDeployment(d, now)) > 0
}

// pendingOwner returns how a ReplicaSet or ReplicationController (the owner), its pods and its
// status differ from the converged state. A terminating owner has no differences. The parameter
// now is the present time. It decides whether a pod has been ready for minReadySeconds.
func (state *objectSet) pendingOwner(o *objects.Owner, now time.Time) []pending {
	if o.Terminating {
		return nil
	}
	counts := state.podCountsOf(o.UID)
	available, notYet := state.available(o, now)
	list := pendings{subject: o.String()}
	list.expect(counts.controlled == o.Replicas, "%d active pods, expected %d%s", counts.controlled, o.Replicas, state.describeEnded(o))
	list.expect(counts.replicas == counts.controlled, "%d controlled pods do not match spec.selector, expected 0", counts.controlled-counts.replicas)
	list.expect(counts.orphans == 0, "%d orphaned pods match spec.selector, expected 0", counts.orphans)
	s := o.Status
	list.expect(s.ObservedGeneration == o.Generation, "status.observedGeneration is %d, expected %d", s.ObservedGeneration, o.Generation)
	for _, field := range []struct {
		name            string
		found, expected int
	}{
		{"replicas", s.Replicas, counts.replicas},
		{"fullyLabeledReplicas", s.FullyLabeledReplicas, counts.fullyLabeled},
		{"readyReplicas", s.ReadyReplicas, counts.ready},
		{"availableReplicas", s.AvailableReplicas, available},
	} {
		list.expect(field.found == field.expected, "status.%s is %d, expected %d", field.name, field.found, field.expected)
	}
	if s.TerminatingReplicas != nil {
		list.expect(*s.TerminatingReplicas == counts.terminatingReplicas, "status.terminatingReplicas is %d, expected %d", *s.TerminatingReplicas, counts.terminatingReplicas)
	}
	list.expect(!o.Failing, "condition ReplicaFailure is True, expected no such condition")
	list.add(counts.ready >= counts.replicas, true, "%d pods are ready, expected %d", counts.ready, counts.replicas)
	list.add(notYet == 0, true, "%d ready pods are not available yet (minReadySeconds), expected 0", notYet)
	list.add(counts.terminatingReplicas == 0, true, "%d pods are terminating, expected 0", counts.terminatingReplicas)
	return list.all
}

// describeEnded returns a text about an owner's failed or succeeded pods, such as "; 2 pods failed
// or succeeded". Without such pods, the text is "". It completes the message about the number of
// active pods, because a controller may have counted such pods as active.
func (state *objectSet) describeEnded(o *objects.Owner) string {
	n := 0
	for _, p := range state.controlled[o.UID] {
		if !p.Active && !p.Terminating {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d pods failed or succeeded", n)
}

// available counts the ready pods of an owner. The first result is the number of pods that have
// been ready for minReadySeconds. The second result (notYet) is the number of the other ready pods.
func (state *objectSet) available(o *objects.Owner, now time.Time) (available, notYet int) {
	if o.MinReady == 0 {
		return state.podCountsOf(o.UID).ready, 0
	}
	for _, p := range state.controlled[o.UID] {
		switch {
		case !p.Active || !p.Ready || !o.Selector.Matches(p.Labels):
		case p.ReadySince.Add(o.MinReady).After(now):
			notYet++
		default:
			available++
		}
	}
	return available, notYet
}
