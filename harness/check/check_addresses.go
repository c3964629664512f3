package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// addressesCheck demands that written Endpoints list the addresses that the Service's pods have in
// the controller's cache. It examines each create and update of Endpoints.
//
// It skips the writes of a process that has not listed Services and pods yet. It also skips
// Endpoints whose cached Service is missing, has no selector, or is of type ExternalName. The check
// orphan-endpoints examines those Endpoints.
var addressesCheck = Check{
	ID:               "addresses",
	Guarantee:        "Endpoints list the addresses and ports of the Service's pods, according to a cached version of each pod that the controller may have acted on. Endpoints have the labels of the Service and at most 1000 addresses, ready addresses first. A write keeps the annotations, finalizers and ownerReferences of others. A write does not repeat last-change-trigger-time if no pod has changed. An update that shows a new change of a pod's readiness has this annotation. An update has the resourceVersion of the cached Endpoints.",
	Contract:         "Endpoints 3 to 10",
	Property:         Safety,
	Scope:            contractOf(kube.PublishesAddresses),
	ExercisedWhen:    "The subject creates or updates the Endpoints of a Service that has a selector and is not of type ExternalName.",
	AllowedBehaviors: []string{"truncated-endpoints", "publish-not-ready-addresses", "trigger-time-annotation"},
	New:              newAddressesChecker,
}

// addressesChecker compares written Endpoints with the cached versions of their Service and its
// pods.
//
// A write passes if it matches one recent version of the Service, and one recent version of each
// pod. A version is recent if the controller may still have acted on it. The Endpoints must not
// list a pod that has no recent version in the cache. Truncated Endpoints, which list only 1000
// of the addresses, may omit pods.
type addressesChecker struct{ findings }

func newAddressesChecker(Settings) Checker { return &addressesChecker{} }

func (checker *addressesChecker) Observe(m *Model, r *history.Record) {
	c := m.sent
	if c == nil || c.serviceState == nil || r.Request.Object == nil || r.Request.Verb != "create" && r.Request.Verb != "update" {
		return
	}
	view, state := c.process.view, c.serviceState
	if view.reachedVersion[objects.PodResource] == 0 || view.reachedVersion[objects.ServiceResource] == 0 {
		return
	}
	e := objects.NewEndpoints(r.Request.Object)
	got, err := e.Addresses()
	if err != nil {
		return // the API server rejects Endpoints that cannot be decoded
	}
	checker.checkMetadata(m, r.Request, e, got)
	since := state.decided
	wrong, expected := "", ""
	for _, each := range keepSince(state.services, since) {
		if s := each.value; s != nil && s.Managed() {
			if wrong, expected = view.podVersions.mismatch(s, e, got, since); wrong == "" {
				checker.exercised++
				return
			}
		}
	}
	if wrong == "" {
		return // the check orphan-endpoints reports whether the process may write these Endpoints
	}
	checker.addViolation(func() Evidence {
		ref := history.Ref{Resource: objects.EndpointsResource, Namespace: state.name.namespace, Name: state.name.name}
		return m.evidenceOf(&ref, fmt.Sprintf("%s wrote Endpoints %s/%s that %s", c.process.name, ref.Namespace, ref.Name, wrong), expected)
	})
}

// checkMetadata reports written Endpoints that lack an annotation of the version before, or have other
// finalizers or owners. The annotations of the controller itself do not count. checkMetadata also reports a trigger time that is
// no time, or that is out of date, late or missing, and an update without a resourceVersion. The argument got
// holds the addresses in e.
func (checker *addressesChecker) checkMetadata(m *Model, r *history.Request, e *objects.Endpoints, got objects.AddressSet) {
	wrong, expected := "", ""
	if base := m.sent.process.view.endpoints[e.UID]; base != nil && base.Version == e.Version {
		for _, key := range slices.Sorted(maps.Keys(base.Annotations)) {
			if value, want := e.Annotations[key], base.Annotations[key]; value != want {
				wrong, expected = fmt.Sprintf("annotation %s=%q", key, value), fmt.Sprintf("%s=%q, as before", key, want)
			}
		}
		if !slices.Equal(e.Finalizers, base.Finalizers) {
			wrong, expected = fmt.Sprintf("the finalizers %q", e.Finalizers), fmt.Sprintf("%q, as before", base.Finalizers)
		}
		if !slices.Equal(e.Owners, base.Owners) {
			wrong, expected = fmt.Sprintf("%d ownerReferences", len(e.Owners)), fmt.Sprintf("the %d ownerReferences of the version before", len(base.Owners))
		}
	}
	if _, err := time.Parse(time.RFC3339Nano, e.TriggerTime); e.TriggerTime != "" && err != nil {
		wrong, expected = fmt.Sprintf("annotation %s=%q", objects.TriggerTimeAnnotation, e.TriggerTime), "a time in the format RFC 3339"
	}
	if r.Verb == "update" && e.Version == 0 {
		wrong, expected = "no resourceVersion", "the resourceVersion of the cached Endpoints, so that the update fails if they have changed"
	}
	if wrong == "" && repeatsTriggerTime(m.sent, e) {
		wrong = fmt.Sprintf("annotation %s=%q", objects.TriggerTimeAnnotation, e.TriggerTime)
		expected = "no such annotation, because no pod has changed since the last write"
	}
	if wrong == "" {
		wrong, expected = lateTriggerTime(m.sent, e, got)
	}
	if wrong == "" && e.TriggerTime == "" {
		wrong, expected = missingTriggerTime(m.sent, e, got)
	}
	if wrong == "" {
		return
	}
	checker.addViolation(func() Evidence {
		return m.evidenceOf(&e.Ref, fmt.Sprintf("%s wrote %s with %s", m.sent.process.name, e, wrong), expected)
	})
}

