package inprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

// fixture contains an interceptor between a client and a fake API server.
type fixture struct {
	*historytest.Recording
	interceptor *interceptor.Interceptor
	client      *Client
	api         kubernetes.Interface
	events      chan string // names of the pods in the next watch events
}

// start returns a fixture, in a bubble of testing/synctest. The fake API server answers a
// create with a pod, and a watch with the events of the fixture.
func start(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Recording: &historytest.Recording{}, events: make(chan string)}
	server := Direct(http.HandlerFunc(f.serve))
	f.interceptor = interceptor.New(f, clock.RealClock{})
	f.client = Connect(f.interceptor, "subject-0", server)
	api, err := kubernetes.NewForConfig(&rest.Config{Host: "http://apiserver", Transport: f.client, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	f.api = api
	t.Cleanup(func() { f.client.Close(); server.Close() })
	return f
}

func (f *fixture) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = json.NewEncoder(w).Encode(pod("web"))
		return
	}
	w.(http.Flusher).Flush()
	for {
		select {
		case name := <-f.events:
			raw, _ := json.Marshal(pod(name))
			_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: raw}})
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", ResourceVersion: "3"},
	}
}

func (f *fixture) create(ctx context.Context) error {
	_, err := f.api.CoreV1().Pods("ns").Create(ctx, pod("web"), metav1.CreateOptions{})
	return err
}

func (f *fixture) watch(t *testing.T) watch.Interface {
	t.Helper()
	w, err := f.api.CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestCreate checks a create request for each effect that a fault can have. It compares the
// client's result, the history records and the elapsed time.
func TestCreate(t *testing.T) {
	for _, test := range []struct {
		name   string
		effect interceptor.RequestEffect
		looks  func(error) bool
		after  time.Duration
		want   string
	}{
		{"no fault", interceptor.RequestEffect{}, isNil, 0, "response 200 server 200 reached true"},
		{"slow", interceptor.RequestEffect{Delay: 5 * time.Minute}, isNil, 5 * time.Minute, "response 200 server 200 reached true"},
		{"refused", interceptor.RequestEffect{Refuse: &interceptor.Refusal{Code: 409}}, apierrors.IsAlreadyExists, 0, "response 409 server 0 reached false"},
		{"request broken", interceptor.RequestEffect{Break: interceptor.BreakRequest}, isStreamError, 0, "response 0 server 0 reached false"},
		{"connection broken", interceptor.RequestEffect{Break: interceptor.BreakConnection}, utilnet.IsConnectionReset, 0, "response 0 server 0 reached false"},
		{"lost", interceptor.RequestEffect{Lose: &interceptor.LostResponse{After: time.Hour, Break: interceptor.BreakConnection}},
			utilnet.IsConnectionReset, time.Hour, "response 0 server 200 reached true"},
		{"cut", interceptor.RequestEffect{Lose: &interceptor.LostResponse{Cut: true, Break: interceptor.BreakRequest}},
			isStreamError, 0, "response 0 server 200 reached true"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t)
				f.interceptor.OnRequest(func(*history.Request) *interceptor.RequestEffect { return &test.effect })
				began := time.Now()
				if err := f.create(t.Context()); !test.looks(err) {
					t.Errorf("unexpected error %v", err)
				}
				if took := time.Since(began); took != test.after {
					t.Errorf("the request took %v, want %v", took, test.after)
				}
				if got := historytest.Summary(f.All()); !strings.HasPrefix(got, "request create pods\n"+test.want) {
					t.Errorf("records:\n%s\nwant: %s", got, test.want)
				}
			})
		})
	}
}

func isNil(err error) bool { return err == nil }

func isStreamError(err error) bool {
	var reset http2.StreamError
	return errors.As(err, &reset)
}

// TestWatchHeld checks that a client receives a held event exactly when the hold ends.
func TestWatchHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		f.interceptor.OnWatchEvent(func(*history.Request, *history.Delivery) *interceptor.WatchEffect {
			return &interceptor.WatchEffect{Hold: 10 * time.Minute}
		})
		w := f.watch(t)
		defer w.Stop()
		began := time.Now()
		f.events <- "held"
		event := <-w.ResultChan()
		if took := time.Since(began); event.Object.(*corev1.Pod).Name != "held" || took != 10*time.Minute {
			t.Errorf("received %v after %v, want the pod after 10m", event.Object, took)
		}
	})
}

// TestResets checks which requests a reset breaks. A reset of the connection also ends the
// watch, and a reset of one request does not. After either reset, new requests must succeed.
func TestResets(t *testing.T) {
	for breaks, ends := range map[interceptor.ConnectionBreak]bool{interceptor.BreakConnection: true, interceptor.BreakRequest: false} {
		t.Run(string(breaks), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t)
				w := f.watch(t)
				defer w.Stop()
				f.events <- "before"
				synctest.Wait() // until the event is delivered; the client has not read it
				remove := f.interceptor.OnRequest(func(*history.Request) *interceptor.RequestEffect {
					return &interceptor.RequestEffect{Break: breaks}
				})
				if err := f.create(t.Context()); err == nil {
					t.Error("the request succeeded, want an error")
				}
				remove()
				if event := <-w.ResultChan(); event.Object.(*corev1.Pod).Name != "before" {
					t.Errorf("received %v, want the event that was delivered before the reset", event)
				}
				synctest.Wait()
				select {
				case _, open := <-w.ResultChan():
					if open || !ends {
						t.Errorf("the watch sent an event or ended (open: %v), want it to end: %v", open, ends)
					}
				default:
					if ends {
						t.Error("the watch is open, want it to end with the connection")
					}
				}
				if err := f.create(t.Context()); err != nil {
					t.Errorf("the next request failed: %v", err)
				}
			})
		})
	}
}

