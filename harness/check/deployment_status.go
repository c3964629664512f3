package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// This file judges what a controller says of a Deployment.

// deploymentStatusJudge: what a process writes into a Deployment's status follows
// from what it may have known of the Deployment and its ReplicaSets.
//
// A status that repeats the numbers of the version that it was written from says
// nothing new by them: such is written where only a condition or the
// collisionCount changes.
type deploymentStatusJudge struct{ findings }

func newDeploymentStatus(Settings) Checker { return &deploymentStatusJudge{} }

func (j *deploymentStatusJudge) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.rollout == nil || r.Request.Resource != deploymentResource || r.Request.Subresource != "status" || r.Request.Object == nil {
		return
	}
	from := recall[deployment](m.facts, c.rollout.uid, r.Request.Object.Version)
	said, err := m.facts.decodeDeployment(r.Request.Object)
	if from == nil || err != nil || len(c.rollout.sets) == 0 || c.process.view.reached[setResource] == 0 {
		return // the API server refuses what cannot be read
	}
	if c.rollout.deployments[0].value != from {
		return // and what is not written from the version that it has
	}
	j.tested++
	told := c.rollout.deployments[0]
	report := &report{
		rollout: c.rollout, from: from, said: said,
		start: m.start.Time, now: m.start.Time.Add(m.now), lived: m.start.Time.Add(m.at),
		soon:  m.start.Time.Add(told.since), // or later, if the process has stood still
		whole: c.rollout.sets[0].since <= told.since && c.rollout.clear(told.since, m.at),
	}
	for _, wrong := range report.judge() {
		j.violate(func() Evidence {
			return m.evidenceOf(&from.Ref, fmt.Sprintf("%s: %s wrote %s", from, c.process.name, wrong.did), wrong.expected)
		})
	}
}

// report is a write of a Deployment's status.
type report struct {
	rollout *rollout
	from    *deployment // the version that it was written from
	said    *deployment
	start   time.Time // of the history
	now     time.Time
	lived   time.Time // the same by the clock of the process
	soon    time.Time // from when the decision to write it may date
	// whole: it is known how its ReplicaSets were in all that time.
	whole  bool
	wrongs []wrong
}

// wrong is something in a report that cannot be so.
type wrong struct{ did, expected string }

// expect notes what is not so.
func (r *report) expect(ok bool, did, expected string) {
	if !ok {
		r.wrongs = append(r.wrongs, wrong{did, expected})
	}
}

func (r *report) judge() []wrong {
	was, is := &r.from.status, &r.said.status
	r.expect(is.ObservedGeneration >= was.ObservedGeneration && is.ObservedGeneration <= r.from.generation,
		fmt.Sprintf("status.observedGeneration %d", is.ObservedGeneration),
		fmt.Sprintf("from %d, which it was, to %d, which it knew of", was.ObservedGeneration, r.from.generation))
	if r.whole && is.counts() != was.counts() {
		for _, claim := range r.claims() {
			r.expect(claim.said >= claim.low && claim.said <= claim.high, fmt.Sprintf("status.%s %d", claim.field, claim.said),
				fmt.Sprintf("from %d to %d, by what it knew of its ReplicaSets", claim.low, claim.high))
		}
	}
	if is.counts() != was.counts() || is.condition("Available") != was.condition("Available") {
		r.judgeAvailable()
	}
	r.judgeFailure()
	r.judgeProgress()
	return r.wrongs
}

// counts is the numbers of a status.
func (s *deploymentStatus) counts() [5]int {
	return [5]int{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas}
}

// claims are the numbers that the status says. Each ReplicaSet may have been in
// any of the states that it had of late, whatever the others were in: in one
// round they are written one after another, and some of them are listed anew.
func (r *report) claims() []statusClaim {
	s := &r.said.status
	specs := r.rollout.between(func(set *owner) int { return set.replicas })
	ready := r.rollout.between(available)
	bounded := func(field string, said int, of func(*owner) int) statusClaim {
		between := r.rollout.between(of)
		return statusClaim{field, said, between.low, between.high}
	}
	updated := func(set *owner) int {
		if set.template.same(r.said.template) {
			return actual(set)
		}
		return 0
	}
	all := []statusClaim{
		bounded("replicas", s.Replicas, actual),
		bounded("updatedReplicas", s.UpdatedReplicas, updated),
		bounded("readyReplicas", s.ReadyReplicas, func(set *owner) int { return set.status.ReadyReplicas }),
		bounded("availableReplicas", s.AvailableReplicas, available),
		{"unavailableReplicas", s.UnavailableReplicas, max(0, specs.low-ready.high), max(0, specs.high-ready.low)},
	}
	if current, _ := r.said.split(r.rollout.sets[len(r.rollout.sets)-1].value.made); len(current) > 1 {
		all[1].low = 0 // only the oldest of them counts
	}
	return all
}

