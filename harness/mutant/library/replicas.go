package library

import "github.com/kube-gauntlet/gauntlet/harness/mutant"

// These are the paths of the source files of the ReplicaSet controller and the
// ReplicationController controller.
const (
	replicaSync     = "controllers/replicaset/sync.go"
	replicaStatus   = "controllers/replicaset/status.go"
	replicaPlan     = "controllers/replicaset/plan.go"
	replicaRank     = "controllers/replicaset/rank.go"
	replicaHandlers = "controllers/replicaset/handlers.go"
	replicaEngine   = "controllers/replicaset/controller.go"
	expectations    = "controllers/internal/expectations/expectations.go"
	claim           = "controllers/internal/ownership/claim.go"
	podFacts        = "controllers/internal/podutil/podutil.go"
	podControl      = "controllers/internal/podcontrol/podcontrol.go"
	slowStart       = "controllers/internal/slowstart/slowstart.go"
	workLoop        = "controllers/internal/workloop/workloop.go"
)

// replicas has the mutants of our ReplicaSet and ReplicationController controllers. These
// controllers share one sync loop.
var replicas = []mutant.Mutant{
	{
		ID: "R1", Base: mutant.Ours,
		Description: "The controller lists pods before it checks its expectations, so the list may be older than the expectations.",
		Edits: []mutant.Edit{
			edit(replicaSync, `	unobserved := stale != "" && c.expectations.Unmet(id)
	satisfied := c.expectations.Satisfied(id)
	if unobserved && satisfied {
		return workloop.RetryAfter(workloop.StaleRetryDelay, stale)
	}
	pods, err := c.claim(ctx, owner)
	if err != nil {
		return err
	}
`, `	pods, err := c.claim(ctx, owner)
	if err != nil {
		return err
	}
	<-time.After(30 * time.Millisecond)
	satisfied := c.expectations.Satisfied(id)
`),
			edit(replicaSync, `	"sync"
`, `	"sync"
	"time"
`),
		},
		Scenarios: []string{"watch-delay-pods", "everything"},
		Checks:    []string{"expectations", "not-above-desired"},
	},
	{
		ID: "R2", Base: mutant.Ours,
		Description: "The controller counts deletions instead of pods: a graceful deletion counts twice.",
		Edits: []mutant.Edit{edit(expectations, `		delete(e.deleted, child)
		e.observe(child)
`, `		for other := range e.deleted {
			delete(e.deleted, other)
			break
		}
		e.observe(child)
`)},
		Scenarios: []string{"late-delete"},
		Checks:    []string{"expectations", "not-below-desired"},
	},
	{
		ID: "R4", Base: mutant.Ours,
		Description:        "The expectations of the controller never expire.",
		UnobservableReason: "expectations that do not expire have an effect only if an event is missing for more than five minutes, and no watch of an API server is delayed for so long",
	},
	{
		ID: "R7", Base: mutant.Ours,
		Description: "A sync sends all its creates at once, without slow start.",
		Edits:       []mutant.Edit{edit(slowStart, `for size := 1; started`, `for size := n; started`)},
		Scenarios:   []string{"api-errors", "everything"},
		Checks:      []string{"slow-start"},
	},
	{
		ID: "R8", Base: mutant.Ours,
		Description: "The controller retries a failed sync without back-off.",
		Edits:       []mutant.Edit{edit(workLoop, `l.queue.AddRateLimited(key)`, `l.queue.Add(key)`)},
		Scenarios:   []string{"api-errors"},
		Checks:      []string{"back-off"},
	},
	{
		ID: "R10", Base: mutant.Ours,
		Description: "The controller adopts orphaned pods by the cached owner, without a read from the API server.",
		Edits:       []mutant.Edit{edit(claim, `checked, checkErr = true, c.checkLive(ctx)`, `checked = true`)},
		Scenarios:   []string{"watch-delay-owners"},
		Checks:      []string{"ownership"},
	},
	{
		ID: "R11", Base: mutant.Ours,
		Description: "The controller counts every pod that matches the selector, also pods of another controller.",
		Edits: []mutant.Edit{
			edit(replicaSync, `	pods, err := childindex.Candidates[*corev1.Pod](c.pods, owner.Object)
	if err != nil {
		return ownedPods{}, err
	}
`, `	var err error
	var pods []*corev1.Pod
	for _, object := range c.pods.List() {
		if pod := object.(*corev1.Pod); pod.Namespace == owner.Object.GetNamespace() {
			pods = append(pods, pod)
		}
	}
`),
			edit(claim, `case ref.UID != owner.GetUID():`, `case ref.UID != owner.GetUID() && !matches:`),
		},
		Scenarios: []string{"pod-churn", "everything"},
		Checks:    []string{"ownership"},
	},
	{
		ID: "R13", Base: mutant.Ours,
		Description: "Scale-down ignores the ready time, the restart count and the age of pods.",
		Edits: []mutant.Edit{edit(replicaRank, `		cmp.Compare(r.readyAge, other.readyAge),
		cmp.Compare(r.restarts, other.restarts),
		cmp.Compare(r.sidecars, other.sidecars),
		cmp.Compare(r.age, other.age),
`, "")},
		Scenarios: []string{"victims"},
		Checks:    []string{"scale-down-order"},
	},
	{
		ID: "R15", Base: mutant.Ours,
		Description: "The controller ignores the update that removes the owner reference of a pod.",
		Edits: []mutant.Edit{
			edit(replicaHandlers, `if controllerRefChanged && oldRef != nil {`, `if controllerRefChanged && oldRef != nil && ref != nil {`),
			edit(replicaHandlers, `if controllerRefChanged || !equality.Semantic.DeepEqual(old.Labels, pod.Labels) {`, `if !equality.Semantic.DeepEqual(old.Labels, pod.Labels) {`),
		},
		Scenarios: []string{"owner-removed"},
		Checks:    []string{"converged"},
	},
	{
		ID: "R16", Base: mutant.Ours,
		Description: "The controller keeps the expectation of a failed create.",
		Edits: []mutant.Edit{edit(replicaSync, `		} else if !podcontrol.NamespaceTerminating(err) {
			c.expectations.CreationsFailed(id, 1)
		}
`, `		}
`)},
		Scenarios: []string{"api-errors"},
		Checks:    []string{"converged"},
	},
	{
		ID: "R16-skipped", Base: mutant.Ours,
		Description: "The controller keeps expectations for creates that slow start skipped.",
		Edits: []mutant.Edit{edit(replicaSync, `	c.expectations.CreationsFailed(id, n-started)
`, `	_ = started
`)},
		Scenarios: []string{"api-errors"},
		Checks:    []string{"converged"},
	},
	{
		ID: "R17", Base: mutant.Ours,
		Description: "The controller treats the error NotFound of a pod delete as a failure.",
		Edits:       []mutant.Edit{edit(replicaSync, `if !apierrors.IsNotFound(err) {`, `if err != nil || apierrors.IsNotFound(err) {`)},
		Scenarios:   []string{"gone", "everything"},
		Checks:      []string{"status"},
	},
	{
		ID: "R19", Base: mutant.Ours,
		Description: "The controller replaces a pod when it is gone, not when its deletion begins.",
		Edits:       []mutant.Edit{edit(podFacts, `return pod.DeletionTimestamp == nil && !Terminal(pod)`, `return !Terminal(pod)`)},
		Scenarios:   []string{"orphaned-pods", "pod-churn", "everything"},
		Checks:      []string{"expectations"},
	},
	{
		ID: "R21", Base: mutant.Ours,
		Description: "The controller retries creates that a terminating namespace rejects.",
		Edits:       []mutant.Edit{edit(podControl, `return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)`, `return err != nil && apierrors.HasStatusCause(nil, corev1.NamespaceTerminatingCause)`)},
		Scenarios:   []string{"last-days", "namespace-end"},
		Checks:      []string{"terminating-namespace"},
	},
	{
		ID: "R23", Base: mutant.Ours,
		Description:        "After a restart the controller trusts a stale list.",
		UnobservableReason: "client-go and the upstream controllers accept such a list, and no guarantee forbids this",
	},
	{
		ID: "R24", Base: mutant.Ours,
		Description:        "The controller syncs a ReplicaSet before the controller's cache has the controller's last writes.",
		UnobservableReason: "until its expectations expire after five minutes, the controller creates and deletes no pods, and no watch of an API server is delayed for so long",
	},
	{
		ID: "R25", Base: mutant.Ours,
		Description: "The controller creates its work queue after the caches have synced, although event handlers use the queue earlier.",
		Edits: []mutant.Edit{
			edit(replicaEngine, `	c.loop = workloop.New(traits.Queue, c.sync)
`, ""),
			edit(replicaEngine, `	c.loop.Run(ctx, drain, c.synced, workers)
`, `	cache.WaitForCacheSync(ctx.Done(), c.synced...)
	c.loop = workloop.New(c.traits.Queue, c.sync)
	c.loop.Run(ctx, drain, c.synced, workers)
`),
		},
		Scenarios: []string{"crash", "failover"},
		Checks:    []string{"process-alive"},
	},
	{
		ID: "R26", Base: mutant.Ours,
		Description: "The controller deletes surplus pods only after a change of the owner.",
		Edits:       []mutant.Edit{edit(replicaSync, `case step.deletes > 0:`, `case step.deletes > 0 && owner.Object.GetGeneration() != owner.Status.ObservedGeneration:`)},
		Scenarios:   []string{"surplus"},
		Checks:      []string{"converged"},
	},
	{
		ID: "R28", Base: mutant.Ours,
		Description: "A new leader does not wait until its pod cache has synced.",
		Edits: []mutant.Edit{edit(replicaEngine, `	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(owners, pods)...)
	return c, err
`, `	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(owners, pods)...)
	c.synced = c.synced[:1]
	return c, err
`)},
		Scenarios: []string{"slow-lists", "failover"},
		Checks:    []string{"expectations", "cache-synced", "not-above-desired", "converged"},
	},
	{
		ID: "R29", Base: mutant.Ours,
		Description: "The controller replaces the pods of an owner that is being deleted.",
		Edits:       []mutant.Edit{edit(replicaSync, `if satisfied && !owner.Terminating() {`, `if satisfied {`)},
		Scenarios:   []string{"foreground"},
		Checks:      []string{"not-above-desired", "expectations"},
	},
	{
		ID: "own-no-expectations", Base: mutant.Ours,
		Description: "The controller has no expectations: a sync does not wait for the events of earlier writes.",
		Edits: []mutant.Edit{
			edit(replicaSync, `unobserved := stale != "" && c.expectations.Unmet(id)`, `unobserved := false`),
			edit(replicaSync, `satisfied := c.expectations.Satisfied(id)`, `satisfied := c.expectations.Satisfied(id) || id.Key != ""`),
		},
		Scenarios: []string{"watch-delay-pods"},
		Checks:    []string{"expectations"},
	},
	{
		ID: "own-burst", Base: mutant.Ours,
		Description: "A sync creates up to 5000 pods, above the burst limit of 500.",
		Edits:       []mutant.Edit{edit(replicaPlan, `const Burst = 500`, `const Burst = 5000`)},
		Scenarios:   []string{"burst"},
		Checks:      []string{"burst-limit"},
	},
	{
		ID: "own-failed-counts", Base: mutant.Ours,
		Description: "The controller counts failed pods as replicas.",
		Edits:       []mutant.Edit{edit(podFacts, `return pod.DeletionTimestamp == nil && !Terminal(pod)`, `return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded`)},
		Scenarios:   []string{"pod-churn"},
		Checks:      []string{"converged"},
	},
	{
		ID: "own-no-release", Base: mutant.Ours,
		Description: "The controller does not release pods that no longer match the selector.",
		Edits:       []mutant.Edit{edit(claim, `			if err := c.release(ctx, child); err != nil {`, `			if err := c.release(ctx, child); err != nil && ctx == nil {`), edit(claim, `	err := c.patch(ctx, child, []any{map[string]any{"$patch": "delete", "uid": c.Owner.GetUID()}})`, `	var err error`)},
		Scenarios:   []string{"orphaned-pods"},
		Checks:      []string{"adopt-and-release"},
	},
	{
		ID: "own-unassigned-last", Base: mutant.Ours,
		Description: "Scale-down deletes unassigned pods last.",
		Edits:       []mutant.Edit{edit(replicaRank, `cmp.Compare(r.assigned, other.assigned)`, `cmp.Compare(other.assigned, r.assigned)`)},
		Scenarios:   []string{"no-room"},
		Checks:      []string{"scale-down-order"},
	},
	{
		ID: "own-ready-first", Base: mutant.Ours,
		Description: "Scale-down deletes ready pods first.",
		Edits:       []mutant.Edit{edit(replicaRank, `cmp.Compare(r.ready, other.ready)`, `cmp.Compare(other.ready, r.ready)`)},
		Scenarios:   []string{"victims"},
		Checks:      []string{"scale-down-order"},
	},
	{
		ID: "own-restarts-last", Base: mutant.Ours,
		Description: "Scale-down deletes pods with many restarts last.",
		Edits:       []mutant.Edit{edit(replicaRank, `cmp.Compare(r.restarts, other.restarts)`, `cmp.Compare(other.restarts, r.restarts)`)},
		Scenarios:   []string{"restarted"},
		Checks:      []string{"scale-down-order"},
	},
	{
		ID: "own-cost-ignored", Base: mutant.Ours,
		Description: "Scale-down ignores the annotation pod-deletion-cost.",
		Edits:       []mutant.Edit{edit(replicaRank, "		cmp.Compare(r.cost, other.cost),\n", "")},
		Scenarios:   []string{"cheap"},
		Checks:      []string{"scale-down-order"},
	},
	{
		ID: "own-min-ready-ignored", Base: mutant.Ours,
		Description: "The controller counts a pod as available as soon as it is ready.",
		Edits:       []mutant.Edit{edit(podFacts, `case minReady <= 0:`, `case minReady <= 0 || ready:`)},
		Scenarios:   []string{"min-ready"},
		Checks:      []string{"status"},
	},
	{
		ID: "own-never-available", Base: mutant.Ours,
		Description: "The controller does not sync again when minReadySeconds of the next pod has passed.",
		Edits: []mutant.Edit{edit(replicaSync, `	if wait, ok := nextAvailable(pods.active, owner.MinReady, result.now); ok {
		c.loop.AddAfter(key, wait)
	}
`, "")},
		Scenarios: []string{"min-ready"},
		Checks:    []string{"converged"},
	},
	{
		ID: "own-no-ready-count", Base: mutant.Ours,
		Description: "The status counts every pod as ready.",
		Edits:       []mutant.Edit{edit(replicaStatus, `if _, ready := podutil.Ready(pod); ready {`, `if _, ready := podutil.Ready(pod); ready || !ready {`)},
		Scenarios:   []string{"pod-churn", "everything"},
		Checks:      []string{"status"},
	},
	{
		ID: "own-rewrites-status", Base: mutant.Ours,
		Description: "The controller updates a status that has not changed.",
		Edits:       []mutant.Edit{edit(replicaStatus, `if equality.Semantic.DeepEqual(base.Status, status) {`, `if equality.Semantic.DeepEqual(base.Status, status) && ctx == nil {`)},
		Scenarios:   []string{"watch-delay-pods"},
		Checks:      []string{"needless-writes"},
	},
	{
		ID: "own-generation-ahead", Base: mutant.Ours,
		Description: "The status has an observedGeneration that does not exist yet.",
		Edits:       []mutant.Edit{edit(replicaStatus, `ObservedGeneration: result.owner.Object.GetGeneration(),`, `ObservedGeneration: result.owner.Object.GetGeneration() + 1,`)},
		Scenarios:   []string{"watch-delay-pods"},
		Checks:      []string{"status"},
	},
	{
		ID: "own-failure-stays", Base: mutant.Ours,
		Description: "The condition ReplicaFailure remains after creates succeed again.",
		Edits:       []mutant.Edit{edit(replicaStatus, `case result.failure == nil && at >= 0:`, `case result.failure == nil && at >= 0 && result.now.IsZero():`)},
		Scenarios:   []string{"api-errors"},
		Checks:      []string{"converged"},
	},
	{
		ID: "own-no-failure", Base: mutant.Ours,
		Description: "The controller does not set the condition ReplicaFailure.",
		Edits:       []mutant.Edit{edit(replicaStatus, `case result.failure != nil && at < 0:`, `case result.failure != nil && at < 0 && result.now.IsZero():`)},
		Scenarios:   []string{"api-errors"},
		Checks:      []string{"status"},
	},
	{
		ID: "own-no-annotations", Base: mutant.Ours,
		Description: "The controller creates pods without the annotations of the template.",
		Edits: []mutant.Edit{edit(podControl, `			Annotations:     template.Annotations,
`, "")},
		Scenarios: []string{"rollout"},
		Checks:    []string{"matches-template"},
	},
	{
		ID: "own-give-up", Base: mutant.Ours,
		Description: "The controller does not retry a failed sync.",
		Edits:       []mutant.Edit{edit(workLoop, `l.queue.AddRateLimited(key)`, `l.queue.Forget(key)`)},
		Scenarios:   []string{"outage"},
		Checks:      []string{"converged"},
	},
	{
		ID: "own-adopts-unblocked", Base: mutant.Ours,
		Description: "The controllerRef of an adopted pod has no blockOwnerDeletion.",
		Edits: []mutant.Edit{edit(claim, `err := c.patch(ctx, child, []any{*metav1.NewControllerRef(c.Owner, c.GVK)})`, `ref := metav1.NewControllerRef(c.Owner, c.GVK)
	ref.BlockOwnerDeletion = nil
	err := c.patch(ctx, child, []any{*ref})`)},
		Scenarios: []string{"orphaned-pods"},
		Checks:    []string{"ownership"},
	},
	{
		ID: "own-volumes-lost", Base: mutant.Ours,
		Description: "The controller creates pods without the volumes of the template.",
		Edits: []mutant.Edit{edit(podControl, `	template = template.DeepCopy()
`, `	template = template.DeepCopy()
	template.Spec.Volumes = nil
`)},
		Scenarios: []string{"pod-specs"},
		Checks:    []string{"matches-template"},
	},
	{
		ID: "own-delete-of-gone-reported", Base: mutant.Ours,
		Description: "The controller emits an event about a delete before it sends the delete.",
		Edits: []mutant.Edit{
			edit(podControl, `	err := c.client.CoreV1().Pods(pod.Namespace).Delete(`, `	c.events.Eventf(owner, corev1.EventTypeNormal, SuccessfulDelete, "Deleted pod: %s", pod.Name)
	err := c.client.CoreV1().Pods(pod.Namespace).Delete(`),
			edit(podControl, `	c.events.Eventf(owner, corev1.EventTypeNormal, SuccessfulDelete, "Deleted pod: %s", pod.Name)
	return nil`, `	return nil`),
		},
		Scenarios: []string{"failed-deletes"},
		Checks:    []string{"events"},
	},
	{
		ID: "own-adopts-for-terminating", Base: mutant.Ours,
		Description: "Before an adoption, the controller does not look whether the owner on the API server is terminating.",
		Edits: []mutant.Edit{edit(claim, `	if live.GetDeletionTimestamp() != nil {
		return fmt.Errorf`, `	if live.GetDeletionTimestamp() != nil && c.Owner.GetDeletionTimestamp() != nil {
		return fmt.Errorf`)},
		Scenarios: []string{"stale-owners"},
		Checks:    []string{"ownership"},
	},
	{
		ID: "own-labels-unnoticed", Base: mutant.Ours,
		Description: "New labels of a pod do not enqueue its owner.",
		Edits:       []mutant.Edit{edit(replicaHandlers, `|| !maps.Equal(old.Labels, pod.Labels)`, `|| len(old.Labels) != len(pod.Labels) && !maps.Equal(old.Labels, pod.Labels)`)},
		Scenarios:   []string{"single-events"},
		Checks:      []string{"converged"},
	},
	{
		ID: "own-succeeded-active", Base: mutant.Ours,
		Description: "A pod in the phase Succeeded counts as active.",
		Edits:       []mutant.Edit{edit(podFacts, `return pod.DeletionTimestamp == nil && !Terminal(pod)`, `return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed`)},
		Scenarios:   []string{"single-events"},
		Checks:      []string{"converged"},
	},
	{
		ID: "own-live-generation", Base: mutant.Ours,
		Description: "After a conflict, the controller reports the generation of the version that it has read, not of the one it has handled.",
		Edits: []mutant.Edit{edit(replicaStatus, `	status := result.status(base.Status, c.traits.CountsTerminating)
`, `	status := result.status(base.Status, c.traits.CountsTerminating)
	status.ObservedGeneration = base.Object.GetGeneration()
`)},
		Scenarios: []string{"watch-delay-owners"},
		Checks:    []string{"status"},
	},
	{
		ID: "own-failure-always-create", Base: mutant.Ours,
		Description: "The condition ReplicaFailure has the reason FailedCreate after failed deletes, too.",
		Edits:       []mutant.Edit{edit(replicaStatus, `reason = podcontrol.FailedDelete`, `reason = podcontrol.FailedCreate`)},
		Scenarios:   []string{"failed-deletes"},
		Checks:      []string{"status"},
	},
	{
		ID: "own-recreated-keeps-expectations", Base: mutant.Ours,
		Description: "If an owner is deleted and recreated while the watch is interrupted, the new one inherits the expectations.",
		Edits: []mutant.Edit{
			edit(replicaHandlers, `	if before.UID != after.UID {
		c.forget(before)
	}
	c.loop.Add(after.Key)`, `	_ = before
	c.loop.Add(after.Key)`),
			edit(expectations, `if e := t.byKey[owner.Key]; e != nil && e.uid == owner.UID {
		change(e)`, `if e := t.byKey[owner.Key]; e != nil {
		change(e)`),
		},
		Scenarios: []string{"recreated-unseen"},
		Checks:    []string{"converged"},
	},
}
