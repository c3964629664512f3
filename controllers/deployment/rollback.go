package deployment

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/ownership"
	"github.com/kube-gauntlet/gauntlet/controllers/internal/templatehash"
)

// Reasons of the events about a rollback.
const (
	reasonRollback                  = "DeploymentRollback"
	reasonRollbackRevisionNotFound  = "DeploymentRollbackRevisionNotFound"
	reasonRollbackTemplateUnchanged = "DeploymentRollbackTemplateUnchanged"
)

// rollbackTo returns to which revision the user wants a Deployment to go back,
// as it is written; requested is false when it is to rejected where it is.
func rollbackTo(annotations map[string]string) (revision string, requested bool) {
	revision, requested = annotations[appsv1.DeprecatedRollbackTo]
	return revision, requested
}

// rollback is what comes of a wish to roll back.
type rollback struct {
	// deployment is the Deployment to write, without the wish.
	deployment *appsv1.Deployment
	// eventType, reason and message are the event that tells of it.
	eventType, reason, message string
}

// planRollback takes d back to a revision that sets has, 0 for the last one
// before the newest. A revision that is not there, or is no number, leaves d as
// it is but for the wish: a wish that stays would stand in the way for ever.
func planRollback(d *appsv1.Deployment, sets []*appsv1.ReplicaSet, requested string) rollback {
	rejected := func(reason, message string) rollback {
		return rollback{withoutRollbackTo(d), corev1.EventTypeWarning, reason, message}
	}
	revision, err := strconv.ParseInt(requested, 10, 64)
	if err != nil {
		return rejected(reasonRollbackRevisionNotFound, fmt.Sprintf("Unable to find the revision to rollback to: expected a number, got %q", requested))
	}
	switch set := findRevision(sets, revision); {
	case set == nil && revision == 0:
		return rejected(reasonRollbackRevisionNotFound, "Unable to find last revision.")
	case set == nil:
		return rejected(reasonRollbackRevisionNotFound, "Unable to find the revision to rollback to.")
	case templatehash.Equal(&d.Spec.Template, &set.Spec.Template):
		return rejected(reasonRollbackTemplateUnchanged, fmt.Sprintf("The rollback revision contains the same template as current deployment %q", d.Name))
	default:
		found, _ := revisionOf(set.Annotations)
		return rollback{withTemplateOf(d, set), corev1.EventTypeNormal, reasonRollback,
			fmt.Sprintf("Rolled back deployment %q to revision %d", d.Name, found)}
	}
}

// findRevision returns the ReplicaSet of a revision, the last one before the
// newest for 0, or nil.
func findRevision(sets []*appsv1.ReplicaSet, revision int64) *appsv1.ReplicaSet {
	if revision == 0 {
		revision = lastRevision(sets)
	}
	for _, set := range sets {
		if r, ok := revisionOf(set.Annotations); ok && r == revision && r != 0 {
			return set
		}
	}
	return nil
}

// lastRevision returns the second highest revision, 0 when there is none.
func lastRevision(sets []*appsv1.ReplicaSet) int64 {
	var revisions []int64
	for _, set := range sets {
		if r, ok := revisionOf(set.Annotations); ok {
			revisions = append(revisions, r)
		}
	}
	if len(revisions) < 2 {
		return 0
	}
	slices.Sort(revisions)
	return revisions[len(revisions)-2]
}

// withTemplateOf returns d with the template and the annotations that set had
// from it, and without the wish to roll back.
func withTemplateOf(d *appsv1.Deployment, set *appsv1.ReplicaSet) *appsv1.Deployment {
	back := *d
	back.Annotations = annotationsAfterRollback(d.Annotations, set.Annotations)
	back.Spec.Template = *set.Spec.Template.DeepCopy()
	delete(back.Spec.Template.Labels, templatehash.Label)
	return &back
}

// withoutRollbackTo returns d without the wish to roll back.
func withoutRollbackTo(d *appsv1.Deployment) *appsv1.Deployment {
	content := *d
	content.Annotations = make(map[string]string, len(d.Annotations))
	for key, value := range d.Annotations {
		if key != appsv1.DeprecatedRollbackTo {
			content.Annotations[key] = value
		}
	}
	return &content
}

// rollBack takes the Deployment back to the template of a revision, and clears
// the wish whatever comes of it. The template that is left gets a ReplicaSet
// first, without replicas, or there would be no way back to it.
func (c *Controller) rollBack(ctx context.Context, r *rollout, requested string) error {
	if c.deferWrite(ctx, r, "rollback") {
		return nil // the wish may have been fulfilled already
	}
	if r.newIndex == none {
		if made, err := c.create(ctx, r, 0); err != nil || !made {
			return err
		}
	}
	d := r.deployment
	plan := planRollback(d, r.sets, requested)
	written, err := c.client.AppsV1().Deployments(d.Namespace).Update(ctx, plan.deployment, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("rolling back Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	r.deploymentWritten = true
	c.deploymentWrites.Wrote(ownership.IDOf(d), deploymentsResource, written.ResourceVersion)
	c.events.Event(d, plan.eventType, plan.reason, plan.message)
	return nil
}
