package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// bookmark is the object of a bookmark event.
func bookmark(version string, initialEventsEnd bool) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}}
	p.ResourceVersion = version
	if initialEventsEnd {
		p.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return p
}

func expired() *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
	}
}

// TestWatch sends one event of each type through and looks at what is recorded
// when the subject has it.
func TestWatch(t *testing.T) {
	for name, contentType := range contentTypes {
		t.Run(name, func(t *testing.T) {
			server := newWatchServer()
			f := start(t, clock.RealClock{}, server)
			stream, err := f.client(t, contentType).CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{AllowWatchBookmarks: true})
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Stop()
			if got := summary(f.all()); got != "request watch pods\nresponse 200 server 200 reached true" {
				t.Errorf("records of an open watch:\n%s", got)
			}
			want := []*history.Delivery{
				{Type: history.Added, Object: projected(t, pod("web-1", 3))},
				{Type: history.Modified, Object: projected(t, pod("web-1", 4))},
				{Type: history.Bookmark, Object: history.Object{Ref: history.Ref{Resource: "pods", Version: 5}}, InitialEventsEnd: true},
				{Type: history.Bookmark, Object: history.Object{Ref: history.Ref{Resource: "pods", Version: 6}}},
				{Type: history.Deleted, Object: projected(t, pod("web-1", 7))},
				{Type: history.Error},
			}
			server.event(history.Added, pod("web-1", 3))
			server.event(history.Modified, pod("web-1", 4))
			server.event(history.Bookmark, bookmark("5", true))
			server.event(history.Bookmark, bookmark("6", false))
			server.event(history.Deleted, pod("web-1", 7))
			server.event(history.Error, expired())
			for i, w := range want {
				w.ID, w.Subject, w.Resource = 1, "subject-0", "pods"
				event := <-stream.ResultChan()
				if string(event.Type) != string(w.Type) {
					t.Fatalf("event %d is %s, want %s", i, event.Type, w.Type)
				}
				if diff := cmp.Diff(w, f.all()[2+i].Delivery); diff != "" {
					t.Errorf("delivery %d (-want +got):\n%s", i, diff)
				}
			}
			close(server.send)
			if event, ok := <-stream.ResultChan(); ok {
				t.Errorf("event %v after the end", event)
			}
			closed := f.await(t, "end", func(r history.Record) bool { return r.Closed != nil })
			ended := &history.Closed{ID: 1, Subject: "subject-0", Resource: "pods", Reason: "the API server ended it"}
			if diff := cmp.Diff(ended, closed.Closed); diff != "" {
				t.Errorf("end (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWatchEnds looks at the other ways in which a watch can end.
func TestWatchEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(*watchServer, *fixture, watch.Interface)
		want string
	}{
		{"subject", func(_ *watchServer, _ *fixture, w watch.Interface) { w.Stop() }, "closed the subject went away"},
		{"server", func(s *watchServer, _ *fixture, _ watch.Interface) { close(s.abort) }, "closed the connection to the API server broke"},
		{"proxy", func(_ *watchServer, f *fixture, _ watch.Interface) {
			_ = f.proxy.Stop(context.WithoutCancel(t.Context()))
		}, "closed the proxy stopped"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := newWatchServer()
			f := start(t, clock.RealClock{}, server)
			stream, err := f.client(t, contentTypes["protobuf"]).CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Stop()
			server.event(history.Added, pod("web-1", 3))
			<-stream.ResultChan()
			test.end(server, f, stream)
			closed := f.await(t, "end", func(r history.Record) bool { return r.Closed != nil })
			if got := line(closed); got != test.want {
				t.Errorf("ended with %q, want %q", got, test.want)
			}
			for event := range stream.ResultChan() { // the subject is told, however it ended
				if event.Type != watch.Error {
					t.Errorf("%s after the end", event.Type)
				}
			}
			if test.name != "server" {
				<-server.gone
			}
		})
	}
}

// TestWatchRefused is an error in place of a stream.
func TestWatchRefused(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respond(w, r, http.StatusGone, expired())
	}))
	_, err := f.client(t, contentTypes["protobuf"]).CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	if err == nil {
		t.Error("the watch began")
	}
	if got := summary(f.all()); got != "request watch pods\nresponse 410 server 410 reached true Expired" {
		t.Errorf("records:\n%s", got)
	}
}

