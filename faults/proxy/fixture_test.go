package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// token is the credential that every client in these tests sends. No record may contain it.
const token = "the-secret-token"

// anyLength makes cmp ignore the recorded body lengths, because they depend on the
// encoding. TestBytesRecorded checks the lengths.
var anyLength = cmp.Options{
	cmpopts.IgnoreFields(history.Request{}, "Bytes"),
	cmpopts.IgnoreFields(history.Response{}, "Bytes"),
	cmpopts.IgnoreFields(history.Delivery{}, "Bytes"),
}

// fixture contains a fault proxy and a fake API server. The embedded Recording contains the
// records that the proxy has written.
type fixture struct {
	*historytest.Recording
	interceptor *interceptor.Interceptor
	proxy       *Proxy
	endpoint    Endpoint
	server      *httptest.Server
}

// start starts a fault proxy in front of a fake API server that the handler implements. At the end
// of the test, start checks that no record contains the token.
func start(t *testing.T, c clock.WithTicker, handler http.Handler) *fixture {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100} // the same limit as the real API server's
	server.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn) // so that a handler can reset the connection
	}
	server.StartTLS()
	t.Cleanup(server.Close)

	f := &fixture{Recording: &historytest.Recording{}, server: server}
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	f.interceptor = interceptor.New(f, c)
	f.proxy, err = Start(t.Context(), Options{
		Target:      target,
		TargetCA:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		Interceptor: f.interceptor,
		Clock:       c,
	})
	if err != nil {
		t.Fatal(err)
	}
	if f.endpoint, err = f.proxy.Listen("subject-0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := f.proxy.Stop(ctx); err != nil {
			t.Error(err)
		}
		f.requireNoToken(t)
	})
	return f
}

// requireNoToken checks that no record contains the token.
func (f *fixture) requireNoToken(t *testing.T) {
	t.Helper()
	for _, record := range f.All() {
		encoded, err := json.Marshal(record)
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(encoded, []byte(token)) {
			t.Errorf("the token is in a record: %s", encoded)
		}
	}
}

// config returns the configuration of a client that sends its requests through the fault proxy.
func (f *fixture) config(contentType string) *rest.Config {
	config := &rest.Config{
		Host:            f.endpoint.URL,
		BearerToken:     token,
		UserAgent:       "tester",
		QPS:             -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: f.endpoint.CA},
	}
	config.ContentType = contentType
	return config
}

func (f *fixture) client(t *testing.T, contentType string) kubernetes.Interface {
	t.Helper()
	config := f.config(contentType)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(httpClient.CloseIdleConnections)
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// contentTypes are the content types that controllers accept and send.
var contentTypes = map[string]string{
	"json":     runtime.ContentTypeJSON,
	"protobuf": runtime.ContentTypeProtobuf,
}

// pod returns a pod with the given resourceVersion.
func pod(name string, version int) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID("uid-" + name), ResourceVersion: fmt.Sprint(version),
			Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{
			NodeName:   "node-0",
			Containers: []corev1.Container{{Name: "main", Image: "pause"}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			PodIP:      "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// accepted returns the serializer for the content type in the request's Accept header.
func accepted(r *http.Request) runtime.SerializerInfo {
	protobuf := strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeProtobuf)
	for _, info := range clientscheme.Codecs.SupportedMediaTypes() {
		if protobuf && info.MediaType == runtime.ContentTypeProtobuf || !protobuf && info.MediaType == runtime.ContentTypeJSON {
			return info
		}
	}
	panic("client-go has no serializer for JSON or protobuf")
}

// encoded encodes an object in JSON or protobuf, depending on the request's Accept header.
func encoded(r *http.Request, obj runtime.Object) (body []byte, contentType string) {
	info := accepted(r)
	var buffer bytes.Buffer
	if err := info.Serializer.Encode(obj, &buffer); err != nil {
		panic(err)
	}
	return buffer.Bytes(), info.MediaType
}

// respond answers a request with an object.
func respond(w http.ResponseWriter, r *http.Request, code int, obj runtime.Object) {
	body, contentType := encoded(r, obj)
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// watchEvent encodes a watch event in JSON or protobuf, depending on the request's Accept
// header.
func watchEvent(r *http.Request, eventType history.EventType, obj runtime.Object) []byte {
	body, contentType := encoded(r, obj)
	event := metav1.WatchEvent{Type: string(eventType), Object: runtime.RawExtension{Raw: body}}
	if contentType == runtime.ContentTypeJSON {
		text, err := json.Marshal(event)
		if err != nil {
			panic(err)
		}
		return append(text, '\n')
	}
	raw, err := event.Marshal()
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
}

// beginWatch sends the status and the headers of the response to a watch request.
func beginWatch(w http.ResponseWriter, r *http.Request) {
	contentType := accepted(r).MediaType
	if contentType == runtime.ContentTypeProtobuf {
		contentType += ";stream=watch"
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
}

// watchServer is a fake API server that serves a single watch. It sends the events from the
// channel send, and ends the watch when send is closed.
type watchServer struct {
	send  chan func(r *http.Request) []byte
	abort chan struct{} // when the test closes abort, the stream breaks
	gone  chan struct{} // watchServer closes gone after the client has closed the watch
}

func newWatchServer() *watchServer {
	return &watchServer{
		send:  make(chan func(*http.Request) []byte, 1024),
		abort: make(chan struct{}),
		gone:  make(chan struct{}),
	}
}

func (s *watchServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	beginWatch(w, r)
	for {
		select {
		case next, ok := <-s.send:
			if !ok {
				return
			}
			_, _ = w.Write(next(r))
			w.(http.Flusher).Flush()
		case <-s.abort:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
			close(s.gone)
			return
		}
	}
}

func (s *watchServer) event(eventType history.EventType, obj runtime.Object) {
	s.send <- func(r *http.Request) []byte { return watchEvent(r, eventType, obj) }
}
