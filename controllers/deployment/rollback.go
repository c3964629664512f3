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
	rollbackDone              = "DeploymentRollback"
	rollbackRevisionNotFound  = "DeploymentRollbackRevisionNotFound"
	rollbackTemplateUnchanged = "DeploymentRollbackTemplateUnchanged"
)

// rollbackWish reads to which revision the user wants a Deployment to go back;
// 0 is the last one before the newest. A value that is no number is no wish.
func rollbackWish(annotations map[string]string) (revision int64, wished bool) {
	revision, err := strconv.ParseInt(annotations[appsv1.DeprecatedRollbackTo], 10, 64)
	return revision, err == nil
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
	back.Annotations = rolledBack(d.Annotations, set.Annotations)
	back.Spec.Template = *set.Spec.Template.DeepCopy()
	delete(back.Spec.Template.Labels, templatehash.Label)
	return &back
}

// withoutWish returns d without the wish to roll back.
func withoutWish(d *appsv1.Deployment) *appsv1.Deployment {
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
func (c *Controller) rollBack(ctx context.Context, r *rollout, revision int64) error {
	if c.putOff(ctx, r, "rollback") {
		return nil // the wish may have been fulfilled already
	}
	if r.current == none {
		if made, err := c.create(ctx, r, 0); err != nil || !made {
			return err
		}
	}
	d := r.deployment
	type event struct{ kind, reason, message string }
	var back *appsv1.Deployment
	var tell event
	switch set := findRevision(r.sets, revision); {
	case set == nil && revision == 0:
		back, tell = withoutWish(d), event{corev1.EventTypeWarning, rollbackRevisionNotFound, "Unable to find last revision."}
	case set == nil:
		back, tell = withoutWish(d), event{corev1.EventTypeWarning, rollbackRevisionNotFound, "Unable to find the revision to rollback to."}
	case templatehash.Equal(&d.Spec.Template, &set.Spec.Template):
		back, tell = withoutWish(d), event{corev1.EventTypeWarning, rollbackTemplateUnchanged,
			fmt.Sprintf("The rollback revision contains the same template as current deployment %q", d.Name)}
	default:
		found, _ := revisionOf(set.Annotations)
		back, tell = withTemplateOf(d, set), event{corev1.EventTypeNormal, rollbackDone,
			fmt.Sprintf("Rolled back deployment %q to revision %d", d.Name, found)}
	}
	written, err := c.client.AppsV1().Deployments(d.Namespace).Update(ctx, back, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("rolling back Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	r.superseded = true
	c.ownWrites.Wrote(ownership.IDOf(d), deploymentsResource, written.ResourceVersion)
	c.events.Event(d, tell.kind, tell.reason, tell.message)
	return nil
}
