package watches

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/proxy/proxytest"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

// TestCustomResource checks that the faults of lists and watches change requests for a custom
// resource. These faults must not change requests for another resource.
func TestCustomResource(t *testing.T) {
	const list = `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"90"},"items":[]}`
	const events = `{"type":"ADDED","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","resourceVersion":"8"}}}` + "\n" +
		`{"type":"BOOKMARK","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"9"}}}` + "\n"
	queries := map[string]string{} // maps each resource to the query of its last list request
	handler := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "true" {
			w.(http.Flusher).Flush() // a Flush sends the response without a Content-Length, as for a watch
			_, _ = io.WriteString(w, events)
			return
		}
		queries[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]] = r.URL.RawQuery
		_, _ = io.WriteString(w, list)
	}
	var recording historytest.Recording
	p, config := proxytest.Start(t, handler, &recording, clock.RealClock{})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	get := func(resource string, query url.Values) string {
		t.Helper()
		response, err := client.Get(config.Host + "/apis/example.com/v1/namespaces/ns/" + resource + "?" + query.Encode())
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	env := &faults.Env{Interceptor: p, Report: faults.NewReporter(&recording, 0, "fault"), Clock: clock.RealClock{}}

	old := &stale{resource: "widgets.example.com", version: 42, env: env}
	old.Remove = p.OnRequest(old.match)
	for _, resource := range []string{"widgets", "gadgets"} {
		get(resource, url.Values{"resourceVersion": {"0"}})
	}
	if err := faults.Heal(t.Context(), old, env); err != nil {
		t.Fatal(err)
	}
	if queries["widgets"] != "resourceVersion=42&resourceVersionMatch=Exact" || queries["gadgets"] != "resourceVersion=0" {
		t.Errorf("the API server received the queries %v, want the older version for widgets only", queries)
	}

	const delay = 200 * time.Millisecond
	tests := []struct {
		fault             faults.Fault
		bookmarks         int
		delayed           bool
		summary, resource string
	}{
		{newHolding(EventMatch{Resource: "widgets.example.com"}, delay, "holds events"), 1, true, "held 2 events on 1 watch", "widgets"},
		{newHolding(EventMatch{Resource: "widgets.example.com"}, delay, "holds events"), 1, false, "held 0 events on 0 watches", "gadgets"},
		{&bookmarks{resource: "widgets.example.com"}, 0, false, "dropped 1 bookmark", "widgets"},
		{&bookmarks{resource: "widgets.example.com"}, 1, false, "dropped 0 bookmarks", "gadgets"},
	}
	for _, test := range tests {
		if err := faults.Inject(t.Context(), test.fault, env); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		received := get(test.resource, url.Values{"watch": {"true"}})
		if n := strings.Count(received, "BOOKMARK"); n != test.bookmarks || strings.Count(received, "ADDED") != 1 {
			t.Errorf("%T, %s: received the unexpected events %s", test.fault, test.resource, received)
		}
		if lasted := time.Since(begin); test.delayed && lasted < delay {
			t.Errorf("%T, %s: the events arrived after %v, want a delay", test.fault, test.resource, lasted)
		}
		if err := faults.Heal(t.Context(), test.fault, env); err != nil {
			t.Fatal(err)
		}
		if got := test.fault.Summary(); got != test.summary {
			t.Errorf("%s: %q, want %q", test.resource, got, test.summary)
		}
	}
}
