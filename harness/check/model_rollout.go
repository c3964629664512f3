package check

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// writeOrigin is the version on which a write was based, and the time when the response to
// the write arrived.
type writeOrigin struct {
	from history.Version
	at   time.Duration
}

// replicaSetsState contains the ReplicaSets of a Deployment, sorted by name. The field
// cached contains the versions in the cache. In withOwnWrites, newer versions from
// responses to the process's own writes replace the cached ones. The model has both fields
// because the controller may act on either.
type replicaSetsState struct{ cached, withOwnWrites []*objects.Owner }

func newRolloutState(p *process, uid types.UID) *rolloutState {
	return &rolloutState{process: p, uid: uid, ownWrites: map[types.UID]*objects.Owner{}, writtenFrom: map[objects.VersionKey]writeOrigin{}, takenNames: map[string]time.Duration{}, ownershipUnclearAt: never, delayedAt: never}
}

// ownershipClear reports whether it is certain which ReplicaSets belonged to the Deployment
// recently. The period begins lag before the given time. A matching orphan belongs to the
// Deployment only after its adoption, and the event of the adoption may be late. The model
// does not count a terminating ReplicaSet as the Deployment's, but the controller may still
// count it.
func (r *rolloutState) ownershipClear(since, at time.Duration) bool {
	view := r.process.view
	if d := view.deployments[r.uid]; d != nil && view.anyReplicaSet(func(set *objects.Owner) bool {
		return set.Namespace == d.Namespace && d.Selector.Matches(set.Labels) &&
			(set.Controller.UID == "" || set.Controller.UID == d.UID && set.Terminating)
	}) {
		r.ownershipUnclearAt = at
	}
	return r.ownershipUnclearAt == never || r.ownershipUnclearAt < since-lag
}

// update records the current state of the Deployment and its ReplicaSets in the cache.
func (r *rolloutState) update(at time.Duration) {
	view := r.process.view
	d := view.deployments[r.uid]
	if d == nil {
		r.deployments, r.replicaSets = nil, nil
		clear(r.ownWrites)
		clear(r.writtenFrom)
		return
	}
	r.ownershipClear(at, at)
	if n := len(r.deployments); n == 0 || r.deployments[n-1].value != d {
		r.deployments = append(keepSince(r.deployments, at-decisionWindowMax), cachedVersion[*objects.Deployment]{at, d})
	}
	for uid, set := range r.ownWrites {
		if now := view.owners[uid]; now != nil && now.Version >= set.Version || now == nil && view.reachedVersion[objects.ReplicaSetResource] >= set.Version {
			delete(r.ownWrites, uid)
		}
	}
	now := replicaSetsState{cached: view.replicaSetsOf(d)}
	now.withOwnWrites = now.cached
	if len(r.ownWrites) > 0 {
		now.withOwnWrites = r.withOwnWrites(d, now.cached)
	}
	if n := len(r.replicaSets); n == 0 || !r.replicaSets[n-1].value.equal(now) {
		r.replicaSets = append(keepSince(r.replicaSets, at-decisionWindowMax), cachedVersion[replicaSetsState]{at, now})
	}
}

func (s replicaSetsState) equal(other replicaSetsState) bool {
	return slices.Equal(s.cached, other.cached) && slices.Equal(s.withOwnWrites, other.withOwnWrites)
}

// withOwnWrites returns the cached ReplicaSets, but with newer versions from the process's
// own writes.
func (r *rolloutState) withOwnWrites(d *objects.Deployment, sets []*objects.Owner) []*objects.Owner {
	byName := map[string]*objects.Owner{}
	for _, set := range sets {
		byName[set.Name] = set
	}
	for _, set := range r.ownWrites {
		if d.Counts(set) {
			byName[set.Name] = set
		}
	}
	names := slices.Sorted(maps.Keys(byName))
	all := make([]*objects.Owner, 0, len(names))
	for _, name := range names {
		all = append(all, byName[name])
	}
	return all
}

// recordCall records a call that was sent while the process was syncing the Deployment.
func (r *rolloutState) recordCall(at time.Duration) {
	r.decisionWindow.callSent(r.process, at)
	r.deployments, r.replicaSets = keepSince(r.deployments, r.from), keepSince(r.replicaSets, r.from)
	maps.DeleteFunc(r.writtenFrom, func(_ objects.VersionKey, o writeOrigin) bool { return o.at < r.from })
	maps.DeleteFunc(r.takenNames, func(_ string, at time.Duration) bool { return at < r.from })
}

// hasSeen records that a write is based on the given version of the Deployment. Every later
// request is based on this version or a newer one, because only one worker at a time
// processes a Deployment.
func (r *rolloutState) hasSeen(at history.Version) {
	for len(r.deployments) > 1 && r.deployments[1].value.Version <= at {
		r.deployments = r.deployments[1:]
	}
}

// recordStatusWrite records a successful status write. One sync writes the status once, or
// twice if the Deployment was paused or resumed. Every later request therefore comes from a
// sync that began after the status write before this one.
func (r *rolloutState) recordStatusWrite(at time.Duration) {
	r.from = max(r.from, r.statusWrittenAt-lag)
	r.statusWrittenAt = at
}

// conflictsMax is the number of consecutive conflicts that do not count as a delay. They
// are no delay because the first retries of the work queue follow after milliseconds.
const conflictsMax = 4

// recordOutcome records whether a call for the Deployment failed or took longer than lag.
func (r *rolloutState) recordOutcome(answer *history.Response, sent, at time.Duration) {
	if at-sent > lag {
		r.delayedAt = at
	}
	if answer.OK() {
		r.failuresInARow = 0
		return
	}
	r.failuresInARow++
	if answer.Code != http.StatusConflict || r.failuresInARow > conflictsMax {
		r.delayedAt = at
	}
}

// recordWrite records the ReplicaSet in the response to a write.
func (r *rolloutState) recordWrite(set *objects.Owner, from history.Version, at time.Duration) {
	r.writtenFrom[objects.VersionKey{UID: set.UID, Version: set.Version}] = writeOrigin{from, at}
	r.recordReplicaSet(set, at)
}

// recordReplicaSet records a ReplicaSet in the response to a write or a live read. It
// ignores the response if the cache already contains that version or a newer one.
func (r *rolloutState) recordReplicaSet(set *objects.Owner, at time.Duration) {
	if now := r.process.view.owners[set.UID]; now != nil && now.Version >= set.Version {
		return
	}
	r.ownWrites[set.UID] = set
	r.update(at)
}

// rollout returns the state of the process for a Deployment, and creates it if it does not
// exist.
func (p *process) rollout(deployment types.UID) *rolloutState {
	r := p.rollouts[deployment]
	if r == nil {
		r = newRolloutState(p, deployment)
		p.rollouts[deployment] = r
	}
	return r
}

func findByName(sets []*objects.Owner, name string) *objects.Owner {
	for _, set := range sets {
		if set.Name == name {
			return set
		}
	}
	return nil
}

func every[T any](values []T, holds func(T) bool) bool {
	return !slices.ContainsFunc(values, func(value T) bool { return !holds(value) })
}