// TestWatchBytes compares what the subject gets with what the API server sent,
// byte for byte, readable or not.
func TestWatchBytes(t *testing.T) {
	jsonPod := `{"type":"ADDED", "object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","resourceVersion":"5"}}}`
	tests := []struct {
		name, contentType, stream string
		want                      []string
	}{
		{"json", "application/json", " " + jsonPod + "\r\n\n" + jsonPod + "\n\n", []string{"delivery ADDED web version 5", "delivery ADDED web version 5"}},
		{"json stream", "application/json;stream=watch", jsonPod, []string{"delivery ADDED web version 5"}},
		{"custom resource", "application/json", strings.ReplaceAll(jsonPod, "v1", "example.com/v1"), []string{"delivery ADDED web version 5"}},
		{"unknown event", "application/json", strings.ReplaceAll(jsonPod, "ADDED", "SOLD") + jsonPod, []string{"gap subject-0's view of pods", "delivery ADDED web version 5"}},
		{"no object", "application/json", jsonPod + "<html>" + jsonPod, []string{"delivery ADDED web version 5", "gap subject-0's view of pods"}},
		{"unknown protobuf", "application/vnd.kubernetes.protobuf;stream=watch", frame("nonsense") + frame(""), []string{"gap subject-0's view of pods", "gap subject-0's view of pods"}},
		{"unknown encoding", "application/cbor-seq", "\x01\x02\x03", []string{"gap subject-0's view of pods"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				_, _ = io.WriteString(w, test.stream)
			}))
			response, body := f.do(t, http.MethodGet, "/api/v1/pods?watch=true", "")
			if body != test.stream || response.Header.Get("Content-Type") != test.contentType {
				t.Errorf("body %q of %s", body, response.Header.Get("Content-Type"))
			}
			want := slices.Concat([]string{"request watch pods", "response 200 server 200 reached true"}, test.want, []string{"closed the API server ended it"})
			f.await(t, "end", func(r history.Record) bool { return r.Closed != nil })
			var got []string
			for _, record := range f.all() {
				got = append(got, line(record))
			}
			slices.Sort(got[2 : len(got)-1]) // a gap is noticed by the reader, ahead of the deliveries
			slices.Sort(want[2 : len(want)-1])
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// holding is a proxy whose pod events are held, on a clock that stands still.
type holding struct {
	*fixture
	clock  *testingclock.FakeClock
	server *watchServer // of pods
	other  *watchServer // of anything else
	stream watch.Interface
	remove func()
}

// startHolding starts one, with a watch of pods open.
func startHolding(t *testing.T, hold time.Duration) *holding {
	t.Helper()
	h := &holding{clock: testingclock.NewFakeClock(time.Now()), server: newWatchServer(), other: newWatchServer()}
	h.fixture = start(t, h.clock, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pods") {
			h.server.ServeHTTP(w, r)
			return
		}
		h.other.ServeHTTP(w, r)
	}))
	h.remove = h.proxy.OnWatchEvent(func(request *history.Request, event *history.Delivery) *WatchEffect {
		if request.Resource != "pods" || event.Object.Name == "free" {
			return nil
		}
		return &WatchEffect{Hold: hold}
	})
	var err error
	h.stream, err = h.client(t, contentTypes["protobuf"]).CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stream.Stop)
	return h
}

