package podcontrol

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
)

var (
	gvk   = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	pods  = schema.GroupResource{Resource: "pods"}
	owner = &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "owner"}}
)

func TestFromTemplate(t *testing.T) {
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Name: "ignored", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}, Finalizers: []string{"f"},
		},
		Spec: corev1.PodSpec{NodeName: "n"},
	}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "web-", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}, Finalizers: []string{"f"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "owner", Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{NodeName: "n"},
	}
	if diff := cmp.Diff(want, FromTemplate(owner, gvk, template)); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
}

func namespaceTerminating() error {
	err := apierrors.NewForbidden(pods, "", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func TestEvents(t *testing.T) {
	create := func(c *Control, t *testing.T) error {
		_, err := c.Create(t.Context(), owner, gvk, &corev1.PodTemplateSpec{})
		return err
	}
	del := func(c *Control, t *testing.T) error {
		return c.Delete(t.Context(), owner, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}})
	}
	tests := []struct {
		name   string
		do     func(*Control, *testing.T) error
		answer error
		want   []string
		is     func(error) bool
	}{
		{"created", create, nil, []string{"Normal SuccessfulCreate Created pod: web-1"}, func(err error) bool { return err == nil }},
		{"create refused", create, apierrors.NewTooManyRequests("slow down", 1), []string{"Warning FailedCreate Error creating: slow down"}, apierrors.IsTooManyRequests},
		{"create in a terminating namespace", create, namespaceTerminating(), nil, NamespaceTerminating},
		{"deleted", del, nil, []string{"Normal SuccessfulDelete Deleted pod: p"}, func(err error) bool { return err == nil }},
		{"delete refused", del, apierrors.NewTooManyRequests("slow down", 1), []string{"Warning FailedDelete Error deleting: slow down"}, apierrors.IsTooManyRequests},
		{"deleted already", del, apierrors.NewNotFound(pods, "p"), nil, apierrors.IsNotFound},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("*", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if options, ok := action.(clienttesting.DeleteActionImpl); ok {
					if uid := options.DeleteOptions.Preconditions.UID; uid == nil || *uid != "u" {
						t.Errorf("delete has no UID precondition: %v", uid)
					}
				}
				return true, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}, test.answer
			})
			recorder := record.NewFakeRecorder(10)
			if err := test.do(New(client, recorder), t); !test.is(err) {
				t.Errorf("error %v", err)
			}
			close(recorder.Events)
			var events []string
			for event := range recorder.Events {
				events = append(events, event)
			}
			if diff := cmp.Diff(test.want, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
