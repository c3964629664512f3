package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestPods verifies that pods with an image run the program standin. They must have a readiness
// probe and enough grace time. Other pods run the pause container.
func TestPods(t *testing.T) {
	for _, test := range []struct {
		pods         Pods
		image        string
		args         []string
		pull         corev1.PullPolicy
		probed       bool
		graceSeconds int64
	}{
		{Pods{}, "registry.k8s.io/pause:3.10", nil, "", false, 1},
		{Pods{StartDelay: time.Minute, StopDelay: 1500 * time.Millisecond}, "registry.k8s.io/pause:3.10", nil, "", false, 2},
		{Pods{Image: "standin:1"}, "standin:1", []string{"--start-delay=0s", "--stop-delay=0s"}, corev1.PullNever, true, 1},
		{Pods{Image: "standin:1", StartDelay: time.Minute, StopDelay: 2 * time.Second}, "standin:1", []string{"--start-delay=1m0s", "--stop-delay=2s"}, corev1.PullNever, true, 3},
	} {
		spec := test.pods.spec()
		c := spec.Containers[0]
		if c.Image != test.image || c.ImagePullPolicy != test.pull || (c.ReadinessProbe != nil) != test.probed || *spec.TerminationGracePeriodSeconds != test.graceSeconds {
			t.Errorf("%+v: image %s, pulled %q, probe %v, grace %d s; want %+v", test.pods, c.Image, c.ImagePullPolicy, c.ReadinessProbe, *spec.TerminationGracePeriodSeconds, test)
		}
		if diff := cmp.Diff(test.args, c.Args); diff != "" {
			t.Errorf("%+v: arguments (-want +got):\n%s", test.pods, diff)
		}
	}
}
