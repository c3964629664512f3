package check

import (
	"fmt"
	"math"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// This file judges what a controller does to the ReplicaSets of a Deployment, by
// what it knew of them.

// maxSurgeJudge: each time a ReplicaSet of a rolling Deployment is made or scaled
// up, what its ReplicaSets ask for together is no more than replicas and maxSurge
// allow, for some way in which the process may have had them in mind.
type maxSurgeJudge struct{ findings }

func newMaxSurge(Settings) Checker { return &maxSurgeJudge{} }

func (j *maxSurgeJudge) Observe(m *Model, _ *history.Record) {
	s := judgeableScaling(m)
	if s == nil || !s.rolling() || !s.up() {
		return
	}
	j.tested++
	most, least := 0, math.MaxInt
	for _, d := range s.deployments {
		most = max(most, d.mostPods())
	}
	for _, sets := range s.states {
		least = min(least, total(sets, asked)-s.before(sets)+s.to)
	}
	if least <= most {
		return
	}
	j.violate(func() Evidence {
		return s.evidence(m, fmt.Sprintf("raised ReplicaSet %s to %d, which makes %d", s.name, s.to, least),
			fmt.Sprintf("at most %d replicas over all its ReplicaSets", most))
	})
}

// maxUnavailableJudge: each time a rolling update scales a ReplicaSet down in a
// way that takes available pods away, enough stay available by what the process
// was told, for some way in which it may have had them in mind.
//
// Scaling in proportion, when the Deployment itself is scaled, is none of this.
// A ReplicaSet counts with all that are available of it, though it asks for fewer
// by now: who goes by the status alone does not know better.
type maxUnavailableJudge struct{ findings }

func newMaxUnavailable(Settings) Checker { return &maxUnavailableJudge{} }

func (j *maxUnavailableJudge) Observe(m *Model, _ *history.Record) {
	s := judgeableScaling(m)
	if s == nil || !s.rolling() || s.creates || s.pending() {
		return
	}
	most := math.MinInt
	for _, sets := range s.states {
		set := named(sets, s.name)
		if set == nil || min(available(set), s.to) >= min(available(set), set.replicas) {
			return // it takes nothing away that was available
		}
		most = max(most, total(sets, available)-available(set)+min(available(set), s.to))
	}
	j.tested++
	fewest := math.MaxInt
	for _, d := range s.deployments {
		fewest = min(fewest, d.fewestAvailable())
	}
	if most >= fewest {
		return
	}
	j.violate(func() Evidence {
		return s.evidence(m, fmt.Sprintf("lowered ReplicaSet %s to %d, which leaves %d available", s.name, s.to, most),
			fmt.Sprintf("at least %d available", fewest))
	})
}

// recreateJudge: the new ReplicaSet of a Deployment of strategy Recreate is
// neither made nor scaled up while a pod of an old one runs that the process has
// known all the time.
type recreateJudge struct{ findings }

func newRecreate(Settings) Checker { return &recreateJudge{} }

func (j *recreateJudge) Observe(m *Model, _ *history.Record) {
	s := judgeableScaling(m)
	if s == nil || s.template == nil || s.to == 0 || !s.up() || s.pending() {
		return
	}
	if !all(s.deployments, func(d *deployment) bool { return d.recreate && d.template.same(s.template) }) {
		return
	}
	view := s.rollout.process.view
	var old []*owner
	for _, set := range s.states[len(s.states)-1] {
		always := all(s.states, func(sets []*owner) bool { return named(sets, set.Name) != nil })
		if always && !set.template.same(s.template) {
			old = append(old, set)
		}
	}
	if len(old) == 0 {
		return
	}
	j.tested++
	known := view.running(old, func(p *pod) bool { return view.shown[p.UID] <= s.rollout.from-lag })
	if known == nil {
		return
	}
	j.violate(func() Evidence {
		e := s.evidence(m, fmt.Sprintf("raised its new ReplicaSet %s to %d while the old pod %s ran", s.name, s.to, known.Name),
			"first all old pods gone, failed or succeeded")
		e.Records = append(e.Records, view.claims[known.UID])
		return e
	})
}

// judgeableScaling is the scaling that the current record is, nil if it is none
// or there is nothing to judge it by.
func judgeableScaling(m *Model) *scaling {
	if m.sent == nil || m.sent.scaling == nil || !m.sent.scaling.judgeable() {
		return nil
	}
	return m.sent.scaling
}

// rolling reports whether the Deployment was to be updated by rolling, in every
// way that the process may have had it in mind.
func (s *scaling) rolling() bool {
	return all(s.deployments, func(d *deployment) bool { return !d.recreate && !d.terminating })
}