// repeatsTriggerTime reports whether a write wrongly repeats the trigger time of the version before. It
// is wrong if no pod of the namespace has changed since the earliest time at which the process may have
// decided on its last write of these Endpoints. After a new selector, the result is false, because other
// pods may have the same time.
func repeatsTriggerTime(c *call, e *objects.Endpoints) bool {
	view, state := c.process.view, c.serviceState
	base := view.endpoints[e.UID]
	if e.TriggerTime == "" || base == nil || base.Version != e.Version || base.TriggerTime != e.TriggerTime || state.answered == 0 || state.lastWriteFailed {
		return false
	}
	since := state.decidedBefore
	services := keepSince(state.services, since)
	for _, each := range services {
		if s := each.value; s == nil || s.Selector.String() != services[0].value.Selector.String() {
			return false
		}
	}
	if removed := view.podVersions.removed; len(removed) > 0 && removed[len(removed)-1].since > since {
		return false
	}
	for _, p := range view.pods {
		versions := view.podVersionsSince[p.UID]
		if p.Namespace == e.Namespace && (len(versions) == 0 || versions[len(versions)-1].since > since) {
			return false
		}
	}
	return true
}

// lateTriggerTime reports a trigger time that is later than the change of a pod's readiness. The trigger
// time is that of the earliest change since the last write of these Endpoints. lateTriggerTime examines
// pods whose addresses have become ready or not ready since that write. The argument got holds the
// addresses in e.
//
// It reports nothing after the Service was created again, because the Service then has a time of its own.
// Nor does it after the Service published addresses that are not ready: their changes caused no write.
func lateTriggerTime(c *call, e *objects.Endpoints, got objects.AddressSet) (wrong, expected string) {
	view, state := c.process.view, c.serviceState
	written, err := time.Parse(time.RFC3339Nano, e.TriggerTime)
	base := view.endpoints[e.UID]
	if err != nil || base == nil || base.Version != e.Version || base.Version != state.version.value || state.answered == 0 || state.lastWriteFailed {
		return "", ""
	}
	services := keepSince(state.services, state.decidedBefore)
	for _, each := range services {
		if s := each.value; s == nil || s.Spec.PublishNotReadyAddresses || s.UID != services[0].value.UID {
			return "", ""
		}
	}
	before, err := base.Addresses()
	if err != nil {
		return "", ""
	}
	var first time.Time
	for address, ready := range got {
		was, listed := before[address]
		if !listed || was == ready {
			continue
		}
		changed := readinessChange(view.podVersions.byPod[address.UID], was, state.version.since+lag)
		if !changed.IsZero() && (first.IsZero() || changed.Before(first)) {
			first = changed
		}
	}
	if first.IsZero() || !written.After(first) {
		return "", ""
	}
	return fmt.Sprintf("annotation %s=%q", objects.TriggerTimeAnnotation, e.TriggerTime),
		fmt.Sprintf("at most %s, when the readiness of a pod changed", first.UTC().Format(time.RFC3339))
}

// readinessChange returns the time at which the readiness of a pod last changed from the given value. It
// returns the zero time in two cases, in which the next write may have a later time:
//
//   - The change is not newer than the Endpoints on which the write is based (argument since). An earlier
//     sync may have handled the change, and then failed.
//   - The change before has the same time, because times have a precision of one second. A controller
//     then cannot see the change.
func readinessChange(versions []cachedVersion[podVersion], was bool, since time.Duration) time.Time {
	var latest, before time.Time
	handled := false
	for _, each := range versions {
		switch pod := each.value.Pod; {
		case pod == nil:
		case pod.Ready == was:
			before, latest, handled = pod.ReadyTransition, time.Time{}, false
		default:
			handled = handled || each.since <= since
			latest = pod.ReadyTransition
		}
	}
	if handled || before.IsZero() || !before.Before(latest) {
		return time.Time{}
	}
	return latest
}

