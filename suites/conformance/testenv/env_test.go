package testenv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// fakeCluster is a control plane without components. It fails when a test closes its channel
// failed.
type fakeCluster struct {
	cluster.Cluster
	failed chan struct{}
}

func (c fakeCluster) Failed() <-chan struct{} { return c.failed }

func (c fakeCluster) Err() error {
	select {
	case <-c.failed:
		return errors.New("etcd has exited")
	default:
		return nil
	}
}

// unwatchedNamespace returns a Namespace without watches. Tests add objects through a feed.
func unwatchedNamespace() *Namespace {
	e := &Env{env: &environment.Environment{Cluster: fakeCluster{failed: make(chan struct{})}}, recorder: newSubjectRecorder()}
	return &Namespace{Name: "spec", env: e, store: newStore()}
}

func pod(name, version string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, UID: types.UID(name)}, Status: corev1.PodStatus{Phase: phase}}
}

func (n *Namespace) feed(t *testing.T, change func(feed) error) {
	t.Helper()
	if err := change(feed{n.store, PodKind}); err != nil {
		t.Fatal(err)
	}
}

// TestAwait checks that a wait ends as soon as its matcher accepts the value of the query.
func TestAwait(t *testing.T) {
	n := unwatchedNamespace()
	go func() {
		_ = feed{n.store, PodKind}.Add(pod("one", "1", corev1.PodPending))
		_ = feed{n.store, PodKind}.Update(pod("one", "2", corev1.PodRunning))
	}()
	answer, err := n.await(t.Context(), GetPod("one"), Satisfy(func(p Pod) bool { return p.Pod != nil && p.Status.Phase == corev1.PodRunning }, "a running pod"))
	if err != nil || answer.(Pod).ResourceVersion != "2" {
		t.Errorf("await = %v, %v", answer, err)
	}
}

// TestAwaitTimeout checks the error of a wait that times out. It must contain the expected
// value, the last three values and the last Event objects.
func TestAwaitTimeout(t *testing.T) {
	n := unwatchedNamespace()
	ctx, cancel := context.WithCancelCause(t.Context())
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Reason: "Refused", Message: "no room", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "one"}}
	if err := (feed{n.store, eventKind}).Add(event); err != nil {
		t.Fatal(err)
	}
	evaluations := 0
	_, err := n.await(ctx, Query{"five", func(*View) any {
		if evaluations++; evaluations < 5 {
			go n.store.notify()
		} else {
			cancel(errors.New("no more"))
		}
		return evaluations
	}}, Satisfy(func(int) bool { return false }, "an impossible number"))
	if err == nil {
		t.Fatal("await: expected an error")
	}
	for _, want := range []string{
		"waiting for five: no more\n", "expected: an impossible number\n",
		"(2 earlier states)", ":\n    3\n", ":\n    4\n", ":\n    5\n", "Pod/one: Refused (): no room",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
}

// TestAwaitFailedControlPlane checks that a wait ends when the control plane fails.
func TestAwaitFailedControlPlane(t *testing.T) {
	n := unwatchedNamespace()
	close(n.env.env.Cluster.(fakeCluster).failed)
	_, err := n.await(t.Context(), GetPods(), Satisfy(func(Pods) bool { return false }, "an impossible list"))
	if err == nil || err.Error() != "etcd has exited" {
		t.Errorf("await: %v", err)
	}
}

