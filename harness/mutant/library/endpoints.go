package library

import "github.com/kube-gauntlet/gauntlet/harness/mutant"

// Where Endpoints are dealt with.
const (
	endpointsSync     = "controllers/endpoints/sync.go"
	endpointsPlan     = "controllers/endpoints/plan.go"
	endpointsPublish  = "controllers/endpoints/publish.go"
	endpointsHandlers = "controllers/endpoints/handlers.go"
	endpointsTruncate = "controllers/endpoints/truncate.go"
	endpointsAPI      = "controllers/endpoints/api.go"
)

// endpoints are the mutants of the Endpoints controller.
var endpoints = []mutant.Mutant{
	{
		ID: "E1", Base: mutant.Ours,
		Description: "A cached Endpoints that is older than the last write is trusted: it may equal what is to be.",
		Edits:       []mutant.Edit{edit(endpointsSync, `if missing := c.missing(key); missing != "" {`, `if missing := ""; missing != "" {`)},
		Scenarios:   []string{"flap"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "E3", Base: mutant.Ours,
		Description: "The record of a leader election is deleted like any Endpoints without a Service.",
		Edits: []mutant.Edit{edit(endpointsSync, `	return present
`, `	return present && e.Name == ""
`)},
		Scenarios: []string{"orphan-endpoints"},
		Checks:    []string{"orphan-endpoints"},
	},
	{
		ID: "E4", Base: mutant.Ours,
		Description: "Endpoints that somebody deletes are not made anew.",
		Edits: []mutant.Edit{edit(endpointsHandlers, `		c.writes.ForgetKey(key) // no sync will come that would
		return
	}
	c.loop.Add(key)
`, `		c.writes.ForgetKey(key) // no sync will come that would
	}
`)},
		Scenarios: []string{"endpoints"},
		Checks:    []string{"endpoints-exact"},
	},
	{
		ID: "E6", Base: mutant.Ours,
		Description: "A Service of type ExternalName gets Endpoints.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `return service.Spec.Type != corev1.ServiceTypeExternalName && len`, `return len`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"orphan-endpoints", "endpoints-exact"},
	},
	{
		ID: "E8", Base: mutant.Ours,
		Description: "A headless Service without ports has no addresses.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `if len(ports) == 0 && !portless(service) {`, `if len(ports) == 0 {`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "E10", Base: mutant.Ours,
		Description: "Endpoints are written whether they say anything new or not.",
		Edits:       []mutant.Edit{edit(endpointsPlan, `if current != nil &&`, `if current != nil && service == nil &&`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"needless-writes"},
	},
	{
		ID: "E10-churn", Base: mutant.Ours,
		Description: "A write of Endpoints wakes the controller, which writes them again, with another time.",
		Edits: []mutant.Edit{
			edit(endpointsHandlers, `UpdateFunc: func(_, object any) { c.endpointsShown(object) },`, `UpdateFunc: func(_, object any) { c.serviceChanged(object) },`),
			edit(endpointsPlan, `if current != nil &&`, `if current != nil && service == nil &&`),
			edit(endpointsPlan, `trigger.UTC().Format(time.RFC3339Nano), !trigger.IsZero())`, `time.Now().UTC().Format(time.RFC3339Nano), true)`),
		},
		Scenarios: []string{"recovery"},
		Checks:    []string{"needless-writes", "no-writes-when-settled"},
	},
	{
		ID: "E14", Base: mutant.Ours,
		Description:        "A Service without ipFamilies is a crash.",
		UnobservableReason: "the API server gives every Service its families, and stores none without",
	},
	{
		ID: "E15", Base: mutant.Ours,
		Description: "A write of Endpoints that failed is tried again at once.",
		Edits: []mutant.Edit{
			edit(endpointsSync, `			c.doubted.Store(key, nil)
			return err
`, `			c.doubted.Store(key, nil)
			return workloop.RetryAfter(time.Millisecond, err.Error())
`),
		},
		Scenarios: []string{"endpoints-outage"},
		Checks:    []string{"back-off"},
	},
	{
		ID: "own-terminating-addresses", Base: mutant.Ours,
		Description: "Pods that are being deleted stay among the addresses.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `(pod.DeletionTimestamp != nil && !service.Spec.PublishNotReadyAddresses)`, `(pod.DeletionTimestamp != nil && service == nil)`)},
		Scenarios:   []string{"orphaned-pods"},
		Checks:      []string{"addresses"},
	},
	{
		ID: "own-terminal-addresses", Base: mutant.Ours,
		Description: "Pods that have come to their end stay among the addresses.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `if podfacts.Terminal(pod) || (pod.DeletionTimestamp != nil && !service.Spec.PublishNotReadyAddresses) {`, `if pod.DeletionTimestamp != nil && !service.Spec.PublishNotReadyAddresses {`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-readiness-lost", Base: mutant.Ours,
		Description: "That a pod becomes ready, or ceases to be, wakes nobody.",
		Edits:       []mutant.Edit{edit(endpointsHandlers, "		ready:       ready,\n", "		ready:       ready || true,\n")},
		Scenarios:   []string{"recovery"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-not-ready-served", Base: mutant.Ours,
		Description: "Pods that are not ready are listed as ready.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `ready: ready || service.Spec.PublishNotReadyAddresses`, `ready: ready || service != nil`)},
		Scenarios:   []string{"flap", "recovery"},
		Checks:      []string{"addresses"},
	},
	{
		ID: "own-relabel-left", Base: mutant.Ours,
		Description: "A pod that is relabelled wakes the Services that it joins, and none that it leaves.",
		Edits:       []mutant.Edit{edit(endpointsHandlers, `slices.Concat(left, joined)`, `joined`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-service-update-missed", Base: mutant.Ours,
		Description: "That a Service is changed wakes nobody.",
		Edits:       []mutant.Edit{edit(endpointsHandlers, `UpdateFunc: func(_, object any) { c.serviceChanged(object) },`, `UpdateFunc: func(_, _ any) {},`)},
		Scenarios:   []string{"calm-services"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-no-truncation", Base: mutant.Ours,
		Description: "Endpoints hold any number of addresses.",
		Edits:       []mutant.Edit{edit(endpointsAPI, `Capacity = 1000`, `Capacity = 100000`)},
		Scenarios:   []string{"burst"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-truncation-untold", Base: mutant.Ours,
		Description: "That addresses were left out is not told in an annotation.",
		Edits:       []mutant.Edit{edit(endpointsTruncate, `return pack(unpack(fitting)), true`, `return pack(unpack(fitting)), false`)},
		Scenarios:   []string{"burst"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-not-ready-kept", Base: mutant.Ours,
		Description: "Of too many addresses the ready ones are left out first.",
		Edits: []mutant.Edit{edit(endpointsTruncate, `	ready = shares(ready, capacity)
	notReady = shares(notReady, capacity-sum(ready))
`, `	notReady = shares(notReady, capacity)
	ready = shares(ready, capacity-sum(notReady))
`)},
		Scenarios: []string{"crowd"},
		Checks:    []string{"addresses", "endpoints-exact"},
	},
	{
		ID: "own-any-port", Base: mutant.Ours,
		Description: "The first port of a pod is taken, whatever it is called.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `return p.Name == wanted.TargetPort.StrVal && p.Protocol == wanted.Protocol`, `return p.Protocol == wanted.Protocol`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"endpoints-exact", "addresses"},
	},
	{
		ID: "own-labels-lost", Base: mutant.Ours,
		Description: "Endpoints do not get the labels of their Service.",
		Edits:       []mutant.Edit{edit(endpointsPlan, "	maps.Copy(labels, service.Labels)\n", "")},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-publish-ignored", Base: mutant.Ours,
		Description: "That a Service publishes what is not ready is not looked at.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `ready: ready || service.Spec.PublishNotReadyAddresses`, `ready: ready`)},
		Scenarios:   []string{"unready-peers"},
		Checks:      []string{"addresses"},
	},
	{
		ID: "own-no-leftovers", Base: mutant.Ours,
		Description: "Nobody looks, at the start, for Endpoints whose Service is gone.",
		Edits:       []mutant.Edit{edit(endpointsHandlers, `if key, ok := c.keyOf(object); ok && isInInitialList {`, `if key, ok := c.keyOf(object); ok && isInInitialList && key == "" {`)},
		Scenarios:   []string{"orphan-endpoints"},
		Checks:      []string{"orphan-endpoints"},
	},
}
