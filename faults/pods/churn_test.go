package pods

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/internal/faulttest"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestChurnParams(t *testing.T) {
	tests := []faulttest.Case{
		{"{action: delete}", ""},
		{"{action: delete, selector: 'app=web,tier notin (db)', every: 10ms, gracePeriodSeconds: 0, times: 3, orphans: true}", ""},
		{"{action: fail, every: 1h}", ""},
		{"{every: 1s}", "s.yaml: pod-churn.action: not given; expected one of delete, evict, fail, collapse, succeed, unready, restart, linger"},
		{"{action: maim}", `s.yaml:1:10: pod-churn.action: unknown value "maim"; expected one of delete, evict, fail, collapse, succeed, unready, restart, linger`},
		{"{action: fail, selector: '=='}", `s.yaml:1:26: pod-churn.selector: found "==", which is not a label selector; expected a selector such as app=web,tier!=db`},
		{"{action: fail, every: 9ms}", "s.yaml:1:23: pod-churn.every: 9ms is out of bounds; expected 10ms to 1h0m0s"},
		{"{action: fail, every: 2h}", "s.yaml:1:23: pod-churn.every: 2h0m0s is out of bounds; expected 10ms to 1h0m0s"},
		{"{action: fail, times: -1}", "s.yaml:1:23: pod-churn.times: -1 is out of bounds; expected 0 to 1000000"},
		{"{action: fail, gracePeriodSeconds: 0}", "s.yaml:1:36: pod-churn.gracePeriodSeconds: only permitted with action delete; found action fail"},
		{"{action: unready, downtime: 1h}", ""},
		{"{action: fail, downtime: 1s}", "s.yaml:1:26: pod-churn.downtime: only permitted with action unready, restart or linger; found action fail"},
		{"{action: fail, downtime: 0s}", "s.yaml:1:26: pod-churn.downtime: only permitted with action unready, restart or linger; found action fail"},
		{"{action: unready, downtime: 0s}", "s.yaml:1:29: pod-churn.downtime: 0s is out of bounds; expected 10ms to 1h0m0s"},
		{"{action: unready, downtime: 9ms}", "s.yaml:1:29: pod-churn.downtime: 9ms is out of bounds; expected 10ms to 1h0m0s"},
		{"{action: delete, gracePeriodSeconds: -1}", "s.yaml:1:38: pod-churn.gracePeriodSeconds: -1 is out of bounds; expected 0 to 3600"},
	}
	faulttest.Params(t, Churn, tests)
}

// pod returns a ready pod with a controllerRef. The functions in change modify the pod first.
func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID("uid-" + name), ResourceVersion: "5", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: "uid-web", Controller: &yes}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func orphan(p *corev1.Pod)      { p.OwnerReferences = nil }
func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func failed(p *corev1.Pod)      { p.Status.Phase = corev1.PodFailed }
func succeeded(p *corev1.Pod)   { p.Status.Phase = corev1.PodSucceeded }
func pending(p *corev1.Pod)     { p.Status.Phase = corev1.PodPending }

func TestCandidates(t *testing.T) {
	pods := []corev1.Pod{
		*pod("d", pending), *pod("c", orphan), *pod("b"), *pod("e", terminating), *pod("f", failed), *pod("g", succeeded), *pod("a"),
	}
	for orphans, want := range map[bool][]string{false: {"a", "b", "d"}, true: {"a", "b", "c", "d"}} {
		var got []string
		for _, p := range candidates(pods, orphans) {
			got = append(got, p.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with orphans %v: %v, want %v", orphans, got, want)
		}
	}
}

// recording is a Recorder that keeps all records in memory.
type recording struct {
	mu       sync.Mutex
	faults   []history.Fault
	appended chan struct{} // receives a token for each record
}

func (r *recording) Append(record history.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, *record.Fault)
	r.appended <- struct{}{}
}

// churning is an injected fault on a fake cluster and a fake clock.
type churning struct {
	recording
	fault  faults.Fault
	env    *faults.Env
	clock  *testingclock.FakeClock
	client *fake.Clientset
}

