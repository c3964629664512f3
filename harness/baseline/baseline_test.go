package baseline

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// object returns an object in the namespace of the tests. The parameter body is its spec and
// status as JSON.
func object(resource, name, uid, body string) *history.Object {
	return &history.Object{Ref: history.Ref{Resource: resource, Namespace: "ns", Name: name, UID: types.UID(uid)}, Body: []byte(body)}
}

// commit returns a record that says that etcd committed a version of the object o.
func commit(event history.EventType, o *history.Object) *history.Record {
	return &history.Record{Commit: &history.Commit{Type: event, Object: *o}}
}

// requested returns two records: a write request of the controllers under test, and the response
// with the given status code.
func requested(id uint64, verb string, o *history.Object, code int) []*history.Record {
	request := &history.Request{ID: id, Verb: verb, Resource: o.Resource, Namespace: o.Namespace, Name: o.Name}
	if verb == "create" {
		request.Name, request.Object = "", o
	}
	return []*history.Record{{Request: request}, {Response: &history.Response{ID: id, Code: code, ServerCode: code}}}
}

// observed returns an observer that has read the given records.
func observed(parts ...any) *Observer {
	o := NewObserver()
	for _, part := range parts {
		switch part := part.(type) {
		case *history.Record:
			o.Observe(part)
		case []*history.Record:
			for _, r := range part {
				o.Observe(r)
			}
		}
	}
	return o
}

// TestEnd checks what End returns about the objects at the end of a run.
func TestEnd(t *testing.T) {
	generated := func(name, phase string, owned bool) *history.Object {
		o := object("pods", name, name, fmt.Sprintf(`{"spec":{"nodeName":"node-1"},"status":{"phase":%q}}`, phase))
		o.GenerateName = "web-"
		if owned {
			o.Owners = []history.Owner{{Kind: "ReplicaSet", Name: "web", UID: "u", Controller: true}}
		}
		return o
	}
	service := object("services", "web", "s", `{"spec":{"clusterIP":"10.0.0.7","ports":[{"name":"b","port":1},{"name":"a","port":2}]},"status":{"x":1}}`)
	service.Labels, service.Annotations = map[string]string{"app": "web"}, map[string]string{"note": "x"}
	service.Owners = []history.Owner{{Kind: "App", Name: "one", UID: "u"}}
	observer := observed(
		commit(history.Added, service), commit(history.Added, object("configmaps", "other", "c", `{"data":{"a":"b"}}`)),
		commit(history.Added, object("configmaps", "gone", "g", `{}`)), commit(history.Deleted, object("configmaps", "gone", "g", `{}`)),
		commit(history.Added, generated("web-1", "Running", true)), commit(history.Added, generated("web-2", "Pending", true)),
		commit(history.Added, generated("web-3", "Failed", true)), commit(history.Added, generated("web-4", "Running", false)),
		commit(history.Added, object("events", "e", "e", `{}`)), commit(history.Added, object("nodes", "n", "n", `{}`)),
	)
	want := Facts{
		"services ns/web": "1", "services ns/web spec/clusterIP": Any, "services ns/web spec/ports/b/name": "b", "services ns/web spec/ports/b/port": "1",
		"services ns/web spec/ports/a/name": "a", "services ns/web spec/ports/a/port": "2", "services ns/web metadata/labels/app": "web",
		"services ns/web metadata/ownerReferences/App/one": "set", "configmaps ns/other": "1", "pods ns/web-*": "2",
	}
	if diff := cmp.Diff(want, observer.End([]string{"services", "pods"})); diff != "" {
		t.Errorf("objects at the end (-want +got):\n%s", diff)
	}
}

