package requests

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/faults/internal/faulttest"
	"github.com/kube-gauntlet/gauntlet/faults/proxy/proxytest"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParams(t *testing.T) {
	const verbs = "get, list, watch, create, update, patch, delete, deletecollection"
	const codes = "403, 404, 409, 422, 429, 500, 503, 504"
	resources := strings.Join(faults.Resources, ", ")
	tests := []faulttest.Case{
		{"{verb: create, resource: pods, code: 500}", ""},
		{"{verb: update, resource: replicasets.apps, subresource: status, namespace: 'n*', name: 'web-[0-9]', code: 429, retryAfterSeconds: 1, times: 3}", ""},
		{"{verb: create, resource: pods, code: 500, nth: 1}", ""},
		{"{verb: create, resource: pods, code: 500, every: 1000000}", ""},
		{"{verb: create, resource: pods, code: 500, probability: 1}", ""},
		{"{resource: pods, code: 500}", "s.yaml: api-error.verb: not given; expected one of " + verbs},
		{"{verb: make, resource: pods, code: 500}", `s.yaml:1:8: api-error.verb: unknown value "make"; expected one of ` + verbs},
		{"{verb: get, code: 500}", "s.yaml: api-error.resource: not given; expected one of " + resources},
		{"{verb: get, resource: pod, code: 500}", `s.yaml:1:23: api-error.resource: unknown value "pod"; expected pods`},
		{"{verb: get, resource: replicasets, code: 500}", `s.yaml:1:23: api-error.resource: unknown value "replicasets"; expected replicasets.apps`},
		{"{verb: get, resource: apps/deployments, code: 500}", `s.yaml:1:23: api-error.resource: unknown value "apps/deployments"; expected deployments.apps`},
		{"{verb: update, resource: pods/status, code: 500}", `s.yaml:1:26: api-error.resource: unknown value "pods/status"; expected pods, and status in the field subresource`},
		{"{verb: get, resource: secret, code: 500}", `s.yaml:1:23: api-error.resource: unknown value "secret"; expected one of ` + resources + ", or the resource of a kind in the field operator.kinds of the scenario"},
		{"{verb: get, resource: pods}", "s.yaml: api-error.code: not given; expected one of " + codes},
		{"{verb: get, resource: pods, code: 418}", "s.yaml:1:35: api-error.code: unknown code 418; expected one of " + codes},
		{"{verb: get, resource: pods, code: 500, name: '[a'}", `s.yaml:1:46: api-error.name: found "[a", which is not a valid glob; expected each [ to be closed, such as web-[a-c]*`},
		{"{verb: get, resource: pods, code: 500, namespace: '[a'}", `s.yaml:1:51: api-error.namespace: found "[a", which is not a valid glob; expected each [ to be closed, such as web-[a-c]*`},
		{"{verb: list, resource: pods, code: 500, name: web}", "s.yaml:1:47: api-error.name: a list request contains no object name; remove this field"},
		{"{verb: get, resource: pods, code: 429, retryAfterSeconds: 61}", "s.yaml:1:59: api-error.retryAfterSeconds: 61 is out of bounds; expected 0 to 60"},
		{"{verb: get, resource: pods, code: 409, retryAfterSeconds: 1}", "s.yaml:1:59: api-error.retryAfterSeconds: only permitted with code 429 or 5xx; found code 409"},
		{"{verb: get, resource: pods, code: 500, nth: 0}", "s.yaml:1:45: api-error.nth: 0 is out of bounds; expected 1 to 1000000"},
		{"{verb: get, resource: pods, code: 500, every: -1}", "s.yaml:1:47: api-error.every: -1 is out of bounds; expected 1 to 1000000"},
		{"{verb: get, resource: pods, code: 500, probability: 0}", "s.yaml:1:53: api-error.probability: 0 is out of bounds; expected more than 0, up to 1"},
		{"{verb: get, resource: pods, code: 500, probability: 1.5}", "s.yaml:1:53: api-error.probability: 1.5 is out of bounds; expected more than 0, up to 1"},
		{"{verb: get, resource: pods, code: 500, times: -1}", "s.yaml:1:47: api-error.times: -1 is out of bounds; expected 0 to 1000000"},
		{"{verb: make, resource: pods, code: 418, retryAfterSeconds: 1, times: -1}", strings.Join([]string{
			`s.yaml:1:8: api-error.verb: unknown value "make"; expected one of ` + verbs,
			"s.yaml:1:36: api-error.code: unknown code 418; expected one of " + codes,
			"s.yaml:1:70: api-error.times: -1 is out of bounds; expected 0 to 1000000",
		}, "\n")},
		{"{verb: get, resource: pods, code: 500, nth: 1, every: 2}", "s.yaml: api-error: found 2 of the fields nth, every and probability; set at most one of them"},
	}
	faulttest.Params(t, Error, tests)
}

func TestUnknownField(t *testing.T) {
	_, err := faulttest.Parse(Error, "{verb: get, resource: pods, code: 500, chance: 1}")
	if err == nil || !strings.Contains(err.Error(), `s.yaml:1:40: api-error: unknown field "chance"`) || !strings.Contains(err.Error(), "probability") {
		t.Errorf("error %v, want one with the unknown field, its position and the known fields", err)
	}
}

