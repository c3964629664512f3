package requests

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestMatch(t *testing.T) {
	create := history.Request{Verb: "create", Resource: "pods", Namespace: "ns", Object: &history.Object{GenerateName: "web-"}}
	named := history.Request{Verb: "create", Resource: "pods", Namespace: "ns", Object: &history.Object{Ref: history.Ref{Name: "web-1"}, GenerateName: "other-"}}
	update := history.Request{Verb: "update", Resource: "replicasets.apps", Namespace: "ns", Name: "web"}
	status := history.Request{Verb: "update", Resource: "replicasets.apps", Subresource: "status", Namespace: "ns", Name: "web"}
	everywhere := history.Request{Verb: "list", Resource: "pods"}
	owned := history.Request{Verb: "delete", Resource: "pods", Namespace: "ns", Name: "web-1"}
	orphan := history.Request{Verb: "delete", Resource: "pods", Namespace: "ns", Name: "orphan"}
	widget := history.Request{Verb: "patch", Resource: "widgets.example.com", Subresource: "status", Namespace: "ns", Name: "web-1"}
	controller := func(request *history.Request) *history.Owner {
		if request.Name == "web-1" {
			return &history.Owner{Kind: "ReplicaSet", Name: "web-abc"}
		}
		return nil
	}
	tests := []struct {
		match   Match
		request history.Request
		want    bool
	}{
		{Match{Verb: "create", Resource: "pods"}, create, true},
		{Match{Verb: "delete", Resource: "pods"}, create, false},
		{Match{Verb: "create", Resource: "services"}, create, false},
		{Match{Verb: "create", Resource: "pods", Namespace: "n?"}, create, true},
		{Match{Verb: "create", Resource: "pods", Namespace: "other"}, create, false},
		{Match{Verb: "create", Resource: "pods", Name: "web-*"}, create, true},
		{Match{Verb: "create", Resource: "pods", Name: "web-1"}, create, false},
		{Match{Verb: "create", Resource: "pods", Name: "web-1"}, named, true},
		{Match{Verb: "create", Resource: "pods", Name: "other-*"}, named, false},
		{Match{Verb: "update", Resource: "replicasets.apps"}, update, true},
		{Match{Verb: "update", Resource: "replicasets.apps"}, status, false},
		{Match{Verb: "update", Resource: "replicasets.apps", Subresource: "status"}, status, true},
		{Match{Verb: "update", Resource: "replicasets.apps", Subresource: "status"}, update, false},
		{Match{Verb: "update", Resource: "replicasets.apps", Name: "we*"}, update, true},
		{Match{Verb: "list", Resource: "pods"}, everywhere, true},
		{Match{Verb: "delete", Resource: "pods", Owner: "ReplicaSet/web-*"}, owned, true},
		{Match{Verb: "delete", Resource: "pods", Owner: "*/web-abc"}, owned, true},
		{Match{Verb: "delete", Resource: "pods", Owner: "ReplicationController/*"}, owned, false},
		{Match{Verb: "delete", Resource: "pods", Owner: "*/*"}, orphan, false},
		{Match{Verb: "list", Resource: "pods", Namespace: "ns"}, everywhere, false},
		{Match{Verb: "patch", Resource: "widgets.example.com", Subresource: "status", Owner: "ReplicaSet/*"}, widget, true},
		{Match{Verb: "patch", Resource: "widgets.example.org", Subresource: "status"}, widget, false},
	}
	for _, test := range tests {
		if got := test.match.matches(&test.request, controller); got != test.want {
			t.Errorf("%+v matches %+v: %v, want %v", test.match, test.request, got, test.want)
		}
	}
}
