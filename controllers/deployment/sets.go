package deployment

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/childindex"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/podcontrol"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/templatehash"
)

// reasonScalingReplicaSet is the reason of the event that the controller emits after it has
// scaled a ReplicaSet.
const reasonScalingReplicaSet = "ScalingReplicaSet"

// claim adopts and releases ReplicaSets for the Deployment d. It returns the ReplicaSets that d
// controls afterwards.
func (c *Controller) claim(ctx context.Context, d *appsv1.Deployment, selector labels.Selector) ([]*appsv1.ReplicaSet, error) {
	candidates, err := childindex.Candidates[*appsv1.ReplicaSet](c.replicaSets, d)
	if err != nil {
		return nil, err
	}
	adopted := map[types.UID]*appsv1.ReplicaSet{}
	claimer := ownership.Claimer[*appsv1.ReplicaSet]{
		Owner:    d,
		GVK:      gvk,
		Selector: selector,
		Live: func(ctx context.Context) (metav1.Object, error) {
			return c.client.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
		},
		Patch: func(ctx context.Context, set *appsv1.ReplicaSet, data []byte) error {
			patched, err := c.client.AppsV1().ReplicaSets(set.Namespace).Patch(ctx, set.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
			if err != nil {
				return err
			}
			c.replicaSetWrites.Wrote(ownership.IDOf(d), replicaSetsResource, patched.ResourceVersion)
			adopted[set.UID] = patched
			return nil
		},
	}
	sets, err := claimer.Claim(ctx, candidates)
	for i, set := range sets {
		if patched := adopted[set.UID]; patched != nil {
			sets[i] = patched // an update of the cached version would fail with a conflict
		}
	}
	return sets, err
}

// adjustNewReplicaSet updates the revision, the annotations and minReadySeconds of the new
// ReplicaSet. It does nothing if the new ReplicaSet does not exist.
func (c *Controller) adjustNewReplicaSet(ctx context.Context, r *rollout) error {
	set := r.newSet()
	if set == nil {
		return nil
	}
	r.setFoundNewReplicaSet()
	if adjusted := adjust(set, r.deployment, nextRevision(r.oldSets())); adjusted != set {
		return c.update(ctx, r, r.newIndex, adjusted)
	}
	return nil
}

// create creates the new ReplicaSet with the given number of replicas. The result made is true
// if the ReplicaSet exists afterwards, even if an earlier request created it. In two cases, made
// is false and err is nil:
//
//   - Another ReplicaSet already has the name. The next sync uses a different hash in the name.
//   - The namespace is terminating. The controller gives up without an event.
func (c *Controller) create(ctx context.Context, r *rollout, replicas int) (made bool, err error) {
	d := r.deployment
	set, err := newReplicaSet(d, r.limits, replicas, nextRevision(r.sets))
	if err != nil {
		return false, err
	}
	created, err := c.client.AppsV1().ReplicaSets(d.Namespace).Create(ctx, set, metav1.CreateOptions{})
	switch {
	case err == nil:
		if replicas > 0 {
			c.recordScalingEvent(d, set.Name, 0, replicas)
		}
		r.setProgressing(corev1.ConditionTrue, reasonNewReplicaSetCreated, "Created new replica set %q", set.Name)
	case apierrors.IsAlreadyExists(err):
		// The response to an earlier create may have been lost, and the cache may not contain
		// the created ReplicaSet yet.
		created, err = c.client.AppsV1().ReplicaSets(d.Namespace).Get(ctx, set.Name, metav1.GetOptions{})
		if err != nil {
			r.createFailed = true
			return false, fmt.Errorf("reading ReplicaSet %s/%s, whose create failed with AlreadyExists: %w", d.Namespace, set.Name, err)
		}
		if !metav1.IsControlledBy(created, d) || !templatehash.Equal(&d.Spec.Template, &created.Spec.Template) {
			klog.FromContext(ctx).V(2).Info("Hash collision: another object has the name of the new ReplicaSet", "replicaSet", klog.KObj(created), "collisionCount", ptr.Deref(d.Status.CollisionCount, 0)+1)
			r.createFailed, r.hashCollision = true, true
			return false, nil
		}
	case podcontrol.NamespaceTerminating(err):
		r.createFailed = true
		return false, nil
	default:
		r.createFailed = true
		message := fmt.Sprintf("Failed to create new replica set %q: %v", set.Name, err)
		c.events.Event(d, corev1.EventTypeWarning, reasonReplicaSetCreateError, message)
		r.setProgressing(corev1.ConditionFalse, reasonReplicaSetCreateError, "%s", message)
		return false, fmt.Errorf("creating ReplicaSet %s/%s: %w", d.Namespace, set.Name, err)
	}
	c.replicaSetWrites.Wrote(ownership.IDOf(d), replicaSetsResource, created.ResourceVersion)
	r.setSets(append(r.sets, created))
	return true, nil
}

// resize writes the new spec.replicas of each change, in the given order. It stops at the first
// error.
func (c *Controller) resize(ctx context.Context, r *rollout, changes []change) error {
	for _, change := range changes {
		set := r.sets[change.index]
		from := int(ptr.Deref(set.Spec.Replicas, 1))
		sized := *set
		sized.Annotations = withReplicasAnnotations(set.Annotations, r.limits)
		sized.Spec.Replicas = ptr.To(int32(change.to))
		if change.to == from && maps.Equal(sized.Annotations, set.Annotations) {
			continue
		}
		if err := c.update(ctx, r, change.index, &sized); err != nil {
			return err
		}
		if change.to != from {
			c.recordScalingEvent(r.deployment, set.Name, from, change.to)
		}
	}
	return nil
}

// recordScalingEvent emits the event that a ReplicaSet was scaled. The arguments from and to are
// the old and the new spec.replicas.
func (c *Controller) recordScalingEvent(d *appsv1.Deployment, name string, from, to int) {
	direction := "up"
	if to < from {
		direction = "down"
	}
	c.events.Eventf(d, corev1.EventTypeNormal, reasonScalingReplicaSet, "Scaled %s replica set %s from %d to %d", direction, name, from, to)
}

// update writes a changed ReplicaSet to the API server, and stores the response in
// r.sets[index]. The request contains the resourceVersion. The API server therefore returns a
// conflict if another client has changed the ReplicaSet meanwhile.
func (c *Controller) update(ctx context.Context, r *rollout, index int, set *appsv1.ReplicaSet) error {
	written, err := c.client.AppsV1().ReplicaSets(set.Namespace).Update(ctx, set, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("updating ReplicaSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	c.replicaSetWrites.Wrote(ownership.IDOf(r.deployment), replicaSetsResource, written.ResourceVersion)
	r.sets[index] = written
	return nil
}

// cleanUp deletes old ReplicaSets so that at most revisionHistoryLimit are left. It deletes the
// lowest revisions first.
func (c *Controller) cleanUp(ctx context.Context, r *rollout) error {
	for _, set := range revisionsToDelete(r.oldSets(), r.deployment.Spec.RevisionHistoryLimit) {
		options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(set.UID))}
		err := c.client.AppsV1().ReplicaSets(set.Namespace).Delete(ctx, set.Name, options)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting ReplicaSet %s/%s of an old revision: %w", set.Namespace, set.Name, err)
		}
		c.replicaSetWrites.Deleted(ownership.IDOf(r.deployment), replicaSetsResource, cache.MetaObjectToName(set).String(), set.UID)
	}
	return nil
}