// TestResetBeforeResponse checks a request whose connection breaks after the API server has answered.
// The client must receive an error, not an empty response.
func TestResetBeforeResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		f.interceptor.OnMessage(func(_ context.Context, m interceptor.Message) {
			if m.Part == interceptor.ResponseMessage {
				<-time.After(time.Second)
			}
		})
		failed := make(chan error, 1)
		go func() { failed <- f.create(t.Context()) }()
		synctest.Wait()
		f.interceptor.OnRequest(func(*history.Request) *interceptor.RequestEffect {
			return &interceptor.RequestEffect{Break: interceptor.BreakConnection}
		})
		if err := f.create(t.Context()); !utilnet.IsConnectionReset(err) {
			t.Errorf("error %v of the request that breaks the connection, want ECONNRESET", err)
		}
		if err := <-failed; !utilnet.IsConnectionReset(err) {
			t.Errorf("error %v of the request that the API server has answered, want ECONNRESET", err)
		}
		if got := historytest.Summary(f.All()); !strings.HasSuffix(got, "response 0 server 200 reached true") {
			t.Errorf("records:\n%s\nwant a response that did not reach the client at the end", got)
		}
	})
}

// TestOrder checks that a fault delays each message until its function returns. The delay of an event
// must be recorded.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		began := time.Now()
		var passed []string
		remove := f.interceptor.OnMessage(func(_ context.Context, m interceptor.Message) {
			<-time.After(time.Second)
			passed = append(passed, fmt.Sprintf("%s %s %s %v", m.Part, m.Request.Verb, m.Request.Resource, time.Since(began)))
		})
		if err := f.create(t.Context()); err != nil {
			t.Fatal(err)
		}
		remove()
		w := f.watch(t)
		defer w.Stop()
		f.interceptor.OnMessage(func(context.Context, interceptor.Message) { <-time.After(time.Minute) })
		f.events <- "late"
		<-w.ResultChan()
		if want := []string{"request create pods 1s", "response create pods 2s"}; !slices.Equal(passed, want) {
			t.Errorf("messages %q, want %q", passed, want)
		}
		if got := historytest.Summary(f.All()); !strings.HasSuffix(got, "delivery ADDED late version 3 held 1m0s") {
			t.Errorf("records:\n%s\nwant an event that was held for a minute", got)
		}
	})
}

// TestEndWatches checks what a client receives when a fault ends its watch.
func TestEndWatches(t *testing.T) {
	for _, ending := range interceptor.Endings {
		t.Run(string(ending), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t)
				w := f.watch(t)
				defer w.Stop()
				ended := f.interceptor.EndWatches("watch-end", ending, func(*history.Request) bool { return true })
				if len(ended) != 1 {
					t.Fatalf("%d watches ended, want 1", len(ended))
				}
				event, open := <-w.ResultChan()
				if expired := open && apierrors.IsResourceExpired(apierrors.FromObject(event.Object)); expired != (ending == interceptor.EndExpired) {
					t.Errorf("received %v, open: %v", event, open)
				}
			})
		})
	}
}

// TestClose checks that Close breaks requests in flight, and that later requests fail.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		f.interceptor.OnRequest(func(*history.Request) *interceptor.RequestEffect {
			return &interceptor.RequestEffect{Delay: time.Hour}
		})
		failed := make(chan error, 1)
		go func() { failed <- f.create(t.Context()) }()
		synctest.Wait()
		f.client.Close()
		if err := <-failed; !utilnet.IsConnectionReset(err) {
			t.Errorf("error %v of the request in flight, want ECONNRESET", err)
		}
		if err := f.create(t.Context()); !utilnet.IsConnectionRefused(err) {
			t.Errorf("error %v after Close, want ECONNREFUSED", err)
		}
	})
}

// TestCanceled checks that canceling a request cancels the request of the API server.
func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		canceled := make(chan struct{})
		client := Direct(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			close(canceled)
		}))
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://apiserver/slow", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.RoundTrip(request); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that of the context", err)
		}
		<-canceled
	})
}

// TestResponse checks the status, the length and the body of responses.
func TestResponse(t *testing.T) {
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"empty", func(http.ResponseWriter, *http.Request) {}, `200 length 0 "" <nil>`},
		{"status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, `404 length 0 "" <nil>`},
		{"body", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "text") }, `200 length 4 "text" <nil>`},
		{"flushed", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			<-time.After(time.Second) // the client gets the headers during this time
			_, _ = io.WriteString(w, "b")
		}, `200 length -1 "ab" <nil>`},
		{"half", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "8")
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		}, `200 length 8 "half" stream error: stream ID 0; INTERNAL_ERROR; the handler aborted the request`},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := Direct(test.handler)
				defer client.Close()
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://apiserver/", nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := client.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				if got := fmt.Sprintf("%d length %d %q %v", response.StatusCode, response.ContentLength, body, err); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
			})
		})
	}
}

// BenchmarkCreate measures one create request of a pod that passes the interceptor.
func BenchmarkCreate(b *testing.B) {
	server := Direct(http.HandlerFunc((&fixture{}).serve))
	defer server.Close()
	client := Connect(interceptor.New(&historytest.Recording{}, clock.RealClock{}), "subject-0", server)
	defer client.Close()
	body, err := json.Marshal(pod("web"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://apiserver/api/v1/namespaces/ns/pods", strings.NewReader(string(body)))
		if err != nil {
			b.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.RoundTrip(request)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
}
