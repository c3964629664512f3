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

// eventHandlers returns the event handlers for Services, pods and Endpoints. The handlers add
// the keys of Services to the work queue.
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
		{Resource: resource, Informer: config.Endpoints, Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    c.endpointsObserved,
			UpdateFunc: func(_, object any) { c.endpointsObserved(object) },
			DeleteFunc: c.endpointsDeleted,
		}},
	}
}

// serviceChanged enqueues the key of an added, updated or deleted Service.
func (c *Controller) serviceChanged(object any) {
	if key, ok := c.keyOf(object); ok {
		c.loop.Add(key)
	}
}

// enqueueLeftovers enqueues the keys of all cached Endpoints that have no Service. Their Services may
// have been deleted while no controller was running. The loop calls enqueueLeftovers before the
// workers start. The cache then also has Endpoints that a stale initial list lacked.
func (c *Controller) enqueueLeftovers() {
	for _, object := range c.endpoints.List() {
		key, ok := c.keyOf(object)
		if !ok {
			continue
		}
		if _, exists, err := c.services.GetByKey(key); err == nil && !exists {
			c.loop.Add(key)
		}
	}
}

// endpointsObserved handles an event of an Endpoints object. It enqueues the object's key only
// if the last sync of this key found a stale cache. The cache then lacked the controller's own
// last write.
//
// It enqueues no other keys. If a user changes Endpoints, the change therefore stays until the
// next event of the Service or its pods.
func (c *Controller) endpointsObserved(object any) {
	key, ok := c.keyOf(object)
	if !ok {
		return
	}
	if _, awaited := c.awaitingCache.LoadAndDelete(key); awaited {
		c.loop.AddAfter(key, c.batchDelay(key))
	}
}

// endpointsDeleted enqueues the key of deleted Endpoints, so that a sync creates the Endpoints
// again.
//
// If the Service does not exist, endpointsDeleted only drops the record of the controller's own
// writes for the key. New Endpoints with this name may then belong to another component, for
// example to a leader election.
func (c *Controller) endpointsDeleted(object any) {
	c.endpointsObserved(object)
	key, ok := c.keyOf(object)
	if !ok {
		return
	}
	if _, exists, err := c.services.GetByKey(key); err == nil && !exists {
		c.writes.ForgetKey(key) // no later sync drops them
		return
	}
	c.loop.Add(key)
}

// keyOf returns the key "namespace/name" of the object in an informer event. The bool result is
// false if the object has an unexpected type.
func (c *Controller) keyOf(object any) (string, bool) {
	changed, ok := tombstone.LastKnown[metav1.Object](c.logger, object)
	if !ok {
		return "", false
	}
	return cache.MetaObjectToName(changed).String(), true
}

// podDeleted enqueues the Services whose selector matched a deleted pod.
func (c *Controller) podDeleted(object any) {
	if pod, ok := tombstone.LastKnown[*corev1.Pod](c.logger, object); ok {
		c.podChanged(pod, nil)
	}
}

// podChanged enqueues the Services whose Endpoints may change after an event of a pod. The
// arguments are the versions of the pod before and after the event. For an added pod, old is nil.
// For a deleted pod, pod is nil.
//
// podChanged enqueues each key after a delay, so that one update of the Endpoints contains several
// pod changes. The delay is Config.BatchPeriod or the result of batchDelay, whichever is longer.
func (c *Controller) podChanged(old, pod *corev1.Pod) {
	keys, err := affectedServices(c.services, old, pod)
	if err != nil {
		c.logger.Error(err, "Looking up the Services that select a changed pod failed")
		return
	}
	for _, key := range keys {
		c.loop.AddAfter(key, max(c.batchPeriod, c.batchDelay(key)))
	}
}

// batchDelay returns how long the controller collects pod changes before it writes Endpoints
// again. The result is the duration of the last write for this key, at most maxBatchDelay.
//
// When many pods change at once, every write is soon outdated. With this delay, the controller
// writes the Endpoints of one Service at most half of the time. If a write takes longer than
// maxBatchDelay, the share is higher.
func (c *Controller) batchDelay(key string) time.Duration {
	took, written := c.writeDurations.Load(key)
	if !written {
		return 0
	}
	return min(took.(time.Duration), maxBatchDelay)
}

// affectedServices returns the keys of the Services whose Endpoints may change after an event of a
// pod. The arguments old and pod are the versions of the pod before and after the event. For an
// added pod, old is nil; for a deleted pod, pod is nil.
//
//   - If no Endpoints contain old or pod, the result is empty.
//   - If a field has changed that Endpoints contain, such as the IP, the result contains all
//     Services that select old or pod.
//   - If only labels have changed, the result contains the Services that select exactly one
//     of old and pod.
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

// servicesOf returns the keys of the Services that select a pod. The argument as is the result of
// podContributionOf for the pod. If it is the zero value, no Endpoints contain the pod, and
// servicesOf returns no keys.
func servicesOf(services cache.Indexer, pod *corev1.Pod, as podContribution) ([]string, error) {
	if (as == podContribution{}) {
		return nil, nil
	}
	return servicesSelecting(services, pod.Namespace, pod.Labels)
}

// podContribution contains the fields of a pod whose changes affect Endpoints. The zero value
// means that no Endpoints contain the pod.
type podContribution struct {
	uid         types.UID
	ips         string
	ready       bool
	terminating bool
	node        string
	hostname    string
	subdomain   string
}

// podContributionOf returns those fields of a pod that Endpoints depend on. It returns the zero
// value for a pod that no Endpoints contain. Such a pod is nil, is terminal or has no IP.
//
// The result does not depend on the condition Ready of a terminal pod, which may still be True.
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
