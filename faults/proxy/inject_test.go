package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

// applyToAll returns a fault that has the given effect on every request.
func applyToAll(effect interceptor.RequestEffect) interceptor.RequestFault {
	effect.Fault = "test-fault"
	return func(*history.Request) *interceptor.RequestEffect { return &effect }
}

// podCreator returns a fake API server that answers every request with a pod. The counter made
// contains the number of requests.
func podCreator(made *atomic.Int32) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made.Add(1)
		respond(w, r, http.StatusCreated, pod("web", 7))
	})
}

// TestLostResponse checks that the API server executes the request. The controller under test must
// receive the replacement of the response.
func TestLostResponse(t *testing.T) {
	tests := []struct {
		name    string
		loss    interceptor.LostResponse
		want    history.Response
		wantErr string // text that the error must contain
	}{
		{"request reset", interceptor.LostResponse{Break: interceptor.BreakRequest}, history.Response{}, "INTERNAL_ERROR"},
		{"connection reset", interceptor.LostResponse{Break: interceptor.BreakConnection}, history.Response{}, "connection"},
		{"cut", interceptor.LostResponse{Cut: true, Break: interceptor.BreakRequest}, history.Response{}, "INTERNAL_ERROR"},
		{"error", interceptor.LostResponse{Refuse: &interceptor.Refusal{Code: 504}}, history.Response{Code: 504, Reason: "Timeout"}, "did not complete in time"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var made atomic.Int32
			f := start(t, clock.RealClock{}, podCreator(&made))
			f.interceptor.OnRequest(applyToAll(interceptor.RequestEffect{Lose: &test.loss}))
			_, err := f.client(t, contentTypes["protobuf"]).CoreV1().Pods("ns").Create(t.Context(), pod("web", 0), metav1.CreateOptions{})
			if err == nil || !strings.Contains(err.Error(), test.wantErr) || made.Load() != 1 {
				t.Errorf("%d pods created, error %v; want 1, and an error with %q", made.Load(), err, test.wantErr)
			}
			got := f.Await(t, "response", func(r history.Record) bool { return r.Response != nil }).Response
			if got.Object == nil || got.Object.Name != "web" {
				t.Errorf("the response record has the object %+v, want web", got.Object)
			}
			got.Object = nil
			test.want.ID, test.want.ServerCode, test.want.Reached, test.want.Fault = 1, 201, true, "test-fault"
			if diff := cmp.Diff(&test.want, got, anyLength); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBeforeForward checks that the API server receives the request only after
// BeforeForward has returned.
func TestBeforeForward(t *testing.T) {
	done := false
	var before atomic.Bool
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before.Store(done)
		respond(w, r, http.StatusCreated, pod("web", 7))
	}))
	f.interceptor.OnRequest(applyToAll(interceptor.RequestEffect{BeforeForward: func(context.Context) { done = true }}))
	if _, err := f.client(t, contentTypes["json"]).CoreV1().Pods("ns").Create(t.Context(), pod("web", 0), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if !before.Load() {
		t.Error("the API server received the request before BeforeForward returned")
	}
}

// TestLostResponseCutInHalf checks that the controller under test receives half of the response,
// with the Content-Length of the whole response.
func TestLostResponseCutInHalf(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.Repeat("x", 1000))
	}))
	f.interceptor.OnRequest(applyToAll(interceptor.RequestEffect{Lose: &interceptor.LostResponse{Cut: true, Break: interceptor.BreakRequest}}))
	client := f.client(t, contentTypes["json"])
	stream, err := client.CoreV1().RESTClient().Get().AbsPath("/api/v1/pods").Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	got, err := io.ReadAll(stream)
	if len(got) != 500 || err == nil {
		t.Errorf("%d bytes, error %v; want 500 and an error", len(got), err)
	}
}

// TestDelay checks that a request's delay ends after its time, or when its fault is removed. The
// fault proxy must then forward or break the request.
func TestDelay(t *testing.T) {
	for _, removed := range []bool{false, true} {
		for _, broken := range []interceptor.ConnectionBreak{"", interceptor.BreakRequest} {
			t.Run(fmt.Sprintf("removed %v, %s", removed, broken), func(t *testing.T) {
				var made atomic.Int32
				c := testingclock.NewFakeClock(time.Now())
				f := start(t, c, podCreator(&made))
				remove := f.interceptor.OnRequest(applyToAll(interceptor.RequestEffect{Delay: time.Minute, Break: broken}))
				client := f.client(t, contentTypes["json"])
				done := make(chan error, 1)
				go func() {
					_, err := client.CoreV1().Pods("ns").Create(t.Context(), pod("web", 0), metav1.CreateOptions{})
					done <- err
				}()
				f.awaitClockWaiter(t, c)
				select {
				case err := <-done:
					t.Fatalf("the request was not delayed: %v", err)
				default:
				}
				if removed {
					remove()
				} else {
					c.Step(time.Minute)
				}
				err := <-done
				if passes := broken == ""; (err == nil) != passes || (made.Load() == 1) != passes {
					t.Errorf("%d pods created, error %v; want a pod only if the request is forwarded", made.Load(), err)
				}
			})
		}
	}
}

