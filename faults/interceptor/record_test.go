package interceptor

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// jsonString returns a text as a JSON string.
func jsonString(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

// examplePod returns a pod of a usual size.
func examplePod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "ns", UID: "uid", ResourceVersion: "3", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: "main", Image: "pause"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func TestRetryAfterRead(t *testing.T) {
	seconds := func(n int) *int { return &n }
	for value, want := range map[string]*int{"": nil, "0": seconds(0), "17": seconds(17), "Fri, 21 Nov 2025 07:28:00 GMT": nil} {
		if diff := cmp.Diff(want, retryAfter(http.Header{"Retry-After": []string{value}})); diff != "" {
			t.Errorf("Retry-After %q (-want +got):\n%s", value, diff)
		}
	}
}

// TestController checks that Controller finds the owner of an object in the request body. Without
// a body, Controller must use the object version that the controller under test received last.
func TestController(t *testing.T) {
	p := &Interceptor{owners: newOwnerIndex()}
	owned := &history.Object{
		Ref:    history.Ref{Resource: "pods", Namespace: "ns", Name: "web-1", UID: "u", Version: 3},
		Owners: []history.Owner{{Kind: "Node", Name: "n"}, {Kind: "ReplicaSet", Name: "web", Controller: true}},
	}
	byName := &history.Request{Resource: "pods", Namespace: "ns", Name: "web-1"}
	scaled := &history.Request{Resource: "pods", Namespace: "ns", Name: "web-1", Subresource: "scale", Object: &history.Object{Ref: owned.Ref}}
	byBody := &history.Request{Resource: "pods", Namespace: "ns", Object: owned}
	steps := []struct {
		name    string
		do      func()
		request *history.Request
		want    string
	}{
		{"never seen", func() {}, byName, ""},
		{"in the body", func() {}, byBody, "web"},
		{"seen", func() { p.owners.set(owned) }, byName, "web"},
		{"seen, and another kind in the body", func() {}, scaled, "web"},
		{"released", func() { p.owners.set(&history.Object{Ref: owned.Ref}) }, byName, ""},
		{"gone", func() { p.owners.set(owned); p.owners.remove(owned) }, byName, ""},
	}
	for _, step := range steps {
		step.do()
		got := ""
		if owner := p.Controller(step.request); owner != nil {
			got = owner.Name
		}
		if got != step.want {
			t.Errorf("%s: owner %q, want %q", step.name, got, step.want)
		}
	}
}

// TestBodyWithoutKind checks that a request body needs no kind. The API server takes it from the URL.
func TestBodyWithoutKind(t *testing.T) {
	for _, test := range []struct {
		of   target
		body string
		want string // the body in the history
	}{
		{target{verb: "create", resource: "configmaps"}, `{"metadata":{"name":"web-1"},"data":{"a":"b"}}`, `{"data":{"a":"b"}}`},
		{target{verb: "update", resource: "pods", subresource: "status"}, `{"metadata":{"name":"web-1"},"status":{"phase":"Running","hostIP":"10.0.0.2"}}`, `{"spec":{"containers":null},"status":{"phase":"Running"}}`},
		{target{verb: "update", resource: "deployments.apps", subresource: "scale"}, `{"metadata":{"name":"web-1"},"spec":{"replicas":2}}`, `{"spec":{"replicas":2}}`},
		{target{verb: "create", resource: "things.example.com"}, `{"metadata":{"name":"web-1"},"spec":{"size":3}}`, `{"spec":{"size":3}}`},
		{target{verb: "create", resource: "things.example.com"}, `{"apiVersion":"example.com/v1","metadata":{"name":"web-1"},"spec":{"size":3}}`, `{"spec":{"size":3}}`},
	} {
		var request history.Request
		if err := test.of.readBody(&request, runtime.ContentTypeJSON, []byte(test.body)); err != nil {
			t.Errorf("%s %s: error %v", test.of.resource, test.body, err)
			continue
		}
		if got := request.Object; got.Name != "web-1" || got.Resource != test.of.resource || string(got.Body) != test.want {
			t.Errorf("%s %s: found %s with the body %s; want %s", test.of.resource, test.body, got.Ref, got.Body, test.want)
		}
	}
}

// BenchmarkReadEvent measures how long the interceptor takes to decode one watch event for the
// history.
func BenchmarkReadEvent(b *testing.B) {
	for in, mediaType := range mediaTypes {
		b.Run(mediaType, func(b *testing.B) {
			event, err := encodeEvent(in, history.Modified, examplePod())
			if err != nil {
				b.Fatal(err)
			}
			about := target{verb: "watch", resource: "pods"}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := about.readEvent(in, event); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
