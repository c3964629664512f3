package pods

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// conditionsOf returns the conditions Ready and ContainersReady of pod a.
func (c *churning) conditionsOf(t *testing.T) map[corev1.PodConditionType]corev1.ConditionStatus {
	t.Helper()
	got, err := c.client.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[corev1.PodConditionType]corev1.ConditionStatus{}
	for _, condition := range got.Status.Conditions {
		all[condition.Type] = condition.Status
	}
	return all
}

// TestUnready checks that the fault makes a pod not ready. The fault must make the pod ready
// again after the downtime, or when the fault is healed.
func TestUnready(t *testing.T) {
	for _, test := range []struct {
		name, params string
		wantFired    int // expected number of "fired" records in the history
	}{
		{"by a later tick", "{action: unready, every: 1s, downtime: 1s, times: 2}", 2},
		{"by healing", "{action: unready, every: 1s, downtime: 1h}", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := startChurning(t, test.params, 1, pod("a"))
			c.inject(t)
			c.tick(t)
			<-c.appended
			if got := c.conditionsOf(t); got[corev1.PodReady] != corev1.ConditionFalse || got[corev1.ContainersReady] != corev1.ConditionFalse {
				t.Errorf("after a tick: %v; want both False", got)
			}
			if test.wantFired > 1 {
				c.tickUntilRecord(t) // the pod is ready again, so the fault acts on it again
			}
			if err := faults.Heal(t.Context(), c.fault, c.env); err != nil {
				t.Fatal(err)
			}
			if got := c.conditionsOf(t); got[corev1.PodReady] != corev1.ConditionTrue || got[corev1.ContainersReady] != corev1.ConditionTrue {
				t.Errorf("after healing: %v; want both True", got)
			}
			fired := 0
			for _, f := range c.faults {
				if f.Event == history.FaultFired {
					fired++
				}
			}
			if fired != test.wantFired {
				t.Errorf("fired %d times; want %d", fired, test.wantFired)
			}
		})
	}
}

// TestUnreadyNotRestored checks that the fault does not make a terminal, deleted or replaced pod
// ready. For such a pod, the fault must write no "failed" record in the history. It must write one
// for an error of the API server.
func TestUnreadyNotRestored(t *testing.T) {
	refused := errors.New("no room")
	for _, test := range []struct {
		name    string
		answer  func() (runtime.Object, error) // fake response to the fault's get request before the update
		wantErr error
	}{
		{"gone", func() (runtime.Object, error) { return nil, apierrors.NewNotFound(corev1.Resource("pods"), "a") }, nil},
		{"failed", func() (runtime.Object, error) { return pod("a", failed), nil }, nil},
		{"terminating", func() (runtime.Object, error) { return pod("a", terminating), nil }, nil},
		{"replaced", func() (runtime.Object, error) { return pod("a", func(p *corev1.Pod) { p.UID = "another" }), nil }, nil},
		{"server error", func() (runtime.Object, error) { return nil, refused }, refused},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := startChurning(t, "{action: unready, downtime: 1h}", 1, pod("a"))
			c.inject(t)
			c.tick(t)
			<-c.appended
			called := false
			c.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				if called {
					return false, nil, nil
				}
				called = true
				got, err := test.answer()
				return true, got, err
			})
			writes := func() (n int) {
				for _, action := range c.client.Actions() {
					if action.GetVerb() == "update" {
						n++
					}
				}
				return n
			}
			before := writes()
			if err := c.fault.Heal(t.Context()); !errors.Is(err, test.wantErr) {
				t.Errorf("error %v; want %v", err, test.wantErr)
			}
			if !called || writes() != before {
				t.Errorf("get called: %t, %d updates; want a get and no update", called, writes()-before)
			}
		})
	}
}

// TestUnreadyResponseLost checks an update that returns an error although it has made a pod not
// ready. Heal must make this pod ready again.
func TestUnreadyResponseLost(t *testing.T) {
	c := startChurning(t, "{action: unready, downtime: 1h}", 1, pod("a"))
	lost := false
	c.client.PrependReactor("update", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if lost {
			return false, nil, nil
		}
		lost = true
		written := action.(clienttesting.UpdateAction).GetObject()
		if err := c.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), written, "ns"); err != nil {
			t.Error(err)
		}
		return true, nil, apierrors.NewTimeoutError("lost", 0)
	})
	c.inject(t)
	c.tick(t)
	<-c.appended // wait for the "failed" record
	if got := c.conditionsOf(t)[corev1.PodReady]; got != corev1.ConditionFalse {
		t.Fatalf("after a tick: %s; want False", got)
	}
	if err := faults.Heal(t.Context(), c.fault, c.env); err != nil {
		t.Fatal(err)
	}
	if got := c.conditionsOf(t)[corev1.PodReady]; got != corev1.ConditionTrue {
		t.Errorf("after healing: %s; want True", got)
	}
}