// missingTriggerTime reports written Endpoints without a trigger time that show the change of a pod's
// readiness. The argument got holds the addresses in e.
//
// A controller needs no trigger time if it may have handled the change before: upstream writes the time of
// a change only once, even if that write fails. missingTriggerTime therefore examines only a write that is
// based on the process's own last write of these Endpoints. Since that write, no write of them has failed.
// After a failed connection it reports nothing, because a failed write may then be missing in the history.
// Nor does it examine truncated Endpoints, because a change may cause no write of them.
func missingTriggerTime(c *call, e *objects.Endpoints, got objects.AddressSet) (wrong, expected string) {
	view, state := c.process.view, c.serviceState
	base := view.endpoints[e.UID]
	if base == nil || base.Version != e.Version || base.Version != state.version.value || base.Version != state.written ||
		state.callsInFlight > 1 || c.process.disconnectedAt >= state.answered-lag || base.OverCapacity != "" || e.OverCapacity != "" {
		return "", ""
	}
	services := keepSince(state.services, state.decidedBefore)
	before, err := base.Addresses()
	if s := services[0].value; err != nil || len(services) > 1 || s == nil || !s.Managed() {
		return "", ""
	}
	was, is := addressesByPod(before), addressesByPod(got)
	changed, at := "", time.Time{}
	for uid, versions := range view.podVersions.byPod {
		if first := readinessChangeSince(services[0].value, versions, was[uid], is[uid], state.version.since+lag); !first.IsZero() && (changed == "" || first.Before(at)) {
			changed, at = podNameOf(versions), first
		}
	}
	if changed == "" {
		return "", ""
	}
	return "no annotation " + objects.TriggerTimeAnnotation,
		fmt.Sprintf("this annotation, because the readiness of pod %s/%s changed at %s", e.Namespace, changed, at.UTC().Format(time.RFC3339))
}

// readinessChangeSince returns the time at which the readiness of a pod changed, as an update of Endpoints
// shows it. The arguments was and is hold the addresses of the pod before and after the update of the
// Endpoints of the Service s. The result is zero if the update shows no change, or if an earlier sync may
// have handled it.
//
// No earlier sync has handled the change if it reached the cache after the Endpoints before the update
// (argument since): such a sync would have written other Endpoints. The sync of the update has seen one of
// the versions with the new addresses. The times of all of them must be later than those of earlier
// versions. A pod that has left the Service needs no trigger time. The name of a pod without an owner may
// have belonged to another pod.
func readinessChangeSince(s *objects.Service, versions []cachedVersion[podVersion], was, is objects.AddressSet, since time.Duration) time.Time {
	if maps.Equal(was, is) {
		return time.Time{}
	}
	lists := make([]objects.AddressSet, len(versions))
	changed := 0 // the index of the first version after the last one with the addresses before the update
	for i, each := range versions {
		lists[i] = objects.AddressSet{}
		if each.value.Pod != nil && addAddresses(s, lists[i], each.value) != nil {
			return time.Time{}
		}
		if maps.Equal(lists[i], was) {
			changed = i + 1
		}
	}
	if changed == 0 || changed == len(versions) || versions[changed].since <= since {
		return time.Time{}
	}
	var before, first time.Time
	for i, each := range versions {
		switch pod := each.value.Pod; {
		case i < changed && pod != nil && pod.ReadyTransition.After(before):
			before = pod.ReadyTransition
		case i < changed || !maps.Equal(lists[i], is):
		case pod == nil, !s.Selector.Matches(pod.Labels), !pod.ReadyTransition.After(before), !pod.HasManagedOwner() && len(was) == 0:
			return time.Time{}
		case first.IsZero() || pod.ReadyTransition.Before(first):
			first = pod.ReadyTransition
		}
	}
	return first
}

