package check

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// rollout returns the account with a Deployment, opening it if need be.
func (p *process) rollout(deployment types.UID) *rollout {
	r := p.rollouts[deployment]
	if r == nil {
		r = newRollout(p, deployment)
		p.rollouts[deployment] = r
	}
	return r
}

func named(sets []*owner, name string) *owner {
	for _, set := range sets {
		if set.Name == name {
			return set
		}
	}
	return nil
}

func all[T any](of []T, holds func(T) bool) bool {
	return !slices.ContainsFunc(of, func(each T) bool { return !holds(each) })
}

// origin is the version that a process wrote from, and when it was answered.
type origin struct {
	from history.Version
	at   time.Duration
}

// state is the ReplicaSets of a Deployment, in order of names: as the process was
// told, and with what it was answered to its own writes. It may go by either.
type state struct{ told, made []*owner }

func newRollout(p *process, uid types.UID) *rollout {
	return &rollout{process: p, uid: uid, written: map[types.UID]*owner{}, origins: map[version]origin{}, taken: map[string]time.Duration{}, unclear: never, hindered: never}
}

// clear reports whether it has been clear since some time, and the lag before,
// which ReplicaSets are the Deployment's. One that nobody controls counts from when
// it is adopted, of which its watch tells later; one that is being deleted does not
// count here, while a controller goes on to count it.
func (r *rollout) clear(since, at time.Duration) bool {
	view := r.process.view
	if d := view.deployments[r.uid]; d != nil && view.anySet(func(set *owner) bool {
		return set.Namespace == d.Namespace && d.selector.Matches(set.labels) &&
			(set.controller.UID == "" || set.controller.UID == d.UID && set.terminating)
	}) {
		r.unclear = at
	}
	return r.unclear == never || r.unclear < since-lag
}

// look takes in what has become of the Deployment and its ReplicaSets.
func (r *rollout) look(at time.Duration) {
	view := r.process.view
	d := view.deployments[r.uid]
	if d == nil {
		r.deployments, r.sets = nil, nil
		clear(r.written)
		clear(r.origins)
		return
	}
	r.clear(at, at)
	if n := len(r.deployments); n == 0 || r.deployments[n-1].value != d {
		r.deployments = append(recent(r.deployments, at-memory), shown[*deployment]{at, d})
	}
	for uid, set := range r.written {
		if now := view.owners[uid]; now != nil && now.Version >= set.Version || now == nil && view.reached[setResource] >= set.Version {
			delete(r.written, uid)
		}
	}
	now := state{told: view.setsOf(d)}
	now.made = now.told
	if len(r.written) > 0 {
		now.made = r.overlaid(d, now.told)
	}
	if n := len(r.sets); n == 0 || !r.sets[n-1].value.equal(now) {
		r.sets = append(recent(r.sets, at-memory), shown[state]{at, now})
	}
}

func (s state) equal(other state) bool {
	return slices.Equal(s.told, other.told) && slices.Equal(s.made, other.made)
}

// overlaid is the ReplicaSets with what the process has made of them.
func (r *rollout) overlaid(d *deployment, sets []*owner) []*owner {
	byName := map[string]*owner{}
	for _, set := range sets {
		byName[set.Name] = set
	}
	for _, set := range r.written {
		if d.owns(set) {
			byName[set.Name] = set
		}
	}
	names := slices.Sorted(maps.Keys(byName))
	all := make([]*owner, 0, len(names))
	for _, name := range names {
		all = append(all, byName[name])
	}
	return all
}

// send takes in a call that is part of the work on the Deployment.
func (r *rollout) send(at time.Duration) {
	r.window.send(r.process, at)
	r.deployments, r.sets = recent(r.deployments, r.from), recent(r.sets, r.from)
	maps.DeleteFunc(r.origins, func(_ version, o origin) bool { return o.at < r.from })
	maps.DeleteFunc(r.taken, func(_ string, at time.Duration) bool { return at < r.from })
}

// knows takes in that the process has seen a version of the Deployment, since
// it writes from it. One worker at a time sees to a Deployment, so that whatever
// it sends from now on comes of that version or a newer one.
func (r *rollout) knows(at history.Version) {
	for len(r.deployments) > 1 && r.deployments[1].value.Version <= at {
		r.deployments = r.deployments[1:]
	}
}

// report takes in that the process has written the status, which it does once in
// a round, twice if the Deployment is paused or resumed. So a write after this
// comes of a round that began after the report before this.
func (r *rollout) report(at time.Duration) {
	r.from = max(r.from, r.reported-lag)
	r.reported = at
}

// conflictsMax is how many conflicts in a row delay nothing that counts: the first
// retries come within milliseconds.
const conflictsMax = 4

// fares takes in how a call for the Deployment has ended, and when it was sent.
func (r *rollout) fares(answer *history.Response, sent, at time.Duration) {
	if at-sent > lag {
		r.hindered = at
	}
	if answer.OK() {
		r.streak = 0
		return
	}
	r.streak++
	if answer.Code != http.StatusConflict || r.streak > conflictsMax {
		r.hindered = at
	}
}

// wrote takes in what the process was told it made of a ReplicaSet, be it that its
// watch told it before.
func (r *rollout) wrote(set *owner, from history.Version, at time.Duration) {
	r.origins[version{uid: set.UID, at: set.Version}] = origin{from, at}
	r.learned(set, at)
}

// learned takes in a ReplicaSet as the process got it in an answer, be it to a write or
// to a live read, unless its watch told it before.
func (r *rollout) learned(set *owner, at time.Duration) {
	if now := r.process.view.owners[set.UID]; now != nil && now.Version >= set.Version {
		return
	}
	r.written[set.UID] = set
	r.look(at)
}
