package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestBytesRecorded checks that the records contain the number of body bytes that the controller
// under test sent and received.
func TestBytesRecorded(t *testing.T) {
	const (
		asked    = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"}}`
		answered = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","uid":"u","resourceVersion":"5"}}`
		event    = `{"type":"ADDED","object":` + answered + `}`
	)
	for _, test := range []struct {
		name, method, path, body, answer string
		effect                           interceptor.RequestEffect
	}{
		{"create", http.MethodPost, "/api/v1/namespaces/ns/pods", asked, answered, interceptor.RequestEffect{}},
		{"get", http.MethodGet, "/api/v1/namespaces/ns/pods/web", "", answered, interceptor.RequestEffect{}},
		{"list", http.MethodGet, "/api/v1/pods", "", `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`, interceptor.RequestEffect{}},
		{"watch", http.MethodGet, "/api/v1/pods?watch=true", "", event + event, interceptor.RequestEffect{}},
		{"no resource", http.MethodGet, "/healthz", "", "ok", interceptor.RequestEffect{}},
		{"refused", http.MethodPost, "/api/v1/namespaces/ns/pods", asked, "", interceptor.RequestEffect{Refuse: &interceptor.Refusal{Code: http.StatusForbidden}}},
		{"response replaced by a refusal", http.MethodPost, "/api/v1/namespaces/ns/pods", asked, answered, interceptor.RequestEffect{Lose: &interceptor.LostResponse{Refuse: &interceptor.Refusal{Code: http.StatusForbidden}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, test.answer)
			}))
			f.interceptor.OnRequest(applyToAll(test.effect))
			_, got := f.do(t, test.method, test.path, test.body)
			if strings.Contains(test.path, "watch") {
				f.Await(t, "end", func(r history.Record) bool { return r.WatchClosed != nil })
			}
			sent, received := 0, 0
			for _, r := range f.All() {
				switch {
				case r.Request != nil:
					sent += r.Request.Bytes
				case r.Response != nil:
					received += r.Response.Bytes
				case r.Delivery != nil:
					received += r.Delivery.Bytes
				}
			}
			if sent != len(test.body) || received != len(got) || received == 0 {
				t.Errorf("recorded %d bytes sent and %d received; want %d and %d, not 0", sent, received, len(test.body), len(got))
			}
		})
	}
}

// TestBytesOfHalfResponse checks the recorded length of a response that a fault cuts in half. The
// controller under test receives only the half, so the length must be the length of the half.
func TestBytesOfHalfResponse(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 1000))
	}))
	f.interceptor.OnRequest(applyToAll(interceptor.RequestEffect{Lose: &interceptor.LostResponse{Cut: true, Break: interceptor.BreakRequest}}))
	if _, err := f.client(t, contentTypes["json"]).CoreV1().RESTClient().Get().AbsPath("/api/v1/pods").DoRaw(t.Context()); err == nil {
		t.Error("no error, although half of the response was missing")
	}
	if got := f.All()[1].Response.Bytes; got != 500 {
		t.Errorf("recorded %d bytes received; want 500", got)
	}
}
