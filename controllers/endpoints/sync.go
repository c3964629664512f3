package endpoints

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/podcontrol"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// maxBatchDelay is the maximum time for which the controller collects pod changes because a write
// took long; see batchDelay.
const maxBatchDelay = 250 * time.Millisecond

// sync reconciles the Endpoints with the given key, "namespace/name", in these steps:
//
//  1. If the cache does not contain this controller's last write, the sync is retried
//     later.
//  2. If the Service does not exist, its Endpoints are deleted.
//  3. If the Service has no selector or the type ExternalName, its Endpoints are left
//     unchanged.
//  4. If the last write failed, the Endpoints are read from the API server. The write
//     may have succeeded although its response was lost, so the cache may be stale.
//  5. The desired Endpoints are computed from the Service and its pods.
//  6. The desired Endpoints are written if they differ from the existing ones.
//  7. The change times of the Service and its pods are recorded. After a failed write,
//     they are not recorded, so that the retry writes the same trigger time.
func (c *Controller) sync(ctx context.Context, key string) error {
	if stale := c.staleReason(key); stale != "" {
		return workloop.RetryAfter(workloop.StaleRetryDelay, stale)
	}
	service, err := getCached[*corev1.Service](c.services, key)
	if err != nil {
		return err
	}
	current, err := getCached[*endpoints](c.endpoints, key)
	if err != nil {
		return err
	}
	if service == nil {
		c.triggerTimes.forget(key)
		c.writeDurations.Delete(key)
		c.failedWrites.Delete(key)
		return c.deleteOrphaned(ctx, key, current)
	}
	if !managesEndpoints(service) {
		return nil
	}
	if _, doubted := c.failedWrites.Load(key); doubted {
		if current, err = c.getLive(ctx, service); err != nil {
			return err
		}
	}
	pods, err := c.selectedPods(service)
	if err != nil {
		return err
	}
	now := changeTimesOf(service, pods)
	if next := plan(service, pods, current, now.trigger(c.triggerTimes.last(key))); next != nil {
		if err := c.write(ctx, service, next); err != nil {
			c.failedWrites.Store(key, nil)
			return err
		}
	}
	c.failedWrites.Delete(key)
	c.triggerTimes.put(key, now)
	return nil
}

// getLive reads the Endpoints of a Service from the API server. It returns nil if they do not
// exist. Later syncs wait until the cache contains the returned version.
func (c *Controller) getLive(ctx context.Context, service *corev1.Service) (*endpoints, error) {
	found, err := c.client.CoreV1().Endpoints(service.Namespace).Get(ctx, service.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Endpoints %s/%s after a failed write: %w", service.Namespace, service.Name, err)
	}
	c.writes.Wrote(ownership.IDOf(service), resource, found.ResourceVersion)
	return found, nil
}

// staleReason says which of the controller's own writes the informer cache still lacks. It returns
// "" if the cache contains all of these writes.
//
// If a write is missing, the key stays in awaitingCache, and the write's informer event enqueues
// the key. To miss no event, staleReason stores the key before it checks the cache.
func (c *Controller) staleReason(key string) string {
	c.awaitingCache.Store(key, nil)
	stale := c.writes.StaleReason(key)
	if stale == "" {
		c.awaitingCache.Delete(key)
	}
	return stale
}

// getCached returns the object with the given key from an informer cache. It returns nil if the
// cache does not contain the object.
func getCached[T any](from cache.Indexer, key string) (found T, err error) {
	object, exists, err := from.GetByKey(key)
	if err != nil || !exists {
		return found, err
	}
	found, ok := object.(T)
	if !ok {
		return found, fmt.Errorf("found an object of type %T under key %s in the informer cache; expected type %T", object, key, found)
	}
	return found, nil
}

