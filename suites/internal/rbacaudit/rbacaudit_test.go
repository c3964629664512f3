package rbacaudit

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestGranted(t *testing.T) {
	got := Granted(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "pods/status"}, Verbs: []string{"watch", "get"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"replicasets/status"}, Verbs: []string{"update"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
	)
	want := []Permission{"get pods", "get pods/status", "update replicasets.apps/status", "watch pods", "watch pods/status"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

func TestRequestedIn(t *testing.T) {
	request := func(id uint64, verb, resource, subresource string) *history.Record {
		return &history.Record{Request: &history.Request{
			ID: id, Subject: "subject-0", Verb: verb, Resource: resource, Subresource: subresource, Namespace: "ns", Name: "web",
		}}
	}
	response := func(id uint64, code, serverCode int) *history.Record {
		return &history.Record{Response: &history.Response{ID: id, Code: code, ServerCode: serverCode}}
	}
	for _, test := range []struct {
		name    string
		records []*history.Record
		want    Requested
	}{
		{"nothing", nil, Requested{}},
		{"each permission once", []*history.Record{
			request(1, "watch", "pods", ""), response(1, 200, 200), request(2, "watch", "pods", ""),
			request(3, "update", "deployments.apps", "status"), response(3, 409, 409),
		}, Requested{Permissions: []Permission{"update deployments.apps/status", "watch pods"}}},
		{"a custom resource", []*history.Record{request(1, "patch", "widgets.example.com", "status")},
			Requested{Permissions: []Permission{"patch widgets.example.com/status"}}},
		{"a path that is no resource needs no permission", []*history.Record{request(1, "get", "", ""), response(1, 403, 403)}, Requested{}},
		{"refused", []*history.Record{request(1, "get", "leases.coordination.k8s.io", ""), response(1, 403, 403)},
			Requested{Permissions: []Permission{"get leases.coordination.k8s.io"}, Refused: []string{"subject-0: get leases.coordination.k8s.io ns/web"}}},
		{"refused by a fault", []*history.Record{request(1, "get", "pods", ""), response(1, 403, 0)}, Requested{Permissions: []Permission{"get pods"}}},
		{"refused, but a fault changed the response", []*history.Record{request(1, "get", "pods", ""), response(1, 500, 403)},
			Requested{Permissions: []Permission{"get pods"}, Refused: []string{"subject-0: get pods ns/web"}}},
		{"refused, then granted", []*history.Record{
			request(1, "get", "pods", ""), response(1, 403, 403), request(2, "get", "pods", ""), response(2, 404, 404),
		}, Requested{Permissions: []Permission{"get pods"}}},
		{"refused, then granted with another verb", []*history.Record{
			request(1, "list", "pods", ""), response(1, 403, 403), request(2, "watch", "pods", ""), response(2, 200, 200),
		}, Requested{Permissions: []Permission{"list pods", "watch pods"}}},
		{"refused, then another resource granted", []*history.Record{
			request(1, "list", "pods", ""), response(1, 403, 403), request(2, "watch", "services", ""), response(2, 200, 200),
		}, Requested{Permissions: []Permission{"list pods", "watch services"}, Refused: []string{"subject-0: list pods ns/web"}}},
		{"granted, then refused", []*history.Record{
			request(1, "get", "pods", ""), response(1, 200, 200), request(2, "get", "pods", ""), response(2, 403, 403),
			request(3, "get", "pods", ""), response(3, 500, 500), request(4, "get", "pods", ""), response(4, 401, 401),
		}, Requested{Permissions: []Permission{"get pods"}, Refused: []string{"subject-0: get pods ns/web"}}},
		{"refused by a quota", []*history.Record{request(1, "create", "pods", ""), response(1, 403, 403)}, Requested{Permissions: []Permission{"create pods"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := RequestedIn(func(yield func(*history.Record, error) bool) {
				for _, record := range test.records {
					if !yield(record, nil) {
						return
					}
				}
			})
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestRequestedInReadError(t *testing.T) {
	broken := errors.New("line 7")
	_, err := RequestedIn(func(yield func(*history.Record, error) bool) { yield(nil, broken) })
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func TestWithout(t *testing.T) {
	some := []Permission{"a", "b", "c"}
	if got := Without(some, []Permission{"b", "d"}); !cmp.Equal(got, []Permission{"a", "c"}) || !cmp.Equal(some, []Permission{"a", "b", "c"}) {
		t.Errorf("got %v of %v", got, some)
	}
}
