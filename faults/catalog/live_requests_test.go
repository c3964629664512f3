package catalog

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

var isNotFound = apierrors.IsNotFound

// TestLiveWrites injects a fault that fires on the second of three creates. It checks the error
// that the controller under test receives, the stored objects and the history.
func TestLiveWrites(t *testing.T) {
	const second = "verb: create, resource: configmaps, nth: 2"
	tests := []struct {
		fault, params string
		wantErr       func(error) bool // returns true if the second create may return this error
		committed     bool
		record        history.Response
		least         time.Duration // minimum duration of the second create
	}{
		{"api-error", "code: 403", apierrors.IsForbidden, false, history.Response{Code: 403}, 0},
		{"api-error", "code: 404", apierrors.IsNotFound, false, history.Response{Code: 404}, 0},
		{"api-error", "code: 409", apierrors.IsAlreadyExists, false, history.Response{Code: 409}, 0},
		{"api-error", "code: 422", apierrors.IsInvalid, false, history.Response{Code: 422}, 0},
		{"api-error", "code: 429", apierrors.IsTooManyRequests, false, history.Response{Code: 429}, 0},
		{"api-error", "code: 500", apierrors.IsInternalError, false, history.Response{Code: 500}, 0},
		{"api-error", "code: 503", apierrors.IsServiceUnavailable, false, history.Response{Code: 503}, 0},
		{"api-error", "code: 504", apierrors.IsTimeout, false, history.Response{Code: 504}, 0},
		{"request-reset", "breaks: request", isBroken, false, history.Response{}, 0},
		{"request-reset", "breaks: connection", isBroken, false, history.Response{}, 0},
		{"request-slow", "delay: 100ms, jitter: 100ms", isNil, true, history.Response{Code: 201, ServerCode: 201, Reached: true}, 100 * time.Millisecond},
		{"request-hang", "within: 200ms", isBroken, false, history.Response{}, 200 * time.Millisecond},
		{"request-hang", "within: 200ms, then: pass", isNil, true, history.Response{Code: 201, ServerCode: 201, Reached: true}, 200 * time.Millisecond},
		{"response-slow", "delay: 200ms", isNil, true, history.Response{Code: 201, ServerCode: 201, Reached: true}, 200 * time.Millisecond},
		{"response-lost", "how: reset, breaks: request", isBroken, true, history.Response{ServerCode: 201, Reached: true}, 0},
		{"response-lost", "how: reset", isBroken, true, history.Response{ServerCode: 201, Reached: true}, 0},
		{"response-lost", "how: reset, after: 200ms", isBroken, true, history.Response{ServerCode: 201, Reached: true}, 200 * time.Millisecond},
		{"response-lost", "how: cut", isBroken, true, history.Response{ServerCode: 201, Reached: true}, 0},
		{"response-lost", "how: error", apierrors.IsTimeout, true, history.Response{Code: 504, ServerCode: 201, Reached: true}, 0},
		{"response-lost", "how: error, code: 500", apierrors.IsInternalError, true, history.Response{Code: 500, ServerCode: 201, Reached: true}, 0},
	}
	for _, test := range tests {
		t.Run(test.fault+" "+test.params, func(t *testing.T) {
			t.Parallel()
			l := startLive(t)
			l.inject(test.fault, "{"+second+", "+test.params+"}")
			for i, name := range []string{"a", "b", "c"} {
				began := time.Now()
				err := l.create(name)
				injected := i == 1
				if took := time.Since(began); injected && took < test.least {
					t.Errorf("took %v, want at least %v", took, test.least)
				}
				if (!injected && !isNil(err)) || (injected && !test.wantErr(err)) {
					t.Errorf("create of %s returned the unexpected error %v", name, err)
				}
				if want := !injected || test.committed; l.exists(name) != want {
					t.Errorf("%s exists: %v, want %v", name, !want, want)
				}
			}
			got := l.responseTo("create", 1)
			if got.Code != test.record.Code || got.ServerCode != test.record.ServerCode || got.Reached != test.record.Reached || got.Fault != test.fault {
				t.Errorf("response %+v, want %+v", *got, test.record)
			}
			if test.committed && (got.Object == nil || got.Object.Name != "b") {
				t.Errorf("the response record lacks the committed object: %+v", got.Object)
			}
			if l.fired() != 1 {
				t.Errorf("fired %d times, want once", l.fired())
			}
		})
	}
}

