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
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// plane is a control plane that does nothing, and may be said to have failed.
type plane struct {
	cluster.Cluster
	failed chan struct{}
}

func (p plane) Failed() <-chan struct{} { return p.failed }

func (p plane) Err() error {
	select {
	case <-p.failed:
		return errors.New("etcd has ended")
	default:
		return nil
	}
}

// bare is a namespace of which nothing is watched: the test feeds its store.
func bare() *Namespace {
	w := &Env{cluster: plane{failed: make(chan struct{})}, recorder: newSubjectRecorder()}
	return &Namespace{Name: "spec", env: w, store: newStore()}
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

// A wait ends with the change that it waits for.
func TestAwait(t *testing.T) {
	n := bare()
	go func() {
		_ = feed{n.store, PodKind}.Add(pod("one", "1", corev1.PodPending))
		_ = feed{n.store, PodKind}.Update(pod("one", "2", corev1.PodRunning))
	}()
	answer, err := n.await(t.Context(), GetPod("one"), Satisfy(func(p Pod) bool { return p.Pod != nil && p.Status.Phase == corev1.PodRunning }, "a pod that runs"))
	if err != nil || answer.(Pod).ResourceVersion != "2" {
		t.Errorf("await = %v, %v", answer, err)
	}
}

// A wait that was in vain says what was expected, the last three states that it saw
// and the events.
func TestAwaitInVain(t *testing.T) {
	n := bare()
	ctx, cancel := context.WithCancelCause(t.Context())
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Reason: "Refused", Message: "no room", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "one"}}
	if err := (feed{n.store, eventKind}).Add(event); err != nil {
		t.Fatal(err)
	}
	looks := 0
	_, err := n.await(ctx, Query{"five", func(*View) any {
		if looks++; looks < 5 {
			go n.store.notify()
		} else {
			cancel(errors.New("no more"))
		}
		return looks
	}}, Satisfy(func(int) bool { return false }, "a number that never comes"))
	if err == nil {
		t.Fatal("the wait was not in vain")
	}
	for _, want := range []string{
		"waiting for five: no more\n", "expected: a number that never comes\n",
		"(2 before)", ":\n    3\n", ":\n    4\n", ":\n    5\n", "Pod/one: Refused (): no room",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
}

// A control plane that dies ends a wait at once.
func TestAwaitOnAFailedPlane(t *testing.T) {
	n := bare()
	close(n.env.cluster.(plane).failed)
	_, err := n.await(t.Context(), GetPods(), Satisfy(func(Pods) bool { return false }, "what never comes"))
	if err == nil || err.Error() != "etcd has ended" {
		t.Errorf("await: %v", err)
	}
}

