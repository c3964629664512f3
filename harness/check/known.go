package check

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// KnownIssue is a way in which upstream's controllers of Kubernetes v1.36 break a
// promise, as is known of them. TRAPS.md lists all that are known; here are those
// that leave something undone for good and can be told with certainty by what they
// leave behind. suites/regression has a scenario of each.
type KnownIssue struct {
	// Name is that of its scenario.
	Name string
	// Trap is its number in TRAPS.md.
	Trap int
	// Description says what happens.
	Description string
	// Issue is where upstream has it on record; empty if that is not known.
	Issue string
	// Check is the ID of the check that it breaks in that scenario.
	Check string
	// Slow says that the scenario takes minutes.
	Slow bool
}

// The weaknesses that are recognised.
var (
	stuckScaling = &KnownIssue{
		Name:        "stuck-scaling",
		Trap:        1,
		Description: "a scaling never ends when the only ReplicaSet with pods has the new size already",
		Issue:       "kubernetes/kubernetes#102551",
		Check:       "rollout-complete",
	}
	recreateScaling = &KnownIssue{
		Name:        "recreate-scaling",
		Trap:        45,
		Description: "a scaling never ends when the strategy has become Recreate while two ReplicaSets have pods",
		Check:       "rollout-complete",
	}
	swallowedError = &KnownIssue{
		Name:        "swallowed-error",
		Trap:        3,
		Description: "a write that failed while old ReplicaSets were scaled down is not tried again before something else happens",
		Check:       "rollout-complete",
	}
	lostEndpoints = &KnownIssue{
		Name:        "lost-endpoints",
		Trap:        44,
		Description: "Endpoints whose last write was made, and its answer lost, stay as they are when by then the cache, which lags, has what is wanted again",
		Check:       "endpoints-exact",
	}
	namesakeStatus = &KnownIssue{
		Name:        "namesake-status",
		Trap:        43,
		Description: "a status whose write conflicts is written onto what bears the name by then, be it another owner",
		Check:       "status",
	}
	earlyLeftovers = &KnownIssue{
		Name:        "early-leftovers",
		Trap:        8,
		Description: "at the start, Endpoints are deleted whose Service is there and not in the cache yet",
		Issue:       "kubernetes/kubernetes#104062",
		Check:       "orphan-endpoints",
	}
	unnoticedEnd = &KnownIssue{
		Name:        "unnoticed-end",
		Trap:        7,
		Description: "a pod that ends, and is said to be as ready as before and to have its address, stays in Endpoints until something else happens",
		Check:       "endpoints-exact",
	}
	longBackOff = &KnownIssue{
		Name:        "long-back-off",
		Trap:        5,
		Description: "what has failed for long for a ReplicaSet or ReplicationController is tried again after up to 1000 s only",
		Issue:       "kubernetes/kubernetes#98656",
		Check:       "converged",
		Slow:        true,
	}
	latePods = &KnownIssue{
		Name:        "late-pods",
		Trap:        9,
		Description: "a ReplicationController that has not been shown for 5 minutes the pods that it made makes them again",
		Issue:       "kubernetes/kubernetes#129795",
		Check:       "not-above-desired",
		Slow:        true,
	}
	droppedKey = &KnownIssue{
		Name:        "dropped-key",
		Trap:        4,
		Description: "a Deployment or Service whose syncs have failed 16 times in a row is left as it is until something else happens",
		Check:       "endpoints-exact",
		Slow:        true,
	}
)

// KnownIssues are all that are recognised.
var KnownIssues = []*KnownIssue{stuckScaling, recreateScaling, swallowedError, unnoticedEnd, lostEndpoints, namesakeStatus, earlyLeftovers, longBackOff, latePods, droppedKey}

func (issue *KnownIssue) String() string {
	text := fmt.Sprintf("known weakness %d of upstream: %s", issue.Trap, issue.Description)
	if issue.Issue != "" {
		text += " (" + issue.Issue + ")"
	}
	return text
}

