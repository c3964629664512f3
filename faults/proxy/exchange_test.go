package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

var controller = metav1.NewControllerRef(&corev1.ReplicationController{
	ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web"},
}, corev1.SchemeGroupVersion.WithKind("ReplicationController"))

// TestCreate checks that the fault proxy records a create request before the API server receives
// the request. The proxy must record the response before the client receives the response.
func TestCreate(t *testing.T) {
	for name, contentType := range contentTypes {
		t.Run(name, func(t *testing.T) {
			var f *fixture
			f = start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := historytest.Summary(f.All()); got != "request create pods" {
					t.Errorf("when the API server receives the request, want only the request record in the history, found:\n%s", got)
				}
				if got := r.Header.Get("Authorization"); got != "Bearer "+token {
					t.Errorf("the API server received the Authorization header %q, want that of the subject", got)
				}
				if got := r.Header.Get("Accept-Encoding"); got != "" {
					t.Errorf("accepts encoding %q, want none", got)
				}
				respond(w, r, http.StatusCreated, pod("web-1", 7))
			}))
			created := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Labels: map[string]string{"app": "web"}, OwnerReferences: []metav1.OwnerReference{*controller}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "pause"}}},
			}
			got, err := f.client(t, contentType).CoreV1().Pods("ns").Create(t.Context(), created, metav1.CreateOptions{})
			if err != nil || got.Name != "web-1" {
				t.Fatalf("create returned pod %q, error %v; want web-1", got.Name, err)
			}
			answered := project(t, pod("web-1", 7))
			want := []history.Record{
				{Seq: 1, Request: &history.Request{
					ID: 1, Subject: "subject-0", Verb: "create", Resource: "pods", Namespace: "ns", Agent: "tester",
					Object: &history.Object{
						Ref: history.Ref{Resource: "pods", Namespace: "ns"}, GenerateName: "web-", Labels: map[string]string{"app": "web"},
						Owners: []history.Owner{{Kind: "ReplicationController", Name: "web", UID: "uid-web", Controller: true}},
						Body:   json.RawMessage(`{"spec":{"containers":[{"name":"main","image":"pause","resources":{}}]},"status":{}}`),
					},
					PodSpec: json.RawMessage(`{"containers":[{"name":"main","image":"pause","resources":{}}]}`),
				}},
				{Seq: 2, Response: &history.Response{ID: 1, Code: 201, ServerCode: 201, Reached: true, Object: &answered}},
			}
			if diff := cmp.Diff(want, f.All(), anyLength); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

