package check

import (
	"fmt"
	"math"
	"strings"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// scaling describes a write that sets the spec.replicas of a ReplicaSet. It contains the cached
// versions on which the controller may have based the write.
type scaling struct {
	rollout *rolloutState // the state of the Deployment that controls the ReplicaSet
	name    string        // the name of the ReplicaSet whose spec.replicas is set
	creates bool          // true if the write creates the ReplicaSet
	to      int           // the new spec.replicas
	// from is spec.replicas in the version on which the write is based, or unknownSize if the version
	// is unknown. It is 0 for a create.
	from int
	// cached is spec.replicas in the newest cached version of the ReplicaSet, whoever controls it. It
	// is 0 for a create. The states in replicaSetStates lack a ReplicaSet that the Deployment has just
	// adopted.
	cached int
	// written contains the annotations of the ReplicaSet in the request. It is nil for a patch.
	written map[string]string
	// template is the pod template of the ReplicaSet.
	template *objects.Template
	// deployments contains the cached versions of the Deployment on which the write may be based,
	// oldest first. replicaSetStates contains the states of the Deployment's ReplicaSets on which
	// the write may be based. Each state contains all these ReplicaSets, sorted by name.
	deployments      []*objects.Deployment
	replicaSetStates [][]*objects.Owner
	// stale is true if no state in replicaSetStates contains the version of the ReplicaSet that the
	// process had read. The API server then returns a conflict, unless the request has no
	// resourceVersion.
	stale bool
}

// unknownSize stands for a spec.replicas that the model does not know. For example, the ReplicaSet may
// not be in the cache yet.
const unknownSize = -1

// newScaling describes a write that sets the spec.replicas of the ReplicaSet with this name and pod
// template. The parameter base is the version of the ReplicaSet that the process had read before,
// or 0 for a create. The parameter replicas is the new value.
func (r *rolloutState) newScaling(name string, template *objects.Template, base history.Version, replicas int) *scaling {
	s := &scaling{rollout: r, name: name, to: replicas, template: template, creates: base == 0}
	since := r.from
	for _, d := range r.deployments {
		if !s.creates || d.value.Template.Same(template) {
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
	at := r.firstStateWith(states, name, base)
	if at >= 0 {
		states = states[at:]
	}
	s.stale = at < 0 && base != 0
	for _, state := range states {
		s.replicaSetStates = append(s.replicaSetStates, state.value.cached, state.value.withOwnWrites)
	}
	return s
}

// firstStateWith returns the first state of a Deployment's ReplicaSets on which a write may be
// based. The result is the index of the state, or -1 if there is none. The parameter base is the
// version of the ReplicaSet that the process had read before the write. It is 0 for a create, and
// the result is then -1.
//
// A state matches if it contains the ReplicaSet in this version. A state with an older version also
// matches, if only writes of this process lie between the two versions. The controller may have
// read the other ReplicaSets before these writes (allowed behavior writes-from-one-snapshot).
func (r *rolloutState) firstStateWith(states []cachedVersion[replicaSetsState], name string, base history.Version) int {
	if base == 0 {
		return -1
	}
	for i, each := range states {
		for _, sets := range [][]*objects.Owner{each.value.cached, each.value.withOwnWrites} {
			if set := findByName(sets, name); set != nil && r.derivesFrom(set, base) {
				return i
			}
		}
	}
	return -1
}

// derivesFrom reports whether only this process changed a ReplicaSet between two versions. The
// parameter set is the earlier version; at is the resourceVersion of the later one. The process may
// then have based a write of the later version on the earlier one.
//
// The result is also true if both are the same version.
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

// hasCachedState reports whether the cache contained the Deployment and its ReplicaSets when the
// process sent the write. Otherwise, checkers cannot compare the write with any state.
func (s *scaling) hasCachedState() bool {
	return len(s.deployments) > 0 && len(s.replicaSetStates) > 0 && s.rollout.process.view.reachedVersion[objects.ReplicaSetResource] > 0
}

// scalesUp reports whether the write certainly adds replicas. The controller may have read any of
// several states of the ReplicaSets. The write must add replicas to each of these states, and to the
// newest cached version of the ReplicaSet.
func (s *scaling) scalesUp() bool {
	return s.to > s.cached && every(s.replicaSetStates, func(sets []*objects.Owner) bool { return s.to > s.replicasBefore(sets) })
}

// replicasBefore returns the ReplicaSet's spec.replicas in the given state, or 0 if the state
// does not contain the ReplicaSet.
func (s *scaling) replicasBefore(sets []*objects.Owner) int {
	if set := findByName(sets, s.name); set != nil {
		return set.Replicas
	}
	return 0
}

// mayBePending reports whether the controller may have had to scale the Deployment's ReplicaSets
// in proportion when it sent the write.
//
// Upstream calls this a scaling event: the desired-replicas annotation of an active ReplicaSet
// differs from the Deployment's spec.replicas. The result is also true if the Deployment may
// have been paused, because the controller then only scales.
func (s *scaling) mayBePending() bool {
	return !every(s.deployments, func(d *objects.Deployment) bool {
		return !d.Paused && every(s.replicaSetStates, func(sets []*objects.Owner) bool { return !scalingPending(d, sets) })
	})
}

// evidence returns evidence that this write violates a guarantee. The string action says what the
// process did, such as "scaled ReplicaSet web-1 to 5". The string expected describes what the
// process should have done.
func (s *scaling) evidence(m *Model, action, expected string) Evidence {
	d := s.deployments[len(s.deployments)-1]
	var cached []string
	for _, set := range s.replicaSetStates[len(s.replicaSetStates)-1] {
		cached = append(cached, fmt.Sprintf("%s (spec.replicas %d, %d available)", set.Name, set.Replicas, set.Status.AvailableReplicas))
	}
	return Evidence{
		Summary:  fmt.Sprintf("%s (spec.replicas %d): %s %s; cached ReplicaSets: %s", d, d.Replicas, s.rollout.process.name, action, strings.Join(cached, ", ")),
		Expected: expected,
		Object:   &d.Ref,
		At:       m.now,
		Records:  []int64{m.seq},
	}
}

// checkableScaling describes how the request in the current record changes the spec.replicas of a
// ReplicaSet. It returns nil if the record contains no request that sets this field. It also
// returns nil if the model has no cached state to compare the request with.
func checkableScaling(m *Model) *scaling {
	if m.sent == nil || m.sent.scaling == nil || !m.sent.scaling.hasCachedState() {
		return nil
	}
	return m.sent.scaling
}

// isRollingUpdate reports whether the Deployment certainly has the strategy RollingUpdate and is
// not terminating. Each version of the Deployment on which the write may be based must fulfill
// this.
func (s *scaling) isRollingUpdate() bool {
	return every(s.deployments, func(d *objects.Deployment) bool { return !d.Recreate && !d.Terminating })
}

// proportionalShare returns the size that a ReplicaSet should get in proportion to its current
// size.
//
// The number total is the sum of the sizes of all ReplicaSets after scaling. Because each share is
// rounded, the sum of all shares may differ from total.
func proportionalShare(d *objects.Deployment, set *objects.Owner, total int) int {
	before := set.MaxReplicas
	if before <= 0 { // the ReplicaSet has no max-replicas annotation
		before = d.Status.Replicas
	}
	if before <= 0 {
		return set.Replicas
	}
	return int(math.Round(float64(set.Replicas) * float64(total) / float64(before)))
}
