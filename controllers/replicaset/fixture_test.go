package replicaset

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

const key = "ns/web"

// fixture is a controller whose caches a test fills. It records the controller's API requests
// and answers them.
type fixture struct {
	*Controller
	t     *testing.T
	clock *clocktesting.FakePassiveClock

	mu      sync.Mutex
	calls   []string
	created int
	// callErrors maps a request, such as "create pods", to the errors that the fixture returns,
	// in this order. The last error is repeated.
	callErrors map[string][]error
	// duringCall maps a request to a function that runs while the request is in flight.
	duringCall map[string]func()
	live       *appsv1.ReplicaSet
	written    []appsv1.ReplicaSetStatus
}

func newFixture(t *testing.T, set *appsv1.ReplicaSet, pods ...*corev1.Pod) *fixture {
	t.Helper()
	fake := clocktesting.NewFakePassiveClock(now)
	r := newFixtureWithClock(t, fake, set, pods...)
	r.clock = fake
	return r
}

func newFixtureWithClock(t *testing.T, clock clock.PassiveClock, set *appsv1.ReplicaSet, pods ...*corev1.Pod) *fixture {
	t.Helper()
	r := &fixture{t: t, callErrors: map[string][]error{}, duringCall: map[string]func(){}, live: set}
	client := &fake.Clientset{}
	client.AddReactor("*", "*", r.handleCall)
	factory := informers.NewSharedInformerFactory(client, 0)
	kind, err := ReplicaSets(client, factory.Apps().V1().ReplicaSets())
	if err != nil {
		t.Fatal(err)
	}
	r.Controller, err = New(t.Context(), Config{
		Kind: kind, Client: client, Pods: factory.Core().V1().Pods().Informer(),
		Events: &record.FakeRecorder{}, Clock: clock, Burst: Burst,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.cache(t, set, pods...)
	return r
}

// cache adds a ReplicaSet and its pods to the informer caches.
func (r *fixture) cache(t *testing.T, set *appsv1.ReplicaSet, pods ...*corev1.Pod) {
	t.Helper()
	err := r.owners.Add(set)
	for _, pod := range pods {
		err = errors.Join(err, r.pods.Add(pod))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (r *fixture) handleCall(action clienttesting.Action) (bool, runtime.Object, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call := strings.TrimSuffix(action.GetVerb()+" "+action.GetResource().Resource+"/"+action.GetSubresource(), "/")
	switch a := action.(type) {
	case clienttesting.DeleteAction:
		call += " " + a.GetName()
	case clienttesting.PatchAction:
		call += " " + a.GetName()
	}
	r.calls = append(r.calls, call)
	if happens := r.duringCall[call]; happens != nil {
		happens()
	}
	if errs := r.callErrors[call]; len(errs) > 0 {
		r.callErrors[call] = errs[min(1, len(errs)-1):]
		if errs[0] != nil {
			return true, nil, errs[0]
		}
	}
	switch action.GetVerb() {
	case "create":
		r.created++
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		pod.Name = fmt.Sprintf("new-%d", r.created)
		pod.UID, pod.ResourceVersion = types.UID(pod.Name), fmt.Sprint(1000+r.created)
		return true, pod, nil
	case "update":
		set := action.(clienttesting.UpdateAction).GetObject().(*appsv1.ReplicaSet)
		r.written = append(r.written, set.Status)
		return true, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "3000"}}, nil
	case "get":
		return true, r.live, nil
	case "patch":
		return true, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2000"}}, nil
	default:
		return true, nil, nil
	}
}

func newSet(replicas int32, change ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "set", Generation: 1, ResourceVersion: "10"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}},
		},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

func deleting(set *appsv1.ReplicaSet) { set.DeletionTimestamp = &metav1.Time{Time: now} }

func reporting(replicas int32) func(*appsv1.ReplicaSet) {
	return func(set *appsv1.ReplicaSet) {
		set.Status = appsv1.ReplicaSetStatus{
			Replicas: replicas, FullyLabeledReplicas: replicas, TerminatingReplicas: new(int32(0)), ObservedGeneration: 1,
		}
	}
}

// newPod returns a pending pod that the ReplicaSet from newSet controls.
func newPod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}, ResourceVersion: "10",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(newSet(0), appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func orphaned(pod *corev1.Pod)            { pod.OwnerReferences = nil }
func relabeled(pod *corev1.Pod)           { pod.Labels = map[string]string{"app": "db"} }
func controlledByAnother(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "another" }
func terminating(pod *corev1.Pod)         { pod.DeletionTimestamp = &metav1.Time{Time: now} }

var (
	podResource        = schema.GroupResource{Resource: "pods"}
	setResource        = schema.GroupResource{Group: "apps", Resource: "replicasets"}
	errTooManyRequests = apierrors.NewTooManyRequests("slow down", 1)
	errConflict        = apierrors.NewConflict(setResource, "web", errors.New("modified"))
	errNotFound        = apierrors.NewNotFound(podResource, "p")
)

func namespaceTerminating() error {
	err := apierrors.NewForbidden(podResource, "", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

const (
	create = "create pods"
	status = "update replicasets/status"
	read   = "get replicasets"
)

func repeat(call string, n int) []string {
	calls := make([]string, n)
	for i := range calls {
		calls[i] = call
	}
	return calls
}