func project(t *testing.T, p *corev1.Pod) history.Object {
	t.Helper()
	object, err := history.Project("pods", p)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// TestList checks the records of a list that the client reads in pages.
func TestList(t *testing.T) {
	for name, contentType := range contentTypes {
		t.Run(name, func(t *testing.T) {
			f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
				list.ResourceVersion = "9"
				if r.URL.Query().Get("continue") == "" {
					list.Continue = "next"
					list.Items = []corev1.Pod{*pod("web-1", 3), *pod("web-2", 4)}
				} else {
					list.Items = []corev1.Pod{*pod("web-3", 5)}
				}
				respond(w, r, http.StatusOK, list)
			}))
			pods := f.client(t, contentType).CoreV1().Pods("ns")
			for _, next := range []string{"", "next"} {
				if _, err := pods.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: next}); err != nil {
					t.Fatal(err)
				}
			}
			want := []*history.List{
				{
					ID: 1, Subject: "subject-0", Resource: "pods", Version: 9, More: true,
					Items: []history.Object{project(t, pod("web-1", 3)), project(t, pod("web-2", 4))},
				},
				{
					ID: 2, Subject: "subject-0", Resource: "pods", Version: 9, Continued: true,
					Items: []history.Object{project(t, pod("web-3", 5))},
				},
			}
			records := f.All()
			if diff := cmp.Diff(want, []*history.List{records[2].List, records[5].List}); diff != "" {
				t.Errorf("lists (-want +got):\n%s", diff)
			}
			const order = "request list pods\nresponse 200 server 200 reached true\nlist 2 items version 9\n" +
				"request list pods\nresponse 200 server 200 reached true\nlist 1 items version 9"
			if diff := cmp.Diff(order, historytest.Summary(records)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServerErrors checks that the fault proxy forwards errors of the API server, and records the
// reason of each error.
func TestServerErrors(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/plain") {
			http.Error(w, "too many", http.StatusTooManyRequests)
			return
		}
		status := apierrors.NewConflict(corev1.Resource("pods"), "web", errors.New("stale")).Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		respond(w, r, http.StatusConflict, &status)
	}))
	pods := f.client(t, contentTypes["protobuf"]).CoreV1().Pods("ns")
	if _, err := pods.Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if _, err := pods.Get(t.Context(), "plain", metav1.GetOptions{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("error %v, want too many requests", err)
	}
	const want = "request get pods\nresponse 409 server 409 reached true Conflict\n" +
		"request get pods\nresponse 429 server 429 reached true"
	if diff := cmp.Diff(want, historytest.Summary(f.All())); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// TestDenied checks that the response record says whether the authorizer, such as RBAC, refused
// the request. Admission control refuses requests with the same code and reason.
func TestDenied(t *testing.T) {
	pods := corev1.Resource("pods")
	const user = `User "system:serviceaccount:ns:manager" `
	refusals := map[string]*apierrors.StatusError{
		"namespaced":  apierrors.NewForbidden(pods, "web", errors.New(user+`cannot get resource "pods" in API group "" in the namespace "ns": RBAC: role not found`)),
		"cluster":     apierrors.NewForbidden(pods, "", errors.New(user+`cannot list resource "pods" in API group "" at the cluster scope`)),
		"subresource": apierrors.NewForbidden(pods, "web", errors.New(user+`cannot update resource "pods/status" in API group "" in the namespace "ns"`)),
		"admission":   apierrors.NewForbidden(pods, "web", errors.New("exceeded quota: compute")),
		"conflict":    apierrors.NewConflict(pods, "web", errors.New(`is forbidden: `+user+`cannot get resource "pods" in API group ""`)),
	}
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := refusals[path.Base(r.URL.Path)].Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		respond(w, r, int(status.Code), &status)
	}))
	for name := range refusals {
		_, err := f.client(t, contentTypes["protobuf"]).CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		records := f.All()
		got, want := records[len(records)-1].Response.Denied, name != "admission" && name != "conflict"
		if got != want {
			t.Errorf("%s: denied %v, want %v: %v", name, got, want, err)
		}
	}
}

// do sends a JSON request through the fault proxy over HTTP/1.1, and reads the response.
func (f *fixture) do(t *testing.T, method, path, body string) (*http.Response, string) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(f.endpoint.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	request, err := http.NewRequestWithContext(t.Context(), method, f.endpoint.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 1 {
		t.Errorf("protocol %s, want HTTP/1.1", response.Proto)
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(content)
}

// TestForwardsUnchanged checks that the fault proxy does not change requests and responses. The
// test compares the request's path, query and headers, and the response's headers and body.
func TestForwardsUnchanged(t *testing.T) {
	odd := []byte("{\"kind\":\"Pod\",  \"apiVersion\":\"v1\",\n\"metadata\":{}}\n\n")
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got, want := r.URL.RequestURI(), "/api/v1/namespaces/ns/pods/a%2Fb?x=%20y&z"; got != want {
			t.Errorf("address %q, want %q", got, want)
		}
		for name, want := range map[string]string{"X-Own": "1", "Impersonate-User": "u", "Keep-Alive": "", "X-Hop": "", "User-Agent": "tester"} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("header %s is %q, want %q", name, got, want)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Audit-Id", "7")
		w.Header().Add("Warning", "1")
		w.Header().Add("Warning", "2")
		_, _ = w.Write(odd)
	}))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(f.endpoint.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.endpoint.URL+"/api/v1/namespaces/ns/pods/a%2Fb?x=%20y&z", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{
		"X-Own": {"1"}, "Impersonate-User": {"u"}, "Keep-Alive": {"9"}, "Connection": {"X-Hop"}, "X-Hop": {"1"}, "User-Agent": {"tester"},
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || !bytes.Equal(body, odd) {
		t.Errorf("the subject received body %q, error %v; want the body of the API server", body, err)
	}
	if diff := cmp.Diff([]string{"1", "2"}, response.Header["Warning"]); diff != "" || response.Header.Get("Audit-Id") != "7" {
		t.Errorf("the subject received the headers %v, want two Warning headers and Audit-Id 7", response.Header)
	}
}
