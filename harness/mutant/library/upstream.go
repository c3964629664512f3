package library

import "github.com/kube-gauntlet/gauntlet/harness/mutant"

// Where upstream's controllers are.
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

// upstream are the mutants of kube-controller-manager's own controllers.
var upstream = []mutant.Mutant{
	{
		ID: "R7-upstream", Base: mutant.Upstream,
		Description: "All creates of a sync go out at once.",
		Edits:       []mutant.Edit{edit(upstreamReplicas, `min(remaining, initialBatchSize); batchSize > 0`, `max(remaining, 0*initialBatchSize); batchSize > 0`)},
		Scenarios:   []string{"api-errors", "everything"},
		Checks:      []string{"slow-start"},
	},
	{
		ID: "R8-upstream", Base: mutant.Upstream,
		Description: "A ReplicaSet whose sync failed is synced again at once.",
		Edits:       []mutant.Edit{edit(upstreamReplicas, `rsc.queue.AddRateLimited(key)`, `rsc.queue.Add(key)`)},
		Scenarios:   []string{"api-errors"},
		Checks:      []string{"back-off"},
	},
	{
		ID: "R10-upstream", Base: mutant.Upstream,
		Description: "Orphans are adopted by what the cache has of the owner.",
		Edits:       []mutant.Edit{edit(upstreamRefs, `m.canAdoptErr = m.CanAdoptFunc(ctx)`, `m.canAdoptErr = nil`)},
		Scenarios:   []string{"watch-delay-owners"},
		Checks:      []string{"ownership"},
	},
	{
		ID: "R16-upstream", Base: mutant.Upstream,
		Description: "Creates that failed, or that slow start did not come to, are waited for.",
		Edits:       []mutant.Edit{edit(upstreamReplicas, `if skippedPods := diff - successfulCreations; skippedPods > 0 {`, `if skippedPods := diff - successfulCreations; skippedPods > diff {`)},
		Scenarios:   []string{"api-errors"},
		Checks:      []string{"converged"},
	},
	{
		ID: "R29-upstream", Base: mutant.Upstream,
		Description: "An owner that is being deleted has its pods replaced.",
		Edits:       []mutant.Edit{edit(upstreamReplicas, `if rsNeedsSync && rs.DeletionTimestamp == nil {`, `if rsNeedsSync {`)},
		Scenarios:   []string{"foreground"},
		Checks:      []string{"not-above-desired"},
	},
	{
		ID: "own-no-expectations-upstream", Base: mutant.Upstream,
		Description: "Nothing is waited for that was asked for before.",
		Edits:       []mutant.Edit{edit(upstreamReplicas, `rsNeedsSync := rsc.expectations.SatisfiedExpectations(logger, key)`, `rsNeedsSync := rsc.expectations.SatisfiedExpectations(logger, key) || key != ""`)},
		Scenarios:   []string{"watch-delay-pods"},
		Checks:      []string{"expectations"},
	},
	{
		ID: "D3-upstream", Base: mutant.Upstream,
		Description:        "Its own ReplicaSet, made by a create whose answer was lost, is a collision.",
		UnobservableReason: "upstream looks for who has the name in its cache, and what is there it finds before it creates anything",
	},
	{
		ID: "D7-upstream", Base: mutant.Upstream,
		Description: "A Deployment of strategy Recreate waits for old pods that have failed to be deleted.",
		Edits: []mutant.Edit{edit(upstreamRecreate, `				// Don't count pods in terminal state.
				continue
`, `				return true
`)},
		Scenarios: []string{"evicted", "rollout"},
		Checks:    []string{"rollout-complete"},
	},
	{
		ID: "D14-upstream", Base: mutant.Upstream,
		Description: "Where neither surge nor unavailability is allowed, nothing is.",
		Edits: []mutant.Edit{edit(upstreamUtil, `		unavailable = 1
	}

	return int32(surge)`, `	}

	return int32(surge)`)},
		Scenarios: []string{"rollout"},
		Checks:    []string{"rollout-complete"},
	},
	{
		ID: "D16-upstream", Base: mutant.Upstream,
		Description: "Old pods are scaled down as if every new one were available.",
		Edits: []mutant.Edit{
			edit(upstreamRolling, `newRSUnavailablePodCount := *(newRS.Spec.Replicas) - newRS.Status.AvailableReplicas`, `newRSUnavailablePodCount := 0 * *(newRS.Spec.Replicas)`),
			edit(upstreamRolling, `availablePodCount := deploymentutil.GetAvailableReplicaCountForReplicaSets(allRSs)`, `availablePodCount := deploymentutil.GetReplicaCountForReplicaSets(allRSs)`),
		},
		Scenarios: []string{"rollout"},
		Checks:    []string{"max-unavailable"},
	},
	{
		ID: "D21-upstream", Base: mutant.Upstream,
		Description: "A Deployment whose sync failed is tried again once.",
		Edits:       []mutant.Edit{edit(upstreamDeployments, `if dc.queue.NumRequeues(key) < maxRetries {`, `if dc.queue.NumRequeues(key) < maxRetries/15 {`)},
		Scenarios:   []string{"outage"},
		Checks:      []string{"rollout-complete"},
	},
	{
		ID: "E3-upstream", Base: mutant.Upstream,
		Description: "The record of a leader election is deleted like any Endpoints without a Service.",
		Edits: []mutant.Edit{edit(upstreamEndpoints, `			// as leader-election only have endpoints without service
			continue
`, `			// as leader-election only have endpoints without service
`)},
		Scenarios: []string{"orphan-endpoints"},
		Checks:    []string{"orphan-endpoints"},
	},
	{
		ID: "E6-upstream", Base: mutant.Upstream,
		Description: "A Service of type ExternalName gets Endpoints.",
		Edits:       []mutant.Edit{edit(upstreamEndpoints, `if service.Spec.Type == v1.ServiceTypeExternalName {`, `if service.Spec.Type == v1.ServiceTypeExternalName && service.Spec.Selector == nil {`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"orphan-endpoints", "endpoints-exact"},
	},
	{
		ID: "E10-upstream", Base: mutant.Upstream,
		Description: "Endpoints are written whether they say anything new or not.",
		Edits: []mutant.Edit{edit(upstreamEndpoints, `	if !createEndpoints &&
		(endpointSubsets`, `	if !createEndpoints && service == nil &&
		(endpointSubsets`)},
		Scenarios: []string{"endpoints"},
		Checks:    []string{"needless-writes"},
	},
}
