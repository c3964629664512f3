package proxy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestFirstMatchingFaultApplies checks that the fault proxy applies only the first effect that a
// fault returns. The proxy must not call a removed fault.
func TestFirstMatchingFaultApplies(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	var asked []string
	fault := func(name string, effect *interceptor.RequestEffect) func() {
		return f.interceptor.OnRequest(func(*history.Request) *interceptor.RequestEffect {
			asked = append(asked, name)
			return effect
		})
	}
	fault("unconcerned", nil)
	removeFirst := fault("first", &interceptor.RequestEffect{Fault: "first", Refuse: &interceptor.Refusal{Code: 500}})
	removeSecond := fault("second", &interceptor.RequestEffect{Fault: "second", Refuse: &interceptor.Refusal{Code: 503}})

	for _, want := range []struct {
		code int
		by   string
	}{{500, "unconcerned first"}, {503, "unconcerned second"}, {200, "unconcerned"}} {
		asked = nil
		response, _ := f.do(t, http.MethodGet, "/healthz", "")
		if response.StatusCode != want.code || strings.Join(asked, " ") != want.by {
			t.Errorf("code %d by %v, want %d by %s", response.StatusCode, asked, want.code, want.by)
		}
		if want.code == 500 {
			removeFirst()
			removeFirst() // a second call has no effect
		} else {
			removeSecond()
		}
	}
}

// TestRemoveWaits checks that the function remove returns only after a running call of the fault
// has returned.
func TestRemoveWaits(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	called, proceed := make(chan struct{}), make(chan struct{})
	fired := false
	remove := f.interceptor.OnRequest(func(*history.Request) *interceptor.RequestEffect {
		close(called)
		<-proceed
		fired = true
		return nil
	})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		f.do(t, http.MethodGet, "/healthz", "")
	}()
	<-called
	removed := make(chan struct{})
	go func() {
		defer close(removed)
		remove()
		if !fired {
			t.Error("remove returned during a call of the fault")
		}
	}()
	select {
	case <-removed:
		t.Error("remove did not wait for the call of the fault")
	case <-time.After(time.Millisecond): // if this wait is too short, the test can only miss an error
	}
	close(proceed)
	<-removed
	<-answered
}
