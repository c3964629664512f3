package proxy

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

// bookmark returns the pod object for a bookmark event with the given resourceVersion.
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

// TestWatch forwards one watch event of each type. The history must contain an event's record when
// the controller under test receives the event.
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
			if got := historytest.Summary(f.All()); got != "request watch pods\nresponse 200 server 200 reached true" {
				t.Errorf("unexpected records of an open watch, want a request and a response:\n%s", got)
			}
			want := []*history.Delivery{
				{Type: history.Added, Object: project(t, pod("web-1", 3))},
				{Type: history.Modified, Object: project(t, pod("web-1", 4))},
				{Type: history.Bookmark, Object: history.Object{Ref: history.Ref{Resource: "pods", Version: 5}}, InitialEventsEnd: true},
				{Type: history.Bookmark, Object: history.Object{Ref: history.Ref{Resource: "pods", Version: 6}}},
				{Type: history.Deleted, Object: project(t, pod("web-1", 7))},
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
				if diff := cmp.Diff(w, f.All()[2+i].Delivery, anyLength); diff != "" {
					t.Errorf("delivery %d (-want +got):\n%s", i, diff)
				}
			}
			close(server.send)
			if event, ok := <-stream.ResultChan(); ok {
				t.Errorf("received event %v after the end of the watch, want none", event)
			}
			closed := f.Await(t, "end", func(r history.Record) bool { return r.WatchClosed != nil })
			ended := &history.WatchClosed{ID: 1, Subject: "subject-0", Resource: "pods", Reason: "the API server ended the watch"}
			if diff := cmp.Diff(ended, closed.WatchClosed); diff != "" {
				t.Errorf("end (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWatchEnds checks the history record of the end of a watch. The controller under test or the
// fault proxy ends the watch, or a connection breaks.
func TestWatchEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(*watchServer, *fixture, watch.Interface)
		want string
	}{
		{"subject", func(_ *watchServer, _ *fixture, w watch.Interface) { w.Stop() }, "closed the subject closed the watch"},
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
			closed := f.Await(t, "end", func(r history.Record) bool { return r.WatchClosed != nil })
			if got := historytest.Line(closed); got != test.want {
				t.Errorf("ended with %q, want %q", got, test.want)
			}
			for event := range stream.ResultChan() { // the subject notices the end of the stream
				if event.Type != watch.Error {
					t.Errorf("received event %s after the end of the watch, want ERROR or none", event.Type)
				}
			}
			if test.name != "server" {
				<-server.gone
			}
		})
	}
}

// TestWatchRefused checks the records of a watch request that the API server answers with
// an error.
func TestWatchRefused(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respond(w, r, http.StatusGone, expired())
	}))
	_, err := f.client(t, contentTypes["protobuf"]).CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	if err == nil {
		t.Error("the watch succeeded, want an error")
	}
	if got := historytest.Summary(f.All()); got != "request watch pods\nresponse 410 server 410 reached true Expired" {
		t.Errorf("unexpected records, want a request and a response with status 410:\n%s", got)
	}
}

// TestWatchForwardsBytes checks that the fault proxy forwards exactly the API server's bytes to
// the controller under test. The proxy must do so even if it cannot decode these bytes.
func TestWatchForwardsBytes(t *testing.T) {
	jsonPod := `{"type":"ADDED", "object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","resourceVersion":"5"}}}`
	tests := []struct {
		name, contentType, stream string
		want                      []string
	}{
		{"json", "application/json", " " + jsonPod + "\r\n\n" + jsonPod + "\n\n", []string{"delivery ADDED web version 5", "delivery ADDED web version 5"}},
		{"json stream", "application/json;stream=watch", jsonPod, []string{"delivery ADDED web version 5"}},
		{"custom resource", "application/json", strings.ReplaceAll(jsonPod, "v1", "example.com/v1"), []string{"delivery ADDED web version 5"}},
		{"unknown event", "application/json", strings.ReplaceAll(jsonPod, "ADDED", "SOLD") + jsonPod, []string{"gap requests for pods by subject-0, and watch events that it received", "delivery ADDED web version 5"}},
		{"no object", "application/json", jsonPod + "<html>" + jsonPod, []string{"delivery ADDED web version 5", "gap requests for pods by subject-0, and watch events that it received"}},
		{"unknown protobuf", "application/vnd.kubernetes.protobuf;stream=watch", "\x00\x00\x00\x08nonsense" + "\x00\x00\x00\x00", []string{"gap requests for pods by subject-0, and watch events that it received", "gap requests for pods by subject-0, and watch events that it received"}},
		{"unknown encoding", "application/cbor-seq", "\x01\x02\x03", []string{"gap requests for pods by subject-0, and watch events that it received"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				_, _ = io.WriteString(w, test.stream)
			}))
			response, body := f.do(t, http.MethodGet, "/api/v1/pods?watch=true", "")
			if body != test.stream || response.Header.Get("Content-Type") != test.contentType {
				t.Errorf("the subject received body %q with content type %s, want those of the API server", body, response.Header.Get("Content-Type"))
			}
			want := slices.Concat([]string{"request watch pods", "response 200 server 200 reached true"}, test.want, []string{"closed the API server ended the watch"})
			f.Await(t, "end", func(r history.Record) bool { return r.WatchClosed != nil })
			var got []string
			for _, record := range f.All() {
				got = append(got, historytest.Line(record))
			}
			slices.Sort(got[2 : len(got)-1]) // the reader goroutine may record a gap before or after deliveries, so their order does not matter
			slices.Sort(want[2 : len(want)-1])
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// podServer is a fake API server with one pod. It returns the pod in lists and in streaming
// lists, and then sends the events from the channel send.
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

// TestInformer checks that an informer behind the fault proxy fills its cache. The test runs with
// a normal list and with a streaming list.
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
					t.Errorf("the informer added pod %s, then %s; want old, then new", first, second)
				}
				if diff := cmp.Diff(want, historytest.Summary(f.All())); diff != "" {
					t.Errorf("records (-want +got):\n%s", diff)
				}
			})
		}
	}
}
