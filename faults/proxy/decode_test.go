package proxy

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

// TestRequestRecords checks the request record of each verb, in JSON and protobuf.
func TestRequestRecords(t *testing.T) {
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
			name: "patch that is not JSON",
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
			name: "delete with a precondition",
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
						t.Errorf("the API server received a body of %d bytes, error %v; want the body of the subject", len(body), err)
					}
					respond(w, r, http.StatusOK, &metav1.Status{
						TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
					})
				}))
				_ = test.send(t.Context(), f.client(t, contentType)) // the fake server always answers with a Status, so some requests return an error
				test.want.ID, test.want.Subject, test.want.Agent = 1, "subject-0", "tester"
				records := f.All()
				if diff := cmp.Diff(&test.want, records[0].Request, anyLength); diff != "" {
					t.Errorf("request (-want +got):\n%s", diff)
				}
				if got := historytest.Line(records[len(records)-1]); got != "response 200 server 200 reached true" || len(records) != 2 {
					t.Errorf("unexpected records, want one request and one response with status 200:\n%s", historytest.Summary(records))
				}
			})
		}
	}
}

// TestTokenRequest checks that the controller under test receives a requested service account
// token. The function start checks that no record contains the token.
func TestTokenRequest(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respond(w, r, http.StatusCreated, &authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{Kind: "TokenRequest", APIVersion: "authentication.k8s.io/v1"}, Status: authenticationv1.TokenRequestStatus{Token: token},
		})
	}))
	got, err := f.client(t, contentTypes["protobuf"]).CoreV1().ServiceAccounts("ns").CreateToken(
		t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil || got.Status.Token != token {
		t.Errorf("the subject received token %q, error %v; want the token of the API server", got.Status.Token, err)
	}
	if got := f.All()[1].Response; got.Object == nil || got.Object.Body != nil {
		t.Errorf("response %+v, want one with metadata only", got)
	}
}

// TestUnreadableBodies checks that the fault proxy forwards a body that it cannot decode. It must
// record a gap: the history misses the body.
func TestUnreadableBodies(t *testing.T) {
	tests := []struct {
		name, method, path, body, answer string
		want                             string
	}{
		{
			"kind without a Go type", http.MethodPost, "/apis/example.com/v1/namespaces/ns/widgets",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1}}`,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","resourceVersion":"5"},"spec":{"size":1}}`,
			"request create widgets.example.com\nresponse 200 server 200 reached true",
		},
		{
			"request", http.MethodPost, "/api/v1/namespaces/ns/pods", "nonsense", `{"apiVersion":"v1","kind":"Pod"}`,
			"gap requests for pods by subject-0, and watch events that it received\nrequest create pods\nresponse 200 server 200 reached true",
		},
		{
			"response", http.MethodGet, "/api/v1/namespaces/ns/pods/web", "", "nonsense",
			"request get pods\ngap requests for pods by subject-0, and watch events that it received\nresponse 200 server 200 reached true",
		},
		{
			"list response that is not a list", http.MethodGet, "/api/v1/pods", "", `{"apiVersion":"v1","kind":"Pod"}`,
			"request list pods\ngap requests for pods by subject-0, and watch events that it received\nresponse 200 server 200 reached true",
		},
		{
			"long request", http.MethodPut, "/api/v1/namespaces/ns/pods/web", strings.Repeat("x", 16<<20+9), `{"apiVersion":"v1","kind":"Pod"}`,
			"gap requests for pods by subject-0, and watch events that it received\nrequest update pods\nresponse 200 server 200 reached true",
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
				t.Errorf("the subject received status %d, body %q; want 200 and the body of the API server", response.StatusCode, body)
			}
			if diff := cmp.Diff(test.want, historytest.Summary(f.All())); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}
