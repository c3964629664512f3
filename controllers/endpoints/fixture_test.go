package endpoints

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
)

const key = "ns/web"

// serviceCreated is the creation time of all Services in these tests.
var serviceCreated = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newService(change ...func(*corev1.Service)) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", UID: "service", ResourceVersion: "10", CreationTimestamp: metav1.NewTime(serviceCreated),
			Labels: map[string]string{"team": "a"},
		},
		Spec: corev1.ServiceSpec{
			Selector:   map[string]string{"app": "web"},
			ClusterIP:  "10.0.0.10",
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports:      []corev1.ServicePort{servicePort("http", intstr.FromInt32(80))},
		},
	}
	for _, c := range change {
		c(service)
	}
	return service
}

func servicePort(name string, target intstr.IntOrString) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: 1, Protocol: corev1.ProtocolTCP, TargetPort: target}
}

func headless(s *corev1.Service)        { s.Spec.ClusterIP = corev1.ClusterIPNone }
func publishNotReady(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }
func externalName(s *corev1.Service)    { s.Spec.Type = corev1.ServiceTypeExternalName }
func withoutSelector(s *corev1.Service) { s.Spec.Selector = nil }

func withPorts(ports ...corev1.ServicePort) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Ports = ports }
}

func families(families ...corev1.IPFamily) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.IPFamilies = families }
}

// newPod returns a ready pod that the Service from newService selects.
func newPod(name string, ips []string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "10", Labels: map[string]string{"app": "web", "x": "y"},
		},
		Spec: corev1.PodSpec{NodeName: "node"},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, ip := range ips {
		pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: ip})
	}
	if len(ips) > 0 {
		pod.Status.PodIP = ips[0]
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func at(ip string) []string { return []string{ip} }

func unready(p *corev1.Pod)      { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func terminating(p *corev1.Pod)  { p.DeletionTimestamp = &metav1.Time{Time: serviceCreated} }
func failed(p *corev1.Pod)       { p.Status.Phase = corev1.PodFailed }
func newerVersion(p *corev1.Pod) { p.ResourceVersion = "11" }

func labeled(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

func readyTransitionAt(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(at) }
}

// newEndpoints returns the Endpoints that the controller writes for the Service and the pods.
func newEndpoints(service *corev1.Service, pods []*corev1.Pod, change ...func(*endpoints)) *endpoints {
	e := plan(service, pods, nil, time.Time{})
	e.UID, e.ResourceVersion = "endpoints", "10"
	for _, c := range change {
		c(e)
	}
	return e
}

func atVersion(version string) func(*endpoints) {
	return func(e *endpoints) { e.ResourceVersion = version }
}

func withLeaderElectionRecord(e *endpoints) {
	metav1.SetMetaDataAnnotation(&e.ObjectMeta, "control-plane.alpha.kubernetes.io/leader", "{}")
}

// render returns the subsets as text, one line for each: first the ports, then the addresses.
// "!" precedes a not-ready address.
func render(subsets []subset) []string {
	var lines []string
	for _, s := range subsets {
		var ports []string
		for _, p := range s.Ports {
			ports = append(ports, fmt.Sprintf("%s:%d/%s", p.Name, p.Port, p.Protocol))
		}
		line := strings.Join(ports, ",") + ">"
		for _, a := range s.Addresses {
			line += " " + a.IP
		}
		for _, a := range s.NotReadyAddresses {
			line += " !" + a.IP
		}
		lines = append(lines, line)
	}
	return lines
}

// fixture is a controller whose caches a test fills. It records the controller's API requests
// and answers them.
type fixture struct {
	*Controller
	t        *testing.T
	recorder *record.FakeRecorder

	mu    sync.Mutex
	calls []string
	// callErrors maps a request, such as "create endpoints", to the errors that the fixture
	// returns, in this order. The last error is repeated.
	callErrors map[string][]error
	// liveService and liveEndpoints are the objects that the fixture returns for get requests.
	liveService   *corev1.Service
	liveEndpoints *endpoints
	// callDuration is the simulated duration of each request.
	callDuration time.Duration
	written      *endpoints
	deleted      metav1.DeleteOptions
}

// newFixture returns a fixture whose caches contain the given objects.
func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	r := &fixture{t: t, callErrors: map[string][]error{}, recorder: record.NewFakeRecorder(10)}
	client := &fake.Clientset{}
	client.AddReactor("*", "*", r.handleCall)
	core := informers.NewSharedInformerFactory(client, 0).Core().V1()
	var err error
	r.Controller, err = New(t.Context(), Config{
		Client: client, Services: core.Services().Informer(), Pods: core.Pods().Informer(), Endpoints: core.Endpoints().Informer(),
		Events: r.recorder,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.cache(objects...)
	return r
}

// cache adds objects to the informer caches.
func (r *fixture) cache(objects ...runtime.Object) {
	r.t.Helper()
	for _, object := range objects {
		var err error
		switch object := object.(type) {
		case *corev1.Service:
			err = r.services.Add(object)
		case *corev1.Pod:
			err = r.pods.Add(object)
		case *endpoints:
			err = r.endpoints.Add(object)
		default:
			err = fmt.Errorf("no cache for type %T", object)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *fixture) handleCall(action clienttesting.Action) (bool, runtime.Object, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	time.Sleep(r.callDuration)
	call := action.GetVerb() + " " + action.GetResource().Resource
	r.calls = append(r.calls, call)
	if errs := r.callErrors[call]; len(errs) > 0 {
		r.callErrors[call] = errs[min(1, len(errs)-1):]
		if errs[0] != nil {
			return true, nil, errs[0]
		}
	}
	switch call {
	case create, update:
		r.written = action.(clienttesting.CreateAction).GetObject().(*endpoints)
		return true, &endpoints{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "20"}}, nil
	case readService:
		if r.liveService == nil {
			return true, nil, errNotFound
		}
		return true, r.liveService, nil
	case readEndpoints:
		if r.liveEndpoints == nil {
			return true, nil, errNotFound
		}
		return true, r.liveEndpoints, nil
	case remove:
		r.deleted = action.(clienttesting.DeleteActionImpl).DeleteOptions
		return true, nil, nil
	default:
		return true, nil, fmt.Errorf("unexpected call %q", call)
	}
}

// eventReason returns the reason of the only emitted event, or "" if there is none. The test
// fails if there are several events.
func (r *fixture) eventReason() string {
	r.t.Helper()
	select {
	case event := <-r.recorder.Events:
		if len(r.recorder.Events) > 0 {
			r.t.Errorf("more than one event: %q, %q", event, <-r.recorder.Events)
		}
		return strings.Fields(event)[1]
	default:
		return ""
	}
}

const (
	create        = "create endpoints"
	update        = "update endpoints"
	remove        = "delete endpoints"
	readService   = "get services"
	readEndpoints = "get endpoints"
)

var (
	endpointsResource  = schema.GroupResource{Resource: "endpoints"}
	errTooManyRequests = apierrors.NewTooManyRequests("slow down", 1)
	errNotFound        = apierrors.NewNotFound(endpointsResource, "web")
	errConflict        = apierrors.NewConflict(endpointsResource, "web", errors.New("modified"))
	errAlreadyExists   = apierrors.NewAlreadyExists(endpointsResource, "web")
	errForbidden       = apierrors.NewForbidden(endpointsResource, "web", errors.New("no"))
)

func namespaceTerminating() error {
	err := apierrors.NewForbidden(endpointsResource, "", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}
