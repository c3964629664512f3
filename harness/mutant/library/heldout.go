package library

import "github.com/kube-gauntlet/gauntlet/harness/mutant"

// heldOut has mutants of our controllers whose author did not know the checks. When the author had
// written the mutants, the checks and scenarios detected 6 of the 20 mutants. The missing checks
// and scenarios have been added since.
var heldOut = []mutant.Mutant{
	{
		ID: "own-failed-delete-awaited", Base: mutant.Ours,
		Description: "The controller keeps the expectation of a failed delete.",
		Edits:       []mutant.Edit{edit(replicaSync, "			c.expectations.DeletionObserved(id, pod.UID)\n			if !apierrors.IsNotFound(err) {", "			if !apierrors.IsNotFound(err) {")},
		Scenarios:   []string{"api-errors", "outage"},
		Checks:      []string{"converged"},
	},
	{
		ID: "own-expectations-inherited", Base: mutant.Ours,
		Description: "A new owner keeps the expectations of a deleted owner with the same name.",
		Edits: []mutant.Edit{
			edit(expectations, `	if e := t.byKey[owner.Key]; e != nil && e.uid == owner.UID {
		change(e)`, `	if e := t.byKey[owner.Key]; e != nil {
		change(e)`),
			edit(expectations, `	if e := t.byKey[owner.Key]; e != nil && e.uid == owner.UID {
		delete(t.byKey, owner.Key)`, `	if e := t.byKey[owner.Key]; e != nil && e.uid == "" {
		delete(t.byKey, owner.Key)`),
			edit(expectations, `	delete(t.byKey, key)
}

func (t *Tracker) update`, `	_ = key
}

func (t *Tracker) update`),
		},
		Scenarios: []string{"namesake", "relist", "triggers"},
		Checks:    []string{"converged"},
	},
	{
		ID: "own-terminating-adopts", Base: mutant.Ours,
		Description: "The controller adopts orphaned pods for an owner that is being deleted.",
		Edits: []mutant.Edit{
			edit(claim, `if !matches || terminating || child.GetDeletionTimestamp() != nil`, `if !matches || child.GetDeletionTimestamp() != nil`),
			edit(claim, `	if live.GetDeletionTimestamp() != nil {
		return`, `	if live.GetDeletionTimestamp() != nil && c.Owner == nil {
		return`),
		},
		Scenarios: []string{"foreground", "watch-delay-owners", "orphaned-pods"},
		Checks:    []string{"ownership"},
	},
	{
		ID: "own-delete-burst", Base: mutant.Ours,
		Description: "A sync deletes all surplus pods, without a burst limit.",
		Edits:       []mutant.Edit{edit(replicaPlan, `deletes: min(active-wanted, burst)`, `deletes: max(0, active-wanted)`)},
		Scenarios:   []string{"burst-down"},
		Checks:      []string{"burst-limit"},
	},
	{
		ID: "own-ready-since-created", Base: mutant.Ours,
		Description: "The controller counts minReadySeconds from the creation of a pod instead of its readiness.",
		Edits:       []mutant.Edit{edit(podFacts, `return since.Add(minReady), true`, `return pod.CreationTimestamp.Add(minReady), true`)},
		Scenarios:   []string{"min-ready"},
		Checks:      []string{"status"},
	},
	{
		ID: "own-terminating-uncounted", Base: mutant.Ours,
		Description: "The status of a ReplicaSet does not count terminating pods.",
		Edits:       []mutant.Edit{edit(replicaSync, "			set.terminating++\n", "			set.terminating = 0\n")},
		Scenarios:   []string{"orphaned-pods", "pod-churn", "rollout"},
		Checks:      []string{"status"},
	},
	{
		ID: "own-back-off-kept", Base: mutant.Ours,
		Description: "The controller does not reset the back-off of a work queue key after a successful sync.",
		Edits:       []mutant.Edit{edit(workLoop, "		l.queue.Forget(key)\n		logger", "		logger")},
		Scenarios:   []string{"relapse", "api-errors"},
		Checks:      []string{"converged"},
	},
	{
		ID: "own-rest-to-smallest", Base: mutant.Ours,
		Description: "Proportional scaling gives the rounding remainder to the smallest ReplicaSet.",
		Edits:       []mutant.Edit{edit(deploymentScale, `cmp.Compare(rs.sizes[j].replicas, rs.sizes[i].replicas)`, `cmp.Compare(rs.sizes[i].replicas, rs.sizes[j].replicas)`)},
		Scenarios:   []string{"uneven", "proportions", "rollout"},
		Checks:      []string{"proportional-scaling"},
	},
	{
		ID: "own-newest-scaled-down-first", Base: mutant.Ours,
		Description: "The controller scales the newest old ReplicaSet down first.",
		Edits: []mutant.Edit{edit(deploymentRolling, `	for i, s := range rs.sizes {
		if i == rs.newIndex {
			continue
		}
		cut(i, left[i])
`, `	for n := range rs.sizes {
		i := len(rs.sizes) - 1 - n
		s := rs.sizes[i]
		if i == rs.newIndex {
			continue
		}
		cut(i, left[i])
`)},
		Scenarios: []string{"rollover", "rollout"},
		Checks:    []string{"proportional-scaling"},
	},
	{
		ID: "own-paused-unscaled", Base: mutant.Ours,
		Description: "The controller does not scale a paused Deployment.",
		Edits:       []mutant.Edit{edit(deploymentSync, `return errors.Join(c.rescale(ctx, r), c.cleanUp(ctx, r))`, `return errors.Join(nil, c.cleanUp(ctx, r))`)},
		Scenarios:   []string{"paused", "rollout"},
		Checks:      []string{"rollout-complete"},
	},
	{
		ID: "own-ready-of-new", Base: mutant.Ours,
		Description: "The status of a Deployment counts only the ready pods of the new ReplicaSet.",
		Edits: []mutant.Edit{
			edit(deploymentStatus, "		status.ReadyReplicas += set.Status.ReadyReplicas\n", ""),
			edit(deploymentStatus, "		status.UpdatedReplicas = set.Status.Replicas\n", "		status.UpdatedReplicas = set.Status.Replicas\n		status.ReadyReplicas = set.Status.ReadyReplicas\n"),
		},
		Scenarios: []string{"rollout"},
		Checks:    []string{"deployment-status"},
	},
	{
		ID: "own-failure-not-passed-on", Base: mutant.Ours,
		Description: "The controller does not copy the condition ReplicaFailure of a ReplicaSet to its Deployment.",
		Edits:       []mutant.Edit{edit(deploymentStatus, `if failure, failing := replicaFailure(r.newSet(), r.sets); failing {`, `if failure, failing := replicaFailure(r.newSet(), r.sets); failing && r.newIndex == none {`)},
		Scenarios:   []string{"deadlines", "admission"},
		Checks:      []string{"deployment-status"},
	},
	{
		ID: "own-always-progress", Base: mutant.Ours,
		Description: "The controller counts pods that become unready as progress of a rollout.",
		Edits:       []mutant.Edit{edit(deploymentProgress, `		after.ReadyReplicas > before.ReadyReplicas ||`, `		after.ReadyReplicas != before.ReadyReplicas ||`)},
		Scenarios:   []string{"rollout", "sick", "deadlines"},
		Checks:      []string{"deployment-status"},
	},
	{
		ID: "own-history-with-pods", Base: mutant.Ours,
		Description: "The controller deletes old ReplicaSets that still have pods.",
		Edits: []mutant.Edit{edit(deploymentHistory, `return ptr.Deref(set.Spec.Replicas, 1) != 0 || set.Status.Replicas != 0 || set.Generation > set.Status.ObservedGeneration`,
			`return ptr.Deref(set.Spec.Replicas, 1) != 0`)},
		Scenarios: []string{"held-to-zero", "paused", "history"},
		Checks:    []string{"revision-history-limit"},
	},
	{
		ID: "own-rollback-to-first", Base: mutant.Ours,
		Description: "A rollback to the previous revision selects the first revision.",
		Edits:       []mutant.Edit{edit(deploymentRollback, `return revisions[len(revisions)-2]`, `return revisions[0]`)},
		Scenarios:   []string{"rollbacks", "rollout"},
		Checks:      []string{"rollback"},
	},
	{
		ID: "own-rollback-hash", Base: mutant.Ours,
		Description: "A rollback leaves the label pod-template-hash in the pod template.",
		Edits:       []mutant.Edit{edit(deploymentRollback, "	delete(back.Spec.Template.Labels, templatehash.Label)\n", "")},
		Scenarios:   []string{"rollbacks", "rollout"},
		Checks:      []string{"rollback"},
	},
	{
		ID: "own-sets-not-adopted", Base: mutant.Ours,
		Description: "A Deployment does not adopt orphaned ReplicaSets.",
		Edits:       []mutant.Edit{edit(deploymentSets, `childindex.Candidates[*appsv1.ReplicaSet](c.replicaSets, d)`, `childindex.ControlledBy[*appsv1.ReplicaSet](c.replicaSets, d.UID)`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"rollout-complete"},
	},
	{
		ID: "own-port-zero", Base: mutant.Ours,
		Description: "The controller lists a pod without the named port with port 0.",
		Edits: []mutant.Edit{edit(endpointsPublish, `		number, ok := resolvePort(pod, wanted)
		if !ok {
			continue
		}
`, `		number, _ := resolvePort(pod, wanted)
`)},
		Scenarios: []string{"services", "endpoints"},
		Checks:    []string{"endpoints-exact"},
	},
	{
		ID: "own-headless-unlabeled", Base: mutant.Ours,
		Description: "The controller does not set the headless label on the Endpoints of a headless Service.",
		Edits:       []mutant.Edit{edit(endpointsPlan, "		labels[corev1.IsHeadlessService] = \"\"\n", "		delete(labels, corev1.IsHeadlessService)\n")},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"addresses", "endpoints-exact"},
	},
	{
		ID: "own-gone-pod-missed", Base: mutant.Ours,
		Description: "The controller does not enqueue a Service when a pod terminates or is gone.",
		Edits:       []mutant.Edit{edit(endpointsHandlers, `			DeleteFunc: c.podDeleted,`, `			DeleteFunc: func(any) {},`), edit(endpointsHandlers, `terminating: pod.DeletionTimestamp != nil,`, `terminating: false,`)},
		Scenarios:   []string{"endpoints", "gone"},
		Checks:      []string{"endpoints-exact"},
	},
}
