package kube

import "testing"

func TestRemoved(t *testing.T) {
	for _, test := range []struct{ apiVersion, kind, want string }{
		{"policy/v1beta1", "PodSecurityPolicy", "1.25"},
		{"", "PodSecurityPolicy", "1.25"},
		{"example.com/v1", "PodSecurityPolicy", ""},
		{"settings.k8s.io/v1alpha1", "PodPreset", "1.20"},
		{"apps/v1", "Deployment", ""},
	} {
		if got, _ := Removed(test.apiVersion, test.kind); got != test.want {
			t.Errorf("%s %s: found %q; expected %q", test.apiVersion, test.kind, got, test.want)
		}
	}
}

func TestRemovedVersion(t *testing.T) {
	for _, test := range []struct{ apiVersion, kind, want string }{
		{"batch/v1beta1", "CronJob", "1.25"},
		{"autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.26"},
		{"apps/v1", "Deployment", ""},
		{"example.com/v1", "Widget", ""},
	} {
		if got := RemovedVersion(SplitGVK(test.apiVersion, test.kind)); got != test.want {
			t.Errorf("%s %s: found %q; expected %q", test.apiVersion, test.kind, got, test.want)
		}
	}
}
