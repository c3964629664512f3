package observe

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults/proxy/proxytest"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
)

// These are the API kinds of the custom resources in these tests. Widgets are namespaced, and
// Parks are cluster-scoped.
var (
	definition = kube.Generic(kube.SplitGVK("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
	widget     = kube.Generic(kube.SplitGVK("example.com/v1", "Widget"))
	park       = kube.Generic(kube.SplitGVK("example.com/v1", "Park"))
)

// TestSameAsProxy checks that the observer and the fault proxy record equal objects for the same
// version of a custom resource.
func TestSameAsProxy(t *testing.T) {
	const body = `"apiVersion":"example.com/v1","kind":"Widget","spec":{"size":3,"ratio":0.50,"name":"<a&b>"},"status":{"conditions":[{"type":"Ready","status":"True"}]}`
	const metadata = `"name":"w","namespace":"observed","uid":"u","generation":2,"creationTimestamp":"2026-03-01T06:00:00Z",` +
		`"labels":{"app":"web"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"v","controller":true}]`
	stored := &mvccpb.KeyValue{Value: []byte(`{` + body + `,"metadata":{` + metadata + `}}`), ModRevision: 7}
	fromEtcd, err := decode(widget, stored)
	if err != nil {
		t.Fatal(err)
	}
	handler := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"resourceVersion":"7",` + metadata + `},` + body + `}]}`))
	}
	var recording historytest.Recording
	_, config := proxytest.Start(t, handler, &recording, clock.RealClock{})
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(widget.GVR).Namespace(namespace).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	list := recording.Await(t, "the list", func(r history.Record) bool { return r.List != nil }).List
	if diff := cmp.Diff([]history.Object{fromEtcd}, list.Items); diff != "" {
		t.Errorf("recorded objects (-etcd +proxy):\n%s", diff)
	}
	want := `{"spec":{"name":"\u003ca\u0026b\u003e","ratio":0.5,"size":3},"status":{"conditions":[{"status":"True","type":"Ready"}]}}`
	if string(fromEtcd.Body) != want || fromEtcd.ControllerRef() == nil || fromEtcd.Version != 7 {
		t.Errorf("body %s, owners %v, version %d; want body %s", fromEtcd.Body, fromEtcd.Owners, fromEtcd.Version, want)
	}
}

// TestSecret checks that the record of a Secret contains neither its data nor its annotations.
func TestSecret(t *testing.T) {
	stored := &mvccpb.KeyValue{ModRevision: 7, Value: []byte(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"observed","labels":{"a":"b"},"annotations":{"last":"token"}},"data":{"password":"dG9rZW4="}}`)}
	got, err := decode(kube.Generic(kube.SplitGVK("v1", "Secret")), stored)
	want := history.Object{
		Ref:    history.Ref{Resource: "secrets", Namespace: "observed", Name: "s", Version: 7},
		Labels: map[string]string{"a": "b"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v; (-want +got):\n%s", err, diff)
	}
}

// TestCustomResources observes custom resources from before their definition on. A Follower and
// an Observer must record the same changes, and no objects of another namespace.
func TestCustomResources(t *testing.T) {
	f := newFixture(t)
	client, err := dynamic.NewForConfig(f.cluster.Config(cluster.Admin))
	f.must(err)
	var inEtcd, watched historytest.Recording
	kinds := []kube.Kind{definition, widget, park}
	follower, err := Follow(t.Context(), FollowOptions{Etcd: f.etcd, Namespace: namespace, Kinds: kinds, Recorder: &inEtcd})
	f.must(err)
	observer, err := Start(t.Context(), Options{Config: f.cluster.Config(cluster.Admin), Namespace: namespace, Kinds: kinds, Recorder: &watched})
	f.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f.must(observer.CatchUp(ctx)) // CatchUp returns at once, because resources without a definition have no objects

	f.define(ctx, client, widget, "Namespaced")
	f.define(ctx, client, park, "Cluster")
	f.awaitWatches(ctx, observer)
	widgets, parks := client.Resource(widget.GVR), client.Resource(park.GVR)
	for _, in := range []string{namespace, "default"} {
		_, err = widgets.Namespace(in).Create(ctx, object(widget, "w"), metav1.CreateOptions{})
		f.must(err)
	}
	_, err = parks.Create(ctx, object(park, "p"), metav1.CreateOptions{})
	f.must(err)
	for _, objects := range []dynamic.ResourceInterface{widgets.Namespace("default"), widgets.Namespace(namespace)} {
		_, err = objects.Patch(ctx, "w", types.MergePatchType, []byte(`{"status":{"phase":"Ready"}}`), metav1.PatchOptions{}, "status")
		f.must(err)
		f.must(objects.Delete(ctx, "w", metav1.DeleteOptions{}))
	}

	f.must(follower.CatchUp(ctx))
	f.must(observer.CatchUp(ctx))
	follower.Stop()
	observer.Stop()
	got := map[string][]history.Commit{}
	for source, recording := range map[string]*historytest.Recording{"etcd": &inEtcd, "watch": &watched} {
		for _, r := range recording.All() {
			if r.Gap != nil {
				t.Errorf("%s: gap: %s", source, r.Gap.Detail)
			}
			if r.Commit != nil && r.Commit.Object.Resource != definition.Resource() {
				got[source] = append(got[source], *r.Commit)
			}
		}
		slices.SortFunc(got[source], func(a, b history.Commit) int { return int(a.Object.Version) - int(b.Object.Version) })
	}
	var events []string
	for _, c := range got["etcd"] {
		events = append(events, string(c.Type)+" "+c.Object.String()+" "+string(c.Object.Body))
	}
	want := []string{
		`ADDED widgets.example.com observed/w {"spec":{"size":1}}`,
		`ADDED parks.example.com p {"spec":{"size":1}}`,
		`MODIFIED widgets.example.com observed/w {"spec":{"size":1},"status":{"phase":"Ready"}}`,
		`DELETED widgets.example.com observed/w {"spec":{"size":1},"status":{"phase":"Ready"}}`,
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("commits in etcd (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got["etcd"], got["watch"]); diff != "" {
		t.Errorf("commits (-etcd +watch):\n%s", diff)
	}
}

// define creates the CustomResourceDefinition of an API kind.
func (f *fixture) define(ctx context.Context, client dynamic.Interface, kind kube.Kind, scope string) {
	f.t.Helper()
	crd := object(definition, kind.Resource())
	crd.Object["spec"] = map[string]any{
		"group": kind.GVR.Group, "scope": scope,
		"names": map[string]any{"kind": kind.Name, "plural": kind.GVR.Resource},
		"versions": []any{map[string]any{
			"name": kind.GVR.Version, "served": true, "storage": true,
			"subresources": map[string]any{"status": map[string]any{}},
			"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}},
	}
	_, err := client.Resource(definition.GVR).Create(ctx, crd, metav1.CreateOptions{})
	f.must(err)
}

// awaitWatches waits until the observer has listed all resources.
func (f *fixture) awaitWatches(ctx context.Context, observer *Observer) {
	f.t.Helper()
	for _, w := range observer.watchers {
		for {
			w.mu.Lock()
			listed := w.seenUpTo > 0
			w.mu.Unlock()
			if listed {
				break
			}
			if !pause(ctx) {
				f.t.Fatalf("%s is not watched", w.resource)
			}
		}
	}
}

// object returns an object of the given API kind and name.
func object(kind kube.Kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kind.APIVersion(), "kind": kind.Name,
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"size": int64(1)},
	}}
}
