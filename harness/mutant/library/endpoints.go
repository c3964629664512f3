package library

import "github.com/kube-gauntlet/gauntlet/harness/mutant"

// These are the paths of the Endpoints controller's source files.
const (
	endpointsSync     = "controllers/endpoints/sync.go"
	endpointsPlan     = "controllers/endpoints/plan.go"
	endpointsPublish  = "controllers/endpoints/publish.go"
	endpointsHandlers = "controllers/endpoints/handlers.go"
	endpointsTruncate = "controllers/endpoints/truncate.go"
	endpointsAPI      = "controllers/endpoints/api.go"
)

// endpoints has the mutants of our Endpoints controller.
var endpoints = []mutant.Mutant{
	{
		ID: "E1", Base: mutant.Ours,
		Description: "The controller compares with cached Endpoints that are older than its last write.",
		Edits:       []mutant.Edit{edit(endpointsSync, `if stale := c.staleReason(key); stale != "" {`, `if stale := ""; stale != "" {`)},
		Scenarios:   []string{"flap"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "E3", Base: mutant.Ours,
		Description: "The controller deletes leader-election records as orphaned Endpoints.",
		Edits: []mutant.Edit{edit(endpointsSync, `	return present
`, `	return present && e.Name == ""
`)},
		Scenarios: []string{"orphan-endpoints"},
		Checks:    []string{"orphan-endpoints"},
	},
	{
		ID: "E4", Base: mutant.Ours,
		Description: "The controller does not create deleted Endpoints again.",
		Edits: []mutant.Edit{edit(endpointsHandlers, `		c.writes.ForgetKey(key) // no later sync drops them
		return
	}
	c.loop.Add(key)
`, `		c.writes.ForgetKey(key) // no later sync drops them
	}
`)},
		Scenarios: []string{"endpoints"},
		Checks:    []string{"endpoints-exact"},
	},
	{
		ID: "E6", Base: mutant.Ours,
		Description: "The controller creates Endpoints for a Service of type ExternalName.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `return service.Spec.Type != corev1.ServiceTypeExternalName && len`, `return len`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"orphan-endpoints", "endpoints-exact"},
	},
	{
		ID: "E8", Base: mutant.Ours,
		Description: "The controller omits the addresses of a headless Service without ports.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `if len(ports) == 0 && !publishesWithoutPorts(service) {`, `if len(ports) == 0 {`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "E10", Base: mutant.Ours,
		Description: "The controller updates Endpoints that have not changed.",
		Edits:       []mutant.Edit{edit(endpointsPlan, `if current != nil &&`, `if current != nil && service == nil &&`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"needless-writes"},
	},
	{
		ID: "E10-churn", Base: mutant.Ours,
		Description: "The controller enqueues a Service after each update of its Endpoints, and updates the Endpoints again with another time.",
		Edits: []mutant.Edit{
			edit(endpointsHandlers, `UpdateFunc: func(_, object any) { c.endpointsObserved(object) },`, `UpdateFunc: func(_, object any) { c.serviceChanged(object) },`),
			edit(endpointsPlan, `if current != nil &&`, `if current != nil && service == nil &&`),
			edit(endpointsPlan, `trigger.UTC().Format(time.RFC3339Nano), !trigger.IsZero())`, `time.Now().UTC().Format(time.RFC3339Nano), true)`),
		},
		Scenarios: []string{"recovery"},
		Checks:    []string{"needless-writes", "no-writes-when-settled"},
	},
	{
		ID: "E14", Base: mutant.Ours,
		Description:        "The controller panics on a Service without ipFamilies.",
		UnobservableReason: "the API server sets ipFamilies on every Service",
	},
	{
		ID: "E15", Base: mutant.Ours,
		Description: "The controller retries a failed write of Endpoints without back-off.",
		Edits: []mutant.Edit{
			edit(endpointsSync, `			c.failedWrites.Store(key, nil)
			return err
`, `			c.failedWrites.Store(key, nil)
			return workloop.RetryAfter(time.Millisecond, err.Error())
`),
		},
		Scenarios: []string{"endpoints-outage"},
		Checks:    []string{"back-off"},
	},
	{
		ID: "own-terminating-addresses", Base: mutant.Ours,
		Description: "The controller keeps the addresses of terminating pods.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `(pod.DeletionTimestamp != nil && !service.Spec.PublishNotReadyAddresses)`, `(pod.DeletionTimestamp != nil && service == nil)`)},
		Scenarios:   []string{"orphaned-pods"},
		Checks:      []string{"addresses"},
	},
	{
		ID: "own-terminal-addresses", Base: mutant.Ours,
		Description: "The controller keeps the addresses of pods that have succeeded or failed.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `if podutil.Terminal(pod) || (pod.DeletionTimestamp != nil && !service.Spec.PublishNotReadyAddresses) {`, `if pod.DeletionTimestamp != nil && !service.Spec.PublishNotReadyAddresses {`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-readiness-lost", Base: mutant.Ours,
		Description: "The controller does not enqueue a Service when the readiness of a pod changes.",
		Edits:       []mutant.Edit{edit(endpointsHandlers, "		ready:       ready,\n", "		ready:       ready || true,\n")},
		Scenarios:   []string{"recovery"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-not-ready-served", Base: mutant.Ours,
		Description: "The controller lists unready pods among the ready addresses.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `ready: ready || service.Spec.PublishNotReadyAddresses`, `ready: ready || service != nil`)},
		Scenarios:   []string{"flap", "recovery"},
		Checks:      []string{"addresses"},
	},
	{
		ID: "own-relabel-left", Base: mutant.Ours,
		Description: "When the labels of a pod change, the controller enqueues only the Services that select its new labels.",
		Edits:       []mutant.Edit{edit(endpointsHandlers, `slices.Concat(left, joined)`, `joined`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-service-update-missed", Base: mutant.Ours,
		Description: "The controller does not enqueue a Service when the Service changes.",
		Edits:       []mutant.Edit{edit(endpointsHandlers, `UpdateFunc: func(_, object any) { c.serviceChanged(object) },`, `UpdateFunc: func(_, _ any) {},`)},
		Scenarios:   []string{"services"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-no-truncation", Base: mutant.Ours,
		Description: "The controller does not truncate Endpoints.",
		Edits:       []mutant.Edit{edit(endpointsAPI, `Capacity = 1000`, `Capacity = 100000`)},
		Scenarios:   []string{"burst"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-truncation-unreported", Base: mutant.Ours,
		Description: "The controller truncates Endpoints and does not set the over-capacity annotation.",
		Edits:       []mutant.Edit{edit(endpointsTruncate, `return pack(unpack(fitting)), true`, `return pack(unpack(fitting)), false`)},
		Scenarios:   []string{"burst"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-not-ready-kept", Base: mutant.Ours,
		Description: "The controller truncates the ready addresses before the unready ones.",
		Edits: []mutant.Edit{edit(endpointsTruncate, `	ready = shares(ready, capacity)
	notReady = shares(notReady, capacity-sum(ready))
`, `	notReady = shares(notReady, capacity)
	ready = shares(ready, capacity-sum(notReady))
`)},
		Scenarios: []string{"burst"},
		Checks:    []string{"addresses", "endpoints-exact"},
	},
	{
		ID: "own-any-port", Base: mutant.Ours,
		Description: "The controller uses the first container port instead of the named one.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `return p.Name == wanted.TargetPort.StrVal && p.Protocol == wanted.Protocol`, `return p.Protocol == wanted.Protocol`)},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"endpoints-exact", "addresses"},
	},
	{
		ID: "own-labels-lost", Base: mutant.Ours,
		Description: "The controller does not copy the labels of a Service to its Endpoints.",
		Edits:       []mutant.Edit{edit(endpointsPlan, "	maps.Copy(labels, service.Labels)\n", "")},
		Scenarios:   []string{"endpoints"},
		Checks:      []string{"endpoints-exact"},
	},
	{
		ID: "own-publish-ignored", Base: mutant.Ours,
		Description: "The controller ignores publishNotReadyAddresses.",
		Edits:       []mutant.Edit{edit(endpointsPublish, `ready: ready || service.Spec.PublishNotReadyAddresses`, `ready: ready`)},
		Scenarios:   []string{"services"},
		Checks:      []string{"addresses"},
	},
	{
		ID: "own-no-leftovers", Base: mutant.Ours,
		Description: "The controller does not look for orphaned Endpoints at its start.",
		Edits:       []mutant.Edit{edit(endpointsHandlers, `for _, object := range c.endpoints.List() {`, `for _, object := range c.endpoints.List()[:0] {`)},
		Scenarios:   []string{"orphan-endpoints"},
		Checks:      []string{"orphan-endpoints"},
	},
	{
		ID: "own-annotations-dropped", Base: mutant.Ours,
		Description: "An update of Endpoints removes the annotations of users.",
		Edits:       []mutant.Edit{edit(endpointsPlan, `		current.ObjectMeta.DeepCopyInto(&next.ObjectMeta)`, `		next.UID, next.ResourceVersion = current.UID, current.ResourceVersion`)},
		Scenarios:   []string{"annotated-endpoints"},
		Checks:      []string{"addresses"},
	},
	{
		ID: "own-tombstone-lost", Base: mutant.Ours,
		Description: "The controller ignores deletions of Services and Endpoints that it learns of only from a list.",
		Edits:       []mutant.Edit{edit(endpointsHandlers, `	changed, ok := tombstone.LastKnown[metav1.Object](c.logger, object)`, `	changed, ok := object.(metav1.Object)`)},
		Scenarios:   []string{"missed-deletes"},
		Checks:      []string{"endpoints-exact", "orphan-endpoints"},
	},
	{
		ID: "own-leftover-not-retried", Base: mutant.Ours,
		Description: "The controller does not retry a failed delete of Endpoints without a Service.",
		Edits: []mutant.Edit{edit(endpointsSync, `		return fmt.Errorf("deleting orphaned Endpoints %s: %w", key, err)`, `		klog.FromContext(ctx).Error(err, "Deleting orphaned Endpoints failed")
		return nil`)},
		Scenarios: []string{"failed-deletes"},
		Checks:    []string{"orphan-endpoints"},
	},
}
