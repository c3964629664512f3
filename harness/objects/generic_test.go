package objects

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestGeneric(t *testing.T) {
	at := time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
	statefulSet := history.Ref{Resource: "statefulsets.apps", Namespace: "ns", Name: "web", UID: "u", Version: 7}
	policy := history.Ref{Resource: "policies.example.com", Name: "strict", UID: "v", Version: 8}
	tests := []struct {
		name     string
		object   history.Object
		want     Generic
		text     string
		observed bool
		scaling  bool
		complete bool
	}{
		{
			name: "a StatefulSet that scales up",
			object: history.Object{
				Ref: statefulSet, Generation: 3, Created: at, Labels: map[string]string{"app": "web"},
				Owners: []history.Owner{{Kind: "App", Name: "a", UID: "w", Controller: true}},
				Body:   json.RawMessage(`{"spec":{"replicas":3},"status":{"observedGeneration":2,"replicas":2,"readyReplicas":1,"availableReplicas":1,"updatedReplicas":2,"conditions":[{"type":"Ready","status":"False","reason":"Waiting"}]}}`),
			},
			want: Generic{
				Ref: statefulSet, Generation: 3, Created: at, Labels: labels.Set{"app": "web"},
				Controller: history.Owner{Kind: "App", Name: "a", UID: "w", Controller: true}, Replicas: ptr.To(3), ObservedGeneration: ptr.To[int64](2),
				Conditions: []Condition{{Type: "Ready", Status: "False", Reason: "Waiting"}},
				Status:     GenericStatus{Replicas: ptr.To(2), ReadyReplicas: ptr.To(1), AvailableReplicas: ptr.To(1), UpdatedReplicas: ptr.To(2)},
			},
			text: "StatefulSet ns/web", scaling: true,
		},
		{
			name: "replicas that are not ready",
			object: history.Object{Ref: statefulSet, Generation: 3,
				Body: json.RawMessage(`{"spec":{"replicas":2},"status":{"observedGeneration":3,"replicas":2}}`)},
			want: Generic{Ref: statefulSet, Generation: 3, Replicas: ptr.To(2), ObservedGeneration: ptr.To[int64](3), Status: GenericStatus{Replicas: ptr.To(2)}},
			text: "StatefulSet ns/web", observed: true,
		},
		{
			name: "all replicas are ready",
			object: history.Object{Ref: statefulSet,
				Body: json.RawMessage(`{"spec":{"replicas":2},"status":{"replicas":2,"readyReplicas":2}}`)},
			want: Generic{Ref: statefulSet, Replicas: ptr.To(2), Status: GenericStatus{Replicas: ptr.To(2), ReadyReplicas: ptr.To(2)}},
			text: "StatefulSet ns/web", observed: true, complete: true,
		},
		{
			name: "a terminating custom resource with fields of other types",
			object: history.Object{Ref: policy, Deleting: at,
				Body: json.RawMessage(`{"spec":{"replicas":"many"},"status":{"phase":"Active","conditions":"none","replicas":[]}}`)},
			want: Generic{Ref: policy, Terminating: true, Phase: "Active"},
			text: "policies.example.com strict", observed: true, complete: true,
		},
		{
			name:   "a status that is no object",
			object: history.Object{Ref: policy, Body: json.RawMessage(`{"status":"fine"}`)},
			want:   Generic{Ref: policy},
			text:   "policies.example.com strict", observed: true, complete: true,
		},
		{name: "no body", object: history.Object{Ref: policy}, want: Generic{Ref: policy}, text: "policies.example.com strict", observed: true, complete: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := NewDecoder().Generic(&test.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("decoded object (-want +got):\n%s", diff)
			}
			if got.String() != test.text || *got.ObjectRef() != test.object.Ref {
				t.Errorf("described as %q, ref %v; want %q", got, got.ObjectRef(), test.text)
			}
			if got.Observed() != test.observed || got.Scaling() != test.scaling || got.Complete() != test.complete {
				t.Errorf("observed %t, scaling %t, complete %t; want %t, %t, %t",
					got.Observed(), got.Scaling(), got.Complete(), test.observed, test.scaling, test.complete)
			}
		})
	}
	if _, err := NewDecoder().Generic(&history.Object{Ref: policy, Body: json.RawMessage(`[]`)}); err == nil {
		t.Error("a body that is a list was decoded")
	}
	if c := tests[0].want.Condition("Ready"); c.Reason != "Waiting" || tests[0].want.Condition("Other") != (Condition{}) {
		t.Errorf("condition Ready is %v", c)
	}
}

// TestGenericAndTyped checks that a Decoder can cache one version of an object twice. One value is
// a Generic, the other has the Go type of the object's kind.
func TestGenericAndTyped(t *testing.T) {
	d := NewDecoder()
	object := &history.Object{Ref: history.Ref{Resource: PodResource, Name: "a", UID: "u", Version: 7}, Body: json.RawMessage(`{"status":{"phase":"Running"}}`)}
	pod, err := d.Pod(object)
	if err != nil {
		t.Fatal(err)
	}
	generic, err := d.Generic(object)
	if err != nil || generic.Phase != PodRunning {
		t.Fatalf("phase %q, error %v", generic.Phase, err)
	}
	if again, _ := d.Generic(object); again != generic {
		t.Error("the same version was decoded twice as a generic object")
	}
	if Cached[Pod](d, "u", 7) != pod {
		t.Error("the pod is no longer cached")
	}
	if decoded, err := d.Decode(&history.Object{Ref: history.Ref{Resource: "statefulsets.apps"}}); decoded != nil || err != nil {
		t.Errorf("Decode returned %v, error %v for a kind without a type", decoded, err)
	}
}
