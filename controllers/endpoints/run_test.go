package endpoints

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/workloop"
)

// newFakeClient returns a fake API server that sets a new resourceVersion at every write.
func newFakeClient(objects ...runtime.Object) *fake.Clientset {
	server := fake.NewClientset(objects...)
	var version atomic.Int64
	version.Store(100)
	stamp := func(action clienttesting.Action) (bool, runtime.Object, error) {
		accessor, err := meta.Accessor(action.(clienttesting.CreateAction).GetObject())
		if err == nil {
			accessor.SetResourceVersion(strconv.FormatInt(version.Add(1), 10))
		}
		return false, nil, err // let the object tracker of the fake client store the object
	}
	server.PrependReactor("create", "*", stamp)
	server.PrependReactor("update", "*", stamp)
	// In a delete event, the API server sends the resourceVersion of the deletion. The fake client
	// sends the resourceVersion of the last write, to which the cache would go back.
	server.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		events, err := server.Tracker().Watch(action.GetResource(), action.GetNamespace())
		if err != nil {
			return false, nil, err
		}
		return true, watch.Filter(events, func(e watch.Event) (watch.Event, bool) {
			if e.Type != watch.Deleted {
				return e, true
			}
			e.Object = e.Object.DeepCopyObject()
			accessor, err := meta.Accessor(e.Object)
			if err == nil {
				accessor.SetResourceVersion(strconv.FormatInt(version.Add(1), 10))
			}
			return e, true
		}), nil
	})
	return server
}

// runController runs a controller with its own informers in a synctest bubble. The returned
// function stops the controller.
func runController(t *testing.T, server *fake.Clientset) (stop func()) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(server, 0)
	core := factory.Core().V1()
	c, err := New(t.Context(), Config{
		Client: server, Services: core.Services().Informer(), Pods: core.Pods().Informer(), Endpoints: core.Endpoints().Informer(),
		Events: &record.FakeRecorder{},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	drain, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx, drain, 5)
	}()
	time.Sleep(5 * time.Second) // wait until the initial lists are done
	if !c.HasSynced() {
		t.Fatal("not synced")
	}
	return func() {
		close(drain)
		<-done
		cancel()
		factory.Shutdown()
		time.Sleep(time.Hour) // wait until the goroutines of queue and informers end, at their next tick
	}
}

// subsetsByName maps the name of each Endpoints object in the fake API server to its subsets, as
// text.
func subsetsByName(t *testing.T, server *fake.Clientset) map[string][]string {
	t.Helper()
	list, err := server.CoreV1().Endpoints("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, e := range list.Items {
		all[e.Name] = render(e.Subsets)
	}
	return all
}

func serviceNamed(name string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Name = name }
}

// writeCalls returns the verbs of the write requests for Endpoints that the fake API server has
// received.
func writeCalls(server *fake.Clientset) []string {
	var seen []string
	for _, action := range server.Actions() {
		if action.GetResource().Resource == resource && slices.Contains([]string{"create", "update", "patch", "delete"}, action.GetVerb()) {
			seen = append(seen, action.GetVerb())
		}
	}
	return seen
}

// TestOrphanedEndpointsAtStart checks that the controller deletes orphaned Endpoints only when
// it starts. It must keep leader-election records.
func TestOrphanedEndpointsAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leftover := func(name string, change ...func(*endpoints)) *endpoints {
			return newEndpoints(newService(serviceNamed(name)), nil, change...)
		}
		server := newFakeClient(
			leftover("orphan"), leftover("lock", withLeaderElectionRecord), leftover("manual"), leftover("alias"), leftover("web"),
			newService(), newService(serviceNamed("manual"), withoutSelector), newService(serviceNamed("alias"), externalName))
		stop := runController(t, server)
		want := []string{"alias", "lock", "manual", "web"}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(subsetsByName(t, server)))); diff != "" {
			t.Errorf("Endpoints after the start (-want +got):\n%s", diff)
		}
		if _, err := server.CoreV1().Endpoints("ns").Create(t.Context(), leftover("later"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		want = []string{"alias", "later", "lock", "manual", "web"}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(subsetsByName(t, server)))); diff != "" {
			t.Errorf("Endpoints after one was made without a Service (-want +got):\n%s", diff)
		}
		stop()
	})
}

// TestServiceNotYetCached checks Endpoints whose Service exists but is not in the cache. The
// controller must keep these Endpoints.
func TestServiceNotYetCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := newPod("a", at("10.1.0.1"))
		server := newFakeClient(newService(), pod, newEndpoints(newService(), []*corev1.Pod{pod}))
		lagging := watch.NewFake()
		server.PrependReactor("list", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		})
		server.PrependWatchReactor("services", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, lagging, nil
		})
		stop := runController(t, server)
		time.Sleep(time.Minute)
		lagging.Add(newService())
		time.Sleep(time.Minute)
		if got := writeCalls(server); len(got) > 0 {
			t.Errorf("writes of correct Endpoints: %v", got)
		}
		// The controller must also react to later events of the Service.
		if err := server.CoreV1().Pods("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if diff := cmp.Diff(map[string][]string{"web": nil}, subsetsByName(t, server)); diff != "" {
			t.Errorf("Endpoints without the pod (-want +got):\n%s", diff)
		}
		stop()
	})
}

