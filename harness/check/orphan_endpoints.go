package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// orphanEndpointsJudge: Endpoints without a Service go, and nobody else's are
// touched.
//
// They must go if a process of the subject found them when it started, or was
// told that their Service is gone. What was made without a Service later is left
// until the next start (trap 33).
type orphanEndpointsJudge struct {
	findings // writes that nothing called for
	*settlement
	born map[types.UID]time.Duration // when each Endpoints came to be
	// services is since when there is a Service of each name.
	services map[objectName]time.Duration
}

func newOrphanEndpoints(s Settings) Checker {
	j := &orphanEndpointsJudge{
		findings: findings{upstream: s.Upstream}, born: map[types.UID]time.Duration{}, services: map[objectName]time.Duration{},
	}
	j.settlement = newSettlement(s, realm{
		nothing: "no Endpoints were without a Service",
		touched: func(w *world) bool { return len(w.published) > 0 },
		all:     j.orphans,
		pending: j.pending,
	})
	return j
}

// orphans returns the Endpoints that have no Service, though some process knows
// that they are to go.
func (j *orphanEndpointsJudge) orphans(m *Model, namespace string) []types.UID {
	return slices.DeleteFunc(inOrder(m.truth.endpoints, namespace), func(uid types.UID) bool {
		e := m.truth.endpoints[uid]
		if e.record || e.terminating || m.truth.serviceNamed(serviceName(e.Ref)) != nil {
			return true
		}
		_, all := j.pending(m, uid)
		return len(all) == 0
	})
}

// pending says whether some process knows that the Endpoints are to go.
func (j *orphanEndpointsJudge) pending(m *Model, uid types.UID) (*history.Ref, []pending) {
	e := m.truth.endpoints[uid]
	list := pendings{subject: e.String()}
	for _, name := range slices.Sorted(maps.Keys(m.processes)) {
		p := m.processes[name]
		known := p.publications[serviceName(e.Ref)]
		if known == nil || known.service.now == managed || known.service.now == unmanaged {
			continue
		}
		found := p.leftovers[uid] && known.endpoints.now == ordinary && known.service.now == unseen
		told := known.service.now == absent && j.born[uid] <= known.service.since
		list.expect(!found, "still there, though it had no Service when %s started", p.name)
		list.expect(!told, "still there, though %s was told that its Service is gone", p.name)
		if len(list.all) > 0 {
			break
		}
	}
	return &e.Ref, list.all
}

func (j *orphanEndpointsJudge) Observe(m *Model, r *history.Record) {
	if r.Commit != nil && r.Commit.Object.Resource == endpointsResource {
		uid := r.Commit.Object.UID
		if _, known := j.born[uid]; !known {
			j.born[uid] = m.at
		}
		if r.Commit.Type == history.Deleted {
			delete(j.born, uid)
		}
	}
	if r.Commit != nil && r.Commit.Object.Resource == serviceResource {
		j.serve(m, r.Commit)
	}
	for _, w := range m.wakes {
		known := w.process.publications[w.service]
		elsewhere := m.start.Namespace != "" && w.service.namespace != m.start.Namespace // such as the API server's own
		if known != nil && !elsewhere && known.mustBeSpared() {
			j.tested++
		}
	}
	if c := m.sent; c != nil && c.publication != nil && c.process.view.reached[serviceResource] > 0 {
		j.wrote(m, c, r.Request.Verb)
	}
	j.settlement.Observe(m, r)
}

// serve takes in what has become of a Service.
func (j *orphanEndpointsJudge) serve(m *Model, t *history.Commit) {
	name := nameOf(t.Object.Ref)
	if _, known := j.services[name]; !known {
		j.services[name] = m.now
	}
	if t.Type == history.Deleted {
		delete(j.services, name)
	}
}

// inUse reports whether Endpoints that a process deletes are those of a Service that
// it has never been shown, though it has been there for so long that whoever had
// looked for it would have found it.
func (j *orphanEndpointsJudge) inUse(m *Model, c *call) bool {
	since, there := j.services[c.publication.name]
	s := m.truth.serviceNamed(c.publication.name)
	return c.publication.service.now == unseen && there && s != nil && s.managed() &&
		m.now-since > c.process.drain && !c.process.napping(m.at) && m.lived[c.process.name] == nil
}

// wrote judges a write to Endpoints.
func (j *orphanEndpointsJudge) wrote(m *Model, c *call, verb string) {
	p := c.publication
	switch {
	case verb != "delete" && p.service.was(p.from, managed):
		return
	case verb != "delete" && p.service.was(p.from, unmanaged):
		j.accuse(m, c, verb, "of a Service without a selector or of type ExternalName", "them left alone")
	case verb != "delete":
		j.accuse(m, c, verb, "without a Service", "Endpoints only for Services")
	case !p.service.was(p.from, unseen, absent):
		j.accuse(m, c, verb, "of a Service that is there", "them deleted only once their Service is gone")
	case !p.service.was(p.from, absent) && !p.endpoints.was(p.from, absent, ordinary):
		j.accuse(m, c, verb, "that are a leader election's record", "it left alone")
	case j.inUse(m, c):
		j.violateKnown(earlyLeftovers, func() Evidence {
			return j.evidence(m, c, verb, "of a Service that is there and that it was not shown yet", "a look for the Service before its Endpoints are deleted")
		})
	}
	j.tested++
}

func (j *orphanEndpointsJudge) accuse(m *Model, c *call, verb, whose, expected string) {
	j.violate(func() Evidence { return j.evidence(m, c, verb, whose, expected) })
}

func (j *orphanEndpointsJudge) evidence(m *Model, c *call, verb, whose, expected string) Evidence {
	ref := history.Ref{Resource: endpointsResource, Namespace: c.publication.name.namespace, Name: c.publication.name.name}
	return Evidence{
		Summary:  fmt.Sprintf("%s sent %s of %s, %s", c.process.name, verb, ref, whose),
		Expected: expected,
		Object:   &ref,
		At:       m.now,
		Records:  []int64{m.seq},
	}
}

// Result is the worse of what was seen on the way and in the end. That writes
// were right puts it to the test, too.
func (j *orphanEndpointsJudge) Result() Result {
	result := j.settlement.result
	switch {
	case j.violations > 0:
		return j.findings.Result()
	case result.Verdict == NotExercised:
		return j.findings.Result()
	}
	result.Exercised += j.tested
	return result
}
