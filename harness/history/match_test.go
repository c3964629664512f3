package history

import "testing"

func TestIsWrite(t *testing.T) {
	lock := &Object{Annotations: map[string]string{leaderAnnotation: `{"holderIdentity":"one"}`}}
	for _, test := range []struct {
		name    string
		request Request
		want    bool
	}{
		{"create", Request{Verb: "create", Resource: "pods"}, true},
		{"delete", Request{Verb: "delete", Resource: "pods"}, true},
		{"dry run", Request{Verb: "create", Resource: "pods", Query: "dryRun=All&timeout=1m0s"}, false},
		{"dry run of a delete", Request{Verb: "delete", Resource: "pods", BodyDryRun: true}, false},
		{"list", Request{Verb: "list", Resource: "pods"}, false},
		{"lease", Request{Verb: "update", Resource: "leases.coordination.k8s.io"}, false},
		{"event", Request{Verb: "create", Resource: "events"}, false},
		{"access review", Request{Verb: "create", Resource: "tokenreviews.authentication.k8s.io"}, false},
		{"ConfigMap", Request{Verb: "update", Resource: "configmaps", Object: &Object{}}, true},
		{"ConfigMap as a lease", Request{Verb: "update", Resource: "configmaps", Object: lock}, false},
		{"no resource", Request{Verb: "create"}, false},
	} {
		if got := test.request.IsWrite(); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}
