package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// deploymentStatusCheck is the row of deployment-status in All.
var deploymentStatusCheck = Check{
	ID:               "deployment-status",
	Guarantee:        "What a controller writes into the status of a Deployment was true of it by what the controller knew of it and its ReplicaSets, and no deadline is said to be missed before it is; that a ReplicaSet fails it says with the progress.",
	Contract:         "Deployment 13, 16, 17",
	Property:         Safety,
	AllowedBehaviors: []int{3, 16, 27, 28, 38, 41},
	New:              newDeploymentStatus,
}

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

// progressStatus is with which status each reason goes.
var progressStatus = map[string]string{
	"NewReplicaSetCreated": "True",
	"FoundNewReplicaSet":   "True",
	setUpdated:             "True",
	setAvailable:           "True",
	setCreateError:         "False",
	deadlineExceeded:       "False",
	deploymentPaused:       "Unknown",
	resumed:                "Unknown",
}

// judgeProgress judges the condition Progressing, where the report changes it.
func (r *report) judgeProgress() {
	r.judgeOverdue()
	was, is := r.from.status.dated("Progressing"), r.said.status.dated("Progressing")
	if is == was || is == (datedCondition{}) {
		return
	}
	said := fmt.Sprintf("the condition Progressing %s (%s)", is.Status, is.Reason)
	r.expect(r.said.deadline > 0, said, "none, for it has no deadline")
	status, known := progressStatus[is.Reason]
	r.expect(known && status == is.Status, said, "a reason that there is, and its status")
	if is.Reason != was.Reason {
		r.expect(!is.LastUpdateTime.Before(r.soon.Truncate(time.Second).Add(-tolerance)),
			fmt.Sprintf("%s as of %s", said, is.LastUpdateTime.Format(time.TimeOnly)), "the time at which it came to be so")
	}
	switch is.Reason {
	case setAvailable:
		r.expect(r.complete(), said, "all replicas new and available, and no others")
	case setUpdated:
		r.expect(r.progressed(), said+" anew", "something that has come closer to the end")
	case deadlineExceeded:
		r.judgeDeadline(said, was)
	case deploymentPaused:
		r.expect(r.said.paused, said, "so only where it is paused")
	case resumed:
		r.expect(!r.said.paused && was.Reason == deploymentPaused, said, "so only after a pause")
	}
}

// judgeDeadline: a rollout is too late when a deadline has passed since the last
// progress, is neither paused nor at its end, and has not been there before:
// what ended in time stays so, whatever becomes of its pods (trap 28).
func (r *report) judgeDeadline(said string, was datedCondition) {
	due := was.LastUpdateTime.Add(r.said.deadline)
	r.expect(was != datedCondition{} && !r.now.Add(tolerance).Before(due), said,
		fmt.Sprintf("so only after %s", due.Format(time.TimeOnly)))
	r.expect(was.Reason != setAvailable, said, "first news of a rollout, for the last one had come to its end")
	r.expect(!r.said.paused, said, "no verdict while it is paused")
	r.expect(!r.complete(), said, "none, for it has come to its end")
	r.expect(!r.idled(), said, "to go on, for it might have scaled a ReplicaSet all the while")
}

// idled reports whether the controller has left undone what the rules of a rolling
// update let it do, in each state of the ReplicaSets that it has had in mind for long
// before the report.
func (r *report) idled() bool {
	d, at := r.said, r.lived.Sub(r.start)
	if d.recreate || d.paused || r.lived.Sub(r.soon) < untoldMax || r.rollout.troubled(at) || !r.rollout.clear(at-2*lag, at) {
		return false
	}
	states := recent(r.rollout.sets, at-2*lag)
	return states[0].since <= at-2*lag && all(states, func(s shown[state]) bool {
		return all([][]*owner{s.value.told, s.value.made}, func(sets []*owner) bool {
			current, old := d.split(sets)
			return len(current) == 1 && !slices.ContainsFunc(old, lingers) && d.mayRoll(sets, current[0], old)
		})
	})
}

// lingers reports whether a ReplicaSet has more pods available than it asks for: those
// cannot be deleted, and no other is scaled down meanwhile (trap 38).
func lingers(set *owner) bool { return set.replicas > 0 && set.status.AvailableReplicas > set.replicas }

// untoldMax is how long after a deadline a report may be the first to come, in which
// something new has been found.
const untoldMax = 3 * lag

// judgeOverdue: a rollout that has missed its deadline is said to have, soon, by who
// has known since then the version that says so, and has reported nothing since. Of
// one that is being deleted only numbers are reported.
func (r *report) judgeOverdue() {
	c := r.from.status.dated("Progressing")
	switch c.Reason {
	case "", deadlineExceeded, setAvailable, setCreateError, deploymentPaused:
		return
	}
	due := c.LastUpdateTime.Add(r.said.deadline)
	late := r.lived.Sub(due)
	if r.rollout.reported >= r.rollout.toldOf(r.from) {
		return // what was reported after it may say so, and be on its way
	}
	if r.said.deadline == 0 || r.from.paused || r.from.terminating || r.soon.After(due) || late <= untoldMax || r.rollout.troubled(due.Sub(r.start)) {
		return
	}
	r.expect(r.said.status.condition("Progressing").Reason == deadlineExceeded,
		fmt.Sprintf("the condition Progressing (%s) %s after its deadline of %s", r.said.status.condition("Progressing").Reason, seconds(late), r.said.deadline),
		deadlineExceeded+", soon after that")
}

// troubled reports whether there is a reason for a process not to have told of a
// deadline that was missed at some time: a call for the Deployment failed since, or
// took long, or its scaling went on, which comes before all else.
func (r *rollout) troubled(due time.Duration) bool {
	return r.hindered >= due-memory || slices.ContainsFunc(r.deployments, func(d shown[*deployment]) bool {
		return slices.ContainsFunc(r.sets, func(s shown[state]) bool {
			return d.value.beingScaled(s.value.told) || d.value.beingScaled(s.value.made)
		})
	})
}

// toldOf is since when the process has known a version of the Deployment, as far as
// that is remembered.
func (r *rollout) toldOf(version *deployment) time.Duration {
	for _, d := range r.deployments {
		if d.value.Version == version.Version {
			return d.since
		}
	}
	return 0
}

// complete reports whether the report itself says that the rollout is at its end.
func (r *report) complete() bool {
	s, replicas := &r.said.status, r.said.replicas
	return s.Replicas == replicas && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas
}

// progressed reports whether the rollout has come closer to its end since the
// version that the report was written from.
func (r *report) progressed() bool {
	was, is := &r.from.status, &r.said.status
	return is.UpdatedReplicas > was.UpdatedReplicas ||
		is.Replicas-is.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		is.ReadyReplicas > was.ReadyReplicas ||
		is.AvailableReplicas > was.AvailableReplicas
}
