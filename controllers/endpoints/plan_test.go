package endpoints

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

func manyPods(n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = newPod(fmt.Sprintf("pod-%04d", i), at(fmt.Sprintf("10.1.%d.%d", i/256, i%256)))
	}
	return pods
}

func annotated(key, value string) func(*endpoints) {
	return func(e *endpoints) { metav1.SetMetaDataAnnotation(&e.ObjectMeta, key, value) }
}

// TestPlan checks which Endpoints plan returns for existing Endpoints, and when it returns nil.
func TestPlan(t *testing.T) {
	two := []*corev1.Pod{newPod("a", at("10.1.0.1")), newPod("b", at("10.1.0.2"))}
	truncatedMark := annotated(corev1.EndpointsOverCapacity, truncatedValue)
	tests := []struct {
		name    string
		service *corev1.Service
		pods    []*corev1.Pod
		change  func(*endpoints) // changes the existing Endpoints
		want    bool
	}{
		{"up to date", newService(), two, func(*endpoints) {}, false},
		{"up to date, trigger time is ignored", newService(), two, annotated(corev1.EndpointsLastChangeTriggerTime, "x"), false},
		{"other order", newService(), two, func(e *endpoints) { slices.Reverse(e.Subsets[0].Addresses) }, false},
		{"several subsets", newService(), two, func(e *endpoints) {
			s := e.Subsets[0]
			e.Subsets = []subset{{Addresses: s.Addresses[1:], Ports: s.Ports}, {Addresses: s.Addresses[:1], Ports: s.Ports}}
		}, false},
		{"older pod resourceVersion", newService(), two, func(e *endpoints) { e.Subsets[0].Addresses[0].TargetRef.ResourceVersion = "1" }, false},
		{"no addresses", newService(), nil, func(e *endpoints) { e.Subsets = []subset{} }, false},
		{"other annotation", newService(), two, annotated("x", "y"), false},
		{"missing address", newService(), two, func(e *endpoints) { e.Subsets[0].Addresses = e.Subsets[0].Addresses[1:] }, true},
		{"additional address", newService(), two, func(e *endpoints) { e.Subsets[0].Addresses = append(e.Subsets[0].Addresses, address{IP: "10.9.9.9"}) }, true},
		{"ready pod listed as not ready", newService(), two, func(e *endpoints) {
			e.Subsets[0].NotReadyAddresses, e.Subsets[0].Addresses = e.Subsets[0].Addresses, nil
		}, true},
		{"missing label", newService(), two, func(e *endpoints) { delete(e.Labels, "team") }, true},
		{"missing managed-by label", newService(), two, func(e *endpoints) { delete(e.Labels, managedByLabel) }, true},
		{"other managed-by label", newService(), two, func(e *endpoints) { e.Labels[managedByLabel] = "me" }, true},
		{"additional label", newService(), two, func(e *endpoints) { e.Labels["x"] = "y" }, true},
		{"wrong headless label", newService(), two, func(e *endpoints) { e.Labels[corev1.IsHeadlessService] = "" }, true},
		{"wrong over-capacity annotation", newService(), two, truncatedMark, true},
		{"over-capacity annotation with the old value", newService(), two, annotated(corev1.EndpointsOverCapacity, "warning"), true},
		{"truncated, with the annotation", newService(), manyPods(1001), truncatedMark, false},
		{"truncated, without the annotation", newService(), manyPods(1001), func(e *endpoints) { delete(e.Annotations, corev1.EndpointsOverCapacity) }, true},
		{"truncated, annotation with the old value", newService(), manyPods(1001), annotated(corev1.EndpointsOverCapacity, "warning"), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			current := newEndpoints(test.service, test.pods, test.change)
			before := current.DeepCopy()
			next := plan(test.service, test.pods, current, time.Time{})
			if (next != nil) != test.want {
				t.Errorf("writes: %t, want %t", next != nil, test.want)
			}
			if diff := cmp.Diff(before, current); diff != "" {
				t.Errorf("the cached Endpoints were modified (-before +after):\n%s", diff)
			}
			if next != nil && plan(test.service, test.pods, next, time.Time{}) != nil {
				t.Error("planning again returns another write")
			}
		})
	}
}

