package endpoints

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/podutil"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/tombstone"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// eventHandlers is what wakes the keys of Services: their own events, those of pods,
// and the deletion of Endpoints.
func (c *Controller) eventHandlers(config Config) []workloop.EventHandler {
	return []workloop.EventHandler{
		{Resource: "services", Informer: config.Services, Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    c.serviceChanged,
			UpdateFunc: func(_, object any) { c.serviceChanged(object) },
			DeleteFunc: c.serviceChanged,
		}},
		{Resource: "pods", Informer: config.Pods, Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { c.podChanged(nil, object.(*corev1.Pod)) },
			UpdateFunc: func(old, object any) { c.podChanged(old.(*corev1.Pod), object.(*corev1.Pod)) },
			DeleteFunc: c.podDeleted,
		}},
		{Resource: resource, Informer: config.Endpoints, Handler: cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    c.endpointsAdded,
			UpdateFunc: func(_, object any) { c.endpointsObserved(object) },
			DeleteFunc: c.endpointsDeleted,
		}},
	}
}

// serviceChanged serves every event of a Service, its deletion too.
func (c *Controller) serviceChanged(object any) {
	if key, ok := c.keyOf(object); ok {
		c.loop.Add(key)
	}
}

// endpointsAdded wakes, once, the keys of all Endpoints that are there when the
// controller starts: their Service may have gone while nobody watched. Those
// that appear later without a Service are their creator's business.
func (c *Controller) endpointsAdded(object any, isInInitialList bool) {
	if key, ok := c.keyOf(object); ok && isInInitialList {
		c.loop.Add(key)
	}
	c.endpointsObserved(object)
}

// endpointsObserved ends the wait of a sync for its own last write. Other changes
// of Endpoints wake nobody: an edit by hand stays until something happens.
func (c *Controller) endpointsObserved(object any) {
	key, ok := c.keyOf(object)
	if !ok {
		return
	}
	if _, awaited := c.awaitingCache.LoadAndDelete(key); awaited {
		c.loop.AddAfter(key, c.batchDelay(key))
	}
}

// endpointsDeleted has Endpoints made anew. Without a Service nothing is to be
// made, and nothing to be deleted either: what has appeared under that name
// meanwhile, perhaps a leader's record, is not this controller's.
func (c *Controller) endpointsDeleted(object any) {
	c.endpointsObserved(object)
	key, ok := c.keyOf(object)
	if !ok {
		return
	}
	if _, exists, err := c.services.GetByKey(key); err == nil && !exists {
		c.writes.ForgetKey(key) // no sync will come that would
		return
	}
	c.loop.Add(key)
}

func (c *Controller) keyOf(object any) (string, bool) {
	known, ok := tombstone.LastKnown[metav1.Object](c.logger, object)
	if !ok {
		return "", false
	}
	return cache.MetaObjectToName(known).String(), true
}

func (c *Controller) podDeleted(object any) {
	if pod, ok := tombstone.LastKnown[*corev1.Pod](c.logger, object); ok {
		c.podChanged(pod, nil)
	}
}

// podChanged wakes the Services whose Endpoints a pod's change may concern, once
// changes have been gathered. old is nil for a pod that is new, pod for one that
// is gone.
func (c *Controller) podChanged(old, pod *corev1.Pod) {
	keys, err := affectedServices(c.services, old, pod)
	if err != nil {
		c.logger.Error(err, "A pod's change wakes no Service")
		return
	}
	for _, key := range keys {
		c.loop.AddAfter(key, max(c.batchPeriod, c.batchDelay(key)))
	}
}

// batchDelay returns how long changes are gathered before the Endpoints under key
// are written again: for as long as the last write took, up to gatherMax. Pods
// come and go in crowds. Half of the time at most is then spent on writing what
// the next write replaces, while a write that is cheap is hardly delayed.
func (c *Controller) batchDelay(key string) time.Duration {
	took, written := c.writeDurations.Load(key)
	if !written {
		return 0
	}
	return min(took.(time.Duration), maxBatchDelay)
}

// affectedServices returns the keys of the Services that a pod's change concerns. If
// the pod contributes something else than before, that is all Services that it
// belongs or belonged to; if only its labels differ, those that it left or
// joined; none if it contributes nothing, before and after.
func affectedServices(services cache.Indexer, old, pod *corev1.Pod) ([]string, error) {
	before, after := podContributionOf(old), podContributionOf(pod)
	if before == after && (after == podContribution{} || maps.Equal(old.Labels, pod.Labels)) {
		return nil, nil
	}
	left, err := servicesOf(services, old, before)
	if err != nil {
		return nil, err
	}
	joined, err := servicesOf(services, pod, after)
	if err != nil {
		return nil, err
	}
	keys := slices.Sorted(slices.Values(slices.Concat(left, joined)))
	if before == after {
		return slices.DeleteFunc(keys, func(key string) bool {
			return slices.Contains(left, key) && slices.Contains(joined, key)
		}), nil
	}
	return slices.Compact(keys), nil
}

func servicesOf(services cache.Indexer, pod *corev1.Pod, as podContribution) ([]string, error) {
	if (as == podContribution{}) {
		return nil, nil
	}
	return servicesSelecting(services, pod.Namespace, pod.Labels)
}

// podContribution is what a pod contributes to Endpoints, in so far as it can change.
// The zero presence contributes nothing.
type podContribution struct {
	uid         types.UID
	ips         string
	ready       bool
	terminating bool
	node        string
	hostname    string
	subdomain   string
}

// podContributionOf returns the presence of a pod, which is nil when there is none. A
// pod that has run to its end has none, even one that still claims to be ready.
func podContributionOf(pod *corev1.Pod) podContribution {
	if pod == nil || podutil.Terminal(pod) {
		return podContribution{}
	}
	ips := ipsOf(pod)
	if len(ips) == 0 {
		return podContribution{}
	}
	_, ready := podutil.Ready(pod)
	return podContribution{
		uid:         pod.UID,
		ips:         strings.Join(ips, ","),
		ready:       ready,
		terminating: pod.DeletionTimestamp != nil,
		node:        pod.Spec.NodeName,
		hostname:    pod.Spec.Hostname,
		subdomain:   pod.Spec.Subdomain,
	}
}
