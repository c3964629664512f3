package interceptor

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClassify(t *testing.T) {
	tests := []struct {
		request string
		want    target
	}{
		// Core resources.
		{"GET /api/v1/pods", target{verb: "list", resource: "pods"}},
		{"GET /api/v1/pods/", target{verb: "list", resource: "pods"}},
		{"HEAD /api/v1/pods", target{verb: "list", resource: "pods"}},
		{"GET /api/v1/namespaces/ns/pods", target{verb: "list", resource: "pods", namespace: "ns"}},
		{"GET /api/v1/namespaces/ns/pods/web", target{verb: "get", resource: "pods", namespace: "ns", name: "web"}},
		{"HEAD /api/v1/namespaces/ns/pods/web", target{verb: "get", resource: "pods", namespace: "ns", name: "web"}},
		{"POST /api/v1/namespaces/ns/pods", target{verb: "create", resource: "pods", namespace: "ns"}},
		{"PUT /api/v1/namespaces/ns/pods/web", target{verb: "update", resource: "pods", namespace: "ns", name: "web"}},
		{"PATCH /api/v1/namespaces/ns/pods/web", target{verb: "patch", resource: "pods", namespace: "ns", name: "web"}},
		{"DELETE /api/v1/namespaces/ns/pods/web", target{verb: "delete", resource: "pods", namespace: "ns", name: "web"}},
		{"DELETE /api/v1/namespaces/ns/pods", target{verb: "deletecollection", resource: "pods", namespace: "ns"}},
		{"GET /api/v1/nodes/node-0", target{verb: "get", resource: "nodes", name: "node-0"}},
		// Named groups.
		{"GET /apis/apps/v1/replicasets", target{verb: "list", resource: "replicasets.apps"}},
		{"GET /apis/apps/v1/namespaces/ns/replicasets/web", target{verb: "get", resource: "replicasets.apps", namespace: "ns", name: "web"}},
		{"PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/lock", target{verb: "update", resource: "leases.coordination.k8s.io", namespace: "kube-system", name: "lock"}},
		{"POST /apis/example.com/v1alpha1/namespaces/ns/widgets", target{verb: "create", resource: "widgets.example.com", namespace: "ns"}},
		// Subresources.
		{"PUT /apis/apps/v1/namespaces/ns/replicasets/web/status", target{verb: "update", resource: "replicasets.apps", subresource: "status", namespace: "ns", name: "web"}},
		{"GET /apis/apps/v1/namespaces/ns/deployments/web/scale", target{verb: "get", resource: "deployments.apps", subresource: "scale", namespace: "ns", name: "web"}},
		{"POST /api/v1/namespaces/ns/pods/web/binding", target{verb: "create", resource: "pods", subresource: "binding", namespace: "ns", name: "web"}},
		{"POST /api/v1/namespaces/ns/pods/web/eviction", target{verb: "create", resource: "pods", subresource: "eviction", namespace: "ns", name: "web"}},
		{"GET /api/v1/namespaces/ns/pods/web/proxy/some/path", target{verb: "get", resource: "pods", subresource: "proxy", namespace: "ns", name: "web"}},
		{"GET /api/v1/namespaces/ns/pods/web/log?follow=true", target{verb: "get", resource: "pods", subresource: "log", namespace: "ns", name: "web"}},
		// Namespaces are cluster-scoped objects.
		{"GET /api/v1/namespaces", target{verb: "list", resource: "namespaces"}},
		{"GET /api/v1/namespaces?watch=1", target{verb: "watch", resource: "namespaces"}},
		{"GET /api/v1/namespaces/ns", target{verb: "get", resource: "namespaces", name: "ns"}},
		{"DELETE /api/v1/namespaces/ns", target{verb: "delete", resource: "namespaces", name: "ns"}},
		{"PUT /api/v1/namespaces/ns/status", target{verb: "update", resource: "namespaces", subresource: "status", name: "ns"}},
		{"PUT /api/v1/namespaces/ns/finalize", target{verb: "update", resource: "namespaces", subresource: "finalize", name: "ns"}},
		// Watches, by query and by path.
		{"GET /api/v1/pods?watch=true", target{verb: "watch", resource: "pods"}},
		{"GET /api/v1/pods?watch=1&allowWatchBookmarks=true", target{verb: "watch", resource: "pods"}},
		{"GET /api/v1/pods?watch", target{verb: "watch", resource: "pods"}},
		{"GET /api/v1/pods?watch=false", target{verb: "list", resource: "pods"}},
		{"GET /api/v1/pods?watch=FALSE", target{verb: "list", resource: "pods"}},
		{"GET /api/v1/pods?watch=0", target{verb: "list", resource: "pods"}},
		{"GET /apis/apps/v1/namespaces/ns/replicasets?watch=true&fieldSelector=metadata.name%3Dweb", target{verb: "watch", resource: "replicasets.apps", namespace: "ns"}},
		{"GET /api/v1/watch/pods", target{verb: "watch", resource: "pods"}},
		{"GET /api/v1/watch/namespaces/ns/pods", target{verb: "watch", resource: "pods", namespace: "ns"}},
		{"GET /api/v1/watch/namespaces/ns/pods/web", target{verb: "watch", resource: "pods", namespace: "ns", name: "web"}},
		{"GET /apis/apps/v1/watch/replicasets", target{verb: "watch", resource: "replicasets.apps"}},
		{"GET /api/v1/namespaces/ns/pods/web?watch=true", target{verb: "get", resource: "pods", namespace: "ns", name: "web"}},
		{"DELETE /api/v1/namespaces/ns/pods?watch=true", target{verb: "deletecollection", resource: "pods", namespace: "ns"}},
		// Chunked lists.
		{"GET /api/v1/pods?limit=500", target{verb: "list", resource: "pods"}},
		{"GET /api/v1/pods?limit=500&continue=abc", target{verb: "list", resource: "pods", continued: true}},
		{"GET /api/v1/pods?watch=true&continue=abc", target{verb: "watch", resource: "pods"}},
		// Non-resource paths.
		{"GET /", target{verb: "get"}},
		{"GET /healthz", target{verb: "get"}},
		{"GET /readyz/etcd", target{verb: "get"}},
		{"GET /version", target{verb: "get"}},
		{"GET /api", target{verb: "get"}},
		{"GET /api/v1", target{verb: "get"}},
		{"GET /apis", target{verb: "get"}},
		{"GET /apis/apps", target{verb: "get"}},
		{"GET /apis/apps/v1", target{verb: "get"}},
		{"GET /openapi/v3/apis/apps/v1", target{verb: "get"}},
		{"GET /api/v1//pods", target{verb: "get"}},
		{"OPTIONS /api/v1/pods", target{verb: "options"}},
	}
	for _, test := range tests {
		t.Run(test.request, func(t *testing.T) {
			method, address, _ := strings.Cut(test.request, " ")
			u, err := url.Parse("https://server" + address)
			if err != nil {
				t.Fatal(err)
			}
			got := classify(method, u)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(target{})); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzClassify checks that classify never panics. A path with a resource must have an API verb.
// For any other path, classify may set only the verb.
func FuzzClassify(f *testing.F) {
	f.Add("GET", "/api/v1/namespaces/ns/pods/web/status", "watch=1&continue=x")
	f.Add("GET", "/apis/apps/v1/watch/replicasets", "")
	f.Add("PUT", "/api/v1/namespaces/ns", "watch")
	f.Add("TRACE", "/api/v1/watch", "%zz")
	f.Add("GET", "/api//", "watch=0")
	f.Fuzz(func(t *testing.T, method, path, query string) {
		got := classify(method, &url.URL{Path: path, RawQuery: query})
		if got.resource == "" {
			if want := (target{verb: strings.ToLower(method)}); got != want {
				t.Errorf("%s %s: got %+v, want %+v", method, path, got, want)
			}
			return
		}
		switch got.verb {
		case "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection":
		default:
			t.Errorf("%s %s: verb %q, want an API verb", method, path, got.verb)
		}
		if strings.Contains(got.name+got.namespace+got.subresource, "/") {
			t.Errorf("%s %s: target %+v, want no slash in namespace, name and subresource", method, path, got)
		}
	})
}

func TestMayHoldCredentials(t *testing.T) {
	tests := []struct {
		target target
		want   bool
	}{
		{target{resource: "pods"}, false},
		{target{resource: "secrets"}, true},
		{target{resource: "secrets.example.com"}, false},
		{target{resource: "serviceaccounts"}, false},
		{target{resource: "serviceaccounts", subresource: "token"}, true},
		{target{resource: "tokenreviews.authentication.k8s.io"}, true},
	}
	for _, test := range tests {
		if got := test.target.mayHoldCredentials(); got != test.want {
			t.Errorf("%+v: secret is %v, want %v", test.target, got, test.want)
		}
	}
}
