package check

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// KnownIssue is a bug of the kube-controller-manager of Kubernetes v1.36 that makes a check fail.
// If the program under test is kube-controller-manager, or is built from its source, the verdict is
// known-upstream instead. For any other program, the verdict stays fail.
//
// The page docs/known-upstream-issues.md is generated from KnownIssues and UnrecognizedIssues.
type KnownIssue struct {
	// Slug is the unique name of the issue, such as stuck-scaling. The scenario in
	// suites/regression that reproduces the issue has the same name.
	Slug string
	// Description says what the controller does wrong, in one sentence. Reports show it.
	Description string
	// Reproduce says how the bug is triggered, for example by which faults. For one of the
	// UnrecognizedIssues, it may instead say why the bug does not occur, or which scenarios would
	// cause it.
	Reproduce string
	// Issue is the number of the GitHub issue, such as kubernetes/kubernetes#102551. It is empty if
	// no GitHub issue is known.
	Issue string
	// Check is the ID of the check that fails when the scenario named Slug runs on
	// kube-controller-manager.
	Check string
	// Slow is true if the scenario takes minutes. The fast tests leave such a scenario out.
	Slow bool
}

// The known upstream issues that checks recognize. KnownIssues lists all of them.
var (
	stuckScaling = &KnownIssue{
		Slug:        "stuck-scaling",
		Description: "A rollout never continues if the Deployment is scaled, during the rollout, to the size that its only active ReplicaSet already has.",
		Reproduce:   "With maxSurge 0, a rollout scales the old ReplicaSet from 5 to 4, and a user then scales the Deployment to 4. The desired-replicas annotation of that ReplicaSet stays stale, and no later rollout starts.",
		Issue:       "kubernetes/kubernetes#102551",
		Check:       "rollout-complete",
	}
	recreateScaling = &KnownIssue{
		Slug:        "recreate-scaling",
		Description: "Scaling a Deployment never completes if its strategy was changed to Recreate while two of its ReplicaSets have pods.",
		Reproduce:   "The controller scales ReplicaSets in proportion only for the strategy RollingUpdate. Their desired-replicas annotations keep the former size. The controller takes this for a scaling in progress, so no rollout starts.",
		Check:       "rollout-complete",
	}
	swallowedError = &KnownIssue{
		Slug:        "swallowed-error",
		Description: "If the scale-down of an old ReplicaSet fails, the controller drops the error and does not retry until another event arrives.",
		Reproduce:   "The scale-down of an old ReplicaSet fails. The sync ignores the error, finds no change of the status to write, and ends without an error. No event and no retry follows. In the last second before the progress deadline, the controller instead syncs every 5 ms, because a sync without an error ends the back-off.",
		Check:       "rollout-complete",
	}
	lostEndpoints = &KnownIssue{
		Slug:        "lost-endpoints",
		Description: "Endpoints stay wrong if the response to an update is lost while the watch lags, and the state before that update becomes the desired one again.",
		Reproduce:   "The API server commits an update of Endpoints whose response is lost and whose watch event lags. By the next sync the cached Endpoints equal the wanted ones, so the controller writes nothing. No event for Endpoints enqueues the Service.",
		Check:       "endpoints-exact",
	}
	namesakeStatus = &KnownIssue{
		Slug:        "namesake-status",
		Description: "After a conflict, the controller writes the status of a deleted ReplicaSet to a new ReplicaSet with the same name.",
		Reproduce:   "A user deletes a ReplicaSet or ReplicationController and creates another one with the same name, while a status update is in flight. The retry after the conflict reads the new object by name.",
		Check:       "status",
	}
	falseCollision = &KnownIssue{
		Slug:        "false-collision",
		Description: "After a Deployment is deleted and created again under the same name, the controller takes its own new ReplicaSet for a hash collision, and creates a second ReplicaSet.",
		Reproduce:   "The watch of ReplicaSets lags, so the cache still has the ReplicaSet of the deleted Deployment. A repeated create of the new ReplicaSet, which has the same name, fails with AlreadyExists. The controller looks for the name in its cache only, finds the former ReplicaSet, and increments collisionCount.",
		Check:       "revisions",
	}
	rollbackOverlap = &KnownIssue{
		Slug:        "rollback-overlap",
		Description: "A rollback of a Deployment with strategy Recreate creates a ReplicaSet for the current template with all its pods, although the old pods still run.",
		Reproduce:   "A user changes the template between the request for the rollback and its execution, so the current template has no ReplicaSet yet. Before the rollback, the controller creates this ReplicaSet with spec.replicas of the Deployment.",
		Check:       "recreate",
	}
	staleAvailability = &KnownIssue{
		Slug:        "stale-availability",
		Description: "A rolling update scales an old ReplicaSet down too far, because it still counts pods as available that an earlier scale-down of a ReplicaSet removes.",
		Reproduce:   "The watch of pods lags, so status.availableReplicas of a ReplicaSet is above its spec.replicas. The controller counts the pods beyond spec.replicas, and scales another ReplicaSet down. It scales the same ReplicaSet down in a sync that removes the unavailable pods of an older one.",
		Check:       "max-unavailable",
	}
	proportionalGrowth = &KnownIssue{
		Slug:        "proportional-growth",
		Description: "While a Deployment with too many replicas is scaled down in proportion, the controller scales a ReplicaSet up whose max-replicas annotation is from a smaller size.",
		Reproduce:   "The watch of ReplicaSets lags while a Deployment is scaled up and rolled out twice. Three ReplicaSets then have all replicas, and the first one has the annotation of the former size. The controller does not limit a share to the direction of the scaling.",
		Check:       "max-surge",
		Slow:        true,
	}
	earlyLeftovers = &KnownIssue{
		Slug:        "early-leftovers",
		Description: "At its start, the controller deletes the Endpoints of a Service that is not in its cache yet.",
		Reproduce:   "The watch of Services lags while the controller starts. The controller looks for Endpoints without a Service, and finds Endpoints whose Service its cache does not have yet.",
		Issue:       "kubernetes/kubernetes#104062",
		Check:       "orphan-endpoints",
	}
	unnoticedEnd = &KnownIssue{
		Slug:        "unnoticed-end",
		Description: "A pod that fails or succeeds without a change of its readiness and IP stays in Endpoints until another event arrives.",
		Reproduce:   "A pod becomes Failed with Ready=True and an unchanged IP. Real kubelets set Ready to False.",
		Check:       "endpoints-exact",
	}
	longBackOff = &KnownIssue{
		Slug:        "long-back-off",
		Description: "After many failed syncs in a row, the controller retries an object only after minutes.",
		Reproduce:   "Requests for one object fail for minutes, or many events enqueue it while its requests fail. Each failure doubles the back-off of its work queue key, up to 1000 s. For a Deployment or Service, the last retry comes after 82 s. The rollout of a Deployment also waits for its ReplicaSets.",
		Issue:       "kubernetes/kubernetes#98656",
		Check:       "converged",
		Slow:        true,
	}
	latePods = &KnownIssue{
		Slug:        "late-pods",
		Description: "A ReplicationController creates its pods again if the watch has not delivered them within 5 minutes.",
		Reproduce:   "The watch of pods lags longer than expectations last. Since v1.36, the controller waits in this case for a ReplicaSet, but not for a ReplicationController.",
		Issue:       "kubernetes/kubernetes#129795",
		Check:       "not-above-desired",
		Slow:        true,
	}
	staleEndpointsCache = &KnownIssue{
		Slug:        "stale-endpoints",
		Description: "If the watch of Endpoints lags behind the controller's own update for 16 syncs, the controller drops the key of the Service until another event arrives.",
		Reproduce:   "Since v1.36, the controller does not sync a Service while its cache still has the version of the Endpoints that its last update replaced. An event enqueues the Service during the lag, and all 15 retries of its key fail (about 164 s). Each further event uses up one of the retries, so a burst of pod events needs a lag of less than a second. The event that ends the lag does not enqueue the Service.",
		Check:       "endpoints-exact",
		Slow:        true,
	}
	deleteAfterOwnerChange = &KnownIssue{
		Slug:        "delete-after-owner-change",
		Description: "If the controller deletes a pod that lost or changed its owner in the meantime, the former owner creates and deletes no pods for 5 minutes.",
		Reproduce:   "A user removes the owner reference of a pod, and the watch of pods lags. The controller deletes the pod for its former owner. The events of the pod do not name this owner, so the expectations of the owner are unsatisfied until they expire.",
		Check:       "converged",
	}
	droppedKey = &KnownIssue{
		Slug:        "dropped-key",
		Description: "After 16 failed syncs in a row, the controller drops the key of a Deployment or Service until another event arrives.",
		Reproduce:   "Requests for one object fail until all 15 retries of its key are used up (about 164 s).",
		Check:       "endpoints-exact",
		Slow:        true,
	}
)

