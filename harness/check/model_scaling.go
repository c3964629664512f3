package check

import (
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// scaling describes a call that sets the spec.replicas of a ReplicaSet. It contains the
// cached versions on which the controller may have based the call.
type scaling struct {
	rollout *rolloutState // the state of the Deployment that controls the ReplicaSet
	name    string        // the name of the ReplicaSet
	creates bool          // true if the call creates the ReplicaSet
	to      int           // the new spec.replicas
	// template is the pod template of the ReplicaSet.
	template *objects.Template
	// deployments are the cached versions of the Deployment on which the call may be based,
	// oldest first. replicaSetStates are the cached states of all its ReplicaSets.
	deployments      []*objects.Deployment
	replicaSetStates [][]*objects.Owner
	// stale is true if none of the states contains the version of the ReplicaSet on which the
	// call is based. The API server then returns a conflict, unless the request has no
	// resourceVersion.
	stale bool
}

// newScaling describes a call that sets the spec.replicas of a ReplicaSet. The parameter to is
// the new value. The parameter from is the version of the ReplicaSet on which the call is
// based, or 0 for a create.
func (r *rolloutState) newScaling(name string, pods *objects.Template, from history.Version, to int) *scaling {
	s := &scaling{rollout: r, name: name, to: to, template: pods, creates: from == 0}
	since := r.from
	for _, d := range r.deployments {
		if !s.creates || d.value.Template.Same(pods) {
			if len(s.deployments) == 0 && s.creates {
				// The process can create a ReplicaSet for a template only after it has received
				// the Deployment with that template. States of the ReplicaSets from before that
				// time do not count, with lag as a tolerance for late events.
				since = max(since, d.since-lag)
			}
			s.deployments = append(s.deployments, d.value)
		}
	}
	if len(s.deployments) == 0 { // no recent version has the template of the new ReplicaSet
		for _, d := range r.deployments {
			s.deployments = append(s.deployments, d.value)
		}
	}
	states := keepSince(r.replicaSets, since)
	at := r.firstStateWith(states, name, from)
	if at >= 0 {
		states = states[at:]
	}
	s.stale = at < 0 && from != 0
	for _, state := range states {
		s.replicaSetStates = append(s.replicaSetStates, state.value.cached, state.value.withOwnWrites)
	}
	return s
}

// firstStateWith returns the index of the first state on which a write of a ReplicaSet may be
// based, or -1. The parameter at is the version of the ReplicaSet that the write contains.
//
// A state counts if it has this version. It also counts if it has an older version, from which
// the process got version at by its own writes. The controller may have read the other
// ReplicaSets before these writes (allowed behavior writes-from-one-snapshot).
func (r *rolloutState) firstStateWith(states []cachedVersion[replicaSetsState], name string, at history.Version) int {
	if at == 0 {
		return -1
	}
	for i, each := range states {
		for _, sets := range [][]*objects.Owner{each.value.cached, each.value.withOwnWrites} {
			if set := findByName(sets, name); set != nil && r.derivesFrom(set, at) {
				return i
			}
		}
	}
	return -1
}

// derivesFrom reports whether the version in set became the version at by writes of the process
// alone. The result is also true if set itself has the resourceVersion at.
func (r *rolloutState) derivesFrom(set *objects.Owner, at history.Version) bool {
	for range len(r.writtenFrom) + 1 {
		if set.Version == at {
			return true
		}
		before, ok := r.writtenFrom[objects.VersionKey{UID: set.UID, Version: at}]
		if !ok {
			return false
		}
		at = before.from
	}
	return false
}

// hasCachedState reports whether the cache contained the Deployment and the ReplicaSets. If
// it did not, checkers cannot compare the call with any state.
func (s *scaling) hasCachedState() bool {
	return len(s.deployments) > 0 && len(s.replicaSetStates) > 0 && s.rollout.process.view.reachedVersion[objects.ReplicaSetResource] > 0
}

// scalesUp reports whether the call adds replicas, whatever state of the ReplicaSets it is
// based on.
func (s *scaling) scalesUp() bool {
	return every(s.replicaSetStates, func(sets []*objects.Owner) bool { return s.to > s.replicasBefore(sets) })
}

// replicasBefore returns the spec.replicas that the ReplicaSet had in the given state. It
// returns 0 if the state does not contain the ReplicaSet.
func (s *scaling) replicasBefore(sets []*objects.Owner) int {
	if set := findByName(sets, s.name); set != nil {
		return set.Replicas
	}
	return 0
}

// mayBePending reports whether the controller may have been in a scaling event when it sent
// the call.
//
// Upstream calls it a scaling event if the desired-replicas annotation of an active
// ReplicaSet differs from the Deployment's spec.replicas. The function also returns true if
// the Deployment may have been paused, because the controller then only scales.
func (s *scaling) mayBePending() bool {
	return !every(s.deployments, func(d *objects.Deployment) bool {
		return !d.Paused && every(s.replicaSetStates, func(sets []*objects.Owner) bool { return !scalingPending(d, sets) })
	})
}

// evidence returns evidence of a violation by this call. The parameter action says what the
// process did, such as "scaled ReplicaSet web-1 to 5".
func (s *scaling) evidence(m *Model, action, expected string) Evidence {
	d := s.deployments[len(s.deployments)-1]
	var cached []string
	for _, set := range s.replicaSetStates[len(s.replicaSetStates)-1] {
		cached = append(cached, fmt.Sprintf("%s (spec.replicas %d, %d available)", set.Name, set.Replicas, set.Status.AvailableReplicas))
	}
	return Evidence{
		Summary:  fmt.Sprintf("%s (spec.replicas %d): %s %s; in its cache: %s", d, d.Replicas, s.rollout.process.name, action, strings.Join(cached, ", ")),
		Expected: expected,
		Object:   &d.Ref,
		At:       m.now,
		Records:  []int64{m.seq},
	}
}

// checkableScaling returns the scaling that the current record sends. It returns nil if the
// record sends none, or if the model has no cached state to compare it with.
func checkableScaling(m *Model) *scaling {
	if m.sent == nil || m.sent.scaling == nil || !m.sent.scaling.hasCachedState() {
		return nil
	}
	return m.sent.scaling
}

// isRollingUpdate reports whether the Deployment certainly has the strategy RollingUpdate and
// is not terminating. This holds if it is true for each version of the Deployment on which
// the call may be based.
func (s *scaling) isRollingUpdate() bool {
	return every(s.deployments, func(d *objects.Deployment) bool { return !d.Recreate && !d.Terminating })
}
