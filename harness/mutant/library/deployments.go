package library

import "github.com/kube-gauntlet/gauntlet/harness/mutant"

// These are the paths of the Deployment controller's source files.
const (
	deploymentSync        = "controllers/deployment/sync.go"
	deploymentSets        = "controllers/deployment/sets.go"
	deploymentNewSet      = "controllers/deployment/newset.go"
	deploymentRolling     = "controllers/deployment/rolling.go"
	deploymentRecreate    = "controllers/deployment/recreate.go"
	deploymentLimits      = "controllers/deployment/limits.go"
	deploymentScale       = "controllers/deployment/scale.go"
	deploymentRollback    = "controllers/deployment/rollback.go"
	deploymentHistory     = "controllers/deployment/history.go"
	deploymentProgress    = "controllers/deployment/progress.go"
	deploymentStatus      = "controllers/deployment/status.go"
	deploymentAnnotations = "controllers/deployment/annotations.go"
	deploymentEngine      = "controllers/deployment/controller.go"
)

// deployments has the mutants of our Deployment controller.
var deployments = []mutant.Mutant{
	{
		ID: "D1", Base: mutant.Ours,
		Description: "After a hash collision the controller retries with the same hash for ever.",
		Edits:       []mutant.Edit{edit(deploymentSets, `r.createFailed, r.hashCollision = true, true`, `r.createFailed = true`)},
		Scenarios:   []string{"admission"},
		Checks:      []string{"rollout-complete"},
	},
	{
		ID: "D3", Base: mutant.Ours,
		Description: "The controller treats its own ReplicaSet, whose create response was lost, as a hash collision.",
		Edits:       []mutant.Edit{edit(deploymentSets, `if !metav1.IsControlledBy(created, d) || !templatehash.Equal(&d.Spec.Template, &created.Spec.Template) {`, `if created != nil || !templatehash.Equal(&d.Spec.Template, &created.Spec.Template) {`)},
		Scenarios:   []string{"lost-replicaset"},
		Checks:      []string{"revisions"},
	},
	{
		ID: "D5", Base: mutant.Ours,
		Description: "A new leader does not wait until its ReplicaSet cache has synced.",
		Edits: []mutant.Edit{edit(deploymentEngine, `	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(config)...)
	return c, err
`, `	c.synced, err = workloop.AddEventHandlers(c.eventHandlers(config)...)
	c.synced = c.synced[:1]
	return c, err
`)},
		Scenarios: []string{"slow-lists", "failover"},
		Checks:    []string{"cache-synced"},
	},
	{
		ID: "D7", Base: mutant.Ours,
		Description: "A Deployment with the strategy Recreate waits until its failed old pods are deleted.",
		Edits:       []mutant.Edit{edit(deploymentRecreate, `	return !anyRunning(pods)`, `	return len(pods) == 0`)},
		Scenarios:   []string{"evicted", "rollout"},
		Checks:      []string{"rollout-complete"},
	},
	{
		ID: "D8", Base: mutant.Ours,
		Description: "The controller repeats a rollback because its cache does not show the first rollback yet.",
		Edits: []mutant.Edit{
			edit(deploymentRollback, `if c.deferWrite(ctx, r, "rollback") {`, `if ctx == nil && c.deferWrite(ctx, r, "rollback") {`),
			edit(deploymentRollback, `	plan := planRollback(d, r.sets, requested)
`, `	plan := planRollback(d, r.sets, requested)
	plan.deployment.ResourceVersion = ""
`),
		},
		Scenarios: []string{"rollbacks"},
		Checks:    []string{"needless-writes", "rollback"},
	},
	{
		ID: "own-rollback-ignored", Base: mutant.Ours,
		Description: "The controller removes the rollback annotation and does not roll back.",
		Edits:       []mutant.Edit{edit(deploymentRollback, `	plan := planRollback(d, r.sets, requested)`, `	plan := planRollback(d, nil, requested)`)},
		Scenarios:   []string{"rollbacks"},
		Checks:      []string{"rollback"},
	},
	{
		ID: "own-rollback-request-stays", Base: mutant.Ours,
		Description: "The controller does not remove the rollback annotation after the rollback.",
		Edits:       []mutant.Edit{edit(deploymentAnnotations, `if value, has := deployment[key]; has && key != appsv1.DeprecatedRollbackTo {`, `if value, has := deployment[key]; has {`)},
		Scenarios:   []string{"rollbacks"},
		Checks:      []string{"rollback"},
	},
	{
		ID: "D10", Base: mutant.Ours,
		Description: "The controller measures the progress deadline from the end of the previous rollout.",
		Edits: []mutant.Edit{
			edit(deploymentProgress, `if c == nil || c.Reason == reasonNewReplicaSetAvailable || c.Reason == reasonProgressDeadlineExceeded {`, `if c == nil || c.Reason == reasonProgressDeadlineExceeded {`),
			edit(deploymentSets, "		r.setProgressing(corev1.ConditionTrue, reasonNewReplicaSetCreated, \"Created new replica set %q\", set.Name)\n", ""),
		},
		Scenarios: []string{"deadlines"},
		Checks:    []string{"deployment-status"},
	},
	{
		ID: "D11", Base: mutant.Ours,
		Description: "The controller does not report that a rollout exceeded its progress deadline.",
		Edits:       []mutant.Edit{edit(deploymentProgress, `case running && wait <= 0:`, `case running && wait <= 0 && r == nil:`)},
		Scenarios:   []string{"deadlines"},
		Checks:      []string{"deployment-status"},
	},
	{
		ID: "D14", Base: mutant.Ours,
		Description: "A Deployment whose maxSurge and maxUnavailable both round to 0 never replaces a pod.",
		Edits: []mutant.Edit{edit(deploymentLimits, `		l.maxUnavailable = 1
`, "")},
		Scenarios: []string{"rollout"},
		Checks:    []string{"rollout-complete"},
	},
	{
		ID: "D15", Base: mutant.Ours,
		Description: "The controller does not scale unavailable old pods down first.",
		Edits: []mutant.Edit{edit(deploymentRolling, `	for i, s := range rs.sizes {
		left[i] = s.replicas
		if i != rs.newIndex {
			cut(i, s.replicas-s.available)
		}
	}
`, `	for i, s := range rs.sizes {
		left[i] = s.replicas
		if i != rs.newIndex {
			budget -= s.replicas - s.available
		}
	}
`)},
		Scenarios: []string{"sick"},
		Checks:    []string{"deployment-status"},
	},
	{
		ID: "D16", Base: mutant.Ours,
		Description: "The controller scales old ReplicaSets down as if every new pod were available.",
		Edits:       []mutant.Edit{edit(deploymentRolling, `budget := rs.total() - l.minAvailable() - (newSize.replicas - newSize.available)`, `budget := rs.total() - l.minAvailable() - min(0, newSize.replicas)`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"max-unavailable"},
	},
	{
		ID: "D17", Base: mutant.Ours,
		Description: "The controller does not write the desired-replicas annotation of ReplicaSets.",
		Edits:       []mutant.Edit{edit(deploymentSets, `sized.Annotations = withReplicasAnnotations(set.Annotations, r.limits)`, `sized.Annotations = set.Annotations`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"max-surge", "rollout-complete"},
	},
	{
		ID: "D19", Base: mutant.Ours,
		Description: "The controller never deletes an old ReplicaSet.",
		Edits:       []mutant.Edit{edit(deploymentHistory, `if limit == nil || *limit == math.MaxInt32 {`, `if limit == nil || *limit < math.MaxInt32 {`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"rollout-complete"},
	},
	{
		ID: "own-newest-deleted", Base: mutant.Ours,
		Description: "The controller deletes the newest old ReplicaSets and keeps the oldest.",
		Edits:       []mutant.Edit{edit(deploymentHistory, `cmp.Compare(revisionA, revisionB)`, `cmp.Compare(revisionB, revisionA)`)},
		Scenarios:   []string{"history", "rollout"},
		Checks:      []string{"revision-history-limit"},
	},
	{
		ID: "own-history-early", Base: mutant.Ours,
		Description: "The controller deletes old ReplicaSets during a rollout.",
		Edits: []mutant.Edit{edit(deploymentSync, `	if !complete(r.deployment, r.limits, &r.deployment.Status) {
		return nil
	}
`, "")},
		Scenarios: []string{"history", "rollout"},
		Checks:    []string{"revision-history-limit"},
	},
	{
		ID: "D20", Base: mutant.Ours,
		Description: "The status has a negative number of unavailable replicas.",
		Edits:       []mutant.Edit{edit(deploymentStatus, `max(0, wanted-status.AvailableReplicas)`, `wanted - status.AvailableReplicas`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"deployment-status"},
	},
	{
		ID: "D21", Base: mutant.Ours,
		Description: "The controller retries a failed sync for only 200 ms.",
		Edits: []mutant.Edit{edit(workLoop, `		l.queue.AddRateLimited(key)
`, `		if l.queue.NumRequeues(key) > 5 {
			l.queue.Forget(key)
			return
		}
		l.queue.AddRateLimited(key)
`)},
		Scenarios: []string{"outage"},
		Checks:    []string{"converged", "rollout-complete"},
	},
	{
		ID: "D22", Base: mutant.Ours,
		Description: "The controller reads the name of the new ReplicaSet of a Recreate Deployment before that ReplicaSet exists.",
		Edits: []mutant.Edit{edit(deploymentProgress, `	if set := r.newSet(); set != nil {
		return fmt.Sprintf("ReplicaSet %q", set.Name)
	}
	return fmt.Sprintf("Deployment %q", r.deployment.Name)
`, `	return fmt.Sprintf("ReplicaSet %q", r.newSet().Name)
`)},
		Scenarios: []string{"rollout"},
		Checks:    []string{"process-alive"},
	},
	{
		ID: "D24", Base: mutant.Ours,
		Description: "The controller does not copy a changed minReadySeconds to the ReplicaSet.",
		Edits: []mutant.Edit{
			edit(deploymentNewSet, ` && set.Spec.MinReadySeconds == d.Spec.MinReadySeconds {`, ` {`),
			edit(deploymentNewSet, `	adjusted.Spec.MinReadySeconds = d.Spec.MinReadySeconds
`, ""),
		},
		Scenarios: []string{"rollout"},
		Checks:    []string{"rollout-complete"},
	},
	{
		ID: "D25", Base: mutant.Ours,
		Description: "The controller creates ReplicaSets with generateName, so a retry does not get AlreadyExists.",
		Edits: []mutant.Edit{edit(deploymentNewSet, `			Name:            replicaSetName(d.Name, hash),
`, `			GenerateName:    replicaSetName(d.Name, hash) + "-",
`)},
		Scenarios: []string{"lost-replicaset", "crash"},
		Checks:    []string{"matches-template"},
	},
	{
		ID: "own-surge-down", Base: mutant.Ours,
		Description: "The controller rounds maxSurge down.",
		Edits:       []mutant.Edit{edit(deploymentLimits, `resolveIntOrPercent(rolling.MaxSurge, l.replicas, true)`, `resolveIntOrPercent(rolling.MaxSurge, l.replicas, false)`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"max-unavailable"},
	},
	{
		ID: "own-unavailable-up", Base: mutant.Ours,
		Description: "The controller rounds maxUnavailable up.",
		Edits:       []mutant.Edit{edit(deploymentLimits, `resolveIntOrPercent(rolling.MaxUnavailable, l.replicas, false)`, `resolveIntOrPercent(rolling.MaxUnavailable, l.replicas, true)`)},
		Scenarios:   []string{"rounding", "rollout"},
		Checks:      []string{"max-unavailable"},
	},
	{
		ID: "own-no-surge-limit", Base: mutant.Ours,
		Description: "The controller scales the new ReplicaSet to its full size at once.",
		Edits:       []mutant.Edit{edit(deploymentRolling, `room := max(0, l.maxReplicas()-rs.total())`, `room := max(l.replicas, l.maxReplicas()-rs.total())`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"max-surge"},
	},
	{
		ID: "own-recreate-overlaps", Base: mutant.Ours,
		Description: "A Deployment with the strategy Recreate does not wait until its old pods are gone.",
		Edits:       []mutant.Edit{edit(deploymentSync, `if !oldPodsStopped(r.oldSets(), pods) {`, `if len(pods) < 0 && !oldPodsStopped(r.oldSets(), pods) {`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"recreate"},
	},
	{
		ID: "own-paused-rolls", Base: mutant.Ours,
		Description: "The controller rolls out a paused Deployment.",
		Edits: []mutant.Edit{edit(deploymentSync, `	case d.Spec.Paused:
`, `	case d.Spec.Paused && len(r.sets) == 0:
`)},
		Scenarios: []string{"rollout", "paused"},
		Checks:    []string{"rollout-complete"},
	},
	{
		ID: "own-not-proportional", Base: mutant.Ours,
		Description: "A scale during a rollout changes only the newest ReplicaSet.",
		Edits:       []mutant.Edit{edit(deploymentScale, `gain := clampToward(proportionalSize(s, most, reported)-s.replicas, missing)`, `gain := clampToward((proportionalSize(s, most, reported)-s.replicas)*min(0, n), missing)`)},
		Scenarios:   []string{"proportions", "rollout"},
		Checks:      []string{"proportional-scaling"},
	},
	{
		ID: "own-revision-falls", Base: mutant.Ours,
		Description: "The controller may decrease the revision of a ReplicaSet.",
		Edits:       []mutant.Edit{edit(deploymentAnnotations, `if had && before >= revision {`, `if had && before == revision {`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"revisions"},
	},
	{
		ID: "own-revision-kept", Base: mutant.Ours,
		Description: "A ReplicaSet keeps its old revision when a rollout uses it again.",
		Edits:       []mutant.Edit{edit(deploymentAnnotations, `if had && before >= revision {`, `if had {`)},
		Scenarios:   []string{"history", "rollout"},
		Checks:      []string{"revisions", "rollout-complete"},
	},
	{
		ID: "own-always-available", Base: mutant.Ours,
		Description: "The condition Available of a Deployment is always true.",
		Edits:       []mutant.Edit{edit(deploymentStatus, `availableCondition(int(status.AvailableReplicas) >= r.limits.minAvailable())`, `availableCondition(int(status.AvailableReplicas) >= min(0, r.limits.minAvailable()))`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"deployment-status"},
	},
	{
		ID: "own-generation-ahead-of-sync", Base: mutant.Ours,
		Description: "The controller sets observedGeneration before it has handled the generation.",
		Edits:       []mutant.Edit{edit(deploymentStatus, `ObservedGeneration:  r.deployment.Generation,`, `ObservedGeneration:  r.deployment.Generation + 1,`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"deployment-status"},
	},
	{
		ID: "own-resume-unreported", Base: mutant.Ours,
		Description: "The controller does not set the condition of a paused Deployment.",
		Edits:       []mutant.Edit{edit(deploymentProgress, `case paused && !reported:`, `case paused && !reported && r == nil:`)},
		Scenarios:   []string{"paused", "rollout"},
		Checks:      []string{"rollout-complete"},
	},
	{
		ID: "own-rewrites-deployment", Base: mutant.Ours,
		Description: "The controller updates a Deployment status that has not changed.",
		Edits:       []mutant.Edit{edit("controllers/deployment/updatestatus.go", `if equality.Semantic.DeepEqual(r.deployment.Status, status) &&`, `if equality.Semantic.DeepEqual(r.deployment.Status, status) && ctx == nil &&`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"needless-writes"},
	},
	{
		ID: "own-inherits-nothing", Base: mutant.Ours,
		Description: "The controller does not copy the annotations of a Deployment to its ReplicaSets.",
		Edits:       []mutant.Edit{edit(deploymentAnnotations, `return withEntries(annotations, inheritable(deployment))`, `return withEntries(annotations, inheritable(nil))`)},
		Scenarios:   []string{"annotated"},
		Checks:      []string{"rollout-complete", "matches-template"},
	},
	{
		ID: "own-hash-unlabeled", Base: mutant.Ours,
		Description: "The pods of a Deployment's ReplicaSet have no label pod-template-hash.",
		Edits: []mutant.Edit{
			edit(deploymentNewSet, `	template.Labels = withEntries(template.Labels, map[string]string{templatehash.Label: hash})
`, ""),
			edit(deploymentNewSet, `	selector.MatchLabels = withEntries(selector.MatchLabels, map[string]string{templatehash.Label: hash})
`, ""),
		},
		Scenarios: []string{"rollout"},
		Checks:    []string{"matches-template"},
	},
	{
		ID: "own-scaling-event-reversed", Base: mutant.Ours,
		Description: "The event about a scaling has the old and the new number of replicas in the wrong order.",
		Edits:       []mutant.Edit{edit(deploymentSets, `c.recordScalingEvent(r.deployment, set.Name, from, change.to)`, `c.recordScalingEvent(r.deployment, set.Name, change.to, from)`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"events"},
	},
	{
		ID: "own-history-lost", Base: mutant.Ours,
		Description: "The annotation revision-history has only the last of the former revisions.",
		Edits:       []mutant.Edit{edit(deploymentAnnotations, `appendRevision(annotations[historyAnnotation], `, `appendRevision("", `)},
		Scenarios:   []string{"reused"},
		Checks:      []string{"revisions"},
	},
	{
		ID: "own-max-without-surge", Base: mutant.Ours,
		Description: "The annotation max-replicas of a ReplicaSet does not include maxSurge.",
		Edits:       []mutant.Edit{edit(deploymentAnnotations, `strconv.Itoa(l.maxReplicas())`, `strconv.Itoa(l.replicas)`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"proportional-scaling"},
	},
	{
		ID: "own-deployment-unnumbered", Base: mutant.Ours,
		Description: "A Deployment keeps its first revision.",
		Edits:       []mutant.Edit{edit("controllers/deployment/updatestatus.go", `		if _, has := revisionOf(set.Annotations); has {`, `		if _, numbered := revisionOf(d.Annotations); !numbered {`)},
		Scenarios:   []string{"rollout"},
		Checks:      []string{"rollout-complete"},
	},
	{
		ID: "own-recreate-beside-terminating", Base: mutant.Ours,
		Description: "With the strategy Recreate, the controller does not wait for terminating pods.",
		Edits:       []mutant.Edit{edit(deploymentRecreate, `		if !podutil.Terminal(pod) {`, `		if pod.DeletionTimestamp == nil && !podutil.Terminal(pod) {`)},
		Scenarios:   []string{"slow-recreate"},
		Checks:      []string{"recreate"},
	},
	{
		ID: "own-set-tombstone-lost", Base: mutant.Ours,
		Description: "The controller ignores deletions of ReplicaSets that it learns of only from a list.",
		Edits:       []mutant.Edit{edit("controllers/deployment/handlers.go", `	if set, ok := tombstone.LastKnown[*appsv1.ReplicaSet](c.logger, object); ok {`, `	if set, ok := object.(*appsv1.ReplicaSet); ok {`)},
		Scenarios:   []string{"missed-deletes"},
		Checks:      []string{"rollout-complete"},
	},
	{
		ID: "own-pause-counts", Base: mutant.Ours,
		Description: "The time while a Deployment is paused counts against its progress deadline.",
		Edits:       []mutant.Edit{edit(deploymentProgress, `	case !paused && reported:`, `	case !paused && reported && r == nil:`)},
		Scenarios:   []string{"resumed"},
		Checks:      []string{"deployment-status"},
	},
}
