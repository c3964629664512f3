package check

import (
	"fmt"
	"time"
)

// pending is one difference between the actual and the converged state of an object.
type pending struct {
	text string
	// awaited is true if the subject can do nothing until pods or their nodes change.
	awaited bool
}

// pendings collects the differences of one object.
type pendings struct {
	subject string // the name of the object in evidence
	all     []pending
}

// expect adds a difference that the subject must resolve, unless ok is true.
func (list *pendings) expect(ok bool, format string, args ...any) {
	list.add(ok, false, format, args...)
}

func (list *pendings) add(ok, awaited bool, format string, args ...any) {
	if !ok {
		list.all = append(list.all, pending{text: list.subject + ": " + fmt.Sprintf(format, args...), awaited: awaited})
	}
}

// pendingOwner returns the differences of an owner and its pods. A terminating owner has
// none.
func (objects *objectSet) pendingOwner(o *owner, now time.Time) []pending {
	if o.terminating {
		return nil
	}
	counts := objects.podCountsOf(o.UID)
	available, notYet := objects.available(o, now)
	list := pendings{subject: o.String()}
	list.expect(counts.controlled == o.replicas, "%d active pods, expected %d%s", counts.controlled, o.replicas, objects.describeEnded(o))
	list.expect(counts.replicas == counts.controlled, "%d controlled pods do not match spec.selector, expected 0", counts.controlled-counts.replicas)
	list.expect(counts.orphans == 0, "%d orphaned pods match spec.selector, expected 0", counts.orphans)
	s := o.status
	list.expect(s.ObservedGeneration == o.generation, "status.observedGeneration is %d, expected %d", s.ObservedGeneration, o.generation)
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
	list.expect(!o.failing, "condition ReplicaFailure is True, expected none")
	list.add(counts.ready >= counts.replicas, true, "%d of %d pods ready", counts.ready, counts.replicas)
	list.add(notYet == 0, true, "%d ready pods are not available yet (minReadySeconds)", notYet)
	list.add(counts.terminating == 0, true, "%d pods are terminating", counts.terminating)
	return list.all
}

// describeEnded returns how many pods of an owner have failed or succeeded but still
// exist. A controller that counts them as active does not replace them.
func (objects *objectSet) describeEnded(o *owner) string {
	n := 0
	for _, p := range objects.controlled[o.UID] {
		if !p.active && !p.terminating {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d pods failed or succeeded", n)
}

// available counts the ready pods of an owner. The first result counts those that have been
// ready for minReadySeconds, the second result the others.
func (objects *objectSet) available(o *owner, now time.Time) (available, notYet int) {
	if o.minReady == 0 {
		return objects.podCountsOf(o.UID).ready, 0
	}
	for _, p := range objects.controlled[o.UID] {
		switch {
		case !p.active || !p.ready || !o.selector.Matches(p.labels):
		case p.readySince.Add(o.minReady).After(now):
			notYet++
		default:
			available++
		}
	}
	return available, notYet
}
