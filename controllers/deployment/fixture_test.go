package deployment

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

const key = "ns/web"

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture is a controller with a fake API server. The method deliver copies the API server's
// objects to the caches. Every write calls deliver, unless cachesStale is set.
type fixture struct {
	*Controller
	t      testing.TB
	clock  *clocktesting.FakePassiveClock
	events *recorder

	mu          sync.Mutex
	version     int
	deployments map[string]*appsv1.Deployment
	sets        map[string]*appsv1.ReplicaSet
	cachesStale bool
	calls       []string
	// callErrors maps a request, such as "update replicasets web-v1", to errors. The fake API
	// server returns them in this order, and repeats the last one.
	callErrors map[string][]error
	// lostResponses contains the requests that succeed, but return an error.
	lostResponses map[string]bool
	// onWrite is called after every successful write. By default, it does nothing.
	onWrite func(call string)
}

func newFixture(t testing.TB, d *appsv1.Deployment, sets ...*appsv1.ReplicaSet) *fixture {
	t.Helper()
	fake := clocktesting.NewFakePassiveClock(now)
	r := newFixtureWithClock(t, fake, d, sets...)
	r.clock = fake
	return r
}

func newFixtureWithClock(t testing.TB, clock clock.PassiveClock, d *appsv1.Deployment, sets ...*appsv1.ReplicaSet) *fixture {
	t.Helper()
	r := &fixture{
		t: t, events: &recorder{}, version: 100, callErrors: map[string][]error{}, lostResponses: map[string]bool{}, onWrite: func(string) {},
		deployments: map[string]*appsv1.Deployment{}, sets: map[string]*appsv1.ReplicaSet{},
	}
	client := &fake.Clientset{}
	client.AddReactor("*", "*", r.handleCall)
	factory := informers.NewSharedInformerFactory(client, 0)
	controller, err := New(t.Context(), Config{
		Client:      client,
		Deployments: factory.Apps().V1().Deployments().Informer(),
		ReplicaSets: factory.Apps().V1().ReplicaSets().Informer(),
		Pods:        factory.Core().V1().Pods().Informer(),
		Events:      r.events,
		Clock:       clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Controller = controller
	r.deployments[d.Name] = d
	for _, set := range sets {
		r.sets[set.Name] = set
	}
	r.deliver()
	return r
}

// deliver copies the objects of the fake API server to the caches.
func (r *fixture) deliver() {
	r.deliverDeployments()
	r.deliverSets()
}

func (r *fixture) deliverDeployments() {
	replace(r.t, r.Controller.deployments, r.deployments, r.version)
}
func (r *fixture) deliverSets() { replace(r.t, r.replicaSets, r.sets, r.version) }

func replace[T runtime.Object](t testing.TB, cache interface{ Replace([]any, string) error }, objects map[string]T, version int) {
	var all []any
	for _, object := range objects {
		all = append(all, object)
	}
	if err := cache.Replace(all, strconv.Itoa(version)); err != nil {
		t.Fatal(err)
	}
}

// setPods replaces all pods in the cache.
func (r *fixture) setPods(t testing.TB, pods ...*corev1.Pod) {
	t.Helper()
	var all []any
	for _, pod := range pods {
		all = append(all, pod)
	}
	if err := r.pods.Replace(all, strconv.Itoa(r.version)); err != nil {
		t.Fatal(err)
	}
}

// deployment returns the Deployment in the fake API server.
func (r *fixture) deployment() *appsv1.Deployment { return r.deployments["web"] }

// onlyReplicaSet returns the only ReplicaSet in the fake API server. The test fails if there is
// none, or more than one.
func (r *fixture) onlyReplicaSet(t testing.TB) *appsv1.ReplicaSet {
	t.Helper()
	if len(r.sets) != 1 {
		t.Fatalf("%d ReplicaSets, want 1", len(r.sets))
	}
	for _, set := range r.sets {
		return set
	}
	return nil
}

func (r *fixture) handleCall(action clienttesting.Action) (bool, runtime.Object, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call := strings.TrimSuffix(action.GetVerb()+" "+action.GetResource().Resource+"/"+action.GetSubresource(), "/")
	name := ""
	switch a := action.(type) {
	case clienttesting.UpdateAction: // create actions have this type too
		name = a.GetObject().(metav1.Object).GetName()
	case clienttesting.GetAction: // patch and delete actions have this type too
		name = a.GetName()
	}
	call += " " + name
	r.calls = append(r.calls, call)
	if errs := r.callErrors[call]; len(errs) > 0 {
		r.callErrors[call] = errs[min(1, len(errs)-1):]
		if errs[0] != nil {
			return true, nil, errs[0]
		}
	}
	object, err := r.applyToReplicaSets(action, name)
	if err == nil && action.GetVerb() != "get" {
		r.onWrite(call)
		if !r.cachesStale {
			r.deliver()
		}
		if r.lostResponses[call] {
			return true, nil, apierrors.NewTimeoutError("lost", 0)
		}
	}
	return true, object, err
}

func (r *fixture) applyToReplicaSets(action clienttesting.Action, name string) (runtime.Object, error) {
	if action.GetResource().Resource == deploymentsResource {
		return r.applyToDeployments(action, name)
	}
	set, exists := r.sets[name]
	if action.GetVerb() == "create" {
		if exists {
			return nil, apierrors.NewAlreadyExists(setResource, name)
		}
		created := action.(clienttesting.CreateAction).GetObject().(*appsv1.ReplicaSet).DeepCopy()
		created.UID, created.Generation = types.UID("uid-"+name), 1
		created.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(r.version) * time.Second))
		return r.store(created), nil
	}
	if !exists {
		return nil, apierrors.NewNotFound(setResource, name)
	}
	switch a := action.(type) {
	case clienttesting.UpdateAction:
		changed := a.GetObject().(*appsv1.ReplicaSet).DeepCopy()
		if changed.ResourceVersion != set.ResourceVersion {
			return nil, apierrors.NewConflict(setResource, name, errors.New("modified"))
		}
		changed.Generation++
		return r.store(changed), nil
	case clienttesting.PatchAction:
		before, err := json.Marshal(set)
		if err != nil {
			return nil, err
		}
		after, err := strategicpatch.StrategicMergePatch(before, a.GetPatch(), appsv1.ReplicaSet{})
		if err != nil {
			return nil, err
		}
		patched := &appsv1.ReplicaSet{}
		if err := json.Unmarshal(after, patched); err != nil {
			return nil, err
		}
		return r.store(patched), nil
	case clienttesting.DeleteAction:
		r.version++
		delete(r.sets, name)
		return nil, nil
	default:
		return set, nil
	}
}

