package library

import "github.com/kube-gauntlet/gauntlet/harness/mutant"

// unseen has mutants whose author knew neither the checks nor the scenarios. The tier default did
// not detect most of them at first. The missing checks and scenarios have been added since.
var unseen = []mutant.Mutant{
	{
		ID: "own-cost-before-readiness", Base: mutant.Ours,
		Description: "A scale-down compares the cost of pods before their readiness.",
		Edits: []mutant.Edit{edit(replicaRank, `		cmp.Compare(r.ready, other.ready),
		cmp.Compare(r.cost, other.cost),`, `		cmp.Compare(r.cost, other.cost),
		cmp.Compare(r.ready, other.ready),`)},
		Scenarios: []string{"ready-first"},
		Checks:    []string{"scale-down-order"},
	},
	{
		ID: "own-patch-without-uid", Base: mutant.Ours,
		Description: "Patches that adopt or release a pod do not contain its UID.",
		Edits: []mutant.Edit{
			edit(claim, "`json:\"uid\"`", "`json:\"uid,omitempty\"`"),
			edit(claim, `}{child.GetUID(), ownerReferences},`, `}{OwnerReferences: ownerReferences},`),
		},
		Scenarios: []string{"adoption"},
		Checks:    []string{"ownership"},
	},
	{
		ID: "own-phase-unnoticed", Base: mutant.Ours,
		Description: "A change of a pod's phase does not enqueue its owner.",
		Edits: []mutant.Edit{edit(replicaHandlers,
			`(pod.DeletionTimestamp != nil) || old.Status.Phase != pod.Status.Phase {`, `(pod.DeletionTimestamp != nil) {`)},
		Scenarios: []string{"failed-early"},
		Checks:    []string{"converged", "late-sync"},
	},
	{
		ID: "own-terminating-counts-terminal", Base: mutant.Ours,
		Description: "status.terminatingReplicas counts pods that have a terminal phase.",
		Edits:       []mutant.Edit{edit(replicaSync, `podutil.Terminating(pod) &&`, `pod.DeletionTimestamp != nil &&`)},
		Scenarios:   []string{"held-failed"},
		Checks:      []string{"status", "converged"},
	},
	{
		ID: "own-revisions-as-text", Base: mutant.Ours,
		Description: "A rollback to revision 0 compares the revisions as text, so 9 is above 10.",
		Edits: []mutant.Edit{edit(deploymentRollback, `	slices.Sort(revisions)`,
			`	slices.SortFunc(revisions, func(a, b int64) int {
		if first, second := strconv.FormatInt(a, 10), strconv.FormatInt(b, 10); first < second {
			return -1
		}
		return 1
	})`)},
		Scenarios: []string{"many-revisions"},
		Checks:    []string{"rollback"},
	},
	{
		ID: "own-complete-for-ever", Base: mutant.Ours,
		Description: "After a complete rollout, the next rollout that begins without a change of its ReplicaSet counts as complete.",
		Edits: []mutant.Edit{edit(deploymentProgress,
			`before.Reason == reasonNewReplicaSetAvailable && after.Replicas == after.UpdatedReplicas {`,
			`before.Reason == reasonNewReplicaSetAvailable {`)},
		Scenarios: []string{"stuck-again"},
		Checks:    []string{"deployment-status"},
	},
	{
		ID: "own-adopts-terminating", Base: mutant.Ours,
		Description: "The controllers adopt pods and ReplicaSets that are being deleted.",
		Edits: []mutant.Edit{edit(claim,
			`if !matches || terminating || child.GetDeletionTimestamp() != nil ||`, `if !matches || terminating ||`)},
		Scenarios: []string{"dying-replicaset"},
		Checks:    []string{"rollout-complete", "converged"},
	},
	{
		ID: "own-tombstone-ignored", Base: mutant.Ours,
		Description: "The Endpoints controller ignores the deletion of a pod that its watch has missed.",
		Edits: []mutant.Edit{edit(endpointsHandlers,
			`if pod, ok := tombstone.LastKnown[*corev1.Pod](c.logger, object); ok {`, `if pod, ok := object.(*corev1.Pod); ok {`)},
		Scenarios: []string{"missed-pods"},
		Checks:    []string{"endpoints-exact", "converged"},
	},
	{
		ID: "own-labels-stay", Base: mutant.Ours,
		Description: "A label that is removed from a Service stays on its Endpoints.",
		Edits: []mutant.Edit{edit(endpointsPlan, `	labels := labelsOf(service)
`, `	labels := labelsOf(service)
	if current != nil {
		for key, value := range current.Labels {
			if _, set := labels[key]; !set && key != corev1.IsHeadlessService {
				labels[key] = value
			}
		}
	}
`)},
		Scenarios: []string{"unlabeled"},
		Checks:    []string{"endpoints-exact", "converged"},
	},
	{
		ID: "own-trusts-cache-after-failure", Base: mutant.Ours,
		Description: "After a failed write, the Endpoints controller compares with its cache, which may not have the write.",
		Edits:       []mutant.Edit{edit(endpointsSync, "			c.failedWrites.Store(key, nil)\n", "")},
		Scenarios:   []string{"changed-back"},
		Checks:      []string{"endpoints-exact", "converged"},
	},
	{
		ID: "own-releases-while-terminating", Base: mutant.Ours,
		Description: "An owner that is being deleted releases pods.",
		Edits: []mutant.Edit{edit(claim, `		case terminating:
			return Ignore
		default:`, `		default:`)},
		Scenarios: []string{"stale-owners"},
		Checks:    []string{"ownership"},
	},
	{
		ID: "own-share-rounded-down", Base: mutant.Ours,
		Description: "Proportional scaling rounds the share of a ReplicaSet down instead of to the nearest number.",
		Edits: []mutant.Edit{edit(deploymentScale,
			`return (2*s.replicas*most + before) / (2 * before)`, `return s.replicas * most / before`)},
		Scenarios: []string{"uneven", "proportions", "rollover", "rollout"},
		Checks:    []string{"proportional-scaling"},
	},
	{
		ID: "own-unavailable-of-existing", Base: mutant.Ours,
		Description: "status.unavailableReplicas counts existing pods only, not those that are missing.",
		Edits: []mutant.Edit{
			edit(deploymentStatus, `		wanted += ptr.Deref(set.Spec.Replicas, 1)
`, `		wanted += set.Status.Replicas
`),
		},
		Scenarios: []string{"rollout"},
		Checks:    []string{"deployment-status"},
	},
	{
		ID: "own-end-of-pod-awaited", Base: mutant.Ours,
		Description: "The expectation of a delete lasts until the pod is gone, not only until it terminates.",
		Edits: []mutant.Edit{edit(replicaHandlers, `		if pod.DeletionTimestamp != nil {
			// The controller must replace a terminating pod now, before the pod is gone.
			c.expectations.DeletionObserved(owner, pod.UID)
		}
`, "")},
		Scenarios: []string{"down-and-up"},
		Checks:    []string{"late-sync"},
	},
	{
		ID: "own-family-of-pods", Base: mutant.Ours,
		Description: "Endpoints have the IP family of the pods instead of that of the Service.",
		Edits: []mutant.Edit{edit(endpointsPublish, `	case len(service.Spec.IPFamilies) > 0:
		return service.Spec.IPFamilies[0]`, `	case pod.Status.PodIP != "":
		return ipFamily(pod.Status.PodIP)
	case len(service.Spec.IPFamilies) > 0:
		return service.Spec.IPFamilies[0]`)},
		Scenarios: []string{"other-family"},
		Checks:    []string{"addresses", "endpoints-exact"},
	},
	{
		ID: "own-unlimited-batches", Base: mutant.Ours,
		Description: "The Endpoints controller waits as long as its last write took, without a limit.",
		Edits: []mutant.Edit{edit(endpointsHandlers,
			`return min(took.(time.Duration), maxBatchDelay)`, `return max(took.(time.Duration), min(0, maxBatchDelay))`)},
		Scenarios: []string{"slow-endpoints"},
		Checks:    []string{"late-sync"},
	},
	{
		ID: "own-conflict-ignored", Base: mutant.Ours,
		Description: "The Deployment controller does not retry a status update after a conflict.",
		Edits: []mutant.Edit{edit("controllers/deployment/updatestatus.go", `	if err != nil {
		return fmt.Errorf("writing the status of`, `	if err != nil && apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of`), edit("controllers/deployment/updatestatus.go", `	"k8s.io/apimachinery/pkg/api/equality"
`, `	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
`)},
		Scenarios: []string{"false-conflict"},
		Checks:    []string{"rollout-complete"},
	},
	{
		ID: "own-paused-at-zero", Base: mutant.Ours,
		Description: "A paused Deployment without active ReplicaSets scales none of them.",
		Edits:       []mutant.Edit{edit(deploymentScale, `		return []change{{len(rs.sizes) - 1, l.replicas}}`, `		return nil`)},
		Scenarios:   []string{"paused-from-zero"},
		Checks:      []string{"rollout-complete"},
	},
	{
		ID: "own-missing-revision-stays", Base: mutant.Ours,
		Description: "The request to roll back to a revision that does not exist stays on the Deployment.",
		Edits: []mutant.Edit{edit(deploymentRollback, `	written, err := c.client.AppsV1().Deployments(d.Namespace).Update(`, `	if plan.reason == reasonRollbackRevisionNotFound {
		return nil
	}
	written, err := c.client.AppsV1().Deployments(d.Namespace).Update(`)},
		Scenarios: []string{"missing-revision"},
		Checks:    []string{"rollout-complete"},
	},
	{
		ID: "own-create-error-unreported", Base: mutant.Ours,
		Description: "The Deployment controller writes no status after a failed step.",
		Edits: []mutant.Edit{edit(deploymentSync, `		err = c.syncSpec(ctx, r)
	}
	return errors.Join(err, c.updateStatus(ctx, r))`, `		if err := c.syncSpec(ctx, r); err != nil {
			return errors.Join(err)
		}
	}
	return c.updateStatus(ctx, r)`)},
		Scenarios: []string{"create-error"},
		Checks:    []string{"deployment-status"},
	},
	{
		ID: "own-crowd-before-cost", Base: mutant.Ours,
		Description: "Scale-down compares the number of pods on the node before the pod-deletion-cost.",
		Edits: []mutant.Edit{edit(replicaRank, `		cmp.Compare(r.cost, other.cost),
		cmp.Compare(r.relatedPods, other.relatedPods),
`, `		cmp.Compare(r.relatedPods, other.relatedPods),
		cmp.Compare(r.cost, other.cost),
`)},
		Scenarios: []string{"crowded"},
		Checks:    []string{"scale-down-order"},
	},
	{
		ID: "own-generation-alone-unwritten", Base: mutant.Ours,
		Description: "The controller does not write observedGeneration if the counts are the same.",
		Edits: []mutant.Edit{edit(replicaStatus, `	if equality.Semantic.DeepEqual(base.Status, status) {
`, `	reported := base.Status
	reported.ObservedGeneration = status.ObservedGeneration
	if equality.Semantic.DeepEqual(reported, status) {
`)},
		Scenarios: []string{"edited"},
		Checks:    []string{"converged", "late-sync"},
	},
	{
		ID: "own-failed-adoption-ignored", Base: mutant.Ours,
		Description: "The controller continues a sync if the read of the owner before an adoption fails.",
		Edits: []mutant.Edit{edit(claim, `				if checkErr != nil {
					failures = append(failures, checkErr)
				}
`, "")},
		Scenarios: []string{"orphaned-unseen"},
		Checks:    []string{"adopt-and-release"},
	},
	{
		ID: "own-adopts-for-former", Base: mutant.Ours,
		Description: "The controller does not compare the UID of the owner before an adoption.",
		Edits:       []mutant.Edit{edit(claim, `	if live.GetUID() != c.Owner.GetUID() {`, `	if live.GetUID() == "" {`)},
		Scenarios:   []string{"orphaned-unseen"},
		Checks:      []string{"ownership"},
	},
	{
		ID: "own-status-error-ignored", Base: mutant.Ours,
		Description: "The controller does not retry a status update that failed.",
		Edits: []mutant.Edit{edit(replicaSync, `	return errors.Join(result.failure, c.updateStatus(ctx, result))`, `	_ = c.updateStatus(ctx, result)
	return errors.Join(result.failure)`)},
		Scenarios: []string{"failed-statuses"},
		Checks:    []string{"converged"},
	},
	{
		ID: "own-transition-with-each-progress", Base: mutant.Ours,
		Description: "The lastTransitionTime of a condition changes although its status does not.",
		Edits: []mutant.Edit{edit("controllers/deployment/conditions.go", `	if before.Status == c.Status {
		c.LastTransitionTime`, `	if before.Status == c.Status && before.Type == "" {
		c.LastTransitionTime`)},
		Scenarios: []string{"rollout"},
		Checks:    []string{"deployment-status"},
	},
	{
		ID: "own-cached-read-before-adoption", Base: mutant.Ours,
		Description: "The Deployment controller reads a Deployment from its cache before it adopts a ReplicaSet.",
		Edits: []mutant.Edit{
			edit(deploymentSets, `		Live: func(ctx context.Context) (metav1.Object, error) {
			return c.client.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
		},
`, `		Live: func(context.Context) (metav1.Object, error) {
			return d, nil
		},
`),
		},
		Scenarios: []string{"orphaned-replicaset", "orphaned-unseen"},
		Checks:    []string{"ownership"},
	},
	{
		ID: "own-labels-of-orphan-ignored", Base: mutant.Ours,
		Description: "The Deployment controller ignores new labels of a ReplicaSet without an owner.",
		Edits: []mutant.Edit{edit("controllers/deployment/handlers.go",
			`	case controllerRefChanged || set.UID != old.UID || !maps.Equal(old.Labels, set.Labels):`, `	case controllerRefChanged || set.UID != old.UID || len(old.Labels) < 0 && !maps.Equal(old.Labels, set.Labels):`)},
		Scenarios: []string{"orphaned-replicaset"},
		Checks:    []string{"rollout-complete", "late-sync"},
	},
	{
		ID: "own-trigger-time-kept", Base: mutant.Ours,
		Description: "Endpoints keep the last-change-trigger-time of an earlier change.",
		Edits: []mutant.Edit{edit(endpointsPlan, `	annotate(next, corev1.EndpointsLastChangeTriggerTime, trigger.UTC().Format(time.RFC3339Nano), !trigger.IsZero())
`, `	if !trigger.IsZero() {
		annotate(next, corev1.EndpointsLastChangeTriggerTime, trigger.UTC().Format(time.RFC3339Nano), true)
	}
`)},
		Scenarios: []string{"named-pods"},
		Checks:    []string{"addresses"},
	},
	{
		ID: "own-failed-release-ignored", Base: mutant.Ours,
		Description: "The controller does not retry a release of a pod that failed.",
		Edits: []mutant.Edit{edit(claim, `			if err := c.release(ctx, child); err != nil {
				failures = append(failures, err)
			}`, `			_ = c.release(ctx, child)`)},
		Scenarios: []string{"failed-releases"},
		Checks:    []string{"converged"},
	},
	{
		ID: "own-no-app-protocol", Base: mutant.Ours,
		Description: "Endpoints lack the appProtocol of the Service's ports.",
		Edits:       []mutant.Edit{edit("controllers/endpoints/pack.go", `		p.AppProtocol = &id.appProtocol`, `		_ = p.AppProtocol`)},
		Scenarios:   []string{"named-pods"},
		Checks:      []string{"endpoints-exact", "late-sync"},
	},
	{
		ID: "own-failed-rollback-ignored", Base: mutant.Ours,
		Description: "The controller does not retry a rollback whose write failed.",
		Edits: []mutant.Edit{edit("controllers/deployment/rollback.go",
			`		return fmt.Errorf("rolling back Deployment %s/%s: %w", d.Namespace, d.Name, err)`, `		return nil`)},
		Scenarios: []string{"failed-updates"},
		Checks:    []string{"rollout-complete"},
	},
	{
		ID: "own-failed-reuse-ignored", Base: mutant.Ours,
		Description: "The Deployment controller does not retry a failed update of the new ReplicaSet.",
		Edits: []mutant.Edit{edit("controllers/deployment/sync.go",
			`		return err // the status is written nevertheless, so progress must count`, `		return nil`)},
		Scenarios: []string{"failed-updates"},
		Checks:    []string{"rollout-complete"},
	},
	{
		ID: "own-failed-claim-ignored", Base: mutant.Ours,
		Description: "The Deployment controller does not retry a failed adoption of a ReplicaSet.",
		Edits: []mutant.Edit{edit("controllers/deployment/sync.go", `	sets, err := c.claim(ctx, d, selector)
	if err != nil {
		return err
	}`, `	sets, err := c.claim(ctx, d, selector)
	if err != nil {
		return nil
	}`)},
		Scenarios: []string{"failed-sets"},
		Checks:    []string{"rollout-complete"},
	},
	{
		ID: "own-other-labels-ignored", Base: mutant.Ours,
		Description: "The Endpoints controller looks up the Services of a pod by only one label.",
		Edits: []mutant.Edit{edit("controllers/endpoints/serviceindex.go",
			`ok && selects(service, labels) {`, `ok {`)},
		Scenarios: []string{"selectors"},
		Checks:    []string{"endpoints-exact"},
	},
	{
		ID: "own-missing-label-selected", Base: mutant.Ours,
		Description: "A Service that selects a label without a value also selects pods without the label.",
		Edits: []mutant.Edit{edit("controllers/endpoints/publish.go",
			`if actual, present := labels[key]; !present || actual != value {`, `if labels[key] != value {`)},
		Scenarios: []string{"selectors"},
		Checks:    []string{"addresses", "endpoints-exact"},
	},
	{
		ID: "own-empty-annotation-missing", Base: mutant.Ours,
		Description: "The controller does not copy an annotation without a value to the ReplicaSet.",
		Edits: []mutant.Edit{edit("controllers/deployment/annotations.go",
			`if had, has := annotations[key]; !has || had != value {`, `if annotations[key] != value {`)},
		Scenarios: []string{"rejected-rollback"},
		Checks:    []string{"rollout-complete", "late-sync"},
	},
	{
		ID: "own-refusal-drops-annotations", Base: mutant.Ours,
		Description: "The controller drops all annotations of a Deployment when it refuses a rollback.",
		Edits: []mutant.Edit{edit("controllers/deployment/rollback.go",
			`		if key != appsv1.DeprecatedRollbackTo {`, `		if key == appsv1.DeprecatedRollbackTo && value == "" {`)},
		Scenarios: []string{"rejected-rollback"},
		Checks:    []string{"rollback"},
	},
	{
		ID: "own-saturation-ignored", Base: mutant.Ours,
		Description: "Old ReplicaSets of a paused Deployment keep their pods although all new ones are available.",
		Edits: []mutant.Edit{edit("controllers/deployment/scale.go",
			`	case saturated: //`, `	case saturated && l.replicas < 0: //`)},
		Scenarios: []string{"paused-halfway"},
		Checks:    []string{"late-sync"},
	},
	{
		ID: "own-failed-endpoints-ignored", Base: mutant.Ours,
		Description: "The controller does not retry a failed create of Endpoints.",
		Edits: []mutant.Edit{edit("controllers/endpoints/sync.go",
			`			return fmt.Errorf("creating Endpoints %s: %w", key, err)`, `			return nil`)},
		Scenarios: []string{"failed-endpoints"},
		Checks:    []string{"endpoints-exact"},
	},
	{
		ID: "own-unready-addresses-ignored", Base: mutant.Ours,
		Description: "The Endpoints controller does not compare the addresses of pods that are not ready.",
		Edits: []mutant.Edit{edit("controllers/endpoints/pack.go",
			`		for _, a := range subsets[i].NotReadyAddresses {`, `		for _, a := range subsets[i].NotReadyAddresses[:0] {`)},
		Scenarios: []string{"failed-endpoints"},
		Checks:    []string{"endpoints-exact"},
	},
	{
		ID: "own-former-owner-ignored", Base: mutant.Ours,
		Description: "The controller does not sync the ReplicaSet that a pod has left.",
		Edits: []mutant.Edit{edit("controllers/replicaset/handlers.go", `				c.expectations.DeletionObserved(owner, pod.UID)
			}
			c.loop.Add(owner.Key)`, `				c.expectations.DeletionObserved(owner, pod.UID)
			}`)},
		Scenarios: []string{"leaves-at-once"},
		Checks:    []string{"converged"},
	},
	{
		ID: "own-former-deployment-ignored", Base: mutant.Ours,
		Description: "The controller does not sync the Deployment that a ReplicaSet has left.",
		Edits: []mutant.Edit{edit("controllers/deployment/handlers.go", `	if controllerRefChanged {
		c.enqueueController(old.Namespace, oldRef)
	}
	switch {`, `	switch {`)},
		Scenarios: []string{"leaves-at-once"},
		Checks:    []string{"rollout-complete"},
	},
}
