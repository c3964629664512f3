package kube

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// cssColor matches a CSS color with two values: one for the light theme and one for the dark
// theme.
var cssColor = regexp.MustCompile(`^light-dark\(#[0-9a-f]{6}, #[0-9a-f]{6}\)$`)

// TestKindsAreConsistent compares each row of the table of kinds with client-go.
func TestKindsAreConsistent(t *testing.T) {
	for _, k := range Kinds {
		if !scheme.Scheme.Recognizes(k.GVK()) {
			t.Errorf("%s: client-go does not know %s", k.Name, k.GVK())
		}
		plural, _ := meta.UnsafeGuessKindToResource(k.GVK())
		if plural != k.GVR {
			t.Errorf("%s: GVR is %s, expected %s", k.Name, k.GVR, plural)
		}
		if !strings.HasPrefix(k.EtcdPrefix, "/registry/") || !strings.HasSuffix(k.EtcdPrefix, "/") {
			t.Errorf("%s: EtcdPrefix is %q, expected /registry/…/", k.Name, k.EtcdPrefix)
		}
		if k.Color != "" && !cssColor.MatchString(k.Color) {
			t.Errorf("%s: Color is %q, expected light-dark(#rrggbb, #rrggbb)", k.Name, k.Color)
		}
		if k.Role == "" {
			t.Errorf("%s has no role", k.Name)
		}
		for _, name := range k.Controls {
			if _, ok := Named(name); !ok {
				t.Errorf("%s controls %s, which has no row", k.Name, name)
			}
		}
		if found, ok := ByResource(k.Resource()); !ok || found.GVR != k.GVR {
			t.Errorf("%s: ByResource(%q) found %s", k.Name, k.Resource(), found.GVR)
		}
	}
	if !slices.IsSortedFunc(Kinds, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the table of kinds is not sorted by name")
	}
}

// TestControllersAreConsistent checks that the table of controllers names only kinds in the
// table of kinds. Each controller must watch the kind that it reconciles.
func TestControllersAreConsistent(t *testing.T) {
	for _, c := range Controllers {
		for _, name := range slices.Concat([]string{c.Kind}, c.Watches, c.Writes) {
			if _, ok := Named(name); !ok {
				t.Errorf("%s names %s, which has no row", c.Name, name)
			}
		}
		if !slices.Contains(c.Watches, c.Kind) {
			t.Errorf("%s does not watch %s, which it reconciles", c.Name, c.Kind)
		}
		if c.Contract && len(c.Traits) == 0 {
			t.Errorf("%s has a contract and no traits", c.Name)
		}
	}
}

