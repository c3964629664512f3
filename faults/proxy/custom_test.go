package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/harness/history"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// widgetJSON returns the custom resource w in JSON, with a status. Its controllerRef names
// the Gadget g.
func widgetJSON(version int) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"ns","uid":"u","resourceVersion":"%d",`+
		`"creationTimestamp":"2026-03-01T06:00:00Z","ownerReferences":[{"apiVersion":"example.com/v1","kind":"Gadget","name":"g","uid":"v","controller":true}]},`+
		`"spec":{"size":3},"status":{"observedGeneration":1}}`, version)
}

// widgetObject returns the object that the history stores for widgetJSON.
func widgetObject(version history.Version) history.Object {
	return history.Object{
		Ref:     history.Ref{Resource: "widgets.example.com", Namespace: "ns", Name: "w", UID: "u", Version: version},
		Created: time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC),
		Owners:  []history.Owner{{Kind: "Gadget", Name: "g", UID: "v", Controller: true, DoesNotBlock: true}},
		Body:    json.RawMessage(`{"spec":{"size":3},"status":{"observedGeneration":1}}`),
	}
}

// widgetServer is a fake API server with one widget. It answers a watch with one event and a
// bookmark, and keeps the watch open. The field listQuery contains the query of the last list
// request.
type widgetServer struct{ listQuery string }

func (s *widgetServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") == "true":
		_, _ = io.WriteString(w, `{"type":"MODIFIED","object":`+widgetJSON(8)+"}\n"+
			`{"type":"BOOKMARK","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"9"}}}`+"\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.Method == http.MethodGet:
		s.listQuery = r.URL.RawQuery
		_, _ = io.WriteString(w, `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"7"},"items":[`+widgetJSON(5)+`]}`)
	case r.Method == http.MethodDelete:
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Success"}`)
	default:
		_, _ = io.WriteString(w, widgetJSON(8))
	}
}

// widgetClient returns a client for widgets, whose requests go through the fault proxy.
func (f *fixture) widgetClient(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	config := dynamic.ConfigFor(f.config(contentTypes["json"]))
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(httpClient.CloseIdleConnections)
	client, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(widgets).Namespace("ns")
}

func newWidget(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := new(unstructured.Unstructured)
	if err := object.UnmarshalJSON([]byte(widgetJSON(5))); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestCustomResourceRecords checks the history records of each type of request for a custom
// resource. Controller must find the owner even for a request that contains only the object's
// name.
func TestCustomResourceRecords(t *testing.T) {
	f := start(t, clock.RealClock{}, &widgetServer{})
	var owner *history.Owner
	f.interceptor.OnRequest(func(r *history.Request) *interceptor.RequestEffect {
		owner = f.interceptor.Controller(r)
		return nil
	})
	client := f.widgetClient(t)
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("list %v, error %v; want one widget", list, err)
	}
	if err := client.Delete(t.Context(), "w", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if owner == nil || owner.Kind != "Gadget" || owner.Name != "g" {
		t.Errorf("the owner of the deleted object is %v, want Gadget g", owner)
	}
	if _, err := client.UpdateStatus(t.Context(), newWidget(t), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var lists []*history.List
	var requests []*history.Request
	var answers []*history.Object
	for _, r := range f.All() {
		switch {
		case r.List != nil:
			lists = append(lists, r.List)
		case r.Request != nil:
			requests = append(requests, r.Request)
		case r.Response != nil && r.Response.Object != nil:
			answers = append(answers, r.Response.Object)
		case r.Gap != nil:
			t.Errorf("the history has an unexpected gap: %s", r.Gap.Detail)
		}
	}
	listed, sent, answered := widgetObject(5), widgetObject(5), widgetObject(8)
	for _, test := range []struct {
		name      string
		want, got any
	}{
		{"lists", []*history.List{{ID: 1, Subject: "subject-0", Resource: "widgets.example.com", Version: 7, Items: []history.Object{listed}}}, lists},
		{"requests", []*history.Request{
			{ID: 1, Subject: "subject-0", Verb: "list", Resource: "widgets.example.com", Namespace: "ns", Agent: "tester"},
			{ID: 2, Subject: "subject-0", Verb: "delete", Resource: "widgets.example.com", Namespace: "ns", Name: "w", Agent: "tester"},
			{ID: 3, Subject: "subject-0", Verb: "update", Resource: "widgets.example.com", Subresource: "status", Namespace: "ns", Name: "w", Agent: "tester", Object: &sent},
		}, requests},
		{"objects in responses", []*history.Object{&answered}, answers},
	} {
		if diff := cmp.Diff(test.want, test.got, anyLength); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestCustomResourceEffects checks that faults can change requests and watch events of a custom
// resource.
func TestCustomResourceEffects(t *testing.T) {
	server := &widgetServer{}
	c := testingclock.NewFakeClock(time.Now())
	f := start(t, c, server)
	client := f.widgetClient(t)

	remove := f.interceptor.OnRequest(applyToAll(interceptor.RequestEffect{Refuse: &interceptor.Refusal{Code: 409}}))
	if _, err := client.Create(t.Context(), newWidget(t), metav1.CreateOptions{}); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		t.Errorf("error %v of a refused create, want 409", err)
	}
	remove()

	remove = f.interceptor.OnRequest(applyToAll(interceptor.RequestEffect{ListAt: 4}))
	if _, err := client.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil {
		t.Error(err)
	}
	remove()
	if want := "resourceVersion=4&resourceVersionMatch=Exact"; server.listQuery != want {
		t.Errorf("the API server received the query %s, want %s", server.listQuery, want)
	}

	restore := f.interceptor.SkewClock(time.Hour, func(uint64, *history.Ref) {})
	list, err := client.List(t.Context(), metav1.ListOptions{})
	if err != nil || list.Items[0].GetCreationTimestamp().Hour() == 6 {
		t.Errorf("error %v, list %v; want a later creationTimestamp", err, list)
	}
	restore()

	f.interceptor.OnWatchEvent(func(*history.Request, *history.Delivery) *interceptor.WatchEffect {
		return &interceptor.WatchEffect{Hold: time.Minute}
	})
	stream, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "7", AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	f.awaitClockWaiter(t, c)
	select {
	case event := <-stream.ResultChan():
		t.Fatalf("the event %s was not held", event.Type)
	default:
	}
	c.Step(time.Minute)
	if event := <-stream.ResultChan(); event.Type != "MODIFIED" || event.Object.(*unstructured.Unstructured).GetName() != "w" {
		t.Errorf("received event %v, want MODIFIED of w", event)
	}
	f.Await(t, "the bookmark", func(r history.Record) bool {
		return r.Delivery != nil && r.Delivery.Type == history.Bookmark && r.Delivery.Object.Version == 9
	})
	want := widgetObject(8)
	delivery := f.Await(t, "the event", func(r history.Record) bool { return r.Delivery != nil }).Delivery
	if diff := cmp.Diff(want, delivery.Object); diff != "" || delivery.Held < time.Minute {
		t.Errorf("held for %v; object (-want +got):\n%s", delivery.Held, diff)
	}
}
