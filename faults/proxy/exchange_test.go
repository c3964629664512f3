package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

var controller = metav1.NewControllerRef(&corev1.ReplicationController{
	ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web"},
}, corev1.SchemeGroupVersion.WithKind("ReplicationController"))

// TestCreate follows one create: it is recorded before the API server sees it,
// its answer before the client does.
func TestCreate(t *testing.T) {
	for name, contentType := range contentTypes {
		t.Run(name, func(t *testing.T) {
			var f *fixture
			f = start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := summary(f.all()); got != "request create pods" {
					t.Errorf("when the API server has the request, the history has:\n%s", got)
				}
				if got := r.Header.Get("Authorization"); got != "Bearer "+token {
					t.Errorf("authorization %q", got)
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
				t.Fatalf("created %q, error %v", got.Name, err)
			}
			answered := projected(t, pod("web-1", 7))
			want := []history.Record{
				{Seq: 1, Request: &history.Request{
					ID: 1, Subject: "subject-0", Verb: "create", Resource: "pods", Namespace: "ns", Agent: "tester",
					Object: &history.Object{
						Ref: history.Ref{Resource: "pods", Namespace: "ns"}, GenerateName: "web-", Labels: map[string]string{"app": "web"},
						Owners: []history.Owner{{Kind: "ReplicationController", Name: "web", UID: "uid-web", Controller: true}},
						Body:   json.RawMessage(`{"spec":{"containers":[{"name":"main","image":"pause","resources":{}}]},"status":{}}`),
					},
				}},
				{Seq: 2, Response: &history.Response{ID: 1, Code: 201, ServerCode: 201, Reached: true, Object: &answered}},
			}
			if diff := cmp.Diff(want, f.all()); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

func projected(t *testing.T, p *corev1.Pod) history.Object {
	t.Helper()
	object, err := history.Project("pods", p)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// TestRequests looks at what is kept of each kind of request.
func TestRequests(t *testing.T) {
	tests := []struct {
		name string
		send func(context.Context, kubernetes.Interface) error
		want history.Request
	}{
		{
			name: "get",
			send: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.CoreV1().Pods("ns").Get(ctx, "web", metav1.GetOptions{})
				return err
			},
			want: history.Request{Verb: "get", Resource: "pods", Namespace: "ns", Name: "web"},
		},
		{
			name: "patch",
			send: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.CoreV1().Pods("ns").Patch(ctx, "web", types.StrategicMergePatchType, []byte(`{ "metadata": {"uid": "u"} }`), metav1.PatchOptions{})
				return err
			},
			want: history.Request{
				Verb: "patch", Resource: "pods", Namespace: "ns", Name: "web",
				PatchType: "application/strategic-merge-patch+json", Patch: json.RawMessage(`{"metadata":{"uid":"u"}}`),
			},
		},
		{
			name: "patch that is no JSON",
			send: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.CoreV1().Pods("ns").Patch(ctx, "web", types.MergePatchType, []byte(`{"meta`), metav1.PatchOptions{})
				return err
			},
			want: history.Request{
				Verb: "patch", Resource: "pods", Namespace: "ns", Name: "web",
				PatchType: "application/merge-patch+json", Patch: json.RawMessage(`"{\"meta"`),
			},
		},
		{
			name: "apply in YAML",
			send: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.CoreV1().Pods("ns").Patch(ctx, "web", types.ApplyPatchType, []byte("metadata:\n  uid: u\n"), metav1.PatchOptions{FieldManager: "m"})
				return err
			},
			want: history.Request{
				Verb: "patch", Resource: "pods", Namespace: "ns", Name: "web", Query: "fieldManager=m",
				PatchType: "application/apply-patch+yaml", Patch: json.RawMessage(`{"metadata":{"uid":"u"}}`),
			},
		},
		{
			name: "delete on a condition",
			send: func(ctx context.Context, c kubernetes.Interface) error {
				return c.CoreV1().Pods("ns").Delete(ctx, "web", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("u")})
			},
			want: history.Request{Verb: "delete", Resource: "pods", Namespace: "ns", Name: "web", PreconditionUID: "u"},
		},
		{
			name: "delete of a collection",
			send: func(ctx context.Context, c kubernetes.Interface) error {
				return c.CoreV1().Pods("ns").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=web"})
			},
			want: history.Request{Verb: "deletecollection", Resource: "pods", Namespace: "ns", Query: "labelSelector=app%3Dweb"},
		},
		{
			name: "update of a status",
			send: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.CoreV1().Pods("ns").UpdateStatus(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "9"}}, metav1.UpdateOptions{})
				return err
			},
			want: history.Request{
				Verb: "update", Resource: "pods", Subresource: "status", Namespace: "ns", Name: "web",
				Object: &history.Object{
					Ref:  history.Ref{Resource: "pods", Namespace: "ns", Name: "web", Version: 9},
					Body: json.RawMessage(`{"spec":{"containers":null},"status":{}}`),
				},
			},
		},
		{
			name: "create of a secret",
			send: func(ctx context.Context, c kubernetes.Interface) error {
				_, err := c.CoreV1().Secrets("ns").Create(ctx, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"last-applied": token}},
					StringData: map[string]string{"password": token},
				}, metav1.CreateOptions{})
				return err
			},
			want: history.Request{
				Verb: "create", Resource: "secrets", Namespace: "ns",
				Object: &history.Object{Ref: history.Ref{Resource: "secrets", Namespace: "ns", Name: "s"}},
			},
		},
		{
			name: "patch of a secret",
			send: func(ctx context.Context, c kubernetes.Interface) error {
				apply := corev1apply.Secret("s", "ns").WithStringData(map[string]string{"password": token})
				_, err := c.CoreV1().Secrets("ns").Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "m"})
				return err
			},
			want: history.Request{
				Verb: "patch", Resource: "secrets", Namespace: "ns", Name: "s", Query: "fieldManager=m&force=false",
				PatchType: "application/apply-patch+yaml",
			},
		},
		{
			name: "no resource",
			send: func(ctx context.Context, c kubernetes.Interface) error {
				return c.Discovery().RESTClient().Get().AbsPath("/healthz").Do(ctx).Error()
			},
			want: history.Request{Verb: "get", Path: "/healthz"},
		},
	}
	for _, test := range tests {
		for name, contentType := range contentTypes {
			t.Run(test.name+", "+name, func(t *testing.T) {
				f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil || (test.want.Object != nil && len(body) == 0) {
						t.Errorf("the API server got %d bytes, error %v", len(body), err)
					}
					respond(w, r, http.StatusOK, &metav1.Status{
						TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
					})
				}))
				_ = test.send(t.Context(), f.client(t, contentType)) // a Status is not what each expects
				test.want.ID, test.want.Subject, test.want.Agent = 1, "subject-0", "tester"
				records := f.all()
				if diff := cmp.Diff(&test.want, records[0].Request); diff != "" {
					t.Errorf("request (-want +got):\n%s", diff)
				}
				if got := line(records[len(records)-1]); got != "response 200 server 200 reached true" || len(records) != 2 {
					t.Errorf("records:\n%s", summary(records))
				}
			})
		}
	}
}