// What must always hold is looked at with every change, though the state that broke
// it is gone when somebody waits, and until it is forgotten.
func TestAlways(t *testing.T) {
	n := bare()
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
	if err == nil || !strings.Contains(err.Error(), "always: one pod at most\notherwise: 2 pods") {
		t.Errorf("await: %v", err)
	}

	panics := bare()
	panics.Always("there is a pod", func(v *View) error { return errors.New(v.Pods()[0].Name) })
	panics.feed(t, func(f feed) error { return f.Delete(pod("one", "1", corev1.PodRunning)) })
	_, err = panics.await(t.Context(), GetPods(), gomega.BeEmpty())
	if err == nil || !strings.Contains(err.Error(), "always: there is a pod\notherwise: looking at it failed: runtime error: index out of range") {
		t.Errorf("await: %v", err)
	}

	other := bare()
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

// Unfailing demands nothing where answers may be lost.
func TestUnfailing(t *testing.T) {
	for _, profile := range []*Profile{nil, &Profiles[0]} {
		n := bare()
		n.env.options.Profile = profile
		n.AlwaysWithoutProfile("never", func(*View) error { return errors.New("otherwise") })
		if broken := n.store.violation != ""; broken != (profile == nil) {
			t.Errorf("with profile %v: broken %v", profile, broken)
		}
	}
}

// The store knows up to where it has seen everything, and what a relist no longer
// names is gone.
func TestStore(t *testing.T) {
	n := bare()
	n.feed(t, func(f feed) error { return f.Replace([]any{pod("one", "3", ""), pod("two", "4", "")}, "7") })
	n.feed(t, func(f feed) error { return f.Delete(pod("two", "9", "")) })
	if seen := n.store.seen[PodKind]; seen != history.Version(9) {
		t.Errorf("seen up to %d, want 9", seen)
	}
	n.feed(t, func(f feed) error { return f.Replace([]any{pod("three", "10", "")}, "11") })
	view := &View{n.store}
	if view.Has(Ref{PodKind, "one"}) || !view.Has(Ref{PodKind, "three"}) || !n.store.synced[PodKind] {
		t.Errorf("after a relist: %v", n.store.objects)
	}
}

// What the witness tells is of one spec, and of the versions that were delivered.
func TestWitness(t *testing.T) {
	w := newSubjectRecorder()
	w.Append(history.Record{Request: &history.Request{Namespace: "spec", Verb: "create", Resource: "pods"}})
	told := 0
	w.reset(func() { told++ })
	w.Append(history.Record{Request: &history.Request{Namespace: "spec", Verb: "create", Resource: "pods"}})
	w.Append(history.Record{Request: &history.Request{Namespace: "other", Verb: "create", Resource: "pods"}})
	w.Append(history.Record{Delivery: &history.Delivery{Resource: "pods", Object: history.Object{
		Ref: history.Ref{Namespace: "spec", Name: "one", Version: 5},
	}}})
	w.Append(history.Record{Fault: &history.Fault{Name: "api-error", Event: history.FaultFired}})
	w.Append(history.Record{Fault: &history.Fault{Name: "api-error", Event: history.FaultHealed}})
	if got := len(w.requests("spec", "create", "pods")); got != 1 || told != 5 {
		t.Errorf("%d requests, told %d times", got, told)
	}
	if w.delivered("pods", "spec", "one") != 5 || w.delivered("pods", "spec", "two") != 0 || w.faultsFired("api-error") != 1 {
		t.Errorf("told %d, fired %d", w.delivered("pods", "spec", "one"), w.faultsFired("api-error"))
	}
}

// A failure tells what the subject was told and wrote in the spec's namespace, with
// what it was answered.
func TestLately(t *testing.T) {
	w := newSubjectRecorder()
	w.reset(func() {})
	write := func(id uint64, namespace, verb, resource, name string) {
		w.Append(history.Record{Request: &history.Request{ID: id, Namespace: namespace, Verb: verb, Resource: resource, Name: name}})
	}
	answer := func(id uint64, code int) {
		w.Append(history.Record{Response: &history.Response{ID: id, Code: code}})
	}
	w.Append(history.Record{Delivery: &history.Delivery{Type: history.Added, Resource: "pods", Object: history.Object{
		Ref: history.Ref{Namespace: "spec", Name: "one", Version: 5},
	}}})
	w.Append(history.Record{Delivery: &history.Delivery{Type: history.Bookmark, Resource: "pods", Object: history.Object{
		Ref: history.Ref{Namespace: "spec", Version: 6},
	}}})
	write(1, "spec", "delete", "pods", "one")
	write(2, "other", "delete", "pods", "two")
	write(3, "spec", "list", "pods", "")
	write(4, "spec", "create", "events", "")
	write(5, "spec", "create", "pods", "")
	answer(5, 0)
	answer(1, 404)
	write(6, "spec", "create", "pods", "")
	want := []string{
		"told   ADDED    pods one, version 5", "wrote  delete pods one: answered 404",
		"wrote  create pods: its answer was lost", "wrote  create pods: no answer yet",
	}
	if diff := cmp.Diff(want, w.recentTraffic("spec")); diff != "" {
		t.Errorf("lately (-want +got):\n%s", diff)
	}
	for range 100 {
		write(7, "spec", "create", "pods", "")
	}
	if got := len(w.recentTraffic("spec")); got != 24 {
		t.Errorf("%d lines of many, want the last 24", got)
	}
}

// What the API server could not see to is tried again; what it refuses is not.
func TestInsist(t *testing.T) {
	for _, tt := range []struct {
		name   string
		errs   []error
		tries  int
		failed bool
	}{
		{"at once", []error{nil}, 1, false},
		{"etcd too slow", []error{&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500}}, nil}, 2, false},
		{"refused", []error{apierrors.NewForbidden(schema.GroupResource{}, "", nil)}, 1, true},
		{"not an answer", []error{errors.New("torn")}, 1, true},
	} {
		tries := 0
		err := retryServerErrors(t.Context(), func() error { tries++; return tt.errs[tries-1] })
		if tries != tt.tries || (err != nil) != tt.failed {
			t.Errorf("%s: %d tries, %v", tt.name, tries, err)
		}
	}
}

// The profiles are of faults that there are, with parameters that they take.
func TestProfiles(t *testing.T) {
	for _, p := range Profiles {
		found, err := FindProfile(p.Name)
		if err != nil || found.Name != p.Name {
			t.Errorf("FindProfile(%s) = %v, %v", p.Name, found, err)
		}
		for _, spec := range p.Faults {
			if _, err := newFault(spec); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
	}
	if p, err := FindProfile(""); p != nil || err != nil {
		t.Errorf("no profile: %v, %v", p, err)
	}
	if _, err := FindProfile("stedy"); err == nil || !strings.Contains(err.Error(), `profile "stedy": expected one of [steady]`) {
		t.Errorf("a profile that is not there: %v", err)
	}
}
