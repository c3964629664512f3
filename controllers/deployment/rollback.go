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

// These are the reasons of the events that the controller emits about rollbacks.
const (
	reasonRollback                  = "DeploymentRollback"
	reasonRollbackRevisionNotFound  = "DeploymentRollbackRevisionNotFound"
	reasonRollbackTemplateUnchanged = "DeploymentRollbackTemplateUnchanged"
)

// rollbackTo returns the value of the rollback annotation, which should be a revision number
// such as "3". The result requested is false if the annotation is missing.
func rollbackTo(annotations map[string]string) (revision string, requested bool) {
	revision, requested = annotations[appsv1.DeprecatedRollbackTo]
	return revision, requested
}

// rollback is a planned rollback: the Deployment to write, and the event to emit.
type rollback struct {
	// deployment is the Deployment to write, without the rollback annotation.
	deployment *appsv1.Deployment
	// eventType, reason and message belong to the event to emit.
	eventType, reason, message string
}

// planRollback returns a plan for the rollback of the Deployment d to a revision. It sends no
// request. The argument requested is the value of the rollback annotation. "0" means the revision
// before the newest one.
//
// Every plan removes the rollback annotation, so that later syncs do not repeat the rollback. If
// the revision does not exist or is not a number, the plan changes nothing else. The same applies
// if the revision has the current pod template.
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

// findRevision returns the ReplicaSet with the given revision. Revision 0 means the revision
// before the newest one. It returns nil if no ReplicaSet has this revision.
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

// lastRevision returns the second highest revision of the ReplicaSets, for a rollback to the
// revision before the newest one. It returns 0 if fewer than two ReplicaSets have a revision.
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

// withTemplateOf returns a copy of the Deployment d that is rolled back to a ReplicaSet. The copy
// has the ReplicaSet's annotations. It also has the ReplicaSet's pod template, without the label
// pod-template-hash.
func withTemplateOf(d *appsv1.Deployment, set *appsv1.ReplicaSet) *appsv1.Deployment {
	back := *d
	back.Annotations = annotationsAfterRollback(d.Annotations, set.Annotations)
	back.Spec.Template = *set.Spec.Template.DeepCopy()
	delete(back.Spec.Template.Labels, templatehash.Label)
	return &back
}

// withoutRollbackTo returns a copy of a Deployment without the rollback annotation, which requests
// a rollback.
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

// rollBack changes the Deployment's pod template to the template of the requested revision. It
// removes the rollback annotation even if the rollback is impossible.
//
// If no ReplicaSet has the current template yet, rollBack first creates one with 0 replicas.
// Users can then return to the current template later.
func (c *Controller) rollBack(ctx context.Context, r *rollout, requested string) error {
	if c.deferWrite(ctx, r, "rollback") {
		return nil // an earlier sync may have done the rollback, and the cache may lack the result
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