// TestTokenRequest sees a token come back from the API server, and none in the
// history; start demands that.
func TestTokenRequest(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respond(w, r, http.StatusCreated, &authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{Kind: "TokenRequest", APIVersion: "authentication.k8s.io/v1"}, Status: authenticationv1.TokenRequestStatus{Token: token},
		})
	}))
	got, err := f.client(t, contentTypes["protobuf"]).CoreV1().ServiceAccounts("ns").CreateToken(
		t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil || got.Status.Token != token {
		t.Errorf("token %q, error %v", got.Status.Token, err)
	}
	if got := f.all()[1].Response; got.Object == nil || got.Object.Body != nil {
		t.Errorf("response %+v, want one with metadata only", got)
	}
}

// TestList reads a list in pages.
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
					Items: []history.Object{projected(t, pod("web-1", 3)), projected(t, pod("web-2", 4))},
				},
				{
					ID: 2, Subject: "subject-0", Resource: "pods", Version: 9, Continued: true,
					Items: []history.Object{projected(t, pod("web-3", 5))},
				},
			}
			records := f.all()
			if diff := cmp.Diff(want, []*history.List{records[2].List, records[5].List}); diff != "" {
				t.Errorf("lists (-want +got):\n%s", diff)
			}
			const order = "request list pods\nresponse 200 server 200 reached true\nlist 2 items version 9\n" +
				"request list pods\nresponse 200 server 200 reached true\nlist 1 items version 9"
			if diff := cmp.Diff(order, summary(records)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServerErrors passes the API server's own errors on, with their reasons.
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
	if diff := cmp.Diff(want, summary(f.all())); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// TestUnreadable forwards what it cannot read, and says so.
func TestUnreadable(t *testing.T) {
	tests := []struct {
		name, method, path, body, answer string
		want                             string
	}{
		{
			"kind of no type", http.MethodPost, "/apis/example.com/v1/namespaces/ns/widgets",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1}}`,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","resourceVersion":"5"},"spec":{"size":1}}`,
			"request create widgets.example.com\nresponse 200 server 200 reached true",
		},
		{
			"request", http.MethodPost, "/api/v1/namespaces/ns/pods", "nonsense", `{"apiVersion":"v1","kind":"Pod"}`,
			"gap subject-0's view of pods\nrequest create pods\nresponse 200 server 200 reached true",
		},
		{
			"answer", http.MethodGet, "/api/v1/namespaces/ns/pods/web", "", "nonsense",
			"request get pods\ngap subject-0's view of pods\nresponse 200 server 200 reached true",
		},
		{
			"list of no list", http.MethodGet, "/api/v1/pods", "", `{"apiVersion":"v1","kind":"Pod"}`,
			"request list pods\ngap subject-0's view of pods\nresponse 200 server 200 reached true",
		},
		{
			"long request", http.MethodPut, "/api/v1/namespaces/ns/pods/web", strings.Repeat("x", requestBytesMax+9), `{"apiVersion":"v1","kind":"Pod"}`,
			"gap subject-0's view of pods\nrequest update pods\nresponse 200 server 200 reached true",
		},
		{
			"log", http.MethodGet, "/api/v1/namespaces/ns/pods/web/log", "", "nonsense",
			"request get pods\nresponse 200 server 200 reached true",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if string(body) != test.body || err != nil {
					t.Errorf("the API server got %d bytes, want %d; error %v", len(body), len(test.body), err)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, test.answer)
			}))
			response, body := f.do(t, test.method, test.path, test.body)
			if response.StatusCode != http.StatusOK || body != test.answer {
				t.Errorf("status %d, body %q", response.StatusCode, body)
			}
			if diff := cmp.Diff(test.want, summary(f.all())); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// do sends a request of JSON over HTTP/1.1 and reads the answer.
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

