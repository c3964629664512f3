package check

import (
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// scaling is a call that sets a ReplicaSet's spec.replicas, with the versions on which
// the controller may have based it.
type scaling struct {
	rollout *rolloutState
	name    string
	creates bool
	to      int
	// template is the pod template of the ReplicaSet. It is nil if the ReplicaSet is not in
	// the cache.
	template *objects.Template
	// deployments and replicaSetStates are the cached versions that may justify the call.
	deployments      []*objects.Deployment
	replicaSetStates [][]*objects.Owner
	// stale is true if no state contains the version on which the call is based. The API
	// server then returns a conflict, unless the request has no resourceVersion.
	stale bool
}

// newScaling describes a call that sets spec.replicas of a ReplicaSet. The parameter from
// is the version on which the write is based, or 0 for a create.
func (r *rolloutState) newScaling(name string, pods *objects.Template, from history.Version, to int) *scaling {
	s := &scaling{rollout: r, name: name, to: to, template: pods, creates: from == 0}
	since := r.from
	for _, d := range r.deployments {
		if !s.creates || d.value.Template.Same(pods) {
			if len(s.deployments) == 0 && s.creates {
				// Before this version, the process did not have the template. The
				// ReplicaSets that were delivered just before may not have been in its
				// cache yet.
				since = max(since, d.since-lag)
			}
			s.deployments = append(s.deployments, d.value)
		}
	}
	if len(s.deployments) == 0 { // the Deployment's template may have changed during the call
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

// firstStateWith returns the index of the first state that may contain the given version of
// a ReplicaSet, or -1. The caller passes the version on which a write is based. If the
// process wrote that version itself, the controller may have read the other ReplicaSets in
// an earlier state (allowed behavior writes-from-one-snapshot).
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

// derivesFrom reports whether a version of a ReplicaSet is based on set. This is true if
// set is that version, or if the process's own writes led from set to that version.
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

// hasCachedState reports whether the cache contained the Deployment and its ReplicaSets. If
// it did not, the call cannot be checked.
func (s *scaling) hasCachedState() bool {
	return len(s.deployments) > 0 && len(s.replicaSetStates) > 0 && s.rollout.process.view.reachedVersion[objects.ReplicaSetResource] > 0
}

// scalesUp reports whether the call adds replicas, compared with every state on which it
// may be based.
func (s *scaling) scalesUp() bool {
	return every(s.replicaSetStates, func(sets []*objects.Owner) bool { return s.to > s.replicasBefore(sets) })
}

// replicasBefore returns the spec.replicas of the ReplicaSet in a state, or 0 if the state
// does not contain it.
func (s *scaling) replicasBefore(sets []*objects.Owner) int {
	if set := findByName(sets, s.name); set != nil {
		return set.Replicas
	}
	return 0
}

// mayBePending reports whether a scaling event was pending in any cached state that may
// justify the call. A scaling event is pending if the Deployment is paused, or if an active
// ReplicaSet was last scaled for another spec.replicas.
func (s *scaling) mayBePending() bool {
	return !every(s.deployments, func(d *objects.Deployment) bool {
		return !d.Paused && every(s.replicaSetStates, func(sets []*objects.Owner) bool { return !scalingPending(d, sets) })
	})
}

// evidence returns the evidence of a violation by this call. The parameter action describes
// the call of the process in words.
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
// record sends none, or if there is no cached state with which to compare it.
func checkableScaling(m *Model) *scaling {
	if m.sent == nil || m.sent.scaling == nil || !m.sent.scaling.hasCachedState() {
		return nil
	}
	return m.sent.scaling
}

// isRollingUpdate reports whether the strategy was RollingUpdate in every cached version
// in the recent window.
func (s *scaling) isRollingUpdate() bool {
	return every(s.deployments, func(d *objects.Deployment) bool { return !d.Recreate && !d.Terminating })
}