// KnownIssues lists the known upstream issues that checks recognize, in the order of the page
// docs/known-upstream-issues.md.
var KnownIssues = []*KnownIssue{stuckScaling, recreateScaling, swallowedError, unnoticedEnd, lostEndpoints, namesakeStatus, falseCollision, staleAvailability, proportionalGrowth, rollbackOverlap, earlyLeftovers, longBackOff, latePods, deleteAfterOwnerChange, droppedKey, staleEndpointsCache}

// UnrecognizedIssues are known upstream issues that no check recognizes, because a check could
// not tell them from an unknown bug. They have no scenario.
var UnrecognizedIssues = []KnownIssue{
	{
		Slug:        "recreate-failed-pods",
		Description: "A Recreate Deployment with failed old pods waits for the progress deadline before its next step.",
		Reproduce:   "Not seen on v1.36, because each deleted pod changes terminatingReplicas in the status of its ReplicaSet. This change enqueues the Deployment, so it does not wait.",
		Issue:       "kubernetes/kubernetes#128798",
	},
	{
		Slug:        "repeated-proportional-scaling",
		Description: "Proportional scaling that fails part of the way assigns shares twice.",
		Reproduce:   "Not seen on v1.36. Each ReplicaSet records the size of the Deployment that it was last scaled for, and gets its share once.",
		Issue:       "kubernetes/kubernetes#44734",
	},
	{
		Slug:        "unobserved-create-and-delete",
		Description: "If a pod is created and deleted while the controller's watch of pods is down, and the controller then has to list again, it receives no event of the pod. The expectations of the owner are then unsatisfied until they expire after 5 minutes.",
		Reproduce:   "A scenario that ends watches of pods must not delete young pods at the same time.",
	},
	{
		Slug:        "owner-change-during-read",
		Description: "A pod whose controllerRef changes while a sync reads its cache is read twice or not at all. The sync then deletes a pod too many, or creates one too many.",
		Reproduce:   "Upstream reads the pods of an owner and the pods without an owner from two indexes, one after the other. The window is microseconds long.",
	},
}