// TestForwardsTheSame compares both ends: path, query and header of the request,
// header and bytes of the answer.
func TestForwardsTheSame(t *testing.T) {
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
		t.Errorf("body %q, error %v", body, err)
	}
	if diff := cmp.Diff([]string{"1", "2"}, response.Header["Warning"]); diff != "" || response.Header.Get("Audit-Id") != "7" {
		t.Errorf("header %v", response.Header)
	}
}

// TestSubjects keeps the instances apart.
func TestSubjects(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	f.do(t, http.MethodGet, "/healthz", "")
	var err error
	if f.endpoint, err = f.proxy.Listen("subject-1"); err != nil {
		t.Fatal(err)
	}
	f.do(t, http.MethodGet, "/healthz", "")
	records := f.all()
	first, second := records[0].Request, records[2].Request
	if first.Subject != "subject-0" || second.Subject != "subject-1" || first.ID == second.ID {
		t.Errorf("requests %+v and %+v", first, second)
	}
	if _, err := f.proxy.Listen("subject-1"); err == nil || err.Error() != "fault proxy of subject-1: it listens already" {
		t.Errorf("error %v", err)
	}
}

func TestStartErrors(t *testing.T) {
	tests := []struct{ target, ca, want string }{
		{"http://127.0.0.1:6443", "", `fault proxy: target "http://127.0.0.1:6443": expected https://host:port`},
		{"https://127.0.0.1:6443/path", "", `fault proxy: target "https://127.0.0.1:6443/path": expected https://host:port`},
		{"https://127.0.0.1:6443", "nonsense", `fault proxy: the API server's CA: expected certificates in PEM`},
	}
	for _, test := range tests {
		target, err := url.Parse(test.target)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Start(t.Context(), Options{Target: target, TargetCA: []byte(test.ca), Recorder: newRecording(), Clock: clock.RealClock{}})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: error %v, want %s", test.target, err, test.want)
		}
	}
}

// refuse is a fault that refuses everything.
func refuse(refusal Refusal) RequestFault {
	return func(*history.Request) *RequestEffect {
		return &RequestEffect{Fault: "refuse", Refuse: &refusal}
	}
}

