package trigger

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// The following functions build the records of the test cases.

func sent(id uint64, verb, resource, name string) history.Record {
	return history.Record{Request: &history.Request{ID: id, Subject: "subject-0", Verb: verb, Resource: resource, Namespace: "ns", Name: name}}
}

func answered(id uint64, serverCode int) history.Record {
	return history.Record{Response: &history.Response{ID: id, Reached: serverCode != 0, ServerCode: serverCode}}
}

func delivered(id uint64, kind history.EventType, resource, name string) history.Record {
	return history.Record{Delivery: &history.Delivery{ID: id, Subject: "subject-0", Resource: resource, Type: kind,
		Object: history.Object{Ref: history.Ref{Resource: resource, Name: name}, Owners: []history.Owner{{Kind: "ReplicaSet", Name: "web", Controller: true}}}}}
}

func committed(kind history.EventType, resource, name, body string) history.Record {
	return history.Record{Commit: &history.Commit{Type: kind, Object: history.Object{
		Ref: history.Ref{Resource: resource, Name: name}, Generation: 2, Body: json.RawMessage(body)}}}
}

func step(index int, event history.StepEvent) history.Record {
	return history.Record{Step: &history.Step{Index: index, Event: event}}
}

func fired(index int) history.Record {
	return history.Record{Fault: &history.Fault{Index: index, Event: history.FaultFired}}
}

const (
	readyBody    = `{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`
	unreadyBody  = `{"status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}}`
	completeBody = `{"spec": {"replicas": 3}, "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}}`
	settledBody  = `{"spec": {"replicas": 3}, "status": {"replicas": 3, "readyReplicas": 3}}`
	scalingBody  = `{"spec": {"replicas": 3}, "status": {"replicas": 2, "readyReplicas": 2}}`
	rollingBody  = `{"spec": {"replicas": 3}, "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "availableReplicas": 3}}`
)

func requestTrigger(verb, resource string, phase scenario.Phase, nth int) scenario.Trigger {
	return scenario.Trigger{Request: &scenario.RequestTrigger{Verb: verb, Resource: resource, Phase: phase, Nth: nth}}
}