// awaitClockWaiter waits until the fault proxy waits on the fake clock.
func (f *fixture) awaitClockWaiter(t *testing.T, c *testingclock.FakeClock) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(10 * time.Second); !c.HasWaiters(); {
		if time.Now().After(deadline) {
			t.Fatalf("nothing waits on the clock:\n%s", historytest.Summary(f.All()))
		}
		<-again.C
	}
}

// TestEndWatches ends a watch in each way while the fault proxy holds one of its events. The proxy
// has delivered another event before.
func TestEndWatches(t *testing.T) {
	for _, ending := range interceptor.Endings {
		t.Run(string(ending), func(t *testing.T) {
			h := startHolding(t, time.Minute)
			h.server.event(history.Added, pod("free", 1))
			if event := <-h.stream.ResultChan(); event.Type != "ADDED" {
				t.Fatalf("received event %v, want ADDED", event)
			}
			h.server.event(history.Added, pod("held", 2))
			h.awaitHeld(t)
			none := h.interceptor.EndWatches("end", ending, func(r *history.Request) bool { return r.Resource == "services" })
			ended := h.interceptor.EndWatches("end", ending, func(r *history.Request) bool { return r.Resource == "pods" })
			if len(none) != 0 || len(ended) != 1 || ended[0].ID != 1 {
				t.Errorf("EndWatches ended the watches %v of services and %v of pods, want none and one", none, ended)
			}
			h.remove() // removing the fault would deliver the held event if the watch were still open
			var errs []error
			for event := range h.stream.ResultChan() {
				status, ok := event.Object.(*metav1.Status)
				if !ok {
					t.Errorf("received the held event %v", event)
					continue
				}
				errs = append(errs, errors.New(string(status.Reason)))
			}
			want := map[interceptor.WatchEnding]string{interceptor.EndClosed: "[]", interceptor.EndReset: "[InternalError]", interceptor.EndDisconnected: "[InternalError]", interceptor.EndExpired: "[Expired]"}[ending]
			if got := fmt.Sprint(errs); got != want && !(ending == interceptor.EndDisconnected && got == "[]") { // client-go reports some broken connections as a normal end
				t.Errorf("the subject received %s, want %s", got, want)
			}
			h.Await(t, "end of the watch", func(r history.Record) bool {
				return r.WatchClosed != nil && r.WatchClosed.Reason == string(ending)+" by a fault (end)"
			})
		})
	}
}

// TestDrop checks that the effect Drop discards only bookmarks. It must not discard the bookmark
// that ends the initial events of a streaming list.
func TestDrop(t *testing.T) {
	server := newWatchServer()
	f := start(t, clock.RealClock{}, server)
	f.interceptor.OnWatchEvent(func(*history.Request, *history.Delivery) *interceptor.WatchEffect {
		return &interceptor.WatchEffect{Drop: true}
	})
	stream, err := f.client(t, contentTypes["json"]).CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	first := pod("", 2)
	first.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	server.event(history.Added, pod("a", 1))
	server.event(history.Bookmark, first)
	server.event(history.Bookmark, pod("", 3))
	server.event(history.Deleted, pod("a", 4))
	close(server.send)
	var got []string
	for event := range stream.ResultChan() {
		got = append(got, string(event.Type))
	}
	if want := "ADDED BOOKMARK DELETED"; strings.Join(got, " ") != want {
		t.Errorf("the subject got %v, want %s", got, want)
	}
}

// TestListAt checks that the API server receives a list request for the older resourceVersion. The
// history must contain the tested controller's original query.
func TestListAt(t *testing.T) {
	var asked string
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked = r.URL.RawQuery }))
	f.interceptor.OnRequest(applyToAll(interceptor.RequestEffect{ListAt: 42}))
	f.do(t, http.MethodGet, "/api/v1/pods?limit=5&resourceVersion=0", "")
	if want := "limit=5&resourceVersion=42&resourceVersionMatch=Exact"; asked != want {
		t.Errorf("the API server received the query %s, want %s", asked, want)
	}
	if got := f.All()[0].Request.Query; got != "limit=5&resourceVersion=0" {
		t.Errorf("the history has the query %s, want that of the subject", got)
	}
}
