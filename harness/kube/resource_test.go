package kube

import "testing"

func TestValidResource(t *testing.T) {
	for _, resource := range Resources() {
		if !ValidResource(resource) {
			t.Errorf("%s has a row and is not valid", resource)
		}
	}
	tests := map[string]bool{
		"secrets":                        true,
		"cronjobs.batch":                 true,
		"ingresses.networking.k8s.io":    true,
		"policies.example.com":           true,
		"":                               false,
		"pod":                            false,
		"podlists":                       false,
		"replicasets":                    false,
		"replicasets.app":                false,
		"replicaset.apps":                false,
		"endpointslice.discovery.k8s.io": false,
		".example.com":                   false,
	}
	for resource, want := range tests {
		if got := ValidResource(resource); got != want {
			t.Errorf("%q: valid %t, want %t", resource, got, want)
		}
	}
}
