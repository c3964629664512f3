package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// sizesJudge: each time a ReplicaSet is scaled, it goes where the Deployment has
// it go, in some way in which the process may have had them in mind.
//
// While the Deployment rolls, the new one goes towards its replicas and the old
// ones down. While it is paused, or its ReplicaSets were last scaled for another
// number of replicas, a single one takes all of them, one that carries all sends
// the others to 0, and otherwise each gets its share, the largest with what
// rounding leaves. How far at a time is for max-surge and max-unavailable to judge.
// Of several old ones that a rolling update takes available pods of, the oldest goes
// first, and down to 0.
type sizesJudge struct{ findings }

func newSizes(Settings) Checker { return &sizesJudge{} }

func (j *sizesJudge) Observe(m *Model, _ *history.Record) {
	a := m.answered
	if a == nil || a.scaling == nil || !a.response.OK() || !a.scaling.judgeable() {
		return // what is refused was made from what is outdated
	}
	s := a.scaling
	if s.creates || s.outdated || !s.rollout.clear(s.rollout.from, m.at) {
		return
	}
	j.tested++
	if older := s.outOfTurn(); older != nil {
		j.violate(func() Evidence {
			return s.evidence(m, fmt.Sprintf("lowered ReplicaSet %s to %d, and its pods were available, while the older %s asked for %d", s.name, s.to, older.Name, older.replicas),
				"the oldest ReplicaSet at 0 first")
		})
		return
	}
	for _, d := range s.deployments {
		for _, sets := range s.states {
			if set := named(sets, s.name); set == nil || d.sizes(sets, set).holds(s.to) {
				return
			}
		}
	}
	j.violate(func() Evidence {
		d, sets := s.deployments[len(s.deployments)-1], s.states[len(s.states)-1]
		set := named(sets, s.name)
		return s.evidence(m, fmt.Sprintf("scaled ReplicaSet %s from %d to %d", s.name, set.replicas, s.to), d.sizes(sets, set).String())
	})
}

// outOfTurn returns an older ReplicaSet that was to go first, where available pods of
// an old one are taken away in a rolling update: in no way in which the process may
// have had them in mind had all that are older gone (contract Deployment 9). It is nil
// where that may be right. Pods that are not available go first, whatever their age,
// and nobody can tell which of two is older that were made in the same second.
func (s *scaling) outOfTurn() (older *owner) {
	if !s.rolling() || s.pending() {
		return nil
	}
	old := func(set *owner) bool {
		return all(s.deployments, func(d *deployment) bool { return !d.template.same(set.template) })
	}
	for _, sets := range s.states {
		set := named(sets, s.name)
		if set == nil || !old(set) || s.to >= min(available(set), set.replicas) {
			return nil
		}
		first := slices.IndexFunc(sets, func(other *owner) bool {
			return other.replicas > 0 && other.created.Before(set.created) && old(other)
		})
		if first < 0 {
			return nil
		}
		older = sets[first]
	}
	return older
}

// sizes is between which bounds a ReplicaSet may be given replicas; to keep those
// that it has is always right.
type sizes struct{ now, low, high int }

func (s sizes) holds(to int) bool { return to == s.now || to >= s.low && to <= s.high }

func (s sizes) String() string {
	if s.low > s.high || s.low == s.now && s.high == s.now {
		return fmt.Sprintf("%d left", s.now)
	}
	return fmt.Sprintf("%d left, or from %d to %d", s.now, s.low, s.high)
}

// sizes says how many replicas a ReplicaSet of the Deployment may be given.
func (d *deployment) sizes(sets []*owner, set *owner) sizes {
	current := oldestOf(sets, d.template)
	switch {
	case d.terminating:
		return sizes{set.replicas, set.replicas, set.replicas}
	case d.paused || d.beingScaled(sets):
		return d.scaledSizes(sets, set, current)
	case set == current:
		return sizes{set.replicas, min(set.replicas, d.replicas), d.replicas}
	case d.recreate:
		return sizes{set.replicas, 0, 0}
	default:
		return sizes{set.replicas, 0, set.replicas}
	}
}