// TestRecoversAfterLongOutage checks that the controller recovers from a long outage of the API
// server without an event. The recovery may take about as long as the outage.
func TestRecoversAfterLongOutage(t *testing.T) {
	for _, outage := range []time.Duration{10 * time.Minute, 3 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			server := newFakeClient(newService(), newPod("a", at("10.1.0.1")))
			var down atomic.Bool
			var tries atomic.Int64
			down.Store(true)
			server.PrependReactor("create", "endpoints", func(clienttesting.Action) (bool, runtime.Object, error) {
				tries.Add(1)
				return down.Load(), nil, apierrors.NewInternalError(context.DeadlineExceeded)
			})
			stop := runController(t, server)
			time.Sleep(outage)
			down.Store(false)
			if got := tries.Load(); got <= 15 {
				t.Errorf("%d attempts in %s, want more than upstream's 15", got, outage)
			}
			time.Sleep(workloop.MaxRetryDelay)
			if diff := cmp.Diff(map[string][]string{"web": {"http:80/TCP> 10.1.0.1"}}, subsetsByName(t, server)); diff != "" {
				t.Errorf("Endpoints after an outage of %s (-want +got):\n%s", outage, diff)
			}
			stop()
		})
	}
}

// TestServiceLifecycle changes a Service and its pods step by step. In one step, a pod fails
// while its condition Ready stays True.
func TestServiceLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeClient()
		stop := runController(t, server)
		services, pods := server.CoreV1().Services("ns"), server.CoreV1().Pods("ns")
		createPod := func(pod *corev1.Pod) error {
			_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
			return err
		}
		changePod := func(change ...func(*corev1.Pod)) error {
			_, err := pods.Update(t.Context(), newPod("a", at("10.1.0.1"), change...), metav1.UpdateOptions{})
			return err
		}
		changeService := func(change ...func(*corev1.Service)) error {
			_, err := services.Update(t.Context(), newService(change...), metav1.UpdateOptions{})
			return err
		}
		db := func(s *corev1.Service) { s.Name, s.UID, s.Spec.Selector = "db", "db", map[string]string{"app": "db"} }
		for _, step := range []struct {
			what string
			do   func() error
			want map[string][]string
		}{
			{"pod without a Service", func() error { return createPod(newPod("a", at("10.1.0.1"))) }, map[string][]string{}},
			{"Service created", func() error {
				_, err := services.Create(t.Context(), newService(), metav1.CreateOptions{})
				return err
			}, map[string][]string{"web": {"http:80/TCP> 10.1.0.1"}}},
			{"second Service created", func() error {
				_, err := services.Create(t.Context(), newService(db), metav1.CreateOptions{})
				return err
			}, map[string][]string{"web": {"http:80/TCP> 10.1.0.1"}, "db": nil}},
			{"not ready", func() error { return changePod(unready) }, map[string][]string{"web": {"http:80/TCP> !10.1.0.1"}, "db": nil}},
			{"publishNotReadyAddresses set", func() error { return changeService(publishNotReady) }, map[string][]string{"web": {"http:80/TCP> 10.1.0.1"}, "db": nil}},
			{"no more", func() error { return changeService() }, map[string][]string{"web": {"http:80/TCP> !10.1.0.1"}, "db": nil}},
			{"ready again", func() error { return changePod() }, map[string][]string{"web": {"http:80/TCP> 10.1.0.1"}, "db": nil}},
			{"relabelled", func() error { return changePod(labeled("db")) }, map[string][]string{"web": nil, "db": {"http:80/TCP> 10.1.0.1"}}},
			{"publishNotReadyAddresses unset", func() error { return changePod() }, map[string][]string{"web": {"http:80/TCP> 10.1.0.1"}, "db": nil}},
			{"pod failed, condition Ready true", func() error { return changePod(failed) }, map[string][]string{"web": nil, "db": nil}},
			{"second pod created", func() error { return createPod(newPod("b", at("10.1.0.2"))) }, map[string][]string{"web": {"http:80/TCP> 10.1.0.2"}, "db": nil}},
			{"Endpoints deleted", func() error {
				return server.CoreV1().Endpoints("ns").Delete(t.Context(), "web", metav1.DeleteOptions{})
			}, map[string][]string{"web": {"http:80/TCP> 10.1.0.2"}, "db": nil}},
			{"type ExternalName, pod deleted", func() error {
				if err := changeService(externalName); err != nil {
					return err
				}
				time.Sleep(time.Second)
				return pods.Delete(t.Context(), "b", metav1.DeleteOptions{})
			}, map[string][]string{"web": {"http:80/TCP> 10.1.0.2"}, "db": nil}},
			{"type ClusterIP again", func() error { return changeService() }, map[string][]string{"web": nil, "db": nil}},
			{"Services deleted", func() error {
				for _, name := range []string{"web", "db"} {
					if err := services.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
						return err
					}
				}
				return nil
			}, map[string][]string{}},
			{"Service recreated", func() error {
				_, err := services.Create(t.Context(), newService(func(s *corev1.Service) { s.UID = "later" }), metav1.CreateOptions{})
				return err
			}, map[string][]string{"web": nil}},
		} {
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
			time.Sleep(2 * time.Second)
			if diff := cmp.Diff(step.want, subsetsByName(t, server)); diff != "" {
				t.Errorf("%s: Endpoints (-want +got):\n%s", step.what, diff)
			}
		}
		before := len(writeCalls(server))
		time.Sleep(time.Hour)
		if after := len(writeCalls(server)); after != before {
			t.Errorf("%d writes without a change", after-before)
		}
		stop()
	})
}