// mismatch compares the written Endpoints e with what one version s of the Service requires. The
// argument got holds the addresses in e.
//
// The first result says what is wrong with the Endpoints, and the second what was expected. Both
// results are empty if nothing is wrong. For each pod, the Endpoints may match any version that the
// cache contained after the time in the parameter since.
func (versions *podVersions) mismatch(s *objects.Service, e *objects.Endpoints, got objects.AddressSet, since time.Duration) (wrong, expected string) {
	if want := expectedLabels(s); !maps.Equal(e.Labels, want) {
		return fmt.Sprintf("have labels %v", map[string]string(e.Labels)), fmt.Sprintf("labels %v, according to the Service", want)
	}
	truncated := e.OverCapacity == "truncated"
	if n, _ := got.Size(); truncated != (n >= objects.AddressesMax) && (truncated || n > objects.AddressesMax) {
		return fmt.Sprintf("list %d addresses and have annotation %s=%q", n, objects.OverCapacityAnnotation, e.OverCapacity),
			fmt.Sprintf("at most %d addresses, and the annotation only on truncated Endpoints", objects.AddressesMax)
	}
	byPod := addressesByPod(got)
	for uid, listed := range byPod {
		if versions.byPod[uid] == nil {
			return "list " + describeAddresses(listed), "only addresses of pods that were recently in the cache of the process"
		}
	}
	first, ready := "", 0
	for uid, cached := range versions.byPod {
		listed := byPod[uid]
		if truncated && readyInEach(s, keepSince(cached, since)) {
			ready++
		}
		if truncated && len(listed) == 0 {
			continue
		}
		if want, ok := someVersionLists(s, listed, keepSince(cached, since), truncated); !ok && (first == "" || podNameOf(cached) < first) {
			first = podNameOf(cached)
			wrong, expected = fmt.Sprintf("list %s for pod %s/%s", describeAddresses(listed), s.Namespace, first), describeAddresses(want)+", according to the cached pod"
		}
	}
	if _, listed := got.Size(); wrong == "" && listed < min(ready, objects.AddressesMax) {
		return fmt.Sprintf("list only %d of %d ready addresses, but also addresses that are not ready", listed, ready), fmt.Sprintf("addresses that are not ready only if the %d addresses include all ready ones", objects.AddressesMax)
	}
	return wrong, expected
}

// addressesByPod returns the given addresses of each pod, by the pod's UID.
func addressesByPod(addresses objects.AddressSet) map[types.UID]objects.AddressSet {
	byPod := map[types.UID]objects.AddressSet{}
	for address, ready := range addresses {
		if byPod[address.UID] == nil {
			byPod[address.UID] = objects.AddressSet{}
		}
		byPod[address.UID][address] = ready
	}
	return byPod
}

// readyInEach reports whether a pod has a ready address for the Service in all given versions.
// Endpoints that list only 1000 of the addresses must prefer such pods over pods that are not
// ready.
func readyInEach(s *objects.Service, versions []cachedVersion[podVersion]) bool {
	return every(versions, func(each cachedVersion[podVersion]) bool {
		want := objects.AddressSet{}
		if each.value.Pod == nil || addAddresses(s, want, each.value) != nil {
			return false
		}
		_, ready := want.Size()
		return ready > 0
	})
}

// podNameOf returns the name of the pod to which the given versions belong, for evidence. It skips
// versions without a pod, which say that the pod was not in the cache at that time. If all versions
// are without a pod, it returns "".
func podNameOf(versions []cachedVersion[podVersion]) string {
	for _, each := range versions {
		if each.value.Pod != nil {
			return each.value.Name
		}
	}
	return ""
}

// someVersionLists reports whether the Endpoints list a pod correctly, according to at least one
// of its cached versions.
//
// The argument listed holds the addresses that the Endpoints list for the pod. The argument part
// says whether the Endpoints are truncated, that is, list only 1000 of the addresses. In truncated
// Endpoints, some addresses of the pod may be missing.
//
// The first result (want) is the set of addresses that the matching version requires. If no version
// matches, it is the set that the latest version requires. A version whose body cannot be decoded
// matches any addresses.
func someVersionLists(s *objects.Service, listed objects.AddressSet, versions []cachedVersion[podVersion], part bool) (want objects.AddressSet, ok bool) {
	for _, each := range versions {
		want = objects.AddressSet{}
		if each.value.Pod != nil {
			if err := addAddresses(s, want, each.value); err != nil {
				return want, true
			}
		}
		if maps.Equal(listed, want) || part && coversAddresses(want, listed) {
			return want, true
		}
	}
	return want, false
}

// coversAddresses reports whether addresses contains every address of other, with the same
// readiness. Checks call it for truncated Endpoints: other is what the Endpoints list for a pod,
// and addresses is what they should list. For Endpoints that are not truncated, the two must be
// equal.
//
// Truncated Endpoints list only 1000 addresses. Some pairs of an address of the pod and a port may
// therefore be missing in other.
func coversAddresses(addresses, other objects.AddressSet) bool {
	for p, ready := range other {
		if found, ok := addresses[p]; !ok || found != ready {
			return false
		}
	}
	return true
}
