package observe

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// TestKeys checks that kindOf recognizes the keys of observed objects. The prefix of a kind must
// match these keys.
func TestKeys(t *testing.T) {
	policy := kube.Generic(kube.SplitGVK("example.com/v1", "Policy"))
	node, _ := kube.Named("Node")
	job, _ := kube.Named("Job")
	events, _ := kube.Named("Event")
	laterEvents := kube.Generic(kube.SplitGVK("events.k8s.io/v1", "Event"))
	keys := newEtcdKeys("ns", []kube.Kind{policy, node, job, events, laterEvents})
	tests := []struct{ key, resource string }{
		{"/registry/example.com/policies/ns/strict", "policies.example.com"},
		{"/registry/example.com/policies/strict", "policies.example.com"}, // the key of an object without a namespace
		{"/registry/example.com/policies/other/strict", ""},
		{"/registry/example.com/policyrules/ns/strict", ""},
		{"/registry/minions/node-0", "nodes"},
		{"/registry/jobs/ns/backup", "jobs.batch"},
		{"/registry/jobs/ns2/backup", ""},
		{"/registry/cronjobs/ns/backup", ""},
		{"/registry/events/ns/web.1", "events"},
		{"compact_rev_key", ""},
	}
	for _, test := range tests {
		kind, observed := keys.kindOf(test.key)
		if observed != (test.resource != "") || (observed && kind.Resource() != test.resource) {
			t.Errorf("%s: observed %t as %q, want %q", test.key, observed, kind.Resource(), test.resource)
		}
	}
	for _, test := range []struct {
		kind kube.Kind
		want string
	}{
		{policy, "/registry/example.com/policies/"}, {node, "/registry/minions/"}, {job, "/registry/jobs/ns/"},
	} {
		if got := keys.prefix(test.kind); got != test.want {
			t.Errorf("%s: prefix %q, want %q", test.kind.Name, got, test.want)
		}
	}
}
