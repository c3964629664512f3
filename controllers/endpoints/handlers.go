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

// eventHandlers returns the handlers of Service, pod and Endpoints events, which
// enqueue Services.
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

// serviceChanged handles every event of a Service, including its deletion.
func (c *Controller) serviceChanged(object any) {
	if key, ok := c.keyOf(object); ok {
		c.loop.Add(key)
	}
}

// endpointsAdded enqueues the keys of all Endpoints in the initial list. Their
// Services may have been deleted while no controller was running. The controller
// ignores Endpoints without a Service that are created later.
func (c *Controller) endpointsAdded(object any, isInInitialList bool) {
	if key, ok := c.keyOf(object); ok && isInInitialList {
		c.loop.Add(key)
	}
	c.endpointsObserved(object)
}

// endpointsObserved enqueues a key whose sync waits until the cache contains the last
// write. Other Endpoints updates enqueue nothing, so a manual edit stays until the
// next Service or pod event.
func (c *Controller) endpointsObserved(object any) {
	key, ok := c.keyOf(object)
	if !ok {
		return
	}
	if _, awaited := c.awaitingCache.LoadAndDelete(key); awaited {
		c.loop.AddAfter(key, c.batchDelay(key))
	}
}

// endpointsDeleted enqueues the key, so that the Endpoints are created again. If the
// Service does not exist, it only drops the recorded writes. Endpoints with that name
// may meanwhile belong to another component, for example to a leader election.
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

func (c *Controller) keyOf(object any) (string, bool) {
	changed, ok := tombstone.LastKnown[metav1.Object](c.logger, object)
	if !ok {
		return "", false
	}
	return cache.MetaObjectToName(changed).String(), true
}

func (c *Controller) podDeleted(object any) {
	if pod, ok := tombstone.LastKnown[*corev1.Pod](c.logger, object); ok {
		c.podChanged(pod, nil)
	}
}

// podChanged enqueues the Services whose Endpoints may change with a pod, after the
// batch period. For an added pod, old is nil; for a deleted one, pod is nil.
func (c *Controller) podChanged(old, pod *corev1.Pod) {
	keys, err := affectedServices(c.services, old, pod)
	if err != nil {
		c.logger.Error(err, "Looking up the Services of a changed pod failed")
		return
	}
	for _, key := range keys {
		c.loop.AddAfter(key, max(c.batchPeriod, c.batchDelay(key)))
	}
}

// batchDelay returns how long changes are batched before the Endpoints under key are
// written again. This is the duration of the last write, at most maxBatchDelay. When
// many pods change at once, every write is soon outdated. With this delay, a key is
// written during at most half of the time, and fast writes are hardly delayed.
func (c *Controller) batchDelay(key string) time.Duration {
	took, written := c.writeDurations.Load(key)
	if !written {
		return 0
	}
	return min(took.(time.Duration), maxBatchDelay)
}

// affectedServices returns the keys of the Services whose Endpoints may change with a
// pod update. If the pod's contribution changed, it returns all Services that select
// the old or the new pod. If only the labels changed, it returns the Services that
// select either the old or the new pod, but not both. If neither pod has a
// contribution, it returns none.
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

// podContribution holds the mutable properties of a pod that appear in Endpoints. The
// zero value means that the pod appears in no Endpoints.
type podContribution struct {
	uid         types.UID
	ips         string
	ready       bool
	terminating bool
	node        string
	hostname    string
	subdomain   string
}

// podContributionOf returns the contribution of a pod. It is zero if pod is nil or
// terminal; a terminal pod may still have the condition Ready.
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