// startChurning creates and injects a fault with parameters in YAML. Its fake cluster contains
// the given pods.
func startChurning(t *testing.T, text string, seed uint64, pods ...runtime.Object) *churning {
	t.Helper()
	c := &churning{
		recording: recording{appended: make(chan struct{}, 100)},
		clock:     testingclock.NewFakeClock(time.Unix(1000, 0)),
		client:    fake.NewClientset(pods...),
	}
	var err error
	if c.fault, err = faulttest.Parse(Churn, text); err != nil {
		t.Fatal(err)
	}
	c.env = &faults.Env{
		Rand: rand.New(rand.NewPCG(seed, 0)), Admin: c.client, Capabilities: cluster.Capabilities{cluster.SimulatedKubelets}, Namespace: "ns", Clock: c.clock,
		Report: faults.NewReporter(c, 0, "pod-churn"),
	}
	t.Cleanup(func() {
		if err := c.fault.Heal(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *churning) inject(t *testing.T) {
	t.Helper()
	if err := faults.Inject(t.Context(), c.fault, c.env); err != nil {
		t.Fatal(err)
	}
	<-c.appended
}

// tick advances the fake clock by one interval of the fault.
func (c *churning) tick(t *testing.T) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(10 * time.Second); !c.clock.HasWaiters(); {
		if time.Now().After(deadline) {
			t.Fatal("the fault does not wait for the next tick of the fake clock")
		}
		<-again.C
	}
	c.clock.Step(time.Second)
}

// tickUntilRecord advances the fake clock until the fault writes a history record.
func (c *churning) tickUntilRecord(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if c.clock.HasWaiters() {
			c.clock.Step(time.Second)
		}
		select {
		case <-c.appended:
			return
		case <-time.After(time.Millisecond): // the ticker drops a tick that comes during an action
		}
		if time.Now().After(deadline) {
			t.Fatal("the fault wrote no further record")
		}
	}
}

func TestDelete(t *testing.T) {
	c := startChurning(t, "{action: delete, selector: app=web, gracePeriodSeconds: 7, times: 2}", 1,
		pod("a"), pod("b"), pod("c"), pod("other", func(p *corev1.Pod) { p.Labels = nil }))
	c.inject(t)
	for range 2 {
		c.tick(t)
		<-c.appended
	}
	if err := faults.Heal(t.Context(), c.fault, c.env); err != nil {
		t.Fatal(err)
	}
	var deleted []string
	for _, action := range c.client.Actions() {
		if action, ok := action.(clienttesting.DeleteActionImpl); ok {
			deleted = append(deleted, action.Name)
			options := action.DeleteOptions
			if *options.GracePeriodSeconds != 7 || *options.Preconditions.UID != types.UID("uid-"+action.Name) {
				t.Errorf("delete options %+v, want a grace period of 7 s and the UID of the pod", options)
			}
		}
	}
	want := []history.Fault{{Event: history.FaultInjected}}
	for _, name := range deleted {
		want = append(want, history.Fault{
			Event: history.FaultFired, Detail: "deleted with a grace period of 7 s",
			Object: &history.Ref{Resource: "pods", Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		})
	}
	want = append(want, history.Fault{Event: history.FaultHealed, Detail: "performed action delete on 2 pods"})
	for i := range want {
		want[i].Name = "pod-churn"
	}
	if diff := cmp.Diff(want, c.faults); diff != "" || len(deleted) != 2 || slices.Contains(deleted, "other") {
		t.Errorf("deleted %v, records (-want +got):\n%s", deleted, diff)
	}
}

func TestFail(t *testing.T) {
	c := startChurning(t, "{action: fail}", 1, pod("a"))
	c.inject(t)
	c.tick(t)
	<-c.appended
	got, err := c.client.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.NewTime(c.clock.Now())
	want := corev1.PodStatus{
		Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory (injected fault).",
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "PodFailed", LastTransitionTime: now},
			{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodFailed", LastTransitionTime: now},
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet", LastTransitionTime: now},
		},
	}
	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if fired := c.faults[1]; fired.Event != history.FaultFired || fired.Object.Name != "a" || fired.Detail != "set to Failed, as if evicted by the kubelet" {
		t.Errorf("record %+v, want a firing on pod a", fired)
	}
}

// TestCollapse checks that the action collapse changes only the pod's phase and the reason of
// the phase. The fault must not choose a pod that is not ready.
func TestCollapse(t *testing.T) {
	c := startChurning(t, "{action: collapse, times: 1}", 1, pod("a"), pod("b", func(p *corev1.Pod) { p.Status.Conditions = nil }))
	c.inject(t)
	c.tick(t)
	<-c.appended
	got, err := c.client.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := pod("a").Status
	want.Phase, want.Reason = corev1.PodFailed, "Collapsed"
	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestExpire checks the action fail on a real kubelet. The fault must set activeDeadlineSeconds,
// once for each pod, and must not write the pod status.
func TestExpire(t *testing.T) {
	c := startChurning(t, "{action: fail}", 1, pod("a"), pod("b"))
	c.env.Capabilities = cluster.Capabilities{cluster.RealKubelets}
	c.inject(t)
	c.tickUntilRecord(t)
	c.tickUntilRecord(t)
	for _, name := range []string{"a", "b"} {
		got, err := c.client.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if ptr.Deref(got.Spec.ActiveDeadlineSeconds, 0) != 1 || got.Status.Phase == corev1.PodFailed {
			t.Errorf("pod %s has a deadline of %d s and the phase %s, want 1 s and not Failed", name, ptr.Deref(got.Spec.ActiveDeadlineSeconds, 0), got.Status.Phase)
		}
	}
	if fired := c.faults[1]; fired.Event != history.FaultFired || fired.Detail != "set activeDeadlineSeconds to 1" {
		t.Errorf("record %+v, want a firing that sets activeDeadlineSeconds", fired)
	}
}

// TestPodGone checks an action on a pod that another client has deleted or changed. The fault must
// write neither a "failed" nor a "fired" record in the history.
func TestPodGone(t *testing.T) {
	for _, gone := range []error{
		apierrors.NewNotFound(corev1.Resource("pods"), "a"),
		apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("changed")),
	} {
		c := startChurning(t, "{action: delete, times: 1}", 1, pod("a"))
		fails := 2
		c.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			fails--
			return fails >= 0, nil, gone
		})
		c.inject(t)
		c.tickUntilRecord(t)
		if fired := c.faults[1]; fired.Event != history.FaultFired || len(c.faults) != 2 {
			t.Errorf("records %+v, want the injection and one firing", c.faults)
		}
	}
}

