package kube

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestOwners checks that Owners finds an owner by UID first, and by kind only if the UID is
// unknown. Kinds of different API groups may have the same name.
func TestOwners(t *testing.T) {
	var owners Owners
	owners.Observe("u-1", "services.serving.example.com")
	owners.Observe("u-2", "databases.example.com")
	owners.Observe("u-3", "databases.example.com")
	owners.Forget("u-3")
	for _, test := range []struct{ name, uid, kind, want string }{
		{"by UID", "u-1", "Service", "services.serving.example.com"},
		{"by row", "u-9", "Service", "services"},
		{"by row with a group", "", "StatefulSet", "statefulsets.apps"},
		{"by another object of the kind", "u-9", "Database", "databases.example.com"},
		{"forgotten", "u-3", "Database", "databases.example.com"},
		{"unknown", "u-9", "Cache", "Cache"},
	} {
		if got := owners.Resource(types.UID(test.uid), test.kind); got != test.want {
			t.Errorf("%s: resource %q, want %q", test.name, got, test.want)
		}
	}
	var none Owners
	if got := none.Resource("u-1", "Database"); got != "Database" {
		t.Errorf("no object was observed: resource %q, want Database", got)
	}
}