func (r *fixture) applyToDeployments(action clienttesting.Action, name string) (runtime.Object, error) {
	d, exists := r.deployments[name]
	if !exists {
		return nil, apierrors.NewNotFound(deploymentResource, name)
	}
	update, is := action.(clienttesting.UpdateAction)
	if !is {
		return d, nil
	}
	sent := update.GetObject().(*appsv1.Deployment)
	if sent.ResourceVersion != d.ResourceVersion {
		return nil, apierrors.NewConflict(deploymentResource, name, errors.New("modified"))
	}
	changed := d.DeepCopy()
	changed.Annotations = sent.Annotations
	if action.GetSubresource() == "status" {
		changed.Status = *sent.Status.DeepCopy()
	} else {
		changed.Spec = *sent.Spec.DeepCopy()
		changed.Generation++
	}
	r.version++
	changed.ResourceVersion = strconv.Itoa(r.version)
	r.deployments[name] = changed
	return changed, nil
}

func (r *fixture) store(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	r.version++
	set.ResourceVersion = strconv.Itoa(r.version)
	r.sets[set.Name] = set
	return set
}

// updateSpec changes the Deployment in the fake API server, like an update by a user.
func (r *fixture) updateSpec(change func(*appsv1.Deployment)) {
	d := r.deployment().DeepCopy()
	change(d)
	r.version++
	d.ResourceVersion = strconv.Itoa(r.version)
	d.Generation++
	r.deployments[d.Name] = d
	r.deliver()
}

// syncReplicaSets acts as the ReplicaSet controller: each ReplicaSet gets all its pods, and all
// of them are available.
func (r *fixture) syncReplicaSets() {
	for _, set := range r.sets {
		r.store(withAvailablePods(*set.Spec.Replicas)(set.DeepCopy()))
	}
	r.deliver()
}

// recorder stores each event as a string with type, reason and message.
type recorder struct {
	mu       sync.Mutex
	recorded []string
}

func (e *recorder) Event(_ runtime.Object, kind, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.recorded = append(e.recorded, fmt.Sprintf("%s %s %s", kind, reason, message))
}

func (e *recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	e.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (e *recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	e.Eventf(object, kind, reason, format, args...)
}
