package check

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// needlessMax is how many needless writes of one object are let pass in a life of
// a process: a status is sent again after a conflict without a look whether that
// is needed, and between a look and a write somebody else may write the same.
const needlessMax = 5

// needlessJudge: a controller does not write what is there already. Of Endpoints,
// that is told by what it was shown of the version that it writes from: a new
// trigger time alone is no change. Of all else, by the answer, which is the very
// version that was written from, or that was there when what names no version was sent:
// an API server makes no new one of what changes nothing.
//
// A write after one of the same object that failed is not counted, nor is one of
// a Deployment after a call for its ReplicaSets that failed: the failure is
// written into its status each time.
type needlessJudge struct {
	findings
	lives map[*process]map[objectName]*needless
}

// needless is what is kept of an object that a process writes.
type needless struct {
	failed  bool // the latest write
	count   int
	records []int64 // of the latest few
}

func newNeedless(Settings) Checker {
	return &needlessJudge{lives: map[*process]map[objectName]*needless{}}
}

func (j *needlessJudge) Observe(m *Model, r *history.Record) {
	if r.Process != nil {
		maps.DeleteFunc(j.lives, func(p *process, _ map[objectName]*needless) bool { return p.ended })
	}
	a := m.answered
	if a == nil {
		return
	}
	if d := a.deployment(); d != nil && !a.response.OK() {
		j.of(a.process, nameOf(d.Ref)).failed = true
	}
	if a.update == nil {
		return
	}
	j.tested++
	kept := j.of(a.process, nameOf(a.update.Ref))
	again := kept.failed
	kept.failed = !a.response.OK()
	if kept.failed || again || !a.repeats() {
		if !kept.failed && kept.count == 0 { // nothing that counts
			delete(j.lives[a.process], nameOf(a.update.Ref))
		}
		return
	}
	kept.count++
	kept.records = append(kept.records, a.seq)
	kept.records = kept.records[max(0, len(kept.records)-needlessMax):]
	if kept.count <= needlessMax {
		return
	}
	j.violate(func() Evidence {
		return Evidence{
			Summary:  fmt.Sprintf("%s wrote %s %s though nothing in it was to change", a.process.name, a.update.Ref, times(kept.count)),
			Expected: "writes of what differs from what is there",
			Object:   &a.update.Ref,
			At:       m.now,
			Records:  append([]int64{}, kept.records...),
		}
	})
}

func (j *needlessJudge) of(p *process, name objectName) *needless {
	if j.lives[p] == nil {
		j.lives[p] = map[objectName]*needless{}
	}
	if j.lives[p][name] == nil {
		j.lives[p][name] = &needless{}
	}
	return j.lives[p][name]
}

// deployment is the Deployment that the call was for, nil if it was for none.
func (a *answer) deployment() *deployment {
	if a.rollout == nil {
		return nil
	}
	return a.process.view.deployments[a.rollout.uid]
}

// update is what an update writes.
type update struct {
	history.Ref
	// same: the process was shown that the object lists and is labelled just so.
	same bool
	// there is the version that was there when it was sent, if it names none.
	there history.Version
}

// updateOf reads an update, of what has been written before.
func (p *process) updateOf(r *history.Request) *update {
	if r.Verb != "update" || r.Object == nil || r.Resource == podResource {
		return nil
	}
	u := &update{Ref: r.Object.Ref}
	u.Resource, u.Namespace, u.Name = r.Resource, r.Namespace, r.Name
	if r.Resource == endpointsResource {
		u.same = p.view.endpointsNamed(serviceName(u.Ref)).same(r.Object)
	}
	return u
}

// same reports whether an object is written from just these Endpoints and lists and
// is labelled as they are. Truncated ones are not compared: they are sent each time
// (trap 32).
func (e *endpoints) same(o *history.Object) bool {
	return e != nil && e.Version == o.Version && len(e.body) > 0 && bytes.Equal(e.body, o.Body) &&
		maps.Equal(e.labels, o.Labels) && e.capacity == "" && o.Annotations[capacityAnnotation] == ""
}

// repeats reports whether an update that succeeded wrote what was there.
func (a *answer) repeats() bool {
	from := cmp.Or(a.update.Version, a.update.there)
	return a.update.same || a.response.Object != nil && a.response.Object.Version == from
}
