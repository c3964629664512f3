package simulation

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestRefusedBinding checks whether the scheduler binds a pod again after a refused binding.
func TestRefusedBinding(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, test := range []struct {
		name    string
		refusal error
		want    int // number of bindings
	}{
		{"the API server reports a conflict while etcd is down", apierrors.NewConflict(pods, "web", errors.New("etcd is down")), 2},
		{"the API server fails", apierrors.NewInternalError(errors.New("failed")), 2},
		{"the pod has been deleted", apierrors.NewNotFound(pods, "web"), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bindings, client := 0, fake.NewClientset()
				client.PrependReactor("create", "pods/binding", func(clienttesting.Action) (bool, runtime.Object, error) {
					if bindings++; bindings == 1 {
						return true, nil, test.refusal
					}
					return true, nil, nil
				})
				s := newScheduler(client)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go s.run(ctx)
				s.send(ctx, event{node: &corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
					Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
				}})
				s.send(ctx, event{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1"}}})
				<-time.After(2 * backoffMax) // virtual time
				if bindings != test.want {
					t.Errorf("found %d bindings of the pod, expected %d", bindings, test.want)
				}
			})
		})
	}
}
