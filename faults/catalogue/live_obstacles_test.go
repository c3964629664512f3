package catalogue

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replicaSet is one without pods.
func replicaSet(name string, owner *corev1.ConfigMap) *appsv1.ReplicaSet {
	labels := map[string]string{"app": "web"}
	none := int32(0)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "pause"}}},
			},
		},
	}
}

// TestNameTaken: the subject's create is answered by the API server itself, since
// another ReplicaSet is there. Nobody else's name is taken, and no more than asked.
func TestNameTaken(t *testing.T) {
	for _, template := range []string{"other", "same"} {
		t.Run(template, func(t *testing.T) {
			t.Parallel()
			l := startLive(t)
			owner := l.commit("web")
			heal := l.inject("name-taken", "{owner: ConfigMap/web, template: "+template+", times: 2}")
			create := func(set *appsv1.ReplicaSet) error {
				_, err := l.subject.AppsV1().ReplicaSets(l.namespace).Create(t.Context(), set, metav1.CreateOptions{})
				return err
			}
			if err := create(replicaSet("theirs", l.commit("db"))); err != nil {
				t.Errorf("a ReplicaSet of somebody else: %v", err)
			}
			for _, name := range []string{"web-1", "web-2"} {
				if err := create(replicaSet(name, owner)); !apierrors.IsAlreadyExists(err) {
					t.Errorf("%s: %v; expected that there is one already", name, err)
				}
				other, err := l.admin.AppsV1().ReplicaSets(l.namespace).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				same := template == "same"
				if metav1.IsControlledBy(other, owner) || (metav1.GetControllerOf(other) != nil) != same ||
					(other.Labels["app"] == "web") != same || (other.Spec.Template.Spec.Containers[0].Name == "pause") != same {
					t.Errorf("%s was taken by %+v", name, other)
				}
			}
			if err := create(replicaSet("web-3", owner)); err != nil {
				t.Errorf("a third: %v", err)
			}
			if l.fired() != 2 {
				t.Errorf("fired %d times, want 2", l.fired())
			}
			heal()
			if err := create(replicaSet("web-1", owner)); !apierrors.IsAlreadyExists(err) {
				t.Errorf("what took the name is gone after healing: %v", err)
			}
		})
	}
}
