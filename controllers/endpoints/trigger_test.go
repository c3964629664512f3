package endpoints

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestTrigger(t *testing.T) {
	second := func(n int) time.Time { return serviceCreated.Add(time.Duration(n) * time.Second) }
	pods := func(pods ...*corev1.Pod) []*corev1.Pod { return pods }
	at := func(name string, n int) *corev1.Pod { return newPod(name, nil, readyTransitionAt(second(n))) }
	unknown := newPod("u", nil)
	for _, test := range []struct {
		name          string
		before, after []*corev1.Pod
		new           bool
		want          time.Time
	}{
		{name: "new Service", new: true, after: pods(at("a", 1)), want: serviceCreated},
		{name: "nothing changed", before: pods(at("a", 1)), after: pods(at("a", 1))},
		{name: "pod readiness changed", before: pods(at("a", 1), at("b", 1)), after: pods(at("a", 3), at("b", 1)), want: second(3)},
		{name: "first of several changes", before: pods(at("a", 1), at("b", 1)), after: pods(at("a", 3), at("b", 2)), want: second(2)},
		{name: "pod added", before: pods(at("a", 5)), after: pods(at("a", 5), at("b", 2)), want: second(2)},
		{name: "pod deleted", before: pods(at("a", 1), at("b", 2)), after: pods(at("a", 1))},
		{name: "clock went backward", before: pods(at("a", 3)), after: pods(at("a", 2))},
		{name: "pod without lastTransitionTime", before: pods(), after: pods(unknown)},
		{name: "pod with lastTransitionTime counts", before: pods(), after: pods(unknown, at("a", 2)), want: second(2)},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before *changeTimes
			if !test.new {
				before = changeTimesOf(newService(), test.before)
			}
			if got := changeTimesOf(newService(), test.after).trigger(before); !got.Equal(test.want) {
				t.Errorf("trigger %s, want %s", got, test.want)
			}
		})
	}
}

// TestTriggerOfRecreatedService checks that a recreated Service does not get the change times
// of its predecessor.
func TestTriggerOfRecreatedService(t *testing.T) {
	pods := []*corev1.Pod{newPod("a", nil, readyTransitionAt(serviceCreated))}
	recreated := newService(func(s *corev1.Service) { s.UID = "later" })
	if got := changeTimesOf(recreated, pods).trigger(changeTimesOf(newService(), pods)); !got.Equal(serviceCreated) {
		t.Errorf("trigger %s, want the Service's creation, %s", got, serviceCreated)
	}
}