func TestGeneric(t *testing.T) {
	tests := []struct {
		gvk              schema.GroupVersionKind
		resource, prefix string
		clusterScoped    bool
	}{
		{SplitGVK("apps/v1", "ReplicaSet"), "replicasets.apps", "/registry/replicasets/", false},
		{SplitGVK("v1", "Service"), "services", "/registry/services/specs/", false},
		{SplitGVK("v1", "Namespace"), "namespaces", "/registry/namespaces/", true},
		{SplitGVK("v1", "PersistentVolume"), "persistentvolumes", "/registry/persistentvolumes/", true},
		{SplitGVK("batch/v1", "CronJob"), "cronjobs.batch", "/registry/cronjobs/", false},
		{SplitGVK("example.com/v1", "Policy"), "policies.example.com", "/registry/example.com/policies/", false},
		{SplitGVK("example.com/v1", "Sandbox"), "sandboxes.example.com", "/registry/example.com/sandboxes/", false},
		{SplitGVK("example.com/v1", "Mesh"), "meshes.example.com", "/registry/example.com/meshes/", false},
		{SplitGVK("example.com/v1", "Gateway"), "gateways.example.com", "/registry/example.com/gateways/", false},
		{SplitGVK("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "customresourcedefinitions.apiextensions.k8s.io",
			"/registry/apiextensions.k8s.io/customresourcedefinitions/", true},
	}
	for _, test := range tests {
		k := Generic(test.gvk)
		if k.Resource() != test.resource || k.EtcdPrefix != test.prefix || k.GVK() != test.gvk || k.ClusterScoped != test.clusterScoped {
			t.Errorf("%s: resource %q, prefix %q, cluster-scoped %t; want %q, %q, %t",
				test.gvk, k.Resource(), k.EtcdPrefix, k.ClusterScoped, test.resource, test.prefix, test.clusterScoped)
		}
	}
}

func TestCustomResource(t *testing.T) {
	k := CustomResource(SplitGVK("example.com/v1", "Policy"), "policyset", true)
	if k.Resource() != "policyset.example.com" || k.EtcdPrefix != "/registry/example.com/policyset/" || !k.ClusterScoped || k.APIVersion() != "example.com/v1" {
		t.Errorf("%+v; want the given plural name, cluster-scoped", k)
	}
}

// TestClusterScopedKindsExist checks that the API groups in the list clusterScoped are not
// misspelled.
func TestClusterScopedKindsExist(t *testing.T) {
	// The scheme of client-go does not contain these two API groups, so the test skips them.
	aggregated := []string{"apiextensions.k8s.io", "apiregistration.k8s.io"}
	for _, name := range clusterScoped {
		gk := schema.ParseGroupKind(name)
		if !slices.Contains(aggregated, gk.Group) && len(scheme.Scheme.VersionsForGroupKind(gk)) == 0 {
			t.Errorf("client-go does not know %s", name)
		}
	}
	if !slices.IsSorted(clusterScoped) {
		t.Error("the list of cluster-scoped kinds is not sorted")
	}
}

func TestControllersNamed(t *testing.T) {
	all, err := ControllersNamed()
	if err != nil || len(all) != 4 {
		t.Errorf("found %d default controllers (error %v), want 4", len(all), err)
	}
	var kinds []string
	for _, k := range Observed(all) {
		kinds = append(kinds, k.Name)
	}
	want := []string{Deployment, Endpoints, Pod, ReplicaSet, ReplicationController, Service}
	if !slices.Equal(kinds, want) {
		t.Errorf("observed kinds %v, want %v", kinds, want)
	}
	if got := NamesOf(OrDefault(nil)); !slices.Equal(got, DefaultControllers()) {
		t.Errorf("default controllers %v, want %v", got, DefaultControllers())
	}
	if got := NamesOf(OrDefault([]Controller{{Name: "other"}})); !slices.Equal(got, []string{"other"}) {
		t.Errorf("controllers %v, want only the given one", got)
	}
	if _, err := ControllersNamed("replicaset-controler"); err == nil || !strings.Contains(err.Error(), `unknown controller "replicaset-controler"; expected one of replicationcontroller-controller,`) {
		t.Errorf("error %v, want the known names", err)
	}
}

// TestServedVersions checks in which versions API servers serve a kind if they do not serve the given one.
func TestServedVersions(t *testing.T) {
	for _, test := range []struct {
		apiVersion, kind string
		want             []string
	}{
		{"apps/v1", "StatefulSet", nil},
		{"apps/v1beta1", "StatefulSet", []string{"apps/v1"}},
		{"v1", "StatefulSet", []string{"apps/v1"}},
		{"extensions/v1beta1", "Ingress", []string{"networking.k8s.io/v1"}},
		{"v1", "Event", nil},
		{"v1", "Widget", nil},
		{"example.com/v1", "Ingress", nil},
	} {
		if got := ServedVersions(SplitGVK(test.apiVersion, test.kind)); !slices.Equal(got, test.want) {
			t.Errorf("%s %s: got %v, want %v", test.apiVersion, test.kind, got, test.want)
		}
	}
}

// TestBuiltinByResource checks the versions of kinds that only the scheme of client-go has.
func TestBuiltinByResource(t *testing.T) {
	for _, test := range []struct{ group, resource, want string }{
		{"storage.k8s.io", "csistoragecapacities", "storage.k8s.io/v1"}, // v1beta1 is removed
		{"policy", "poddisruptionbudgets", "policy/v1"},
		{"policy", "podsecuritypolicies", ""},
		{"discovery.k8s.io", "endpointslices", "discovery.k8s.io/v1"},
		{"autoscaling", "horizontalpodautoscalers", "autoscaling/v1"},
		{"apps", "deployment", ""},
	} {
		kind, ok := BuiltinByResource(test.group, test.resource)
		if ok != (test.want != "") || ok && kind.APIVersion() != test.want {
			t.Errorf("%s.%s: got %q, want %q", test.resource, test.group, kind.APIVersion(), test.want)
		}
	}
}