func isNil(err error) bool { return err == nil }

// isBroken reports whether an error says that the controller under test received no response of
// the API server.
func isBroken(err error) bool {
	status := apierrors.APIStatus(nil)
	return err != nil && !asStatus(err, &status)
}

// TestLiveRetryAfter checks that client-go repeats a request after a response with a Retry-After
// header. The history must contain the value of this header.
func TestLiveRetryAfter(t *testing.T) {
	for _, code := range []int{429, 500} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			t.Parallel()
			l := startLive(t)
			l.inject("api-error", fmt.Sprintf("{verb: create, resource: configmaps, code: %d, retryAfterSeconds: 1, nth: 1}", code))
			if err := l.create("a"); err != nil {
				t.Error(err)
			}
			if first := l.responseTo("create", 0); first.Code != code || first.RetryAfter == nil || *first.RetryAfter != 1 {
				t.Errorf("first response %+v, want one with the code of the fault and Retry-After 1", *first)
			}
			if again := l.responseTo("create", 1); again.Code != http.StatusCreated || again.RetryAfter != nil {
				t.Errorf("second response %+v, want 201 without Retry-After", *again)
			}
		})
	}
}

// TestLiveHealing checks that the fault proxy releases a held request when the fault is healed.
func TestLiveHealing(t *testing.T) {
	for _, test := range []struct {
		fault, params string
		wantErr       func(error) bool
		committed     bool
	}{
		{"request-hang", "then: pass", isNil, true},
		{"request-hang", "then: reset", isBroken, false},
		{"request-slow", "delay: 10m", isNil, true},
		{"response-slow", "delay: 10m", isNil, true},
		{"response-lost", "how: error, after: 10m", apierrors.IsTimeout, true},
	} {
		t.Run(test.fault+" "+test.params, func(t *testing.T) {
			t.Parallel()
			l := startLive(t)
			heal := l.inject(test.fault, "{verb: create, resource: configmaps, "+test.params+"}")
			done := make(chan error, 1)
			go func() { done <- l.create("a") }()
			l.Await(t, "firing", func(r history.Record) bool { return r.Fault != nil && r.Fault.Event == history.FaultFired })
			if !strings.HasPrefix(test.fault, "response-") && l.exists("a") {
				t.Error("the request reached the API server")
			}
			select {
			case err := <-done:
				t.Errorf("the request was not held: error %v", err)
			default:
			}
			heal()
			select {
			case err := <-done:
				if !test.wantErr(err) {
					t.Errorf("create returned the unexpected error %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the request is still held")
			}
			if l.exists("a") != test.committed {
				t.Errorf("the object exists: %v, want the opposite", !test.committed)
			}
		})
	}
}

// TestLiveOwner checks that the parameter owner selects a delete request by the deleted object's
// owner.
func TestLiveOwner(t *testing.T) {
	l := startLive(t)
	yes := true
	for name, owner := range map[string]string{"mine": "web-1", "theirs": "db-1"} {
		object := configMap(name)
		object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: l.commit(owner).UID, Controller: &yes}}
		if _, err := l.subject.CoreV1().ConfigMaps(l.namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	l.inject("api-error", "{verb: delete, resource: configmaps, owner: ConfigMap/web-*, code: 403}")
	for name, refused := range map[string]bool{"mine": true, "theirs": false, "web-1": false} {
		err := l.subject.CoreV1().ConfigMaps(l.namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
		if apierrors.IsForbidden(err) != refused || (err != nil) != refused {
			t.Errorf("deleting %s: error %v, want Forbidden only for an object of the given owner", name, err)
		}
	}
}