// firings returns the numbers of the matching requests at which a fault fires. The first matching
// request has the number 1.
func firings(t *testing.T, text string, seed uint64, matches int) []int {
	t.Helper()
	made, err := faulttest.Parse(Error, "{verb: get, resource: pods, code: 500"+text+"}")
	if err != nil {
		t.Fatal(err)
	}
	f := made.(*fault)
	f.env = &faults.Env{Rand: rand.New(rand.NewPCG(seed, 0))}
	var at []int
	for i := range matches {
		if _, _, fires := f.count(f.env.Rand, f.effect); fires {
			at = append(at, i+1)
		}
	}
	return at
}

func TestTriggers(t *testing.T) {
	tests := []struct {
		text string
		want []int
	}{
		{"", []int{1, 2, 3, 4, 5, 6}},
		{", times: 2", []int{1, 2}},
		{", nth: 4", []int{4}},
		{", nth: 7", nil},
		{", every: 2", []int{2, 4, 6}},
		{", every: 2, times: 2", []int{2, 4}},
		{", probability: 1", []int{1, 2, 3, 4, 5, 6}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, firings(t, test.text, 1, 6)); diff != "" {
			t.Errorf("%q fires (-want +got):\n%s", test.text, diff)
		}
	}
}

// TestSeed checks that a seed always selects the same matching requests, and about as many as
// the probability says. The parameter times must not change at which requests the fault fires
// before the limit.
func TestSeed(t *testing.T) {
	first, again := firings(t, ", probability: 0.3", 1, 1000), firings(t, ", probability: 0.3", 1, 1000)
	if !slices.Equal(first, again) {
		t.Error("the same seed fires at other requests")
	}
	if slices.Equal(first, firings(t, ", probability: 0.3", 2, 1000)) {
		t.Error("another seed fires at the same requests")
	}
	if len(first) < 240 || len(first) > 360 {
		t.Errorf("fires on %d of 1000 requests, want 240 to 360", len(first))
	}
	if limited := firings(t, ", probability: 0.3, times: 5", 1, 1000); !slices.Equal(first[:5], limited) {
		t.Errorf("with a limit it fires at %v, without at %v", limited, first[:5])
	}
}

// TestRefusesSecondCreate checks that a fault with nth 2 refuses the second of three
// creates.
func TestRefusesSecondCreate(t *testing.T) {
	reached := 0
	handler := func(w http.ResponseWriter, r *http.Request) {
		reached++
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-1"}}`))
	}
	var r historytest.Recording
	p, config := proxytest.Start(t, handler, &r, clock.RealClock{})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	fault, err := faulttest.Parse(Error, "{verb: create, resource: pods, name: 'web-*', code: 429, every: 2}")
	if err != nil {
		t.Fatal(err)
	}
	env := &faults.Env{Interceptor: p, Report: faults.NewReporter(&r, 0, "api-error")}
	if err := faults.Inject(t.Context(), fault, env); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if i == 3 {
			if err := faults.Heal(t.Context(), fault, env); err != nil {
				t.Fatal(err)
			}
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
		_, err := client.CoreV1().Pods("ns").Create(t.Context(), pod, metav1.CreateOptions{})
		if refused := i == 1; apierrors.IsTooManyRequests(err) != refused || (err != nil) != refused {
			t.Errorf("create %d: error %v, want a 429 only for create 1", i, err)
		}
	}
	if reached != 4 {
		t.Errorf("the server received %d creates, want 4", reached)
	}
	got := r.Faults()
	want := []history.Fault{
		{Name: "api-error", Event: history.FaultInjected},
		{
			Name: "api-error", Event: history.FaultFired, Request: 2, Detail: "refused with 429",
			Object: &history.Ref{Resource: "pods", Namespace: "ns", Name: "web-"},
		},
		{Name: "api-error", Event: history.FaultHealed, Detail: "refused 1 of 3 matching requests"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records of the fault (-want +got):\n%s", diff)
	}
}

// TestRefusesCustomResource checks that a fault refuses deletes of one owner's custom resources.
// The fault must look up the owner, because a delete request does not contain it.
func TestRefusesCustomResource(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodDelete {
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","status":"Success"}`))
			return
		}
		_, _ = w.Write([]byte(`{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"7"},"items":[` +
			`{"metadata":{"name":"owned","namespace":"ns","ownerReferences":[{"apiVersion":"example.com/v1","kind":"Gadget","name":"g","uid":"v","controller":true}]}},` +
			`{"metadata":{"name":"orphan","namespace":"ns"}}]}`))
	}
	var r historytest.Recording
	p, config := proxytest.Start(t, handler, &r, clock.RealClock{})
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	widgets := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).Namespace("ns")
	if _, err := widgets.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	fault := newFault(Match{Verb: "delete", Resource: "widgets.example.com", Owner: "Gadget/*"}, "refused", func(*rand.Rand) (interceptor.RequestEffect, string) {
		return interceptor.RequestEffect{Refuse: &interceptor.Refusal{Code: 503}}, "refused with 503"
	})
	env := &faults.Env{Interceptor: p, Report: faults.NewReporter(&r, 0, "api-error")}
	if err := faults.Inject(t.Context(), fault, env); err != nil {
		t.Fatal(err)
	}
	for name, refused := range map[string]bool{"owned": true, "orphan": false} {
		err := widgets.Delete(t.Context(), name, metav1.DeleteOptions{})
		if apierrors.IsServiceUnavailable(err) != refused || (err != nil) != refused {
			t.Errorf("delete of %s: error %v, want a 503 only for owned", name, err)
		}
	}
	if err := faults.Heal(t.Context(), fault, env); err != nil {
		t.Fatal(err)
	}
	if got, want := fault.Summary(), "refused 1 of 1 matching requests"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