// TestOutage checks that a fault records an outage of the API server only once. After the
// outage, the fault must act on pods again.
func TestOutage(t *testing.T) {
	c := startChurning(t, "{action: delete, times: 1}", 1, pod("a"))
	fails := 3
	c.client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		fails--
		return fails >= 0, nil, errors.New("no connection")
	})
	c.inject(t)
	c.tickUntilRecord(t)
	c.tickUntilRecord(t)
	var events []history.FaultEvent
	for _, f := range c.faults {
		events = append(events, f.Event)
	}
	want := []history.FaultEvent{history.FaultInjected, history.FaultFailed, history.FaultFired}
	if !slices.Equal(events, want) || c.faults[1].Detail != "listing the pods of namespace ns: no connection" {
		t.Errorf("records %+v, want the injection, one failure and a firing", c.faults)
	}
}

// TestSameSeed checks that a seed always chooses the same pods. The order in which the API
// server lists the pods must not matter.
func TestSameSeed(t *testing.T) {
	names := strings.Split("a b c d e f g h i j", " ")
	run := func(seed uint64, names []string) []string {
		var pods []runtime.Object
		for _, name := range names {
			pods = append(pods, pod(name))
		}
		c := startChurning(t, "{action: delete}", seed, pods...)
		c.inject(t)
		var victims []string
		for range 5 {
			c.tick(t)
			<-c.appended
		}
		for _, f := range c.faults[1:] {
			victims = append(victims, f.Object.Name)
		}
		return victims
	}
	first := run(1, names)
	slices.Reverse(names)
	if again := run(1, names); !slices.Equal(first, again) {
		t.Errorf("the same seed chose pods %v, then %v", first, again)
	}
	if other := run(2, names); slices.Equal(first, other) {
		t.Errorf("another seed chose the same pods %v", first)
	}
}

// TestHealWaitsForAction checks that Heal waits until the action in flight has ended and is
// recorded. If the action does not end, Heal must cancel it and return an error.
func TestHealWaitsForAction(t *testing.T) {
	c := startChurning(t, "{action: delete}", 1, pod("a"))
	under, proceed := make(chan struct{}), make(chan struct{})
	c.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		close(under)
		<-proceed
		return true, nil, nil
	})
	c.inject(t)
	c.tick(t)
	<-under
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.fault.Heal(impatient); !errors.Is(err, context.Canceled) {
		t.Errorf("Heal returned error %v, want context.Canceled", err)
	}
	close(proceed)
	if err := faults.Heal(t.Context(), c.fault, c.env); err != nil {
		t.Fatal(err)
	}
	if len(c.faults) != 3 || c.faults[2].Detail != "performed action delete on 1 pod" {
		t.Errorf("records %+v, want the injection, one firing and the healing", c.faults)
	}
}