func TestPlanKeepsOtherMetadata(t *testing.T) {
	current := newEndpoints(newService(), nil, withLeaderElectionRecord, annotated("x", "y"), annotated(corev1.EndpointsLastChangeTriggerTime, "then"),
		annotated(corev1.EndpointsOverCapacity, truncatedValue), func(e *endpoints) { e.Finalizers = []string{"f"} })
	next := plan(newService(), []*corev1.Pod{newPod("a", at("10.1.0.1"))}, current, time.Time{})
	want := current.DeepCopy()
	want.Annotations = map[string]string{"x": "y", "control-plane.alpha.kubernetes.io/leader": "{}"}
	if diff := cmp.Diff(want.ObjectMeta, next.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestPlanWithoutPods(t *testing.T) {
	next := plan(newService(), nil, nil, serviceCreated)
	want := &endpoints{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "web",
		Labels:      map[string]string{"team": "a", managedByLabel: EventSource},
		Annotations: map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-01-02T03:04:05Z"},
	}, Subsets: []subset{}}
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("Endpoints (-want +got):\n%s", diff)
	}
}

func TestTriggerTimeAnnotation(t *testing.T) {
	for _, test := range []struct {
		trigger time.Time
		want    string
	}{
		{time.Time{}, ""},
		{serviceCreated, "2026-01-02T03:04:05Z"},
		{serviceCreated.Add(120_000_003), "2026-01-02T03:04:05.120000003Z"},
		{serviceCreated.In(time.FixedZone("", 3600)), "2026-01-02T03:04:05Z"},
	} {
		next := plan(newService(), nil, nil, test.trigger)
		if got, present := next.Annotations[corev1.EndpointsLastChangeTriggerTime]; got != test.want || present != (test.want != "") {
			t.Errorf("trigger time %s is written as %q, present: %t; want %q", test.trigger, got, present, test.want)
		}
	}
}

func TestLabels(t *testing.T) {
	managed := map[string]string{managedByLabel: "endpoint-controller"}
	with := func(more map[string]string) map[string]string {
		all := maps.Clone(managed)
		maps.Copy(all, more)
		return all
	}
	labels := func(l map[string]string) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Labels = l }
	}
	headlessLabel := map[string]string{corev1.IsHeadlessService: ""}
	for _, test := range []struct {
		name    string
		service *corev1.Service
		want    map[string]string
	}{
		{"none", newService(labels(nil)), managed},
		{"labels of the Service", newService(labels(map[string]string{"a": "b"})), with(map[string]string{"a": "b"})},
		{"Service cannot set managed-by", newService(labels(map[string]string{managedByLabel: "me"})), managed},
		{"headless", newService(labels(nil), headless), with(headlessLabel)},
		{"no cluster IP yet", newService(labels(nil), func(s *corev1.Service) { s.Spec.ClusterIP = "" }), with(headlessLabel)},
		{"Service cannot set the headless label", newService(labels(headlessLabel)), managed},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, labelsOf(test.service)); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPlanProperties checks that plan returns nil for Endpoints that plan itself has returned.
// The order of the pods must not matter.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		service := newService(withPorts(servicePort("http", intstr.FromInt32(80)), servicePort("admin", intstr.FromString("admin"))))
		if rapid.Bool().Draw(t, "headless") {
			headless(service)
		}
		service.Spec.PublishNotReadyAddresses = rapid.Bool().Draw(t, "publishNotReady")
		pods := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) *corev1.Pod {
			pod := newPod(rapid.StringMatching("[a-z]{1,2}").Draw(t, "name"), rapid.SliceOfN(rapid.SampledFrom([]string{"10.1.0.1", "10.1.0.2", "fd00::1"}), 0, 2).Draw(t, "ips"))
			for _, change := range []func(*corev1.Pod){unready, terminating, failed, containers("admin", 90, corev1.ProtocolTCP, nil, false)} {
				if rapid.Bool().Draw(t, "change") {
					change(pod)
				}
			}
			return pod
		}), 0, 12, func(p *corev1.Pod) string { return p.Name }).Draw(t, "pods")
		next := plan(service, pods, nil, serviceCreated)
		if again := plan(service, rapid.Permutation(pods).Draw(t, "shuffled"), next, serviceCreated); again != nil {
			t.Fatalf("planning again returns another write (-first +again):\n%s", cmp.Diff(next, again))
		}
		for _, s := range next.Subsets {
			if service.Spec.PublishNotReadyAddresses && len(s.NotReadyAddresses) > 0 {
				t.Fatalf("not-ready addresses with publishNotReadyAddresses: %v", render(next.Subsets))
			}
		}
	})
}

func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			service, pods := newService(), manyPods(n)
			current := plan(service, pods, nil, serviceCreated)
			for b.Loop() {
				plan(service, pods, current, serviceCreated)
			}
		})
	}
}
