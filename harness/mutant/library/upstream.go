package library

import "github.com/kube-gauntlet/gauntlet/harness/mutant"

// These are the paths of the source files of kube-controller-manager's controllers, relative to the
// module k8s.io/kubernetes.
const (
	upstreamReplicas    = "pkg/controller/replicaset/replica_set.go"
	upstreamRefs        = "pkg/controller/controller_ref_manager.go"
	upstreamDeployments = "pkg/controller/deployment/deployment_controller.go"
	upstreamSync        = "pkg/controller/deployment/sync.go"
	upstreamRolling     = "pkg/controller/deployment/rolling.go"
	upstreamRecreate    = "pkg/controller/deployment/recreate.go"
	upstreamUtil        = "pkg/controller/deployment/util/deployment_util.go"
	upstreamEndpoints   = "pkg/controller/endpoint/endpoints_controller.go"
)

// upstream has the mutants of kube-controller-manager's controllers.
var upstream = []mutant.Mutant{
	{
		ID: "R7-upstream", Base: mutant.Upstream,
		Description: "A sync sends all its creates at once, without slow start.",
		Edits:       []mutant.Edit{edit(upstreamReplicas, `min(remaining, initialBatchSize); batchSize > 0`, `max(remaining, 0*initialBatchSize); batchSize > 0`)},
		Scenarios:   []string{"api-errors", "everything"},
		Checks:      []string{"slow-start"},
	},
	{
		ID: "R8-upstream", Base: mutant.Upstream,
		Description: "The controller retries a failed sync of a ReplicaSet without back-off.",
		Edits:       []mutant.Edit{edit(upstreamReplicas, `rsc.queue.AddRateLimited(key)`, `rsc.queue.Add(key)`)},
		Scenarios:   []string{"api-errors"},
		Checks:      []string{"back-off"},
	},
	{
		ID: "R10-upstream", Base: mutant.Upstream,
		Description: "The controller adopts orphaned pods by the cached owner, without a read from the API server.",
		Edits:       []mutant.Edit{edit(upstreamRefs, `m.canAdoptErr = m.CanAdoptFunc(ctx)`, `m.canAdoptErr = nil`)},
		Scenarios:   []string{"watch-delay-owners"},
		Checks:      []string{"ownership"},
	},
	{
		ID: "R16-upstream", Base: mutant.Upstream,
		Description: "The controller keeps expectations for creates that failed, and for creates that slow start skipped.",
		Edits:       []mutant.Edit{edit(upstreamReplicas, `if skippedPods := diff - successfulCreations; skippedPods > 0 {`, `if skippedPods := diff - successfulCreations; skippedPods > diff {`)},
		Scenarios:   []string{"api-errors"},
		Checks:      []string{"converged"},
	},
	{
		ID: "R29-upstream", Base: mutant.Upstream,
		Description: "The controller replaces the pods of an owner that is being deleted.",
		Edits:       []mutant.Edit{edit(upstreamReplicas, `if rsNeedsSync && rs.DeletionTimestamp == nil {`, `if rsNeedsSync {`)},
		Scenarios:   []string{"foreground"},
		Checks:      []string{"not-above-desired"},
	},
	{
		ID: "own-no-expectations-upstream", Base: mutant.Upstream,
		Description: "The controller has no expectations: a sync does not wait for the events of earlier writes.",
		Edits:       []mutant.Edit{edit(upstreamReplicas, `rsNeedsSync := rsc.expectations.SatisfiedExpectations(logger, key)`, `rsNeedsSync := rsc.expectations.SatisfiedExpectations(logger, key) || key != ""`)},
		Scenarios:   []string{"watch-delay-pods"},
		Checks:      []string{"expectations"},
	},
	{
		ID: "D3-upstream", Base: mutant.Upstream,
		Description:        "The controller treats its own ReplicaSet, whose create response was lost, as a hash collision.",
		UnobservableReason: "upstream looks up the name in its cache, and finds the existing ReplicaSet before it creates one",
	},
	{
		ID: "D7-upstream", Base: mutant.Upstream,
		Description: "A Deployment with the strategy Recreate waits until its failed old pods are deleted.",
		Edits: []mutant.Edit{edit(upstreamRecreate, `				// Don't count pods in terminal state.
				continue
`, `				return true
`)},
		Scenarios: []string{"evicted", "rollout"},
		Checks:    []string{"rollout-complete"},
	},
	{
		ID: "D14-upstream", Base: mutant.Upstream,
		Description: "A Deployment whose maxSurge and maxUnavailable both round to 0 never replaces a pod.",
		Edits: []mutant.Edit{edit(upstreamUtil, `		unavailable = 1
	}

	return int32(surge)`, `	}

	return int32(surge)`)},
		Scenarios: []string{"rollout"},
		Checks:    []string{"rollout-complete"},
	},
	{
		ID: "D16-upstream", Base: mutant.Upstream,
		Description: "The controller scales old ReplicaSets down as if every new pod were available.",
		Edits: []mutant.Edit{
			edit(upstreamRolling, `newRSUnavailablePodCount := *(newRS.Spec.Replicas) - newRS.Status.AvailableReplicas`, `newRSUnavailablePodCount := 0 * *(newRS.Spec.Replicas)`),
			edit(upstreamRolling, `availablePodCount := deploymentutil.GetAvailableReplicaCountForReplicaSets(allRSs)`, `availablePodCount := deploymentutil.GetReplicaCountForReplicaSets(allRSs)`),
		},
		Scenarios: []string{"rollout"},
		Checks:    []string{"max-unavailable"},
	},
	{
		ID: "D21-upstream", Base: mutant.Upstream,
		Description: "The controller retries a failed sync of a Deployment only once.",
		Edits:       []mutant.Edit{edit(upstreamDeployments, `if dc.queue.NumRequeues(key) < maxRetries {`, `if dc.queue.NumRequeues(key) < maxRetries/15 {`)},
		Scenarios:   []string{"outage"},
		Checks:      []string{"rollout-complete"},
	},
	{
		ID: "E3-upstream", Base: mutant.Upstream,
		Description: "The controller deletes leader-election records as orphaned Endpoints.",
		Edits: []mutant.Edit{edit(upstreamEndpoints, `			// as leader-election only have endpoints without service
			continue
`, `			// as leader-election only have endpoints without service
`)},
		Scenarios: []string{"orphan-endpoints"},
		Checks:    []string{"orphan-endpoints"},
	},
	{
		ID: "E6-upstream", Base: mutant.Upstream,
		Description: "The controller creates Endpoints for a Service of type ExternalName.",
		Edits:       []mutant.Edit{edit(upstreamEndpoints, `if service.Spec.Type == v1.ServiceTypeExternalName {`, `if service.Spec.Type == v1.ServiceTypeExternalName && service.Spec.Selector == nil {`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"orphan-endpoints", "endpoints-exact"},
	},
	{
		ID: "E10-upstream", Base: mutant.Upstream,
		Description: "The controller updates Endpoints that have not changed.",
		Edits: []mutant.Edit{edit(upstreamEndpoints, `	if !createEndpoints &&
		(endpointSubsets`, `	if !createEndpoints && service == nil &&
		(endpointSubsets`)},
		Scenarios: []string{"endpoints"},
		Checks:    []string{"needless-writes"},
	},
}
