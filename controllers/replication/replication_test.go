package replication

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/controllers/replicaset"
)

func newRC(replicas int32) *corev1.ReplicationController {
	return &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "rc", Generation: 3, ResourceVersion: "1"},
		Spec: corev1.ReplicationControllerSpec{
			Replicas: &replicas,
			Selector: map[string]string{"app": "web"},
			Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}},
		},
	}
}

// identify makes a fake client set the name, UID and resourceVersion of created pods, like the
// API server.
func identify(client *fake.Clientset) {
	var version atomic.Int64
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		v := version.Add(1)
		pod.Name = fmt.Sprintf("%s%d", pod.GenerateName, v)
		pod.UID, pod.ResourceVersion = types.UID(pod.Name), fmt.Sprint(100+v)
		return false, nil, nil // let the object tracker of the fake client store the object
	})
}

// TestEngine checks that the sync loop of package replicaset works for a ReplicationController.
// It must create the pods and write the status.
func TestEngine(t *testing.T) {
	client := fake.NewClientset(newRC(3))
	synctest.Test(t, func(t *testing.T) {
		identify(client)
		factory := informers.NewSharedInformerFactory(client, 0)
		controller, err := replicaset.New(t.Context(), replicaset.Config{
			Kind:   Controllers(client, factory.Core().V1().ReplicationControllers()),
			Client: client, Pods: factory.Core().V1().Pods().Informer(),
			Events: &record.FakeRecorder{}, Clock: clock.RealClock{}, Burst: replicaset.Burst,
		})
		if err != nil {
			t.Fatal(err)
		}
		stopInformers := make(chan struct{})
		factory.Start(stopInformers)
		drain, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			controller.Run(t.Context(), drain, 2)
		}()
		time.Sleep(10 * time.Second)

		pods, err := client.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := metav1.OwnerReference{APIVersion: "v1", Kind: "ReplicationController", Name: "web", UID: "rc", Controller: new(true), BlockOwnerDeletion: new(true)}
		for _, pod := range pods.Items {
			if diff := cmp.Diff([]metav1.OwnerReference{want}, pod.OwnerReferences); diff != "" {
				t.Errorf("owners of %s (-want +got):\n%s", pod.Name, diff)
			}
		}
		if len(pods.Items) != 3 {
			t.Errorf("%d pods, want 3", len(pods.Items))
		}
		rc, err := client.CoreV1().ReplicationControllers("ns").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus := corev1.ReplicationControllerStatus{Replicas: 3, FullyLabeledReplicas: 3, ObservedGeneration: 3}
		if diff := cmp.Diff(wantStatus, rc.Status); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}

		close(drain)
		<-done
		close(stopInformers)
		factory.Shutdown()
		time.Sleep(time.Minute) // wait until the queue's goroutines have ended, at their next tick
	})
}

func TestOwner(t *testing.T) {
	kind := &replicationControllers{}
	rc := newRC(2)
	rc.Spec.MinReadySeconds = 5
	rc.Status = corev1.ReplicationControllerStatus{
		Replicas: 1, FullyLabeledReplicas: 2, ReadyReplicas: 3, AvailableReplicas: 4, ObservedGeneration: 5,
		Conditions: []corev1.ReplicationControllerCondition{{Type: "ReplicaFailure", Status: corev1.ConditionTrue, Reason: "R", Message: "M"}},
	}
	got, err := kind.Owner(rc)
	if err != nil {
		t.Fatal(err)
	}
	want := replicaset.Status{
		Replicas: 1, FullyLabeled: 2, Ready: 3, Available: 4, ObservedGeneration: 5,
		Conditions: []replicaset.Condition{{Type: "ReplicaFailure", Status: corev1.ConditionTrue, Reason: "R", Message: "M"}},
	}
	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if got.Replicas != 2 || got.MinReady != 5*time.Second || !got.Selector.Matches(labels.Set{"app": "web"}) || got.Selector.Matches(labels.Set{"app": "db"}) {
		t.Errorf("owner %+v", got)
	}
	rc.Spec.Selector = nil
	if got, err = kind.Owner(rc); err != nil || got.Selector.Matches(labels.Set{"app": "web"}) {
		t.Errorf("empty selector matches, error %v", err)
	}
	rc.Spec.Template = nil
	if _, err = kind.Owner(rc); err == nil {
		t.Error("no error without a template")
	}
}

// TestUpdateStatus checks that a status is unchanged after UpdateStatus has written it and Owner
// has read it again.
func TestUpdateStatus(t *testing.T) {
	client := fake.NewClientset(newRC(1))
	kind := &replicationControllers{client: client}
	owner, err := kind.Live(t.Context(), "ns", "web")
	if err != nil {
		t.Fatal(err)
	}
	want := replicaset.Status{
		Replicas: 1, FullyLabeled: 2, Ready: 3, Available: 4, ObservedGeneration: 5,
		Conditions: []replicaset.Condition{{Type: "ReplicaFailure", Status: corev1.ConditionTrue, Reason: "R", Message: "M"}},
	}
	if _, err := kind.UpdateStatus(t.Context(), owner, want); err != nil {
		t.Fatal(err)
	}
	if owner, err = kind.Live(t.Context(), "ns", "web"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, owner.Status); diff != "" {
		t.Errorf("status read back (-want +got):\n%s", diff)
	}
}