// String formats the issue for a verdict's reason: "known upstream issue", the slug, the
// description and the GitHub issue.
func (issue *KnownIssue) String() string {
	text := fmt.Sprintf("known upstream issue %s: %s", issue.Slug, issue.Description)
	if issue.Issue != "" {
		text = strings.TrimSuffix(text, ".") + " (" + issue.Issue + ")."
	}
	return text
}

// noExcuse returns a sentence for the reason of the verdict fail. It says that
// kube-controller-manager has the same bug, but that this issue excuses no other subject
// (controllers under test).
func (issue *KnownIssue) noExcuse() string {
	return fmt.Sprintf("kube-controller-manager has the same bug (known upstream issue %s), but other controllers must not have this bug", issue.Slug)
}

// knownRolloutIssue returns the known upstream issue that explains why a Deployment has not
// converged. It returns nil if no such issue explains this.
//
// The argument abandoned says whether the controller's last attempt to scale down a ReplicaSet of
// the Deployment failed. The argument dropped says whether the controller has dropped the
// Deployment's key from its work queue.
func (state *objectSet) knownRolloutIssue(d *objects.Deployment, abandoned, dropped bool) *KnownIssue {
	if d.Terminating {
		return nil
	}
	active := activeOf(state.replicaSetsOf(d))
	switch {
	case len(active) > 1 && d.Recreate && scalingPending(d, active):
		return recreateScaling
	case d.Paused:
		return nil
	case len(active) == 1 && active[0].Replicas == d.Replicas && active[0].DesiredReplicas != d.Replicas:
		return stuckScaling
	case abandoned && !d.Recreate:
		return swallowedError
	case dropped:
		return droppedKey
	}
	return nil
}