// TestRefusals has each error read by client-go, in both encodings, and never
// seen by the API server.
func TestRefusals(t *testing.T) {
	tests := []struct {
		code int
		verb string
		is   func(error) bool
		want metav1.StatusReason
	}{
		{403, http.MethodPost, apierrors.IsForbidden, metav1.StatusReasonForbidden},
		{404, http.MethodGet, apierrors.IsNotFound, metav1.StatusReasonNotFound},
		{409, http.MethodPut, apierrors.IsConflict, metav1.StatusReasonConflict},
		{409, http.MethodPost, apierrors.IsAlreadyExists, metav1.StatusReasonAlreadyExists},
		{422, http.MethodPost, apierrors.IsInvalid, metav1.StatusReasonInvalid},
		{429, http.MethodPost, apierrors.IsTooManyRequests, metav1.StatusReasonTooManyRequests},
		{500, http.MethodPost, apierrors.IsInternalError, metav1.StatusReasonInternalError},
		{503, http.MethodDelete, apierrors.IsServiceUnavailable, metav1.StatusReasonServiceUnavailable},
		{504, http.MethodPost, apierrors.IsTimeout, metav1.StatusReasonTimeout},
	}
	for _, test := range tests {
		for name, contentType := range contentTypes {
			t.Run(string(test.want)+" "+name, func(t *testing.T) {
				f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					t.Error("the API server saw the request")
				}))
				defer f.proxy.OnRequest(refuse(Refusal{Code: test.code, RetryAfterSeconds: 3}))()
				request := f.client(t, contentType).AppsV1().RESTClient().Verb(test.verb).Namespace("ns").Resource("replicasets").MaxRetries(0)
				if test.verb != http.MethodPost {
					request = request.Name("web")
				}
				err := request.Do(t.Context()).Error()
				if !test.is(err) {
					t.Errorf("error %v", err)
				}
				details := err.(*apierrors.StatusError).ErrStatus.Details
				if details.Kind != "replicasets" || details.Group != "apps" || details.RetryAfterSeconds != 3 {
					t.Errorf("details %+v", details)
				}
				want := &history.Response{ID: 1, Code: test.code, Reason: string(test.want), Fault: "refuse"}
				if diff := cmp.Diff(want, f.all()[1].Response); diff != "" {
					t.Errorf("response (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestRefusalCodesRise(t *testing.T) {
	want := []int{403, 404, 409, 422, 429, 500, 503, 504}
	if diff := cmp.Diff(want, RefusalCodes()); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
}

// TestRetryAfterHeader: client-go goes by the header, not by the Status.
func TestRetryAfterHeader(t *testing.T) {
	f := start(t, clock.RealClock{}, http.NotFoundHandler())
	remove := f.proxy.OnRequest(refuse(Refusal{Code: 429, RetryAfterSeconds: 3}))
	response, _ := f.do(t, http.MethodGet, "/api/v1/pods", "")
	if got := response.Header.Get("Retry-After"); got != "3" {
		t.Errorf("Retry-After %q", got)
	}
	remove()
	f.proxy.OnRequest(refuse(Refusal{Code: 429}))
	response, _ = f.do(t, http.MethodGet, "/api/v1/pods", "")
	if got, ok := response.Header["Retry-After"]; ok {
		t.Errorf("Retry-After %q, want none", got)
	}
}

// TestFaultsInTurn: the first fault that answers has the request, and none is
// asked once it is removed.
func TestFaultsInTurn(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	var asked []string
	fault := func(name string, effect *RequestEffect) func() {
		return f.proxy.OnRequest(func(*history.Request) *RequestEffect {
			asked = append(asked, name)
			return effect
		})
	}
	fault("unconcerned", nil)
	removeFirst := fault("first", &RequestEffect{Fault: "first", Refuse: &Refusal{Code: 500}})
	removeSecond := fault("second", &RequestEffect{Fault: "second", Refuse: &Refusal{Code: 503}})

	for _, want := range []struct {
		code int
		by   string
	}{{500, "unconcerned first"}, {503, "unconcerned second"}, {200, "unconcerned"}} {
		asked = nil
		response, _ := f.do(t, http.MethodGet, "/healthz", "")
		if response.StatusCode != want.code || strings.Join(asked, " ") != want.by {
			t.Errorf("code %d by %v, want %d by %s", response.StatusCode, asked, want.code, want.by)
		}
		if want.code == 500 {
			removeFirst()
			removeFirst() // idempotent
		} else {
			removeSecond()
		}
	}
}

// TestRemoveWaits: when remove has returned, no call is under way.
func TestRemoveWaits(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	called, proceed := make(chan struct{}), make(chan struct{})
	fired := false
	remove := f.proxy.OnRequest(func(*history.Request) *RequestEffect {
		close(called)
		<-proceed
		fired = true
		return nil
	})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		f.do(t, http.MethodGet, "/healthz", "")
	}()
	<-called
	removed := make(chan struct{})
	go func() {
		defer close(removed)
		remove()
		if !fired {
			t.Error("removed while a call was under way")
		}
	}()
	select {
	case <-removed:
		t.Error("remove did not wait")
	case <-time.After(time.Millisecond): // too short a wait can only hide the error
	}
	close(proceed)
	<-removed
	<-answered
}
