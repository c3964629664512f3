package check

import (
	"fmt"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// informedJudge: a process writes nothing for an object before it has been told, once,
// of all there is of each resource that decides about the object, as far as it has
// asked for that. One that never lists a resource may go by something else.
type informedJudge struct {
	findings
	begun map[*process]map[string]bool // what was written for, in each life
}

func newInformed(Settings) Checker { return &informedJudge{begun: map[*process]map[string]bool{}} }

func (j *informedJudge) Observe(m *Model, r *history.Record) {
	if m.died != nil {
		delete(j.begun, m.died)
	}
	c := m.sent
	if c == nil || !r.Request.IsWrite() {
		return
	}
	decides := c.decidedBy()
	if len(decides) == 0 || j.begun[c.process][decides[0]] {
		return
	}
	for _, resource := range decides {
		if !c.process.view.awaits(resource) {
			continue
		}
		j.violate(func() Evidence {
			return m.evidenceOf(refOf(r.Request), fmt.Sprintf("%s wrote to %s (%s) before it had been told which %s there are",
				c.process.name, refOf(r.Request), r.Request.Verb, resource), "no write before all that decides about it is known")
		})
		return
	}
	j.tested++
	if j.begun[c.process] == nil {
		j.begun[c.process] = map[string]bool{}
	}
	j.begun[c.process][decides[0]] = true
}

// decidedBy is of which resources a process must know all to decide on a call, the
// one that it is for first; none if it is for nothing that the checks know.
func (c *call) decidedBy() []string {
	switch {
	case c.rollout != nil:
		return []string{deploymentResource, setResource}
	case c.publication != nil:
		return []string{serviceResource, podResource, endpointsResource}
	case c.ledger == nil:
		return nil
	}
	o := c.ledger.owner()
	if o == nil {
		return []string{podResource}
	}
	return []string{o.Resource, podResource}
}

// awaits reports whether the process has asked for all there is of a resource, and
// has never been told.
func (v *view) awaits(resource string) bool { return v.asked[resource] && v.reached[resource] == 0 }
