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

// writeOrigin describes one write of a ReplicaSet. writeOrigin.from is the version that the process
// had read before the write. writeOrigin.at is when the response to the write arrived.
type writeOrigin struct {
	from history.Version
	at   time.Duration
}

// replicaSetsState contains all ReplicaSets of one Deployment at one time, sorted by name, in two
// variants. The field cached contains the versions in the cache. In withOwnWrites, newer versions
// that the API server returned to the process replace cached versions.
//
// The controller may act on either variant. It may use the response to a write before the watch
// event of that write arrives.
type replicaSetsState struct{ cached, withOwnWrites []*objects.Owner }

// newRolloutState returns the initial state of a process for a Deployment. It contains no
// versions of the Deployment or its ReplicaSets.
func newRolloutState(p *process, uid types.UID) *rolloutState {
	return &rolloutState{process: p, uid: uid, ownWrites: map[types.UID]*objects.Owner{}, writtenFrom: map[objects.VersionKey]writeOrigin{}, takenNames: map[string]*nameHolders{}, ownershipUnclearAt: never, delayedAt: never}
}

// ownershipClear reports whether it is certain which ReplicaSets belonged to the Deployment in a
// period. The period begins lag (1 s) before the time in the parameter since. It ends at the time
// in the parameter at.
//
// A ReplicaSet that matches the Deployment's selector makes the ownership uncertain in two cases:
//
//   - The ReplicaSet is an orphan. It belongs to the Deployment only after its adoption, and the
//     watch event of the adoption may be late.
//   - The ReplicaSet is terminating. The model does not count such a ReplicaSet. The controller may
//     count it until the watch event of the deletion arrives.
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

// update records which versions of the Deployment and of its ReplicaSets the cache contains now.
// The model calls it when one of them has changed in the cache. It also calls update after a
// response that contains a ReplicaSet. If the Deployment is no longer in the cache, update forgets
// all versions.
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

// equal reports whether two states contain the same versions of the same ReplicaSets. The model
// does not store a state that is equal to the last one.
func (s replicaSetsState) equal(other replicaSetsState) bool {
	return slices.Equal(s.cached, other.cached) && slices.Equal(s.withOwnWrites, other.withOwnWrites)
}

// withOwnWrites returns the cached ReplicaSets in the parameter sets, sorted by name. Versions
// that the API server returned to the process replace cached versions.
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

// recordCall records that the process sent a request while it was syncing the Deployment. It also
// forgets old versions of the Deployment and its ReplicaSets. These versions cannot be the reason
// for a later request (see decisionWindow).
func (r *rolloutState) recordCall(at time.Duration) {
	r.decisionWindow.callSent(r.process, at)
	r.deployments, r.replicaSets = keepSince(r.deployments, r.from), keepSince(r.replicaSets, r.from)
	maps.DeleteFunc(r.writtenFrom, func(_ objects.VersionKey, o writeOrigin) bool { return o.at < r.from })
	maps.DeleteFunc(r.takenNames, func(_ string, holders *nameHolders) bool { return holders.rejectedAt < r.from })
}

// hasSeen records that a write was based on one version of the Deployment (the parameter at), and
// removes older versions.
//
// No later request is based on an older version, because only one worker at a time syncs a
// Deployment.
func (r *rolloutState) hasSeen(at history.Version) {
	for len(r.deployments) > 1 && r.deployments[1].value.Version <= at {
		r.deployments = r.deployments[1:]
	}
}

// recordStatusWrite records that a write of the Deployment's status succeeded, and moves the
// start of the recent window forward. The parameters are the times of the request and of the
// response.
//
// A sync writes the status at most twice. If this write is the second one of its sync, later
// requests belong to a new sync. If it is the first one, its sync began after the previous status
// write. The recent window therefore begins lag (1 s) before the response to that previous write.
func (r *rolloutState) recordStatusWrite(answer *history.Response, sentAt, at time.Duration) {
	r.from = max(r.from, r.statusWrittenAt-lag)
	r.statusWrittenAt, r.statusSentAt = at, sentAt
	if answer.Object != nil {
		r.statusVersion = answer.Object.Version
	}
}

// changing reports whether a sync that sent a request at the given time may have read an outdated
// Deployment. The cache then lacked the last status that the process wrote, or received a new
// version of the Deployment less than lag (1 s) before.
func (r *rolloutState) changing(sentAt time.Duration) bool {
	if len(r.deployments) == 0 {
		return true
	}
	last := r.deployments[len(r.deployments)-1]
	return last.value.Version < r.statusVersion || sentAt-last.since < lag
}

// conflictsMax is how many consecutive conflicts (409) do not count as a delay of the rollout.
// After a conflict, the work queue repeats the sync within milliseconds.
const conflictsMax = 4

// recordOutcome notes in delayedAt that a request failed or took longer than lag (1 s), which may
// delay the rollout. Among the first conflictsMax failures in a row, conflicts do not count.
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

// recordWrite records the ReplicaSet that a successful write returned. The parameter from is the
// resourceVersion of the ReplicaSet that the process had read before the write.
func (r *rolloutState) recordWrite(set *objects.Owner, from history.Version, at time.Duration) {
	r.writtenFrom[objects.VersionKey{UID: set.UID, Version: set.Version}] = writeOrigin{from, at}
	r.recordReplicaSet(set, at)
}

// recordReplicaSet records a ReplicaSet that the API server returned to the process. The controller
// may act on this version before its watch event arrives. The method does nothing if the cache
// already contains the same or a newer version of the ReplicaSet.
func (r *rolloutState) recordReplicaSet(set *objects.Owner, at time.Duration) {
	if now := r.process.view.owners[set.UID]; now != nil && now.Version >= set.Version {
		return
	}
	r.ownWrites[set.UID] = set
	r.update(at)
}

// rollout returns the state of the process for the Deployment with the given UID. If there is
// none, it adds an empty state.
func (p *process) rollout(deployment types.UID) *rolloutState {
	r := p.rollouts[deployment]
	if r == nil {
		r = newRolloutState(p, deployment)
		p.rollouts[deployment] = r
	}
	return r
}

// findByName returns the ReplicaSet with the given name, or nil if the slice sets does not
// contain it.
func findByName(sets []*objects.Owner, name string) *objects.Owner {
	for _, set := range sets {
		if set.Name == name {
			return set
		}
	}
	return nil
}

// every reports whether the given function returns true for all values. It returns true for an
// empty slice.
func every[T any](values []T, test func(T) bool) bool {
	return !slices.ContainsFunc(values, func(value T) bool { return !test(value) })
}