// between is between which bounds the sum of something over the ReplicaSets may
// have been of late.
func (r *rollout) between(of func(*owner) int) (sum extent) {
	each := map[string]extent{}
	for i, state := range r.sets {
		for _, sets := range [][]*owner{state.value.told, state.value.made} {
			for _, set := range sets {
				e, known := each[set.Name]
				if !known && i > 0 {
					e.include(0) // it was not there before
				}
				e.include(of(set))
				each[set.Name] = e
			}
		}
		for name, e := range each {
			if named(state.value.told, name) == nil { // nor was it then
				e.include(0)
				each[name] = e
			}
		}
	}
	for _, e := range each {
		sum.low, sum.high = sum.low+e.low, sum.high+e.high
	}
	return sum
}

// judgeFailure: that pods cannot be made or deleted is said only where some ReplicaSet
// says so, and always in a round that estimates progress, if one had long said so then.
// Other rounds leave the condition as it was.
func (r *report) judgeFailure() {
	is := r.said.status.condition("ReplicaFailure")
	if r.whole && is.failure() && !r.from.status.condition("ReplicaFailure").failure() {
		r.expect(slices.ContainsFunc(r.rollout.sets, func(s shown[state]) bool { return slices.ContainsFunc(s.value.told, fails) }),
			"the condition ReplicaFailure", "none, for none of its ReplicaSets has it")
	}
	if r.estimates() && r.rollout.clear(r.rollout.from, r.lived.Sub(r.start)) && slices.ContainsFunc(r.rollout.sets[0].value.told, r.failsThroughout) {
		r.expect(is.failure(), fmt.Sprintf("the condition Progressing (%s), and no condition ReplicaFailure", r.said.status.condition("Progressing").Reason),
			"both, for one of its ReplicaSets could not make or delete pods")
	}
}

func fails(set *owner) bool { return set.failing }

// failsThroughout reports whether a ReplicaSet says that it fails in every way in which
// the process may have had it in mind.
func (r *report) failsThroughout(set *owner) bool {
	in := func(sets []*owner) bool {
		as := named(sets, set.Name)
		return as != nil && as.failing
	}
	return all(r.rollout.sets, func(s shown[state]) bool { return in(s.value.told) && in(s.value.made) })
}

// estimates reports whether the report tells of progress, or of none, as only a round
// does that has looked at all ReplicaSets for it, and whether it is known how these
// stood then: the write may have been under way for long (trap 16).
func (r *report) estimates() bool {
	is := r.said.status.dated("Progressing")
	known := r.start.Add(r.rollout.sets[0].since + lag)
	if is == r.from.status.dated("Progressing") || is.LastUpdateTime.Before(known) || is.LastUpdateTime.After(r.lived) {
		return false
	}
	return is.Reason == setUpdated || is.Reason == setAvailable || is.Reason == deadlineExceeded
}

// judgeAvailable judges the condition Available by the number beside it.
func (r *report) judgeAvailable() {
	enough := r.said.status.AvailableReplicas >= r.said.fewestAvailable()
	want := availability(enough)
	is := r.said.status.condition("Available")
	r.expect(is == want, fmt.Sprintf("the condition Available %s (%s) with %d available", is.Status, is.Reason, r.said.status.AvailableReplicas),
		fmt.Sprintf("%s (%s), for at least %d must be", want.Status, want.Reason, r.said.fewestAvailable()))
}

// availability is the condition Available of a Deployment of which enough
// replicas are available, or not.
func availability(enough bool) deploymentCondition {
	if enough {
		return deploymentCondition{"Available", "True", "MinimumReplicasAvailable"}
	}
	return deploymentCondition{"Available", "False", "MinimumReplicasUnavailable"}
}
