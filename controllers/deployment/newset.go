package deployment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/templatehash"
)

// findNewReplicaSet returns the index of the ReplicaSet with the given pod template. It returns
// the constant none if no ReplicaSet has the template.
//
// If several ReplicaSets have the template, findNewReplicaSet returns the oldest one. The result
// therefore stays the same when another ReplicaSet with the template is created.
func findNewReplicaSet(template *corev1.PodTemplateSpec, oldestFirst []*appsv1.ReplicaSet) int {
	return slices.IndexFunc(oldestFirst, func(set *appsv1.ReplicaSet) bool {
		return templatehash.Equal(template, &set.Spec.Template)
	})
}

// adjust returns a copy of a ReplicaSet with the correct annotations, revision and minReadySeconds.
// These are the values that the new ReplicaSet of the Deployment d must have. If the argument set
// already has these values, adjust returns it unchanged.
func adjust(set *appsv1.ReplicaSet, d *appsv1.Deployment, revision int64) *appsv1.ReplicaSet {
	annotations := withRevision(withInheritedAnnotations(set.Annotations, d.Annotations), revision)
	if maps.Equal(annotations, set.Annotations) && set.Spec.MinReadySeconds == d.Spec.MinReadySeconds {
		return set
	}
	adjusted := *set
	adjusted.Annotations = annotations
	adjusted.Spec.MinReadySeconds = d.Spec.MinReadySeconds
	return &adjusted
}

// newReplicaSet returns the ReplicaSet to create for the Deployment's pod template. It has the
// given spec.replicas and revision. newReplicaSet does not send the create request. The argument l
// contains the numbers for the annotations desired-replicas and max-replicas.
func newReplicaSet(d *appsv1.Deployment, l limits, replicas int, revision int64) (*appsv1.ReplicaSet, error) {
	hash, err := templatehash.Of(&d.Spec.Template, d.Status.CollisionCount)
	if err != nil {
		return nil, fmt.Errorf("computing the pod-template-hash of Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	template := *d.Spec.Template.DeepCopy()
	template.Labels = withEntries(template.Labels, map[string]string{templatehash.Label: hash})
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withEntries(selector.MatchLabels, map[string]string{templatehash.Label: hash})
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       d.Namespace,
			Name:            replicaSetName(d.Name, hash),
			Labels:          template.Labels,
			Annotations:     withReplicasAnnotations(withRevision(withInheritedAnnotations(nil, d.Annotations), revision), l),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, gvk)},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas:        ptr.To(int32(replicas)),
			MinReadySeconds: d.Spec.MinReadySeconds,
			Selector:        selector,
			Template:        template,
		},
	}, nil
}

// replicaSetName returns the name of the ReplicaSet for a Deployment and a template hash. The
// name depends on nothing else. A repeated create therefore fails with AlreadyExists, instead of
// creating a second ReplicaSet.
func replicaSetName(deployment, hash string) string {
	if room := validation.DNS1123SubdomainMaxLength - len("-") - len(hash); len(deployment) > room {
		deployment = strings.TrimRight(deployment[:room], "-.")
	}
	return deployment + "-" + hash
}