// scaledSizes is the same while the rollout stands still.
func (d *deployment) scaledSizes(sets []*owner, set, current *owner) sizes {
	var active []*owner
	for _, other := range sets {
		if other.replicas > 0 {
			active = append(active, other)
		}
	}
	alone := len(active) == 0 || len(active) == 1 && active[0] == set
	switch {
	case alone:
		return sizes{set.replicas, d.replicas, d.replicas}
	case set.replicas == 0 || len(active) == 1:
		return sizes{0, 0, 0}
	case current != nil && current.replicas == d.replicas && available(current) >= d.replicas && set != current:
		return sizes{set.replicas, 0, d.proportion(active, set).high}
	case d.recreate:
		return sizes{set.replicas, set.replicas, set.replicas}
	}
	return d.proportion(active, set)
}

// proportion is the sizes of one of several active ReplicaSets: its share, and what
// the shares of all leave to it, as far as that is to be told. Where it is not, it is
// towards its share, and where it is the largest, and more or fewer are missing, by as
// many as the shares of the others leave. How these come out even, or not, depends on
// which goes first, so that one more or less of each may be left.
func (d *deployment) proportion(active []*owner, set *owner) sizes {
	most := d.mostPods()
	if d.replicas == 0 {
		most = 0
	}
	if to, certain := d.exact(active, set, most); certain {
		return sizes{set.replicas, to, to}
	}
	share := d.share(set, most)
	result := sizes{set.replicas, min(set.replicas, share), max(set.replicas, share)}
	if all(active, func(other *owner) bool { return other.replicas <= set.replicas }) {
		missing := most - total(active, asked)
		if d.strays(active, missing) {
			return sizes{set.replicas, 0, math.MaxInt32}
		}
		left := missing - total(active, func(other *owner) int { return d.share(other, most) - other.replicas }) + share - set.replicas
		result.low = max(0, min(result.low, set.replicas+max(missing, left-len(active))))
		result.high = max(result.high, set.replicas+min(missing, left+len(active)))
	}
	return result
}

// exact is what one of several active ReplicaSets gets when there are to be so many
// in all: one after another gets its share as far as that is still missing, and what
// rounding leaves goes to the first. It is certain only where all have noted what they
// were last scaled for, none of them strays, one comes before the other, and the first
// has as many as it is to lose.
func (d *deployment) exact(active []*owner, set *owner, most int) (to int, certain bool) {
	missing := most - total(active, asked)
	ordered, strict := inTurn(active, missing > 0)
	if !strict || d.strays(active, missing) || !all(active, func(other *owner) bool { return other.most > 0 }) {
		return 0, false
	}
	first := 0
	for i, other := range ordered {
		gain := d.share(other, most) - other.replicas
		if missing < 0 {
			gain = min(max(gain, missing), 0)
		} else {
			gain = max(min(gain, missing), 0)
		}
		missing -= gain
		if i == 0 {
			first = other.replicas + gain
		}
		if other == set {
			to = other.replicas + gain
		}
	}
	if set == ordered[0] {
		to += missing
	}
	return to, first+missing >= 0
}

// inTurn returns ReplicaSets in the order in which they get their shares: the largest
// first, of equals the newest where more are missing, else the oldest. It is strict
// unless two of one size were made in the same second.
func inTurn(active []*owner, growing bool) (ordered []*owner, strict bool) {
	order := func(a, b *owner) int {
		age := a.created.Compare(b.created)
		if growing {
			age = -age
		}
		return cmp.Or(cmp.Compare(b.replicas, a.replicas), age)
	}
	ordered = slices.SortedFunc(slices.Values(active), order)
	for i := 1; i < len(ordered); i++ {
		if order(ordered[i-1], ordered[i]) == 0 {
			return ordered, false
		}
	}
	return ordered, true
}

// share is how many of the most replicas that there may be a ReplicaSet gets in
// proportion.
func (d *deployment) share(set *owner, most int) int {
	before := set.most
	if before <= 0 { // nobody has noted it
		before = d.status.Replicas
	}
	if before <= 0 {
		return set.replicas
	}
	return int(math.Round(float64(set.replicas) * float64(most) / float64(before)))
}

// strays reports whether some ReplicaSet was last scaled for a size on the other
// side of what is to be, so that its share goes against the others'.
func (d *deployment) strays(active []*owner, missing int) bool {
	return !all(active, func(set *owner) bool {
		return missing >= 0 && set.most <= d.mostPods() || missing <= 0 && set.most >= d.mostPods()
	})
}
