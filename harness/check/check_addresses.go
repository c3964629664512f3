package check

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// addressesCheck is the row of addresses in All.
var addressesCheck = Check{
	ID:               "addresses",
	Guarantee:        "What a controller writes into Endpoints is what their Service asks for of its pods, each as the controller knew it.",
	Contract:         "Endpoints 3 to 10",
	Property:         Safety,
	AllowedBehaviors: []string{"truncated-endpoints", "publish-not-ready-addresses", "trigger-time-annotation"},
	New:              newAddressesChecker,
}

// addressesChecker: Endpoints that a process writes list, of each pod, what their
// Service asks for by one of the versions in which the process may have had the pod
// in mind, and of no pod that it cannot have known; and they are labelled as the
// Service is. Where there are more addresses than fit, a pod may be left out.
type addressesChecker struct{ findings }

func newAddressesChecker(Settings) Checker { return &addressesChecker{} }

func (checker *addressesChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.serviceState == nil || r.Request.Object == nil || r.Request.Verb != "create" && r.Request.Verb != "update" {
		return
	}
	view, state := c.process.view, c.serviceState
	if view.reachedVersion[podResource] == 0 || view.reachedVersion[serviceResource] == 0 {
		return
	}
	e := newEndpoints(r.Request.Object)
	got, err := e.decodeAddresses()
	if err != nil {
		return // the API server refuses what cannot be read
	}
	since := state.earliestDecision(e.Version)
	wrong, expected := "", ""
	for _, each := range keepSince(state.services, since) {
		if s := each.value; s != nil && s.managed() {
			if wrong, expected = view.podVersions.mismatch(s, e, got, since); wrong == "" {
				checker.exercised++
				return
			}
		}
	}
	if wrong == "" {
		return // whether it may write them at all, orphan-endpoints asks
	}
	checker.addViolation(func() Evidence {
		ref := history.Ref{Resource: endpointsResource, Namespace: state.name.namespace, Name: state.name.name}
		return m.evidenceOf(&ref, fmt.Sprintf("%s wrote Endpoints %s/%s that %s", c.process.name, ref.Namespace, ref.Name, wrong), expected)
	})
}

// mismatch says in what Endpoints are not what the Service asks for, however the
// process has had its pods in mind since some time; "" if they may be.
func (versions *podVersions) mismatch(s *service, e *endpoints, got addressSet, since time.Duration) (wrong, expected string) {
	if want := s.expectedLabels(); !maps.Equal(e.labels, want) {
		return fmt.Sprintf("have the labels %v", e.labels), fmt.Sprintf("%v, as the Service has it", want)
	}
	truncated := e.overCapacity == "truncated"
	if n := got.count(); truncated != (n >= addressesMax) && (truncated || n > addressesMax) {
		return fmt.Sprintf("list %d addresses, with the annotation %s=%q", n, overCapacityAnnotation, e.overCapacity),
			fmt.Sprintf("at most %d, and that annotation only where there are more", addressesMax)
	}
	byPod := map[types.UID]addressSet{}
	for p, ready := range got {
		if byPod[p.uid] == nil {
			byPod[p.uid] = addressSet{}
		}
		byPod[p.uid][p] = ready
	}
	for uid, listed := range byPod {
		if versions.byPod[uid] == nil {
			return "list " + listed.String(), "no pod listed that it was never shown, or long ago"
		}
	}
	first, ready := "", 0
	for uid, known := range versions.byPod {
		listed := byPod[uid]
		if truncated && s.readyInEach(keepSince(known, since)) {
			ready++
		}
		if truncated && len(listed) == 0 {
			continue
		}
		if want, ok := s.someVersionLists(listed, keepSince(known, since), truncated); !ok && (first == "" || podNameOf(known) < first) {
			first = podNameOf(known)
			wrong, expected = fmt.Sprintf("list %s of pod %s", listed, first), want.String()+", by what it knew of it"
		}
	}
	if _, listed := got.size(); wrong == "" && listed < min(ready, addressesMax) {
		return fmt.Sprintf("list %d ready addresses of %d, and others", listed, ready), "ready ones before those that are not"
	}
	return wrong, expected
}

// readyInEach reports whether the Service has each of these versions of a pod listed,
// and as ready.
func (s *service) readyInEach(versions []cachedVersion[podVersion]) bool {
	return every(versions, func(each cachedVersion[podVersion]) bool {
		want := addressSet{}
		if each.value.pod == nil || s.addAddresses(want, each.value) != nil {
			return false
		}
		_, ready := want.size()
		return ready > 0
	})
}

// podNameOf is the name of the pod that the versions are of.
func podNameOf(known []cachedVersion[podVersion]) string {
	for _, each := range known {
		if each.value.pod != nil {
			return each.value.Name
		}
	}
	return ""
}

// someVersionLists reports whether some version of a pod has the Service list it so, in part if
// that will do; if none has, it returns what the latest would have it list.
func (s *service) someVersionLists(listed addressSet, versions []cachedVersion[podVersion], part bool) (want addressSet, ok bool) {
	for _, each := range versions {
		want = addressSet{}
		if each.value.pod != nil {
			if err := s.addAddresses(want, each.value); err != nil {
				return want, true
			}
		}
		if maps.Equal(listed, want) || part && want.covers(listed) {
			return want, true
		}
	}
	return want, false
}
