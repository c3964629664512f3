package check

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// This file judges what a controller writes into Endpoints, by what it knew of the
// Service and its pods.

// faces is how pods have been shown of late, the latest last. A face without a pod
// says that there was none.
type faces struct {
	of   map[types.UID][]shown[face]
	gone []shown[types.UID] // pods that went, the first to go first
}

func newFaces() faces { return faces{of: map[types.UID][]shown[face]{}} }

// show takes in a version of a pod.
func (f *faces) show(p *pod, body []byte, at time.Duration) {
	known := f.of[p.UID]
	if n := len(known); n > 0 && known[n-1].value.like(p, body) {
		return
	}
	if len(known) == 0 {
		known = []shown[face]{{}} // before this there was none
	}
	f.of[p.UID] = append(recent(known, at-memory), shown[face]{at, face{p, &address{body: body}}})
}

// like reports whether a version of the pod says the same to Endpoints.
func (f face) like(p *pod, body []byte) bool {
	return f.pod != nil && f.ready == p.ready && f.terminating == p.terminating && maps.Equal(f.labels, p.labels) && bytes.Equal(f.body, body)
}

// drop takes in that a pod is gone. Those that went too long ago to be in anybody's
// mind are forgotten.
func (f *faces) drop(uid types.UID, at time.Duration) {
	if f.of[uid] == nil {
		return
	}
	f.of[uid] = append(recent(f.of[uid], at-memory), shown[face]{since: at})
	f.gone = append(f.gone, shown[types.UID]{at, uid})
	old := 0
	for ; f.gone[old].since < at-memory; old++ {
		uid := f.gone[old].value
		if known := f.of[uid]; len(known) > 0 && known[len(known)-1].value.pod == nil {
			delete(f.of, uid)
		}
	}
	f.gone = f.gone[old:]
}

// addressesJudge: Endpoints that a process writes list, of each pod, what their
// Service asks for by one of the versions in which the process may have had the pod
// in mind, and of no pod that it cannot have known; and they are labelled as the
// Service is. Where there are more addresses than fit, a pod may be left out.
type addressesJudge struct{ findings }

func newAddresses(Settings) Checker { return &addressesJudge{} }

func (j *addressesJudge) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.publication == nil || r.Request.Object == nil || r.Request.Verb != "create" && r.Request.Verb != "update" {
		return
	}
	view, p := c.process.view, c.publication
	if view.reached[podResource] == 0 || view.reached[serviceResource] == 0 {
		return
	}
	e := newEndpoints(r.Request.Object)
	got, err := e.listed()
	if err != nil {
		return // the API server refuses what cannot be read
	}
	since := p.dates(e.Version)
	wrong, expected := "", ""
	for _, each := range recent(p.services, since) {
		if s := each.value; s != nil && s.managed() {
			if wrong, expected = view.faces.wrong(s, e, got, since); wrong == "" {
				j.tested++
				return
			}
		}
	}
	if wrong == "" {
		return // whether it may write them at all, orphan-endpoints asks
	}
	j.violate(func() Evidence {
		ref := history.Ref{Resource: endpointsResource, Namespace: p.name.namespace, Name: p.name.name}
		return m.evidenceOf(&ref, fmt.Sprintf("%s wrote Endpoints %s/%s that %s", c.process.name, ref.Namespace, ref.Name, wrong), expected)
	})
}

// wrong says in what Endpoints are not what the Service asks for, however the
// process has had its pods in mind since some time; "" if they may be.
func (f *faces) wrong(s *service, e *endpoints, got listing, since time.Duration) (wrong, expected string) {
	if want := s.wantedLabels(); !maps.Equal(e.labels, want) {
		return fmt.Sprintf("have the labels %v", e.labels), fmt.Sprintf("%v, as the Service has it", want)
	}
	truncated := e.capacity == "truncated"
	if n := got.count(); truncated != (n >= addressesMax) && (truncated || n > addressesMax) {
		return fmt.Sprintf("list %d addresses, with the annotation %s=%q", n, capacityAnnotation, e.capacity),
			fmt.Sprintf("at most %d, and that annotation only where there are more", addressesMax)
	}
	byPod := map[types.UID]listing{}
	for p, ready := range got {
		if byPod[p.uid] == nil {
			byPod[p.uid] = listing{}
		}
		byPod[p.uid][p] = ready
	}
	for uid, listed := range byPod {
		if f.of[uid] == nil {
			return "list " + listed.String(), "no pod listed that it was never shown, or long ago"
		}
	}
	first, ready := "", 0
	for uid, known := range f.of {
		listed := byPod[uid]
		if truncated && s.alwaysReady(recent(known, since)) {
			ready++
		}
		if truncated && len(listed) == 0 {
			continue
		}
		if want, ok := s.allows(listed, recent(known, since), truncated); !ok && (first == "" || nameIn(known) < first) {
			first = nameIn(known)
			wrong, expected = fmt.Sprintf("list %s of pod %s", listed, first), want.String()+", by what it knew of it"
		}
	}
	if _, listed := got.size(); wrong == "" && listed < min(ready, addressesMax) {
		return fmt.Sprintf("list %d ready addresses of %d, and others", listed, ready), "ready ones before those that are not"
	}
	return wrong, expected
}

// alwaysReady reports whether the Service has each of these versions of a pod listed,
// and as ready.
func (s *service) alwaysReady(versions []shown[face]) bool {
	return all(versions, func(each shown[face]) bool {
		want := listing{}
		if each.value.pod == nil || s.list(want, each.value) != nil {
			return false
		}
		_, ready := want.size()
		return ready > 0
	})
}

// nameIn is the name of the pod that the faces are of.
func nameIn(known []shown[face]) string {
	for _, each := range known {
		if each.value.pod != nil {
			return each.value.Name
		}
	}
	return ""
}

// allows reports whether some version of a pod has the Service list it so, in part if
// that will do; if none has, it returns what the latest would have it list.
func (s *service) allows(listed listing, versions []shown[face], part bool) (want listing, ok bool) {
	for _, each := range versions {
		want = listing{}
		if each.value.pod != nil {
			if err := s.list(want, each.value); err != nil {
				return want, true
			}
		}
		if maps.Equal(listed, want) || part && want.covers(listed) {
			return want, true
		}
	}
	return want, false
}

// covers reports whether it says all that another one says.
func (l listing) covers(other listing) bool {
	for p, ready := range other {
		if said, ok := l[p]; !ok || said != ready {
			return false
		}
	}
	return true
}

// count is how many addresses there are, as the limit counts them.
func (l listing) count() int {
	total, _ := l.size()
	return total
}

// String is how evidence says what is listed.
func (l listing) String() string {
	if len(l) == 0 {
		return "nothing"
	}
	var all []string
	for p, ready := range l {
		all = append(all, fmt.Sprintf("%s %s", map[bool]string{true: "ready", false: "not ready"}[ready], p))
	}
	slices.Sort(all)
	return first(all)
}