// awaitHeld returns when the proxy waits for the clock.
func (h *holding) awaitHeld(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !h.clock.HasWaiters(); {
		if time.Now().After(deadline) {
			t.Fatalf("nothing is held:\n%s", summary(h.all()))
		}
		time.Sleep(time.Millisecond)
	}
}

// deliveries are the lines of all deliveries.
func (h *holding) deliveries() []string {
	var lines []string
	for _, record := range h.all() {
		if record.Delivery != nil {
			lines = append(lines, line(record))
		}
	}
	return lines
}

// TestHold holds events from their arrival on.
func TestHold(t *testing.T) {
	h := startHolding(t, 5*time.Second)
	h.server.event(history.Added, pod("a", 1))
	h.awaitHeld(t)
	h.clock.Step(4 * time.Second)
	if got := h.deliveries(); got != nil {
		t.Errorf("delivered too early: %v", got)
	}
	h.clock.Step(time.Second)
	if event := <-h.stream.ResultChan(); event.Type != watch.Added {
		t.Errorf("event %v", event)
	}
	if diff := cmp.Diff([]string{"delivery ADDED a version 1 held 5s"}, h.deliveries()); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

// TestHoldKeepsOrder: an event that no fault holds waits behind one that is
// held, and the end of the stream behind both.
func TestHoldKeepsOrder(t *testing.T) {
	h := startHolding(t, 5*time.Second)
	h.server.event(history.Added, pod("a", 1))
	h.server.event(history.Added, pod("free", 2))
	close(h.server.send)
	h.awaitHeld(t)
	h.clock.Step(5 * time.Second)
	var names []string
	for event := range h.stream.ResultChan() {
		names = append(names, event.Object.(*corev1.Pod).Name)
	}
	if diff := cmp.Diff([]string{"a", "free"}, names); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestHoldLeavesOthersAlone: streams of other resources pass at once.
func TestHoldLeavesOthersAlone(t *testing.T) {
	h := startHolding(t, 5*time.Second)
	h.server.event(history.Added, pod("a", 1))
	h.awaitHeld(t)
	other := make(chan []byte, 1)
	go func() {
		_, body := h.do(t, http.MethodGet, "/api/v1/services?watch=true", "")
		other <- []byte(body)
	}()
	h.other.event(history.Bookmark, bookmark("9", false))
	h.await(t, "delivery of the other stream", func(r history.Record) bool { return r.Delivery != nil && r.Delivery.ID == 2 })
	if got := h.deliveries(); len(got) != 1 {
		t.Errorf("deliveries %v", got)
	}
	close(h.other.send)
	if got := <-other; !bytes.Contains(got, []byte(`"BOOKMARK"`)) {
		t.Errorf("the other stream got %q", got)
	}
}

// TestHealReleases: what a fault holds goes out at once when it is removed, in
// order.
func TestHealReleases(t *testing.T) {
	h := startHolding(t, time.Hour)
	for i, name := range []string{"a", "b", "free", "c"} {
		h.server.event(history.Added, pod(name, i+1))
	}
	h.awaitHeld(t)
	h.clock.Step(time.Minute)
	h.remove()
	var names []string
	for range 4 {
		names = append(names, (<-h.stream.ResultChan()).Object.(*corev1.Pod).Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "free", "c"}, names); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := h.deliveries()[0]; got != "delivery ADDED a version 1 held 1m0s" {
		t.Errorf("delivery %q", got)
	}
	h.server.event(history.Added, pod("d", 5))
	<-h.stream.ResultChan()
	if got := h.deliveries()[4]; got != "delivery ADDED d version 5" {
		t.Errorf("delivery %q after the fault", got)
	}
}

// TestLongestHoldCounts: two faults that hold one event do not add up, and the
// shorter hold goes on when the longer one is gone.
func TestLongestHoldCounts(t *testing.T) {
	h := startHolding(t, time.Hour)
	h.proxy.OnWatchEvent(func(*history.Request, *history.Delivery) *WatchEffect { return &WatchEffect{Hold: time.Minute} })
	h.server.event(history.Added, pod("a", 1))
	h.awaitHeld(t)
	h.remove()
	h.awaitHeld(t)
	h.clock.Step(59 * time.Second)
	if got := h.deliveries(); got != nil {
		t.Errorf("delivered too early: %v", got)
	}
	h.awaitHeld(t)
	h.clock.Step(time.Second)
	<-h.stream.ResultChan()
	if got := h.deliveries()[0]; got != "delivery ADDED a version 1 held 1m0s" {
		t.Errorf("delivery %q", got)
	}
}

// TestSubjectLeavesHeldStream: a hold does not keep a stream that nobody reads.
func TestSubjectLeavesHeldStream(t *testing.T) {
	h := startHolding(t, time.Hour)
	h.server.event(history.Added, pod("a", 1))
	h.awaitHeld(t)
	h.stream.Stop()
	h.await(t, "end", func(r history.Record) bool { return r.Closed != nil })
	<-h.server.gone
	if got := h.deliveries(); got != nil {
		t.Errorf("delivered to nobody: %v", got)
	}
}

// podServer plays an API server that has a pod, lists and streams it, and
// afterwards sends what it is told.
type podServer struct{ *watchServer }

func (s podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("watch") == "" {
		list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{*pod("old", 3)}}
		list.ResourceVersion = "5"
		respond(w, r, http.StatusOK, list)
		return
	}
	if query.Get("sendInitialEvents") == "true" {
		s.event(history.Added, pod("old", 3))
		s.event(history.Bookmark, bookmark("5", true))
	}
	s.event(history.Added, pod("new", 6))
	s.watchServer.ServeHTTP(w, r)
}

// TestInformer fills an informer's cache through the proxy, in both of its ways.
func TestInformer(t *testing.T) {
	want := map[bool]string{
		true: "request watch pods\nresponse 200 server 200 reached true\ndelivery ADDED old version 3\n" +
			"delivery BOOKMARK  version 5 end of initial events\ndelivery ADDED new version 6",
		false: "request list pods\nresponse 200 server 200 reached true\nlist 1 items version 5\n" +
			"request watch pods\nresponse 200 server 200 reached true\ndelivery ADDED new version 6",
	}
	for name, contentType := range contentTypes {
		for streaming, want := range want {
			t.Run(name+map[bool]string{true: ", streaming list", false: ", list"}[streaming], func(t *testing.T) {
				clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, streaming)
				f := start(t, clock.RealClock{}, podServer{newWatchServer()})
				factory := informers.NewSharedInformerFactory(f.client(t, contentType), 0)
				added := make(chan string, 2)
				_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
					AddFunc: func(obj any) { added <- obj.(*corev1.Pod).Name },
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				factory.StartWithContext(ctx)
				defer factory.Shutdown()
				defer cancel()
				if first, second := <-added, <-added; first != "old" || second != "new" {
					t.Errorf("the informer has %s, then %s", first, second)
				}
				if diff := cmp.Diff(want, summary(f.all())); diff != "" {
					t.Errorf("records (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestQueueIsBounded: a full queue takes nothing until something is taken out,
// but one event always fits.
func TestQueueIsBounded(t *testing.T) {
	q := newQueue(10)
	big, small := &event{raw: make([]byte, 20)}, &event{raw: make([]byte, 1)}
	if err := q.push(t.Context(), big); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := q.push(ended, small); err != context.Canceled {
		t.Errorf("error %v, want a full queue to wait", err)
	}
	pushed := make(chan error, 1)
	go func() { pushed <- q.push(t.Context(), small) }()
	for _, want := range []*event{big, small} {
		if got, err := q.pop(t.Context()); got != want || err != nil {
			t.Errorf("popped %v, error %v", got, err)
		}
	}
	if err := <-pushed; err != nil {
		t.Error(err)
	}
}
