package proxy

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// refuse returns a fault that refuses every request with the given error.
func refuse(refusal interceptor.Refusal) interceptor.RequestFault {
	return func(*history.Request) *interceptor.RequestEffect {
		return &interceptor.RequestEffect{Fault: "refuse", Refuse: &refusal}
	}
}

// TestRefusals checks that client-go recognizes the error of each refusal, in JSON and protobuf.
// The API server must receive no request.
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
					t.Error("the API server received a refused request")
				}))
				defer f.interceptor.OnRequest(refuse(interceptor.Refusal{Code: test.code, RetryAfterSeconds: 3}))()
				request := f.client(t, contentType).AppsV1().RESTClient().Verb(test.verb).Namespace("ns").Resource("replicasets").MaxRetries(0)
				if test.verb != http.MethodPost {
					request = request.Name("web")
				}
				err := request.Do(t.Context()).Error()
				if !test.is(err) {
					t.Errorf("the subject received the unexpected error %v", err)
				}
				var status *apierrors.StatusError
				if !errors.As(err, &status) {
					t.Fatalf("error %T, want a Status", err)
				}
				details := status.ErrStatus.Details
				if details.Kind != "replicasets" || details.Group != "apps" || details.RetryAfterSeconds != 3 {
					t.Errorf("details of the Status: %+v, want kind replicasets, group apps and a retry after 3 s", details)
				}
				seconds := 3
				want := &history.Response{ID: 1, Code: test.code, Reason: string(test.want), Fault: "refuse", RetryAfter: &seconds}
				if diff := cmp.Diff(want, f.All()[1].Response, anyLength); diff != "" {
					t.Errorf("response (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestRefusalCodesAscend(t *testing.T) {
	want := []int{403, 404, 409, 422, 429, 500, 503, 504}
	if diff := cmp.Diff(want, interceptor.RefusalCodes()); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
}

// TestRetryAfterHeader checks the Retry-After header of a refusal. client-go reads its retry
// delay from this header, not from the Status.
func TestRetryAfterHeader(t *testing.T) {
	f := start(t, clock.RealClock{}, http.NotFoundHandler())
	remove := f.interceptor.OnRequest(refuse(interceptor.Refusal{Code: 429, RetryAfterSeconds: 3}))
	response, _ := f.do(t, http.MethodGet, "/api/v1/pods", "")
	if got := response.Header.Get("Retry-After"); got != "3" {
		t.Errorf("header Retry-After is %q, want 3", got)
	}
	remove()
	f.interceptor.OnRequest(refuse(interceptor.Refusal{Code: 429}))
	response, _ = f.do(t, http.MethodGet, "/api/v1/pods", "")
	if got, ok := response.Header["Retry-After"]; ok {
		t.Errorf("Retry-After %q, want none", got)
	}
}
