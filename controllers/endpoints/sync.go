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

// maxBatchDelay is the longest that changes wait to be written together because the
// write before them took long.
const maxBatchDelay = 250 * time.Millisecond

// sync makes the Endpoints under key what its Service and pods ask for.
//
//  1. What this controller last wrote under key must be in the cache.
//  2. Without a Service, Endpoints are retired.
//  3. Those of a Service that does not select pods are left alone.
//  4. After a write that failed, its answer may have been lost and the cache be
//     behind: the Endpoints are read past it.
//  5. What they should say is planned from the Service and its pods.
//  6. It is written if it says anything new.
//  7. Only then is the change that led here done with: until it has been
//     written, it stays what triggers the write.
func (c *Controller) sync(ctx context.Context, key string) error {
	if stale := c.staleReason(key); stale != "" {
		return workloop.RetryAfter(workloop.StaleRetryDelay, stale)
	}
	service, err := lookUp[*corev1.Service](c.services, key)
	if err != nil {
		return err
	}
	current, err := lookUp[*endpoints](c.endpoints, key)
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

// getLive reads the Endpoints of a Service past the cache, nil when there are none.
// The syncs that follow wait until the cache shows as much.
func (c *Controller) getLive(ctx context.Context, service *corev1.Service) (*endpoints, error) {
	found, err := c.client.CoreV1().Endpoints(service.Namespace).Get(ctx, service.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Endpoints %s/%s after a write that failed: %w", service.Namespace, service.Name, err)
	}
	c.writes.Wrote(ownership.IDOf(service), resource, found.ResourceVersion)
	return found, nil
}

// staleReason says what the cache does not show of the last write under key. The
// event that brings it then wakes the key: whoever delivers it finds the key
// awaiting, or delivered it before the cache was asked.
func (c *Controller) staleReason(key string) string {
	c.awaitingCache.Store(key, nil)
	stale := c.writes.StaleReason(key)
	if stale == "" {
		c.awaitingCache.Delete(key)
	}
	return stale
}

// lookUp returns the cached object under key, nil when there is none.
func lookUp[T any](from cache.Indexer, key string) (found T, err error) {
	object, exists, err := from.GetByKey(key)
	if err != nil || !exists {
		return found, err
	}
	found, ok := object.(T)
	if !ok {
		return found, fmt.Errorf("the cache holds a %T under %s, want a %T", object, key, found)
	}
	return found, nil
}

// selectedPods returns the cached pods that a Service selects, in no particular
// order. They are shared: read only.
func (c *Controller) selectedPods(service *corev1.Service) ([]*corev1.Pod, error) {
	objects, err := c.pods.ByIndex(cache.NamespaceIndex, service.Namespace)
	if err != nil {
		return nil, fmt.Errorf("looking up the pods of namespace %s: %w", service.Namespace, err)
	}
	var pods []*corev1.Pod
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok && selects(service, pod.Labels) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// write creates next, or updates it on the condition that nobody else has since
// it was read. Refused because the namespace is terminating, it is done: there
// will be no Endpoints, and nobody to tell.
func (c *Controller) write(ctx context.Context, service *corev1.Service, next *endpoints) error {
	client := c.client.CoreV1().Endpoints(next.Namespace)
	key := cache.MetaObjectToName(service).String()
	begin := time.Now()
	var written *endpoints
	var err error
	if next.ResourceVersion == "" {
		written, err = client.Create(ctx, next, metav1.CreateOptions{})
		if podcontrol.NamespaceTerminating(err) {
			klog.FromContext(ctx).V(2).Info("The namespace is terminating, no Endpoints are created")
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

// deleteOrphaned deletes what is left of a Service that the cache does not show.
//
//  1. The record of a leader election was never a Service's, and stays.
//  2. The Service is looked for past the cache, which may not show it yet: its
//     Endpoints, perhaps written by the leader before, are in use.
//  3. What is deleted is what was looked at, as it was, and no namesake.
func (c *Controller) deleteOrphaned(ctx context.Context, key string, leftover *endpoints) error {
	if leftover != nil && isLeaderElectionRecord(leftover) {
		return nil
	}
	name, err := cache.ParseObjectName(key)
	if err != nil {
		return fmt.Errorf("reading the key %q: %w", key, err)
	}
	_, err = c.client.CoreV1().Services(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err == nil {
		return workloop.RetryAfter(workloop.StaleRetryDelay, "the cache of services does not show the Service yet")
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking for Service %s before its Endpoints are deleted: %w", key, err)
	}
	client := c.client.CoreV1().Endpoints(name.Namespace)
	if leftover == nil {
		// Not cached is not gone either.
		leftover, err = client.Get(ctx, name.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking for Endpoints %s, which have no Service: %w", key, err)
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
		return fmt.Errorf("deleting Endpoints %s, which have no Service: %w", key, err)
	}
	c.writes.Deleted(ownership.ID{Key: key}, resource, key, leftover.UID)
	c.writes.StaleReason(key) // forgets what the event, if it was faster, has shown
	return nil
}

// isLeaderElectionRecord reports whether an Endpoints is where a leader election of the
// old kind keeps its lock.
func isLeaderElectionRecord(e *endpoints) bool {
	_, present := e.Annotations[resourcelock.LeaderElectionRecordAnnotationKey]
	return present
}