// TestEndWithoutGarbage checks that End leaves out what the garbage collector must still delete.
func TestEndWithoutGarbage(t *testing.T) {
	owned := func(resource, name, uid string, owners ...string) *history.Object {
		o := object(resource, name, uid, `{}`)
		for _, owner := range owners {
			o.Owners = append(o.Owners, history.Owner{Kind: "App", Name: owner, UID: types.UID(owner)})
		}
		return o
	}
	held, terminating := owned("configmaps", "held", "c4", "deleted"), owned("configmaps", "terminating", "c6", "deleted")
	held.Deleting, terminating.Deleting = time.Unix(1, 0), time.Unix(1, 0)
	held.Finalizers = []string{"example.com/hold"}
	observer := observed(
		commit(history.Added, object("apps.example.com", "deleted", "deleted", `{}`)),
		commit(history.Added, object("apps.example.com", "one", "one", `{}`)),
		commit(history.Added, owned("configmaps", "child", "c1", "deleted")), commit(history.Added, owned("configmaps", "grandchild", "c2", "c1")),
		commit(history.Added, owned("configmaps", "shared", "c3", "deleted", "one")), commit(history.Added, held), commit(history.Added, terminating),
		commit(history.Added, owned("configmaps", "unknown", "c5", "cluster-scoped")),
		commit(history.Added, owned("services", "web", "s", "deleted")), commit(history.Added, object("endpoints", "web", "e1", `{}`)),
		commit(history.Added, object("endpoints", "other", "e2", `{}`)),
		commit(history.Deleted, object("apps.example.com", "deleted", "deleted", `{}`)),
	)
	want := Facts{
		"apps.example.com ns/one": "1", "configmaps ns/shared": "1", "configmaps ns/held": "1", "configmaps ns/unknown": "1",
		"endpoints ns/other": "1",
	}
	if diff := cmp.Diff(want, observer.End(nil)); diff != "" {
		t.Errorf("objects at the end (-want +got):\n%s", diff)
	}
}

