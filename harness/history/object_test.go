package history

import "testing"

// TestStableName checks the names of objects in all runs of a scenario.
func TestStableName(t *testing.T) {
	owner := []Owner{{Kind: "Widget", Name: "web", UID: "w", Controller: true}}
	for _, test := range []struct {
		object Object
		want   string
	}{
		{Object{Ref: Ref{Name: "web"}}, "web"},
		{Object{Ref: Ref{Name: "web-x7k2p"}, GenerateName: "web-"}, "web-*"},
		{Object{Ref: Ref{Name: "web-x7k2p"}, Owners: owner}, "web-*"},
		{Object{Ref: Ref{Name: "web-x7k2p-68zb7"}, Owners: owner}, "web-*"},
		{Object{Ref: Ref{Name: "web-x7k2p"}}, "web-x7k2p"},                        // a user chose the name
		{Object{Ref: Ref{Name: "db-x7k2p"}, Owners: owner}, "db-x7k2p"},           // not named after the owner
		{Object{Ref: Ref{Name: "web-nodes"}, Owners: owner}, "web-nodes"},         // random parts have no vowels
		{Object{Ref: Ref{Name: "web-0"}, Owners: owner}, "web-0"},                 // a StatefulSet's pod
		{Object{Ref: Ref{Name: "web-5d4f8c7b9"}, Owners: owner}, "web-5d4f8c7b9"}, // a Deployment's ReplicaSet
	} {
		if got := test.object.StableName(); got != test.want || test.object.HasGeneratedName() != (got != test.object.Name) {
			t.Errorf("%s: stable name %s, want %s", test.object.Name, got, test.want)
		}
	}
}