// TestTriggers requires that each trigger matches at the expected record of a history. The first
// record has the index 0; -1 means that no record matches.
func TestTriggers(t *testing.T) {
	tests := []struct {
		name    string
		trigger scenario.Trigger
		records []history.Record
		want    int
	}{
		{"the second create is sent", requestTrigger("create", "pods", scenario.Sent, 2),
			[]history.Record{sent(1, "create", "pods", ""), sent(2, "create", "services", ""), sent(3, "delete", "pods", ""), sent(4, "create", "pods", "")}, 3},
		{"the second create is committed", requestTrigger("create", "pods", scenario.Committed, 2),
			[]history.Record{sent(1, "create", "pods", ""), sent(2, "create", "pods", ""), sent(3, "create", "pods", ""),
				answered(2, 500), answered(3, 201), answered(1, 201)}, 5},
		{"a create without a response does not count as committed", requestTrigger("create", "pods", scenario.Committed, 1),
			[]history.Record{sent(1, "create", "pods", ""), answered(1, 0)}, -1},
		{"a request sent earlier does not count as committed", requestTrigger("create", "pods", scenario.Committed, 1),
			[]history.Record{answered(1, 201)}, -1},
		{"any write", requestTrigger(scenario.AnyWrite, "", scenario.Sent, 2),
			[]history.Record{sent(1, "update", "leases.coordination.k8s.io", ""), sent(2, "create", "pods", ""), sent(3, "list", "pods", ""),
				sent(4, "create", "events", ""), sent(5, "update", "replicasets.apps", "web")}, 4},
		{"a request for an object of an owner", scenario.Trigger{Request: &scenario.RequestTrigger{Verb: "delete", Resource: "pods", Owner: "ReplicaSet/w*", Phase: scenario.Sent, Nth: 1}},
			[]history.Record{sent(1, "delete", "pods", "orphan"), sent(2, "delete", "pods", "web-1")}, 1},
		{"the second deletion event of an owner", scenario.Trigger{Event: &scenario.EventTrigger{Resource: "pods", Type: "DELETED", Owner: "ReplicaSet/*", Nth: 2}},
			[]history.Record{delivered(1, history.Deleted, "pods", "a"), delivered(1, history.Added, "pods", "b"), delivered(1, history.Deleted, "services", "c"), delivered(1, history.Deleted, "pods", "d")}, 3},
		{"a bookmark does not count as an event", scenario.Trigger{Event: &scenario.EventTrigger{Resource: "pods", Nth: 1}},
			[]history.Record{delivered(1, history.Bookmark, "pods", ""), delivered(1, history.Modified, "pods", "")}, 1},
		{"two pods are ready", scenario.Trigger{State: &scenario.StateTrigger{Resource: "pods", Is: scenario.PodReady, AtLeast: 2}},
			[]history.Record{committed(history.Added, "pods", "a", readyBody), committed(history.Added, "pods", "b", unreadyBody), committed(history.Modified, "pods", "b", readyBody)}, 2},
		{"at most one pod", scenario.Trigger{State: &scenario.StateTrigger{Resource: "pods", Is: scenario.Present, AtMost: ptr.To(1)}, After: &scenario.Trigger{Step: &scenario.StepTrigger{Index: 1, At: scenario.Done}}},
			[]history.Record{committed(history.Added, "pods", "a", readyBody), committed(history.Added, "pods", "b", readyBody),
				step(1, history.StepDone), committed(history.Deleted, "pods", "a", "")}, 3},
		{"the state holds already", scenario.Trigger{State: &scenario.StateTrigger{Resource: "pods", Is: scenario.Present, AtLeast: 1}, After: &scenario.Trigger{Step: &scenario.StepTrigger{Index: 1, At: scenario.Done}}},
			[]history.Record{committed(history.Added, "pods", "a", readyBody), step(0, history.StepDone), step(1, history.StepDone)}, 2},
		{"a Deployment is progressing", scenario.Trigger{State: &scenario.StateTrigger{Resource: "deployments.apps", Name: "web", Is: scenario.Progressing, AtLeast: 1}},
			[]history.Record{committed(history.Added, "deployments.apps", "other", rollingBody), committed(history.Added, "deployments.apps", "web", completeBody), committed(history.Modified, "deployments.apps", "web", rollingBody)}, 2},
		{"a Deployment is complete", scenario.Trigger{State: &scenario.StateTrigger{Resource: "deployments.apps", Name: "web", Is: scenario.Completed, AtLeast: 1}},
			[]history.Record{committed(history.Added, "deployments.apps", "web", rollingBody), committed(history.Added, "deployments.apps", "web", completeBody)}, 1},
		{"a custom resource is created", requestTrigger("create", "policies.example.com", scenario.Committed, 1),
			[]history.Record{sent(1, "create", "pods", ""), sent(2, "create", "policies.example.com", ""), answered(1, 201), answered(2, 201)}, 3},
		{"the deletion event of a custom resource", scenario.Trigger{Event: &scenario.EventTrigger{Resource: "policies.example.com", Type: "DELETED", Nth: 1}},
			[]history.Record{delivered(1, history.Deleted, "pods", "a"), delivered(1, history.Deleted, "policies.example.com", "a")}, 1},
		{"a custom resource is present", scenario.Trigger{State: &scenario.StateTrigger{Resource: "policies.example.com", Is: scenario.Present, AtLeast: 1}},
			[]history.Record{committed(history.Added, "pods", "a", readyBody), committed(history.Added, "policies.example.com", "a", "{}")}, 1},
		{"a custom resource is ready", scenario.Trigger{State: &scenario.StateTrigger{Resource: "policies.example.com", Is: scenario.PodReady, AtLeast: 1}},
			[]history.Record{committed(history.Added, "policies.example.com", "a", unreadyBody), committed(history.Modified, "policies.example.com", "a", readyBody)}, 1},
		{"a custom resource is pending", scenario.Trigger{State: &scenario.StateTrigger{Resource: "policies.example.com", Is: scenario.PodPending, AtLeast: 1}},
			[]history.Record{committed(history.Added, "policies.example.com", "a", readyBody), committed(history.Modified, "policies.example.com", "a", unreadyBody)}, 1},
		{"a StatefulSet is progressing", scenario.Trigger{State: &scenario.StateTrigger{Resource: "statefulsets.apps", Is: scenario.Progressing, AtLeast: 1}},
			[]history.Record{committed(history.Added, "statefulsets.apps", "web", settledBody), committed(history.Modified, "statefulsets.apps", "web", scalingBody)}, 1},
		{"a StatefulSet is complete", scenario.Trigger{State: &scenario.StateTrigger{Resource: "statefulsets.apps", Is: scenario.Completed, AtLeast: 1}},
			[]history.Record{committed(history.Added, "statefulsets.apps", "web", scalingBody), committed(history.Modified, "statefulsets.apps", "web", settledBody)}, 1},
		{"another fault", scenario.Trigger{Fault: &scenario.FaultTrigger{Index: 1, Nth: 2}}, []history.Record{fired(1), fired(0), fired(1)}, 2},
		{"a step begins", scenario.Trigger{Step: &scenario.StepTrigger{Index: 2, At: scenario.Begun}},
			[]history.Record{step(1, history.StepBegun), step(1, history.StepDone), step(2, history.StepBegun)}, 2},
		{"a create after a step", scenario.Trigger{Request: &scenario.RequestTrigger{Verb: "create", Resource: "pods", Phase: scenario.Sent, Nth: 1},
			After: &scenario.Trigger{Step: &scenario.StepTrigger{Index: 0, At: scenario.Done}}},
			[]history.Record{sent(1, "create", "pods", ""), step(0, history.StepDone), sent(2, "create", "pods", "")}, 2},
	}
	ownerOf := func(r *history.Request) *history.Owner {
		if r.Name == "web-1" {
			return &history.Owner{Kind: "ReplicaSet", Name: "web"}
		}
		return nil
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects := NewObjects()
			m := New(test.trigger, ownerOf, objects, false)
			got := -1
			for i := range test.records {
				objects.Observe(&test.records[i])
				if _, matched := m.Observe(&test.records[i], objects); matched && got < 0 {
					got = i
				}
			}
			if got != test.want {
				t.Errorf("%s matched with record %d, want %d", test.trigger, got, test.want)
			}
		})
	}
}

