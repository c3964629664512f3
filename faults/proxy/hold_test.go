package proxy

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

// holding is a fault proxy on a fake clock, with a fault that holds watch events of pods.
type holding struct {
	*fixture
	clock  *testingclock.FakeClock
	server *watchServer // fake API server for the watch of pods
	other  *watchServer // fake API server for the watches of other resources
	stream watch.Interface
	remove func()
}

// startHolding starts a fault proxy with a fault that holds pod events for the given time. It also
// opens a watch of pods through the proxy.
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
	h.remove = h.interceptor.OnWatchEvent(func(request *history.Request, event *history.Delivery) *interceptor.WatchEffect {
		if request.Resource != "pods" || event.Object.Name == "free" {
			return nil
		}
		return &interceptor.WatchEffect{Hold: hold}
	})
	var err error
	h.stream, err = h.client(t, contentTypes["protobuf"]).CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stream.Stop)
	return h
}

// awaitHeld waits until the fault proxy waits on the fake clock, because it holds an event.
func (h *holding) awaitHeld(t *testing.T) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(10 * time.Second); !h.clock.HasWaiters(); {
		if time.Now().After(deadline) {
			t.Fatalf("nothing is held:\n%s", historytest.Summary(h.All()))
		}
		<-again.C
	}
}

// deliveries returns one line of text for each delivery record in the history.
func (h *holding) deliveries() []string {
	var lines []string
	for _, record := range h.All() {
		if record.Delivery != nil {
			lines = append(lines, historytest.Line(record))
		}
	}
	return lines
}

// TestHold checks that an event's hold time begins when the event arrives at the fault proxy.
func TestHold(t *testing.T) {
	h := startHolding(t, 5*time.Second)
	h.server.event(history.Added, pod("a", 1))
	h.awaitHeld(t)
	h.clock.Step(4 * time.Second)
	if got := h.deliveries(); got != nil {
		t.Errorf("delivered before the end of the hold: %v", got)
	}
	h.clock.Step(time.Second)
	if event := <-h.stream.ResultChan(); event.Type != watch.Added {
		t.Errorf("received event %v after the hold, want ADDED", event)
	}
	if diff := cmp.Diff([]string{"delivery ADDED a version 1 held 5s"}, h.deliveries()); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

// TestHoldKeepsOrder checks that an event without a hold waits behind a held event. The end of the
// stream must wait until the fault proxy has delivered both events.
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

// TestHoldAffectsOneResource checks that a hold of pod events does not delay watches of
// other resources.
func TestHoldAffectsOneResource(t *testing.T) {
	h := startHolding(t, 5*time.Second)
	h.server.event(history.Added, pod("a", 1))
	h.awaitHeld(t)
	other := make(chan []byte, 1)
	go func() {
		_, body := h.do(t, http.MethodGet, "/api/v1/services?watch=true", "")
		other <- []byte(body)
	}()
	h.other.event(history.Bookmark, bookmark("9", false))
	h.Await(t, "delivery of the other stream", func(r history.Record) bool { return r.Delivery != nil && r.Delivery.ID == 2 })
	if got := h.deliveries(); len(got) != 1 {
		t.Errorf("deliveries %v, want only one of the other watch", got)
	}
	close(h.other.send)
	if got := <-other; !bytes.Contains(got, []byte(`"BOOKMARK"`)) {
		t.Errorf("the other watch received %q, want a bookmark", got)
	}
}

// TestRemoveReleasesHeldEvents checks the removal of a fault that holds events. The fault proxy
// must then deliver these events at once and in order.
func TestRemoveReleasesHeldEvents(t *testing.T) {
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
		t.Errorf("first delivery %q, want one held for 1m", got)
	}
	h.server.event(history.Added, pod("d", 5))
	<-h.stream.ResultChan()
	if got := h.deliveries()[4]; got != "delivery ADDED d version 5" {
		t.Errorf("delivery %q after the removal of the fault, want one without a hold", got)
	}
}

// TestLongestHoldCounts checks that the holds of two faults on one event do not add up.
// After the fault with the longer hold is removed, the shorter hold must still apply.
func TestLongestHoldCounts(t *testing.T) {
	h := startHolding(t, time.Hour)
	h.interceptor.OnWatchEvent(func(*history.Request, *history.Delivery) *interceptor.WatchEffect {
		return &interceptor.WatchEffect{Hold: time.Minute}
	})
	h.server.event(history.Added, pod("a", 1))
	h.awaitHeld(t)
	h.remove()
	h.awaitHeld(t)
	h.clock.Step(59 * time.Second)
	if got := h.deliveries(); got != nil {
		t.Errorf("delivered before the end of the longest hold: %v", got)
	}
	h.awaitHeld(t)
	h.clock.Step(time.Second)
	<-h.stream.ResultChan()
	if got := h.deliveries()[0]; got != "delivery ADDED a version 1 held 1m0s" {
		t.Errorf("first delivery %q, want one held for 1m", got)
	}
}

// TestSubjectClosesHeldStream checks that the fault proxy ends a watch that the controller under
// test has closed. Held events must not keep the watch open.
func TestSubjectClosesHeldStream(t *testing.T) {
	h := startHolding(t, time.Hour)
	h.server.event(history.Added, pod("a", 1))
	h.awaitHeld(t)
	h.stream.Stop()
	h.Await(t, "end", func(r history.Record) bool { return r.WatchClosed != nil })
	<-h.server.gone
	if got := h.deliveries(); got != nil {
		t.Errorf("found deliveries after the subject closed the watch, want none: %v", got)
	}
}
