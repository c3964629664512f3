package watches

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/internal/faulttest"
	"github.com/kube-gauntlet/gauntlet/faults/proxy/proxytest"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDelayParams(t *testing.T) {
	resources := strings.Join(faults.Resources, ", ")
	tests := []faulttest.Case{
		{"{resource: pods, delay: 1500ms}", ""},
		{"{resource: replicasets.apps, delay: 10m}", ""},
		{"{delay: 1s}", "s.yaml: watch-delay.resource: not given; expected one of " + resources},
		{"{resource: po, delay: 1s}", `s.yaml:1:12: watch-delay.resource: unknown value "po"; expected pods`},
		{"{resource: pods}", "s.yaml: watch-delay.delay: not given; expected 1ms to 10m0s"},
		{"{resource: pods, delay: 0s}", "s.yaml:1:25: watch-delay.delay: 0s is out of bounds; expected 1ms to 10m0s"},
		{"{resource: pods, delay: 1us}", "s.yaml:1:25: watch-delay.delay: 1µs is out of bounds; expected 1ms to 10m0s"},
		{"{resource: pods, delay: 11m}", "s.yaml:1:25: watch-delay.delay: 11m0s is out of bounds; expected 1ms to 10m0s"},
	}
	faulttest.Params(t, Delay, tests)
}

// TestHealReleasesHeldEvents checks that Heal makes the fault proxy deliver the held events of a
// watch of pods. The fault must write one "fired" record to the history, and must not delay a
// watch of services.
func TestHealReleasesHeldEvents(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for version := 1; version <= 2; version++ {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","resourceVersion":"%d"}}}`, version)
		}
	}
	var r historytest.Recording
	clock := testingclock.NewFakeClock(time.Now())
	p, config := proxytest.Start(t, handler, &r, clock)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	fault, err := faulttest.Parse(Delay, "{resource: pods, delay: 1m}")
	if err != nil {
		t.Fatal(err)
	}
	env := &faults.Env{Interceptor: p, Report: faults.NewReporter(&r, 0, "watch-delay")}
	if err := faults.Inject(t.Context(), fault, env); err != nil {
		t.Fatal(err)
	}

	body, err := client.CoreV1().RESTClient().Get().Resource("services").Param("watch", "true").Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(body); err != nil || strings.Count(string(text), "ADDED") != 2 {
		t.Errorf("the watch of services received %q, error %v; want two ADDED events", text, err)
	}
	_ = body.Close()

	pods, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	for fault.Summary() != "held 2 events on 1 watch" || !clock.HasWaiters() || p.Held() == 0 {
		select {
		case event := <-pods.ResultChan():
			t.Fatalf("%s was not held", event.Type)
		case <-time.After(time.Millisecond):
		}
	}
	if err := faults.Heal(t.Context(), fault, env); err != nil {
		t.Fatal(err)
	}
	events := 0
	for range pods.ResultChan() {
		events++
	}
	if events != 2 || p.Held() != 0 {
		t.Errorf("%d events, want 2; %d messages are held, want none", events, p.Held())
	}
	got := r.Faults()
	want := []history.Fault{
		{Name: "watch-delay", Event: history.FaultInjected},
		{
			Name: "watch-delay", Event: history.FaultFired, Request: 2, Detail: "holds each event of this watch for 1m0s",
			Object: &history.Ref{Resource: "pods", Name: "web", Version: 1},
		},
		{Name: "watch-delay", Event: history.FaultHealed, Detail: "held 2 events on 1 watch"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records of the fault (-want +got):\n%s", diff)
	}
}