// TestRequireChange requires that a state trigger does not match until its condition has been
// false, if requireChange is true.
func TestRequireChange(t *testing.T) {
	objects := NewObjects()
	added, deleted := committed(history.Added, "pods", "a", readyBody), committed(history.Deleted, "pods", "a", "")
	objects.Observe(&added)
	m := New(scenario.Trigger{State: &scenario.StateTrigger{Resource: "pods", Is: scenario.Present, AtLeast: 1}}, nil, objects, true)
	for i, r := range []history.Record{step(0, history.StepDone), deleted, added} {
		objects.Observe(&r)
		if _, matched := m.Observe(&r, objects); matched != (i == 2) {
			t.Errorf("record %d: matched is %t, want %t", i, matched, i == 2)
		}
	}
}

// TestMatch requires that a Match contains the request and the object of the record at which the
// trigger matched.
func TestMatch(t *testing.T) {
	m := New(requestTrigger("create", "pods", scenario.Committed, 1), nil, NewObjects(), false)
	request := sent(7, "create", "pods", "web-1")
	answer := answered(7, 201)
	m.Observe(&request, NewObjects())
	match, matched := m.Observe(&answer, NewObjects())
	want := Match{Description: "create request number 1 of pods is committed", Request: 7, Replica: "subject-0",
		Object: &history.Ref{Resource: "pods", Namespace: "ns", Name: "web-1"}}
	if diff := cmp.Diff(want, match); diff != "" || !matched {
		t.Errorf("matched is %t, want true; match (-want +got):\n%s", matched, diff)
	}
}