// knownRolloutIssue is what explains all that is pending about a Deployment; nil if
// nothing that is known does.
func (objects *objectSet) knownRolloutIssue(d *deployment, abandoned, dropped bool) *KnownIssue {
	if d.paused || d.terminating {
		return nil
	}
	var active []*owner
	for _, set := range objects.replicaSetsOf(d) {
		if set.replicas > 0 {
			active = append(active, set)
		}
	}
	switch {
	case len(active) == 1 && active[0].replicas == d.replicas && active[0].desiredReplicas != d.replicas:
		return stuckScaling
	case len(active) > 1 && d.recreate && d.scalingPending(active):
		return recreateScaling
	case abandoned && !d.recreate:
		return swallowedError
	case dropped:
		return droppedKey
	}
	return nil
}

// processStarts reports whether a process begins, which looks at everything anew.
func processStarts(r *history.Record) bool {
	return r.Process != nil && r.Process.Event == history.ProcessStarted
}

// dropEndedProcesses drops what is kept of processes that have ended.
func dropEndedProcesses[V any](of map[workQueueKey]V) {
	maps.DeleteFunc(of, func(key workQueueKey, _ V) bool { return key.process.ended })
}

// activeKeys are those of an item in the work queues of the processes that may work.
func (m *Model) activeKeys(key workQueueKey) iter.Seq[workQueueKey] {
	return func(yield func(workQueueKey) bool) {
		for _, p := range m.processes {
			key.process = p
			if m.mayWork(p) && !yield(key) {
				return
			}
		}
	}
}

// hasKey reports whether something is kept of an item by one of its keys.
func hasKey(m *Model, of map[workQueueKey]bool, i workQueueKey) bool {
	for key := range m.activeKeys(i) {
		if of[key] {
			return true
		}
	}
	return false
}

// eventOf is what a process is told, and of which resource; no type of event is a list.
func eventOf(r *history.Record) (event history.EventType, of string) {
	switch {
	case r.Delivery != nil:
		return r.Delivery.Type, r.Delivery.Resource
	case r.List != nil:
		return "", r.List.Resource
	}
	return "", ""
}

// enqueuesService reports whether what came wakes a Service (contract Endpoints 1), and
// which of its pods have ended besides. A list says of most pods what was known.
func enqueuesService(m *Model, r *history.Record, key workQueueKey) (enqueues bool, ended []types.UID) {
	event, of := eventOf(r)
	switch {
	case of == endpointsResource:
		return event == history.Deleted, nil
	case of != podResource:
		return true, nil
	}
	pods := maps.Keys(key.process.view.podVersions.byPod)
	if event.HasObject() {
		pods = slices.Values([]types.UID{r.Delivery.Object.UID})
	}
	for uid := range pods {
		switch podEnqueues, ends := podEnqueuesService(m, key.process, uid); {
		case podEnqueues:
			return true, nil
		case ends:
			ended = append(ended, uid)
		}
	}
	return false, ended
}

// podEnqueuesService reports whether what a process was just told of a pod wakes its Services,
// and, if not, whether it has ended by it.
func podEnqueuesService(m *Model, p *process, uid types.UID) (enqueues, ends bool) {
	known := p.view.podVersions.byPod[uid]
	n := len(known)
	switch {
	case n > 0 && known[n-1].since < m.processTime: // nothing that Endpoints show
		return false, false
	case n < 2: // it was not known before
		return true, false
	}
	before, now := known[n-2].value, known[n-1].value
	if !now.sameForServices(before) {
		return true, false
	}
	return false, now.ended && !before.ended
}

// sameForServices reports whether two versions of a pod, which always has the same hostname
// and subdomain, differ in nothing that wakes its Services by contract Endpoints 1.
func (version podVersion) sameForServices(before podVersion) bool {
	if version.pod == nil || before.pod == nil || version.ready != before.ready || version.terminating != before.terminating || !maps.Equal(version.labels, before.labels) {
		return false
	}
	a, err := version.network()
	b, errBefore := before.network()
	return err == nil && errBefore == nil && a.Status.PodIP == b.Status.PodIP && slices.Equal(a.Status.PodIPs, b.Status.PodIPs)
}
