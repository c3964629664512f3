package check

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// claimsJudge: when a process reports on an owner, it has let go every pod that is
// the owner's and does not match, and taken every active one that matches and is
// nobody's, or has tried to: those that it had been shown to be so before it was told
// of the version that it reports from, and the lag before that. A sync claims first,
// and an error in that ends it.
type claimsJudge struct {
	findings
	tried map[*process]map[types.UID]time.Duration // when each pod was last claimed or let go
}

func newClaims(Settings) Checker {
	return &claimsJudge{tried: map[*process]map[types.UID]time.Duration{}}
}

func (j *claimsJudge) Observe(m *Model, r *history.Record) {
	if r.Process != nil {
		maps.DeleteFunc(j.tried, func(p *process, _ map[types.UID]time.Duration) bool { return p.ended })
	}
	c := m.sent
	if c == nil {
		return
	}
	if c.verb == callClaim && c.pod != nil {
		j.try(c, m.at)
	}
	if c.reports(r.Request) == nil {
		return
	}
	l, o := c.ledger, c.ledger.owner()
	if o.terminating || l.reselected {
		return
	}
	j.tested++
	if p := j.missed(c, l.knew.since-lag); p != nil {
		j.violate(func() Evidence {
			return m.evidenceOf(podIn(p), fmt.Sprintf("%s: %s reported on it, and had not %s pod %s", o, c.process.name, claimWord(p), p.Name),
				"what matches adopted, and what does not released, before anything is reported")
		})
	}
}

func claimWord(p *pod) string {
	if p.orphan() {
		return "tried to adopt"
	}
	return "tried to release"
}

// try takes in that the process claims a pod, or lets it go.
func (j *claimsJudge) try(c *call, at time.Duration) {
	tried := j.tried[c.process]
	if tried == nil {
		tried = map[types.UID]time.Duration{}
		j.tried[c.process] = tried
	}
	maps.DeleteFunc(tried, func(uid types.UID, _ time.Duration) bool { return c.process.view.pods[uid] == nil })
	tried[c.pod.UID] = at
}

// missed is a pod that the process has left as it is since some time, though it is to
// be adopted or released, the first in order of names; nil if there is none.
func (j *claimsJudge) missed(c *call, since time.Duration) (first *pod) {
	o, view := c.ledger.owner(), c.process.view
	t := view.tally(o.UID)
	if t.orphans == 0 && t.controlled == t.replicas {
		return nil
	}
	look := func(pods map[types.UID]*pod) {
		for uid, p := range pods {
			if first != nil && first.Name <= p.Name || !o.toClaim(p) {
				continue
			}
			from := view.claimableSince(uid, o)
			if at, tried := j.tried[c.process][uid]; from <= since && !(tried && at >= from) {
				first = p
			}
		}
	}
	look(view.controlled[o.UID])
	look(view.orphans[o.Namespace])
	return first
}

// toClaim reports whether a pod is to be adopted or released by the owner.
func (o *owner) toClaim(p *pod) bool {
	return p.active && (p.orphan() && p.Namespace == o.Namespace || p.controller.UID == o.UID) &&
		p.orphan() == o.selector.Matches(p.labels)
}

// claimableSince is since when a pod has stood so in view that the owner is to claim it
// or let it go.
func (v *view) claimableSince(uid types.UID, o *owner) time.Duration {
	since := time.Duration(0)
	states := v.standings[uid]
	for i := len(states) - 1; i >= 0 && o.toClaim(states[i].value); i-- {
		since = states[i].since
	}
	return since
}
