package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/internal/tcp"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

// createOnce sends one request that creates a pod. client-go does not repeat a create after
// a broken connection.
func createOnce(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().Pods("ns").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{})
	return err
}

// TestServerFailures checks the tested controller's error and the history records for several
// failures of the API server.
func TestServerFailures(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		dead    bool
		looks   func(error) bool
		want    string
	}{
		{
			name:  "no listener",
			dead:  true,
			looks: isConnectionLost,
			want:  "response 0 server 0 reached false",
		},
		{
			name:    "stream reset",
			handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			looks:   isStreamReset,
			want:    "response 0 server 0 reached true",
		},
		{
			name: "response truncated",
			handler: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "100")
				w.WriteHeader(http.StatusCreated)
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			},
			looks: isStreamReset,
			want:  "response 0 server 201 reached true",
		},
		{
			name: "connection reset",
			handler: func(w http.ResponseWriter, r *http.Request) {
				tcp.Reset(r.Context().Value(connKey{}).(net.Conn))
				panic(http.ErrAbortHandler)
			},
			looks: isConnectionLost,
			want:  "response 0 server 0 reached true",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := start(t, clock.RealClock{}, test.handler)
			if test.dead {
				f.server.Close()
			}
			err := createOnce(t.Context(), f.client(t, contentTypes["protobuf"]))
			if err == nil || !test.looks(err) {
				t.Errorf("the subject received the unexpected error %v", err)
			}
			if diff := cmp.Diff("request create pods\n"+test.want, historytest.Summary(f.All())); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// isConnectionLost reports whether an error says that the connection broke.
func isConnectionLost(err error) bool {
	return utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		strings.Contains(err.Error(), "unexpected EOF")
}

// isStreamReset reports whether an error says that the request's HTTP/2 stream was reset.
func isStreamReset(err error) bool {
	var reset http2.StreamError
	return errors.As(err, &reset)
}

// TestSubjectCancelsRequest checks a request that the controller under test cancels. The fault
// proxy must then cancel its own request to the API server. The response record must have no
// status code.
func TestSubjectCancelsRequest(t *testing.T) {
	arrived, canceled := make(chan struct{}), make(chan struct{})
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(canceled)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	client := f.client(t, contentTypes["json"])
	go func() { failed <- createOnce(ctx, client) }()
	<-arrived
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of a canceled request, want context.Canceled", err)
	}
	<-canceled
	f.Await(t, "response", func(r history.Record) bool { return r.Response != nil })
	if diff := cmp.Diff("request create pods\nresponse 0 server 0 reached true", historytest.Summary(f.All())); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// TestStop checks that Stop breaks requests in flight and closes the listeners.
func TestStop(t *testing.T) {
	arrived := make(chan struct{})
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	failed := make(chan error, 1)
	client := f.client(t, contentTypes["json"])
	go func() { failed <- createOnce(t.Context(), client) }()
	<-arrived
	if err := f.proxy.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("the request in flight succeeded, want an error after Stop")
	}
	if err := createOnce(t.Context(), client); !utilnet.IsConnectionRefused(err) {
		t.Errorf("error %v, want connection refused", err)
	}
	if _, err := f.proxy.Listen("subject-1"); err == nil || err.Error() != "fault proxy: cannot listen for replica subject-1: the proxy has stopped" {
		t.Errorf("Listen after Stop: error %v, want one that the proxy has stopped", err)
	}
}
