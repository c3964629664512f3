package check

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// rollout is the account of one process with one Deployment: how it may have
// had it, and its ReplicaSets, in mind of late.
//
// The two come by different watches, each late in its own way, so that every
// version of the one may have been seen with every state of the other.
type rollout struct {
	window
	process     *process
	uid         types.UID
	deployments []shown[*deployment]
	sets        []shown[state]
	// reported is when the process was last told that it had written the
	// Deployment's status.
	reported time.Duration
	// written is what the process was told it made of a ReplicaSet, until it is
	// shown that or newer. A controller may count by either (trap 12).
	written map[types.UID]*owner
	// origins says of each version that the process made of a ReplicaSet from which
	// one it did, as long as that may matter to a round that goes on.
	origins map[version]origin
	// taken is when the process was last told of a name that it may not give to a
	// new ReplicaSet, since one has it.
	taken map[string]time.Duration
	// hindered is when a call for the Deployment last took long, or failed for more
	// than a moment, as one conflict does; streak, how many have failed since one did
	// not.
	hindered time.Duration
	streak   int
	// unclear is when the process last had a ReplicaSet that may or may not count
	// as the Deployment's.
	unclear time.Duration
}

// origin is the version that a process wrote from, and when it was answered.
type origin struct {
	from history.Version
	at   time.Duration
}

// state is the ReplicaSets of a Deployment, in order of names: as the process was
// told, and with what it was answered to its own writes. It may go by either.
type state struct{ told, made []*owner }

// shown is something as a process had it from some time on.
type shown[T any] struct {
	since time.Duration
	value T
}

// window is the time from which a process' present decisions about one object
// may date: since it was last idle about it, and for some time before that.
type window struct {
	working int // calls in flight
	lastAt  time.Duration
	from    time.Duration
}

// memory bounds the window. A call that takes longer has timed out.
const memory = 90 * time.Second

// send moves the window on, if the process was idle about the object.
func (w *window) send(p *process, at time.Duration) {
	if w.working == 0 && at-w.lastAt >= p.drain && !p.napping(at) {
		w.from = at - p.drain
	}
	w.from = max(w.from, at-memory)
	w.working++
	w.lastAt = at
}

func (w *window) settle(at time.Duration) {
	w.working--
	w.lastAt = at
}

func newRollout(p *process, uid types.UID) *rollout {
	return &rollout{process: p, uid: uid, written: map[types.UID]*owner{}, origins: map[version]origin{}, taken: map[string]time.Duration{}, unclear: never, hindered: never}
}

// never is a time before all others.
const never = time.Duration(math.MinInt64)

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

// anySet reports whether there is such a ReplicaSet.
func (w *world) anySet(such func(*owner) bool) bool {
	for _, o := range w.owners {
		if o.Resource == setResource && such(o) {
			return true
		}
	}
	return false
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

// recent drops what was replaced by a given time.
func recent[T any](all []shown[T], from time.Duration) []shown[T] {
	old := 0
	for old+1 < len(all) && all[old+1].since <= from {
		old++
	}
	return all[old:]
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

// scaling is a call that gives a ReplicaSet a number of replicas, with what the
// process may have had in mind.
type scaling struct {
	rollout *rollout
	name    string
	creates bool
	to      int
	// template is the ReplicaSet's; nil where the process has not seen it.
	template *template
	// deployments and states are what may have led to it.
	deployments []*deployment
	states      [][]*owner
	// outdated: the version that it is made from is in none of the states. The API
	// server refuses it, unless it takes any version.
	outdated bool
}

// scaling reads a create, or a write from that version, of a ReplicaSet.
func (r *rollout) scaling(name string, pods *template, from history.Version, to int) *scaling {
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
	states := recent(r.sets, since)
	at := r.knew(states, name, from)
	if at >= 0 {
		states = states[at:]
	}
	s.outdated = at < 0 && from != 0
	for _, each := range states {
		s.states = append(s.states, each.value.told, each.value.made)
	}
	return s
}

// knew returns from which state on the process knew the version of a ReplicaSet
// that it wrote from, -1 if that is not to be told. What it had made itself it
// may have known without a new look at the others.
func (r *rollout) knew(states []shown[state], name string, at history.Version) int {
	if at == 0 {
		return -1
	}
	for i, each := range states {
		for _, sets := range [][]*owner{each.value.told, each.value.made} {
			if set := named(sets, name); set != nil && r.stems(set, at) {
				return i
			}
		}
	}
	return -1
}

// stems reports whether a version of a ReplicaSet is the given one, or that from
// which the process made the given one.
func (r *rollout) stems(set *owner, at history.Version) bool {
	for range len(r.origins) + 1 {
		if set.Version == at {
			return true
		}
		before, ok := r.origins[version{uid: set.UID, at: at}]
		if !ok {
			return false
		}
		at = before.from
	}
	return false
}

func named(sets []*owner, name string) *owner {
	for _, set := range sets {
		if set.Name == name {
			return set
		}
	}
	return nil
}

// judgeable reports whether the process was shown what it should judge by.
func (s *scaling) judgeable() bool {
	return len(s.deployments) > 0 && len(s.states) > 0 && s.rollout.process.view.reached[setResource] > 0
}

// up reports whether the call adds replicas, whatever state led to it.
func (s *scaling) up() bool {
	return all(s.states, func(sets []*owner) bool { return s.to > s.before(sets) })
}

// before is how many replicas the ReplicaSet asked for, 0 if there was none.
func (s *scaling) before(sets []*owner) int {
	if set := named(sets, s.name); set != nil {
		return set.replicas
	}
	return 0
}

// pending reports whether a scaling event may have been pending.
func (s *scaling) pending() bool {
	return !all(s.deployments, func(d *deployment) bool {
		return !d.paused && all(s.states, func(sets []*owner) bool { return !d.beingScaled(sets) })
	})
}

// evidence of a violation by this call.
func (s *scaling) evidence(m *Model, did, expected string) Evidence {
	d := s.deployments[len(s.deployments)-1]
	var knew []string
	for _, set := range s.states[len(s.states)-1] {
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

func all[T any](of []T, holds func(T) bool) bool {
	return !slices.ContainsFunc(of, func(each T) bool { return !holds(each) })
}