// processStarts reports whether the record says that a process under test started. Callers then
// forget the state of ended processes, because the first lists of the new process enqueue every
// object.
func processStarts(r *history.Record) bool {
	return r.Process != nil && r.Process.Event == history.ProcessStarted
}

// dropEndedProcesses removes the keys of ended processes from a map, because a work queue ends with
// its process.
func dropEndedProcesses[V any](of map[workQueueKey]V) {
	maps.DeleteFunc(of, func(key workQueueKey, _ V) bool { return key.process.ended })
}

// activeKeys yields one object's work queue keys in the processes that may reconcile the object
// now. Such a process is not paused, and may hold the lease.
//
// The parameter key names the object. activeKeys ignores the field process of that key.
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

// hasKey reports whether a known upstream issue may have occurred for an object. It considers only
// processes that may reconcile the object now. Such a process is not paused, and may hold the lease.
//
// The map marked has each key, of a process and an object, for which the issue may have occurred. The
// parameter object names the object. hasKey ignores its field process.
func hasKey[V any](m *Model, marked map[workQueueKey]V, object workQueueKey) bool {
	for key := range m.activeKeys(object) {
		if _, ok := marked[key]; ok {
			return true
		}
	}
	return false
}

// eventOf returns the type and the resource of a watch event, such as ADDED and pods. Callers need
// both to decide which work queue keys the event enqueues. For a list, eventOf returns "" and the
// resource of the list. For any other record, it returns "" twice.
func eventOf(r *history.Record) (event history.EventType, of string) {
	switch {
	case r.Delivery != nil:
		return r.Delivery.Type, r.Delivery.Resource
	case r.List != nil:
		return "", r.List.Resource
	}
	return "", ""
}

// enqueuesService reports whether a list or watch event enqueues the key of a Service (contract
// Endpoints 1). Endpoints enqueue it only when they are deleted. A pod, in an event or a list,
// enqueues it only if the pod changed in a field that Endpoints depend on. Each change of a
// terminating pod enqueues it, because upstream compares pointers to deletion timestamps.
//
// If the key is not enqueued, the second result lists the pods that just became Failed or
// Succeeded. For these pods, the known upstream issue unnoticed-end may occur.
func enqueuesService(m *Model, r *history.Record, key workQueueKey) (enqueues bool, ended []types.UID) {
	event, of := eventOf(r)
	switch {
	case of == objects.EndpointsResource:
		return event == history.Deleted, nil
	case of != objects.PodResource:
		return true, nil
	}
	pods := maps.Keys(key.process.view.podVersions.byPod)
	if event.HasObject() {
		if event == history.Modified && r.Delivery.Object.Terminating() {
			return true, nil // upstream never takes two deletion timestamps for equal
		}
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

// podEnqueuesService reports whether the current list or watch event changed a pod in a way that
// enqueues the pod's Services. The first result is true if it did. The second result is true if it
// did not, but the pod just became Failed or Succeeded.
func podEnqueuesService(m *Model, p *process, uid types.UID) (enqueues, ends bool) {
	versions := p.view.podVersions.byPod[uid]
	n := len(versions)
	switch {
	case n > 0 && versions[n-1].since < m.processTime: // the event changed nothing that Endpoints depend on
		return false, false
	case n < 2: // the pod is new in the cache
		return true, false
	}
	before, now := versions[n-2].value, versions[n-1].value
	if !now.sameForServices(before) {
		return true, false
	}
	return false, now.Ended && !before.Ended
}

// sameForServices compares two versions of a pod. It reports whether they are equal in every
// field whose change enqueues the pod's Services. Contract Endpoints 1 lists these fields. The
// result is false if the pod is missing from the cache in one version.
//
// The method does not compare hostname and subdomain, which never change.
func (version podVersion) sameForServices(before podVersion) bool {
	if version.Pod == nil || before.Pod == nil || version.Ready != before.Ready || version.Terminating != before.Terminating || !maps.Equal(version.Labels, before.Labels) {
		return false
	}
	a, err := version.Network()
	b, errBefore := before.Network()
	return err == nil && errBefore == nil && a.Status.PodIP == b.Status.PodIP && slices.Equal(a.Status.PodIPs, b.Status.PodIPs)
}