// TestAlways checks that an invariant is evaluated after every change until ClearInvariants
// removes it. After a violation, the next wait must fail, even if the invariant holds again.
func TestAlways(t *testing.T) {
	n := unwatchedNamespace()
	n.Always("one pod at most", func(v *View) error {
		if pods := v.Pods(); len(pods) > 1 {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
	n.feed(t, func(f feed) error { return f.Add(pod("one", "1", corev1.PodRunning)) })
	if _, err := n.await(t.Context(), GetPods(), gomega.HaveLen(1)); err != nil {
		t.Fatal(err)
	}
	n.feed(t, func(f feed) error { return f.Add(pod("two", "2", corev1.PodRunning)) })
	n.feed(t, func(f feed) error { return f.Delete(pod("two", "3", corev1.PodRunning)) })
	_, err := n.await(t.Context(), GetPods(), gomega.HaveLen(1))
	if err == nil || !strings.Contains(err.Error(), "invariant violated: one pod at most\nfound: 2 pods") {
		t.Errorf("await: %v", err)
	}

	panics := unwatchedNamespace()
	panics.Always("there is a pod", func(v *View) error { return errors.New(v.Pods()[0].Name) })
	panics.feed(t, func(f feed) error { return f.Delete(pod("one", "1", corev1.PodRunning)) })
	_, err = panics.await(t.Context(), GetPods(), gomega.BeEmpty())
	if err == nil || !strings.Contains(err.Error(), "invariant violated: there is a pod\nfound: the invariant panicked: runtime error: index out of range") {
		t.Errorf("await: %v", err)
	}

	other := unwatchedNamespace()
	other.Always("never", func(v *View) error {
		if len(v.Pods()) > 0 {
			return errors.New("a pod")
		}
		return nil
	})
	other.ClearInvariants()
	other.feed(t, func(f feed) error { return f.Add(pod("one", "1", corev1.PodRunning)) })
	if _, err := other.await(t.Context(), GetPods(), gomega.HaveLen(1)); err != nil {
		t.Error(err)
	}
}

// TestAlwaysWithoutProfile checks that AlwaysWithoutProfile adds no invariant if the suite has a
// fault profile.
func TestAlwaysWithoutProfile(t *testing.T) {
	for _, profile := range []*Profile{nil, &Profiles[0]} {
		n := unwatchedNamespace()
		n.env.options.Profile = profile
		n.AlwaysWithoutProfile("never", func(*View) error { return errors.New("violated") })
		if violated := n.store.violation != ""; violated != (profile == nil) {
			t.Errorf("with profile %v: violation %v", profile, violated)
		}
	}
}

// TestStore checks the resourceVersion up to which the store contains all changes. A relist must
// remove the objects that the new list does not contain.
func TestStore(t *testing.T) {
	n := unwatchedNamespace()
	n.feed(t, func(f feed) error { return f.Replace([]any{pod("one", "3", ""), pod("two", "4", "")}, "7") })
	n.feed(t, func(f feed) error { return f.Delete(pod("two", "9", "")) })
	if seen := n.store.seen[PodKind]; seen != history.Version(9) {
		t.Errorf("seen = %d, want 9", seen)
	}
	n.feed(t, func(f feed) error { return f.Replace([]any{pod("three", "10", "")}, "11") })
	view := &View{n.store}
	if view.Has(Ref{PodKind, "one"}) || !view.Has(Ref{PodKind, "three"}) || !n.store.synced[PodKind] {
		t.Errorf("after a relist: %v", n.store.objects)
	}
}

// TestSubjectRecorder checks that the recorder stores the records of only one Ginkgo spec. It also
// checks which resourceVersions count as delivered.
func TestSubjectRecorder(t *testing.T) {
	r := newSubjectRecorder()
	r.Append(history.Record{Request: &history.Request{Namespace: "spec", Verb: "create", Resource: "pods"}})
	calls := 0
	r.reset(func() { calls++ })
	r.Append(history.Record{Request: &history.Request{Namespace: "spec", Verb: "create", Resource: "pods"}})
	r.Append(history.Record{Request: &history.Request{Namespace: "other", Verb: "create", Resource: "pods"}})
	r.Append(history.Record{Delivery: &history.Delivery{Resource: "pods", Object: history.Object{
		Ref: history.Ref{Namespace: "spec", Name: "one", Version: 5},
	}}})
	r.Append(history.Record{Fault: &history.Fault{Name: "api-error", Event: history.FaultFired}})
	r.Append(history.Record{Fault: &history.Fault{Name: "api-error", Event: history.FaultHealed}})
	if got := len(r.requests("spec", "create", "pods")); got != 1 || calls != 5 {
		t.Errorf("%d requests and %d calls, want 1 and 5", got, calls)
	}
	if r.delivered("pods", "spec", "one") != 5 || r.delivered("pods", "spec", "two") != 0 || r.faultsFired("api-error") != 1 {
		t.Errorf("delivered %d, fired %d", r.delivered("pods", "spec", "one"), r.faultsFired("api-error"))
	}
}

// TestRecentTraffic checks how recentTraffic describes watch events, writes and responses.
func TestRecentTraffic(t *testing.T) {
	r := newSubjectRecorder()
	r.reset(func() {})
	write := func(id uint64, namespace, verb, resource, name string) {
		r.Append(history.Record{Request: &history.Request{ID: id, Namespace: namespace, Verb: verb, Resource: resource, Name: name}})
	}
	respond := func(id uint64, code int) {
		r.Append(history.Record{Response: &history.Response{ID: id, Code: code}})
	}
	r.Append(history.Record{Delivery: &history.Delivery{Type: history.Added, Resource: "pods", Object: history.Object{
		Ref: history.Ref{Namespace: "spec", Name: "one", Version: 5},
	}}})
	r.Append(history.Record{Delivery: &history.Delivery{Type: history.Bookmark, Resource: "pods", Object: history.Object{
		Ref: history.Ref{Namespace: "spec", Version: 6},
	}}})
	write(1, "spec", "delete", "pods", "one")
	write(2, "other", "delete", "pods", "two")
	write(3, "spec", "list", "pods", "")
	write(4, "spec", "create", "events", "")
	write(5, "spec", "create", "pods", "")
	respond(5, 0)
	respond(1, 404)
	write(6, "spec", "create", "pods", "")
	want := []string{
		"watch  ADDED    pods one, version 5", "write  delete pods one: status 404",
		"write  create pods: response lost", "write  create pods: no response yet",
	}
	if diff := cmp.Diff(want, r.recentTraffic("spec")); diff != "" {
		t.Errorf("recentTraffic (-want +got):\n%s", diff)
	}
	for range 100 {
		write(7, "spec", "create", "pods", "")
	}
	if got := len(r.recentTraffic("spec")); got != 24 {
		t.Errorf("%d lines of many, want the last 24", got)
	}
}

// TestRetryServerErrors checks that retryServerErrors repeats a write after status 500. It must
// not repeat the write after another error.
func TestRetryServerErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		errs   []error
		tries  int
		failed bool
	}{
		{"success", []error{nil}, 1, false},
		{"status 500", []error{&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500}}, nil}, 2, false},
		{"forbidden", []error{apierrors.NewForbidden(schema.GroupResource{}, "", nil)}, 1, true},
		{"connection error", []error{errors.New("connection reset")}, 1, true},
	} {
		tries := 0
		err := retryServerErrors(t.Context(), func() error { tries++; return tt.errs[tries-1] })
		if tries != tt.tries || (err != nil) != tt.failed {
			t.Errorf("%s: %d tries, %v", tt.name, tries, err)
		}
	}
}

// TestProfiles checks that all faults of the profiles are in the catalog and have valid
// parameters.
func TestProfiles(t *testing.T) {
	for _, p := range Profiles {
		found, err := FindProfile(p.Name)
		if err != nil || found.Name != p.Name {
			t.Errorf("FindProfile(%s) = %v, %v", p.Name, found, err)
		}
		for _, spec := range p.Faults {
			if _, err := (environment.Injection{Fault: spec.Kind, Params: spec.Params}).New(); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
	}
	if p, err := FindProfile(""); p != nil || err != nil {
		t.Errorf("no profile: %v, %v", p, err)
	}
	if _, err := FindProfile("stedy"); err == nil || !strings.Contains(err.Error(), `unknown fault profile "stedy"; expected one of [steady]`) {
		t.Errorf("unknown profile: %v", err)
	}
}
