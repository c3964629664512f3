package check

import (
	"fmt"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// scaling is a call that gives a ReplicaSet a number of replicas, with what the
// process may have had in mind.
type scaling struct {
	rollout *rolloutState
	name    string
	creates bool
	to      int
	// template is the ReplicaSet's; nil where the process has not seen it.
	template *template
	// deployments and states are what may have led to it.
	deployments      []*deployment
	replicaSetStates [][]*owner
	// stale: the version that it is made from is in none of the states. The API
	// server refuses it, unless it takes any version.
	stale bool
}

// newScaling reads a create, or a write from that version, of a ReplicaSet.
func (r *rolloutState) newScaling(name string, pods *template, from history.Version, to int) *scaling {
	s := &scaling{rollout: r, name: name, to: to, template: pods, creates: from == 0}
	since := r.from
	for _, d := range r.deployments {
		if !s.creates || d.value.template.same(pods) {
			if len(s.deployments) == 0 && s.creates {
				// Before that it did not know the template. The ReplicaSets that it was
				// told of just before it may not yet have taken in.
				since = max(since, d.since-lag)
			}
			s.deployments = append(s.deployments, d.value)
		}
	}
	if len(s.deployments) == 0 { // one that changes templates on the way
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
	for _, each := range states {
		s.replicaSetStates = append(s.replicaSetStates, each.value.cached, each.value.withOwnWrites)
	}
	return s
}

// firstStateWith returns from which state on the process knew the version of a ReplicaSet
// that it wrote from, -1 if that is not to be told. What it had made itself it
// may have known without a new look at the others.
func (r *rolloutState) firstStateWith(states []cachedVersion[replicaSetsState], name string, at history.Version) int {
	if at == 0 {
		return -1
	}
	for i, each := range states {
		for _, sets := range [][]*owner{each.value.cached, each.value.withOwnWrites} {
			if set := findByName(sets, name); set != nil && r.derivesFrom(set, at) {
				return i
			}
		}
	}
	return -1
}

// derivesFrom reports whether a version of a ReplicaSet is the given one, or that from
// which the process made the given one.
func (r *rolloutState) derivesFrom(set *owner, at history.Version) bool {
	for range len(r.writtenFrom) + 1 {
		if set.Version == at {
			return true
		}
		before, ok := r.writtenFrom[versionKey{uid: set.UID, at: at}]
		if !ok {
			return false
		}
		at = before.from
	}
	return false
}

// hasCachedState reports whether the process was shown what it should judge by.
func (s *scaling) hasCachedState() bool {
	return len(s.deployments) > 0 && len(s.replicaSetStates) > 0 && s.rollout.process.view.reachedVersion[replicaSetResource] > 0
}

// scalesUp reports whether the call adds replicas, whatever state led to it.
func (s *scaling) scalesUp() bool {
	return every(s.replicaSetStates, func(sets []*owner) bool { return s.to > s.replicasBefore(sets) })
}

// replicasBefore is how many replicas the ReplicaSet asked for, 0 if there was none.
func (s *scaling) replicasBefore(sets []*owner) int {
	if set := findByName(sets, s.name); set != nil {
		return set.replicas
	}
	return 0
}

// mayBePending reports whether a scaling event may have been pending.
func (s *scaling) mayBePending() bool {
	return !every(s.deployments, func(d *deployment) bool {
		return !d.paused && every(s.replicaSetStates, func(sets []*owner) bool { return !d.scalingPending(sets) })
	})
}

// evidence of a violation by this call.
func (s *scaling) evidence(m *Model, did, expected string) Evidence {
	d := s.deployments[len(s.deployments)-1]
	var knew []string
	for _, set := range s.replicaSetStates[len(s.replicaSetStates)-1] {
		knew = append(knew, fmt.Sprintf("%s=%d (%d available)", set.Name, set.replicas, set.status.AvailableReplicas))
	}
	return Evidence{
		Summary:  fmt.Sprintf("%s of %d replicas: %s %s; it knew %s", d, d.replicas, s.rollout.process.name, did, strings.Join(knew, ", ")),
		Expected: expected,
		Object:   &d.Ref,
		At:       m.now,
		Records:  []int64{m.seq},
	}
}

// checkableScaling is the scaling that the current record is, nil if it is none
// or there is nothing to judge it by.
func checkableScaling(m *Model) *scaling {
	if m.sent == nil || m.sent.scaling == nil || !m.sent.scaling.hasCachedState() {
		return nil
	}
	return m.sent.scaling
}

// isRollingUpdate reports whether the Deployment was to be updated by rolling, in every
// way that the process may have had it in mind.
func (s *scaling) isRollingUpdate() bool {
	return every(s.deployments, func(d *deployment) bool { return !d.recreate && !d.terminating })
}