// selectedPods returns the cached pods that the Service's selector matches, in no particular
// order. The cache owns the pods, so do not modify them.
func (c *Controller) selectedPods(service *corev1.Service) ([]*corev1.Pod, error) {
	objects, err := c.pods.ByIndex(cache.NamespaceIndex, service.Namespace)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", service.Namespace, err)
	}
	var pods []*corev1.Pod
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok && selects(service, pod.Labels) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// write creates the Endpoints or, if next has a resourceVersion, updates them. The API server
// rejects the update with a conflict if another client has changed the Endpoints. If the
// namespace is terminating, write creates nothing and returns nil.
func (c *Controller) write(ctx context.Context, service *corev1.Service, next *endpoints) error {
	client := c.client.CoreV1().Endpoints(next.Namespace)
	key := cache.MetaObjectToName(service).String()
	begin := time.Now()
	var written *endpoints
	var err error
	if next.ResourceVersion == "" {
		written, err = client.Create(ctx, next, metav1.CreateOptions{})
		if podcontrol.NamespaceTerminating(err) {
			klog.FromContext(ctx).V(2).Info("Namespace is terminating, not creating Endpoints")
			return nil
		}
		if err != nil {
			c.events.Eventf(next, corev1.EventTypeWarning, FailedToCreateEndpoint, "Creating the Endpoints of Service %s failed: %v", key, err)
			return fmt.Errorf("creating Endpoints %s: %w", key, err)
		}
	} else {
		written, err = client.Update(ctx, next, metav1.UpdateOptions{})
		if err != nil {
			c.events.Eventf(next, corev1.EventTypeWarning, FailedToUpdateEndpoint, "Updating the Endpoints of Service %s failed: %v", key, err)
			return fmt.Errorf("updating Endpoints %s: %w", key, err)
		}
	}
	c.writeDurations.Store(key, time.Since(begin))
	c.writes.Wrote(ownership.IDOf(service), resource, written.ResourceVersion)
	return nil
}

// deleteOrphaned deletes the Endpoints of a Service that is not in the cache. The argument
// leftover contains these Endpoints from the cache, or nil. deleteOrphaned takes three
// precautions:
//
//  1. It keeps a leader-election record, which never belonged to a Service.
//  2. It reads the Service from the API server. If the cache is stale, the Service may
//     exist and need its Endpoints.
//  3. The delete request has the UID and the resourceVersion as preconditions. It
//     therefore deletes neither a changed nor a recreated object.
func (c *Controller) deleteOrphaned(ctx context.Context, key string, leftover *endpoints) error {
	if leftover != nil && isLeaderElectionRecord(leftover) {
		return nil
	}
	name, err := cache.ParseObjectName(key)
	if err != nil {
		return fmt.Errorf("parsing the work queue key %q: %w", key, err)
	}
	_, err = c.client.CoreV1().Services(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err == nil {
		return workloop.RetryAfter(workloop.StaleRetryDelay, "the informer cache of services does not contain the Service yet")
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading Service %s before deleting its Endpoints: %w", key, err)
	}
	client := c.client.CoreV1().Endpoints(name.Namespace)
	if leftover == nil {
		// The Endpoints may exist although they are not in the cache.
		leftover, err = client.Get(ctx, name.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading orphaned Endpoints %s: %w", key, err)
		}
		if isLeaderElectionRecord(leftover) {
			return nil
		}
	}
	err = client.Delete(ctx, name.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &leftover.UID, ResourceVersion: &leftover.ResourceVersion},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting orphaned Endpoints %s: %w", key, err)
	}
	c.writes.Deleted(ownership.ID{Key: key}, resource, key, leftover.UID)
	c.writes.StaleReason(key) // drops the recorded delete if its event has already arrived
	return nil
}

// isLeaderElectionRecord reports whether an Endpoints object is the lock of a leader election.
// Old clients used Endpoints instead of a Lease.
func isLeaderElectionRecord(e *endpoints) bool {
	_, present := e.Annotations[resourcelock.LeaderElectionRecordAnnotationKey]
	return present
}
