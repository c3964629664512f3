package check

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// addressesCheck examines each create and update of Endpoints.
//
// It skips a process that has not listed Services and pods yet. It also skips Endpoints for
// which the cache has no Service with a selector. The check orphan-endpoints covers these.
var addressesCheck = Check{
	ID:               "addresses",
	Guarantee:        "Endpoints list the addresses and ports of the Service's pods. The state of each pod is one that the controller had in its cache and may have acted on. Endpoints carry the labels of the Service, and at most 1000 addresses, ready addresses first.",
	Contract:         "Endpoints 3 to 10",
	Property:         Safety,
	AllowedBehaviors: []string{"truncated-endpoints", "publish-not-ready-addresses", "trigger-time-annotation"},
	New:              newAddressesChecker,
}

// addressesChecker compares written Endpoints with the cached versions of the Service and
// of its pods.
//
// A write passes if it matches one recent version of the Service, and for each pod one
// recent version of that pod. The written Endpoints must not list a pod that was not in the
// cache during the recent window. Truncated Endpoints may omit a pod.
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
		return // the API server rejects Endpoints that cannot be decoded
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
		return // orphan-endpoints checks whether the process may write them at all
	}
	checker.addViolation(func() Evidence {
		ref := history.Ref{Resource: endpointsResource, Namespace: state.name.namespace, Name: state.name.name}
		return m.evidenceOf(&ref, fmt.Sprintf("%s wrote Endpoints %s/%s that %s", c.process.name, ref.Namespace, ref.Name, wrong), expected)
	})
}

// mismatch describes how written Endpoints differ from the addresses that the Service
// requires. It returns "" if they match some combination of the pod versions that were
// cached since a time.
func (versions *podVersions) mismatch(s *service, e *endpoints, got addressSet, since time.Duration) (wrong, expected string) {
	if want := s.expectedLabels(); !maps.Equal(e.labels, want) {
		return fmt.Sprintf("have labels %v", map[string]string(e.labels)), fmt.Sprintf("labels %v, from the Service", want)
	}
	truncated := e.overCapacity == "truncated"
	if n := got.count(); truncated != (n >= addressesMax) && (truncated || n > addressesMax) {
		return fmt.Sprintf("list %d addresses and have annotation %s=%q", n, overCapacityAnnotation, e.overCapacity),
			fmt.Sprintf("at most %d addresses, and the annotation only on truncated Endpoints", addressesMax)
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
			return "list " + listed.String(), "only pods that were in its cache recently"
		}
	}
	first, ready := "", 0
	for uid, cached := range versions.byPod {
		listed := byPod[uid]
		if truncated && s.readyInEach(keepSince(cached, since)) {
			ready++
		}
		if truncated && len(listed) == 0 {
			continue
		}
		if want, ok := s.someVersionLists(listed, keepSince(cached, since), truncated); !ok && (first == "" || podNameOf(cached) < first) {
			first = podNameOf(cached)
			wrong, expected = fmt.Sprintf("list %s for pod %s/%s", listed, s.Namespace, first), want.String()+", from the cached pod"
		}
	}
	if _, listed := got.size(); wrong == "" && listed < min(ready, addressesMax) {
		return fmt.Sprintf("list %d of %d ready addresses, and addresses that are not ready", listed, ready), "all ready addresses before addresses that are not ready"
	}
	return wrong, expected
}

// readyInEach reports whether the Service has a ready address for the pod in each of these
// versions.
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

// podNameOf returns the name of the pod that the versions belong to.
func podNameOf(versions []cachedVersion[podVersion]) string {
	for _, each := range versions {
		if each.value.pod != nil {
			return each.value.Name
		}
	}
	return ""
}

// someVersionLists reports whether some version of a pod requires exactly these addresses
// in the Endpoints of the Service.
//
// If part is true, Endpoints that list only some of the addresses match, too. If no version
// matches, want has the addresses of the latest version.
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