// TestStatus checks which fields of a status are facts, and in which form. The subject must write
// the status of the resource.
func TestStatus(t *testing.T) {
	widget := object("widgets", "one", "w", `{"spec":{"size":1},"status":{"observedGeneration":7,"ready":2,"hosts":["b","a"],"started":"2026-01-01T00:00:00Z",
		"conditions":[{"type":"Ready","status":"True","reason":"Fine","message":"took 3 tries","observedGeneration":4,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	widget.Generation = 7
	update := requested(1, "update", widget, 200)
	update[0].Request.Subresource = "status"
	observer := observed(update, commit(history.Added, widget))
	if diff := cmp.Diff([]string{"widgets", "widgets/status"}, observer.Written()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	withoutStatus := Facts{"widgets ns/one": "1", "widgets ns/one spec/size": "1"}
	if diff := cmp.Diff(withoutStatus, observer.End([]string{"widgets"})); diff != "" {
		t.Errorf("the subject does not write the status (-want +got):\n%s", diff)
	}
	want := Facts{
		"widgets ns/one": "1", "widgets ns/one spec/size": "1", "widgets ns/one status/observedGeneration": "current", "widgets ns/one status/ready": "2",
		"widgets ns/one status/hosts": `["a","b"]`, "widgets ns/one status/started": Any, "widgets ns/one status/conditions/Ready/type": "Ready",
		"widgets ns/one status/conditions/Ready/status": "True", "widgets ns/one status/conditions/Ready/reason": "Fine", "widgets ns/one status/conditions/Ready/lastTransitionTime": Any,
	}
	if diff := cmp.Diff(want, observer.End(observer.Written())); diff != "" {
		t.Errorf("the subject writes the status (-want +got):\n%s", diff)
	}
	stale := object("widgets", "one", "w", `{"spec":{"size":1},"status":{"observedGeneration":6,"ready":2,"hosts":["a","b"]}}`)
	stale.Generation = 7
	learnt, later := Combine([]*Observer{observer}), observed(commit(history.Added, stale))
	const observed = `widgets ns/one status/observedGeneration: found "6"; expected "current"`
	if got := learnt.Differences(later, false); !slices.Contains(got, observed) || len(got) != 4 {
		t.Errorf("differences %q; want %s, and that the 3 stable fields of the condition are missing", got, observed)
	}
	if got := learnt.Differences(later, true); len(got) > 0 {
		t.Errorf("differences %q; want none after pods were replaced", got)
	}
}

// TestUnfinished checks after which failed steps a run can be compared with a baseline.
func TestUnfinished(t *testing.T) {
	failed := func(index int, awaited *history.Ref) *Observer {
		return observed(&history.Record{Step: &history.Step{Index: index, Event: history.StepFailed, Detail: "x", Error: "late", Awaited: awaited}})
	}
	for name, test := range map[string]struct {
		run  *Observer
		want string
	}{
		"no failed step":                     {run: observed()},
		"an await after the last operation":  {run: failed(3, &history.Ref{Name: "web"})},
		"the await of the last operation":    {run: failed(2, &history.Ref{Name: "web"})},
		"an await before the last operation": {run: failed(1, &history.Ref{Name: "web"}), want: "step 1 (x) failed: late"},
		"the last operation failed":          {run: failed(2, nil), want: "step 2 (x) failed: late"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.run.Unfinished(2); got != test.want {
				t.Errorf("found %q; want %q", got, test.want)
			}
		})
	}
}

// TestDifferences checks which differences between a run and a baseline the method Differences
// returns.
func TestDifferences(t *testing.T) {
	common := Agreed([]Facts{{"a": "1", "b": "x", "gone": "1"}, {"a": "1", "b": "y", "new": "1"}})
	if diff := cmp.Diff(Facts{"a": "1", "b": Any, "gone": Any, "new": Any}, common); diff != "" {
		t.Errorf("agreed (-want +got):\n%s", diff)
	}
	got := common.Differences(Facts{"a": "2", "b": "z", "more": "1"})
	if diff := cmp.Diff([]string{`a: found "2"; expected "1"`, `more: found "1"; expected none`}, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	whole := Facts{"services ns/a": "1", "services ns/a spec/x": "1"}
	for _, got := range [][]string{whole.Differences(Facts{}), Facts{}.Differences(whole)} {
		if len(got) != 1 || !strings.HasPrefix(got[0], "services ns/a: found") {
			t.Errorf("differences %q; want only the whole object", got)
		}
	}
	if got := common.Differences(Facts{}); len(got) != 1 || got[0] != `a: found none; expected "1"` {
		t.Errorf("differences %v; want that a is missing", got)
	}
}

// extraEffects returns the texts of the extra effects of a run.
func extraEffects(b *Baseline, run *Observer) []string {
	var texts []string
	for _, extra := range b.ExtraEffects(run, b.EffectsOf(run)) {
		texts = append(texts, extra.Text)
	}
	return texts
}

// TestExtraEffects checks which creates and deletes count as extra. The baseline contains one
// create of a claim.
func TestExtraEffects(t *testing.T) {
	first, second := object("claims", "c", "1", `{}`), object("claims", "c", "2", `{}`)
	terminating := object("claims", "c", "1", `{}`)
	terminating.Deleting = time.Unix(1, 0)
	random := object("pods", "web-1", "1", `{}`)
	random.GenerateName = "web-"
	learnt := Combine([]*Observer{observed(requested(1, "create", first, 201), commit(history.Added, first))})
	const found = `claims ns/c: found %s; expected 1 created, 0 deleted, 0 lost (%s too often)`
	for name, test := range map[string]struct {
		run  []any
		want []string
	}{
		"the same":                       {run: []any{requested(1, "create", first, 201), commit(history.Added, first)}},
		"a repeated create was refused":  {run: []any{requested(1, "create", first, 201), commit(history.Added, first), requested(2, "create", first, 409)}},
		"nothing was created":            {},
		"a lost create without response": {run: []any{requested(1, "create", first, 0), commit(history.Added, first), requested(2, "create", first, 409)}},
		"somebody deleted the object": {run: []any{
			requested(1, "create", first, 201), commit(history.Added, first), commit(history.Deleted, first), requested(2, "create", second, 201), commit(history.Added, second),
		}},
		"the subject replaced the object": {run: []any{
			requested(1, "create", first, 201), commit(history.Added, first), requested(2, "delete", first, 200), commit(history.Deleted, first), requested(3, "create", second, 201), commit(history.Added, second),
		}, want: []string{fmt.Sprintf(found, "2 created, 1 deleted, 0 lost", "created and deleted")}},
		"the commit of the delete came before the response": {run: []any{
			requested(1, "create", first, 201), commit(history.Added, first), requested(2, "delete", first, 200)[0], commit(history.Deleted, first), requested(2, "delete", first, 200)[1],
		}, want: []string{fmt.Sprintf(found, "1 created, 1 deleted, 0 lost", "deleted")}},
		"the subject deleted a terminating object again": {run: []any{
			requested(1, "create", first, 201), commit(history.Added, first), commit(history.Modified, terminating), requested(2, "delete", first, 200),
		}},
		"a delete was refused":  {run: []any{requested(1, "create", first, 201), commit(history.Added, first), requested(2, "delete", first, 403)}},
		"an apply that creates": {run: []any{requested(1, "patch", first, 201), commit(history.Added, first)}},
		"an apply that changes": {run: []any{requested(1, "patch", first, 201), commit(history.Added, first), requested(2, "patch", first, 200)}},
		"an apply creates again": {run: []any{
			requested(1, "patch", first, 201), commit(history.Added, first), requested(2, "delete", first, 200), commit(history.Deleted, first), requested(3, "patch", second, 201), commit(history.Added, second),
		}, want: []string{fmt.Sprintf(found, "2 created, 1 deleted, 0 lost", "created and deleted")}},
		"a generated name": {run: []any{requested(1, "create", random, 201), commit(history.Added, random), requested(2, "delete", random, 200), commit(history.Deleted, random)},
			want: []string{"pods ns/web-*: found 1 created, 1 deleted, 0 lost; expected 0 created, 0 deleted, 0 lost (created and deleted too often)"}},
		"an object of no run": {run: []any{requested(1, "create", object("claims", "x", "9", `{}`), 201)}, want: []string{"claims ns/x: found 1 created, 0 deleted, 0 lost; expected 0 created, 0 deleted, 0 lost (created too often)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, extraEffects(learnt, observed(test.run...))); diff != "" {
				t.Errorf("extra effects (-want +got):\n%s", diff)
			}
		})
	}
}

// staleView is the record of a fault that makes caches old.
var staleView = &history.Record{Fault: &history.Fault{Name: "stale-list", Event: history.FaultFired}}

// TestExtraEffectsOfGeneratedNames checks which creates and deletes of objects with generated names
// count as extra. The baseline contains one create of a pod.
func TestExtraEffectsOfGeneratedNames(t *testing.T) {
	pod := func(suffix, phase string) *history.Object {
		o := object("pods", "web-"+suffix, suffix, `{"status":{"phase":"`+phase+`"}}`)
		o.GenerateName, o.Owners = "web-", []history.Owner{{Kind: "Widget", Name: "web", UID: "w", Controller: true}}
		return o
	}
	first, second, failed := pod("1", "Running"), pod("2", "Running"), pod("1", "Failed")
	learnt := Combine([]*Observer{observed(requested(1, "create", first, 201), commit(history.Added, first))})
	lost, lostApply := requested(1, "create", first, 201), requested(1, "patch", first, 201)
	lost[1].Response.Code, lostApply[1].Response.Code = 0, 0
	lostApply[1].Response.Object = first
	for name, test := range map[string]struct {
		run  []any
		want []string
	}{
		"the same": {run: []any{requested(1, "create", second, 201), commit(history.Added, second)}},
		"one too many, which is deleted again": {run: []any{
			requested(1, "create", first, 201), commit(history.Added, first), requested(2, "create", second, 201), commit(history.Added, second),
			requested(3, "delete", second, 200), commit(history.Deleted, second),
		}, want: []string{"pods ns/web-*: found 2 created, 1 deleted, 0 lost; expected 1 created, 0 deleted, 0 lost (created and deleted too often)"}},
		"one too many because of an old view, which is deleted again": {run: []any{
			staleView, requested(1, "create", first, 201), commit(history.Added, first), requested(2, "create", second, 201), commit(history.Added, second),
			requested(3, "delete", second, 200), commit(history.Deleted, second),
		}},
		"one too many because of an old view, which stays": {run: []any{
			staleView, requested(1, "create", first, 201), commit(history.Added, first), requested(2, "create", second, 201), commit(history.Added, second),
		}, want: []string{"pods ns/web-*: found 2 created, 0 deleted, 0 lost; expected 1 created, 0 deleted, 0 lost (created too often)"}},
		"a lost response": {run: []any{
			lost, commit(history.Added, first), requested(2, "create", second, 201), commit(history.Added, second),
			requested(3, "delete", second, 200), commit(history.Deleted, second),
		}},
		"a write of the pod failed, and the pod is replaced": {run: []any{
			requested(1, "create", first, 201), commit(history.Added, first), requested(2, "update", first, 500),
			requested(3, "delete", first, 200), commit(history.Deleted, first), requested(4, "create", second, 201), commit(history.Added, second),
		}},
		"a write of the pod failed, a later one succeeded, and the pod is replaced": {run: []any{
			requested(1, "create", first, 201), commit(history.Added, first), requested(2, "update", first, 500), requested(5, "update", first, 200),
			requested(3, "delete", first, 200), commit(history.Deleted, first), requested(4, "create", second, 201), commit(history.Added, second),
		}, want: []string{"pods ns/web-*: found 2 created, 1 deleted, 0 lost; expected 1 created, 0 deleted, 0 lost (created and deleted too often)"}},
		"the API server found the write of the pod wrong, and the pod is replaced": {run: []any{
			requested(1, "create", first, 201), commit(history.Added, first), requested(2, "update", first, 422),
			requested(3, "delete", first, 200), commit(history.Deleted, first), requested(4, "create", second, 201), commit(history.Added, second),
		}, want: []string{"pods ns/web-*: found 2 created, 1 deleted, 0 lost; expected 1 created, 0 deleted, 0 lost (created and deleted too often)"}},
		"a delete failed, and the pod is replaced": {run: []any{
			requested(1, "create", first, 201), commit(history.Added, first), requested(2, "delete", first, 500),
			requested(3, "delete", first, 200), commit(history.Deleted, first), requested(4, "create", second, 201), commit(history.Added, second),
		}, want: []string{"pods ns/web-*: found 2 created, 1 deleted, 0 lost; expected 1 created, 0 deleted, 0 lost (created and deleted too often)"}},
		"a lost response to an apply": {run: []any{
			lostApply, commit(history.Added, first), requested(2, "delete", first, 200), commit(history.Deleted, first),
			requested(3, "create", second, 201), commit(history.Added, second),
		}},
		"somebody deleted the pod": {run: []any{
			requested(1, "create", first, 201), commit(history.Added, first), commit(history.Deleted, first), requested(2, "create", second, 201), commit(history.Added, second),
		}},
		"the pod ended": {run: []any{
			requested(1, "create", first, 201), commit(history.Added, first), commit(history.Modified, failed),
			requested(2, "delete", failed, 200), commit(history.Deleted, failed), requested(3, "create", second, 201), commit(history.Added, second),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, extraEffects(learnt, observed(test.run...))); diff != "" {
				t.Errorf("extra effects (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReplacements checks which objects with a fixed name the controllers may create from an old view. In
// the baseline, they create and delete the object once, and create it again.
func TestReplacements(t *testing.T) {
	widget := func(uid string) *history.Object { return object("widgets", "web", uid, `{}`) }
	id, clock := uint64(0), time.Duration(0)
	create := func(uid string) (all []any) {
		id++
		records := requested(id, "create", widget(uid), 201)
		records[1].Response.Object, records[1].At = widget(uid), clock
		return []any{records, commit(history.Added, widget(uid))}
	}
	remove := func(uid string) []any {
		id++
		return []any{requested(id, "delete", widget(uid), 200), commit(history.Deleted, widget(uid))}
	}
	learnt := Combine([]*Observer{observed(slices.Concat(create("1"), remove("1"), create("2"))...)})
	stale := []any{staleView}
	healed := []any{&history.Record{Fault: &history.Fault{Name: "stale-list", Event: history.FaultHealed}}}
	later := func() []any { clock = time.Minute; return nil }
	for name, test := range map[string]struct {
		run  []any
		want []string
	}{
		"the same": {run: slices.Concat(create("1"), remove("1"), create("2"))},
		"created from an old view after the delete, and replaced": {run: slices.Concat(create("1"), remove("1"), stale, create("2"), remove("2"), create("3"))},
		"replaced long after an old view": {run: slices.Concat(create("1"), remove("1"), stale, healed, later(), create("2"), remove("2"), create("3")),
			want: []string{"widgets ns/web: found 3 created, 2 deleted, 0 lost; expected 2 created, 1 deleted, 0 lost (created and deleted too often)"}},
		"replaced without an old view": {run: slices.Concat(create("1"), remove("1"), create("2"), remove("2"), create("3")),
			want: []string{"widgets ns/web: found 3 created, 2 deleted, 0 lost; expected 2 created, 1 deleted, 0 lost (created and deleted too often)"}},
		"deleted because of an old view": {run: slices.Concat(create("1"), remove("1"), create("2"), stale, remove("2"), create("3")),
			want: []string{"widgets ns/web: found 3 created, 2 deleted, 0 lost; expected 2 created, 1 deleted, 0 lost (created and deleted too often)"}},
		"created again after a delete because of an old view": {run: slices.Concat(create("1"), remove("1"), create("2"), stale, remove("2"), create("3"), remove("3"), create("4")),
			want: []string{"widgets ns/web: found 4 created, 3 deleted, 0 lost; expected 2 created, 1 deleted, 0 lost (created and deleted too often)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, extraEffects(learnt, observed(test.run...))); diff != "" {
				t.Errorf("extra effects (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRevisions checks that the ControllerRevisions of an owner count together, and that their fields do not
// count. A lost response to a create is no reason to create another one, because the name is not random.
func TestRevisions(t *testing.T) {
	revision := func(name string) *history.Object {
		o := object("controllerrevisions.apps", name, name, `{"revision":`+name[len(name)-1:]+`}`)
		o.Owners = []history.Owner{{Kind: "Widget", Name: "web", UID: "w", Controller: true}}
		return o
	}
	lost := requested(1, "create", revision("web-5d4f-1"), 201)
	lost[1].Response.Code = 0
	run := observed(lost, commit(history.Added, revision("web-5d4f-1")), requested(2, "create", revision("web-5d4f-2"), 201), commit(history.Added, revision("web-5d4f-2")))
	if diff := cmp.Diff(Facts{"controllerrevisions.apps ns/web-*": "2"}, run.End(run.Written())); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Facts{"controllerrevisions.apps ns/web-*": "2 created, 0 deleted, 0 lost"}, run.Effects()); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
}

// TestEffectsOnUnobserved checks that creates and deletes count even if the history has no committed
// versions of the resource.
func TestEffectsOnUnobserved(t *testing.T) {
	secret := object("secrets", "web-1", "", `{}`)
	secret.GenerateName = "web-"
	created := requested(1, "create", secret, 201)
	created[1].Response.Object = secret
	late := commit(history.Added, secret)
	for name, test := range map[string]struct {
		run  []any
		want string
	}{
		"created":            {run: []any{created}, want: "1 created, 0 deleted, 0 lost"},
		"deleted":            {run: []any{created, requested(2, "delete", secret, 200)}, want: "1 created, 1 deleted, 0 lost"},
		"deleted twice":      {run: []any{created, requested(2, "delete", secret, 200), requested(3, "delete", secret, 200)}, want: "1 created, 1 deleted, 0 lost"},
		"a refused delete":   {run: []any{created, requested(2, "delete", secret, 403), requested(3, "delete", secret, 200)}, want: "1 created, 1 deleted, 0 lost"},
		"observed after all": {run: []any{created, late, requested(2, "delete", secret, 200), commit(history.Deleted, secret)}, want: "1 created, 1 deleted, 0 lost"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(Facts{"secrets ns/web-*": test.want}, observed(test.run...).Effects()); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
		})
	}
}

// records returns an iterator over the given records, like history.Read.
func records(all ...*history.Record) iter.Seq2[*history.Record, error] {
	return func(yield func(*history.Record, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// TestFile checks that Read returns the baseline that Write has written. For an invalid file,
// Read must return an error that says what is wrong.
func TestFile(t *testing.T) {
	claim := object("claims", "c", "1", `{"spec":{"size":"1Gi"}}`)
	history1 := slices.Concat([]*history.Record{{Start: &history.Start{Scenario: "x", Subject: "ours"}}}, requested(1, "create", claim, 201), []*history.Record{commit(history.Added, claim)})
	learnt, err := Learn(records(history1...), records(history1...))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "baseline.yaml")
	if err := learnt.Write(path); err != nil {
		t.Fatal(err)
	}
	read, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := &Baseline{
		Scenario: "x", Subject: "ours", Runs: 2, Written: []string{"claims"},
		End: Facts{"claims ns/c": "1", "claims ns/c spec/size": "1Gi"}, Effects: Facts{"claims ns/c": "1 created, 0 deleted, 0 lost"},
	}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("baseline (-want +got):\n%s", diff)
	}
	empty := &Baseline{Scenario: "x", Runs: 1, Written: []string{"claims"}, End: Facts{}, Effects: Facts{"claims ns/c": "1 created, 1 deleted, 0 lost"}}
	if err := empty.Write(path); err != nil {
		t.Fatal(err)
	}
	if read, err := Read(path); err != nil || len(read.End) != 0 {
		t.Errorf("a workload that deletes all objects: %v, error %v; want a baseline without objects at the end", read, err)
	}
	for text, want := range map[string]string{
		"scenario: x\nruns: 1\nend: {a: \"1\"}\n":                                                             `field format: found no value; expected 3; create the baseline again with "gauntlet baseline"`,
		"format: 3\nscenario: x\nruns: 1\nend: {a: \"1\"}\nobjects: 1\n":                                      `:5:1: expected a baseline, as "gauntlet baseline" writes it: unknown field "objects"`,
		"format: 3\nruns: 1\nend: {a: \"1\"}\n":                                                               "field scenario: found no value; expected the name of a scenario",
		"format: 3\nscenario: x\nruns: 1\nend: {}\nwritten: []\n":                                             "fields end and effects: found no objects; expected a workload in which there is an object at the end, or in which the subject creates one",
		"format: 3\nscenario: x\nruns: 1\nwritten: [pods, pods]\nend: {a: \"1\"}\n":                           "field written[1]: found \"pods\"; expected a resource such as pods or replicasets.apps/status, and each resource once",
		"format: 3\nscenario: x\nend: {a: \"1\"}\n":                                                           "field runs: found 0; expected at least 1",
		"format: 3\nscenario: x\nruns: 1\n":                                                                   "field end (the objects at the end of a run): found no value; expected the objects, or {} if the workload deletes all",
		"format: 3\nscenario: x\nruns: 1\nend: {a: \"1\"}\neffects: {a: \"-6 created, 0 deleted, 0 lost\"}\n": `effects: a: found "-6 created, 0 deleted, 0 lost"; expected numbers such as "1 created, 0 deleted, 0 lost", or "*"`,
		"format: 3\nscenario: x\nruns: 1\nEnd: {a: \"1\"}\n":                                                  `unknown field "End"; expected end`,
		"format: 3\nscenario: x\nruns: 1\nend: {a: \"1\"}\ngenerated: [secrets ns/a-*, secrets ns/a*]\n":      `field generated[1]: found "secrets ns/a*"; expected the common part of names, such as "secrets default/web-*"`,
		"effects: {a: \"1\"}\n":                                                                               `field format: found no value; expected 3; create the baseline again with "gauntlet baseline"`,
		"format: 3\nscenario: x\nruns: 1\nend: {a: \"1\"}\n":                                                  `field written: found no value; expected a list of resources, such as pods; create the baseline again with "gauntlet baseline"`,
		"format: 3\nend: {a: 4}\n":                                                                            `expected a baseline, as "gauntlet baseline" writes it: entry "a": found 4; expected a text in double quotes`,
		"format: 3\nend: {a: [1]}\n":                                                                          `expected a baseline, as "gauntlet baseline" writes it: entry "a": found [1]; expected a text in double quotes`,
		"format: 3\n":                                                                                         "field scenario: found no value; expected the name of a scenario; field runs: found 0; expected at least 1; field end (the objects at the end of a run): found no value; expected the objects, or {} if the workload deletes all",
		"":                                                                                                    `found no fields; expected a baseline, as "gauntlet baseline" writes it`,
		"null\n":                                                                                              `found no fields; expected a baseline, as "gauntlet baseline" writes it`,
		"# x\n---\nformat: 3\nscenario: x\nruns: 1\nend: {a: \"1\"}\n---\nformat: 3\n":                        "found a second YAML document; expected one document per file",
		"---\n# x\nformat: 3\nscenario: x\nend: {a: \"1\"}\n":                                                 "field runs: found 0; expected at least 1",
		"format: 3\nscenario: x\nruns: 1\nend: {a: \"1\"}\neffects: {a: 2 creates}\n":                         `effects: a: found "2 creates"; expected numbers such as "1 created, 0 deleted, 0 lost", or "*"`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(want, ":") { // the error has no line
			want = ": " + want
		}
		if _, err := Read(path); err == nil || err.Error() != path+want {
			t.Errorf("error %v; want %s%s", err, path, want)
		}
	}
}

// TestFailedStep checks that Learn rejects a run in which a workload step failed.
func TestFailedStep(t *testing.T) {
	failed := &history.Record{Step: &history.Step{Index: 2, Event: history.StepFailed, Detail: "await web", Error: "timeout"}}
	const want = "learning a baseline: found a failed step in a run without faults: step 2 (await web) failed: timeout; expected a workload that completes"
	if _, err := Learn(records(failed)); err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
	if _, err := Learn(); err == nil {
		t.Error("no error without runs")
	}
}
