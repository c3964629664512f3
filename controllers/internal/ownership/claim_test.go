package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	gvk      = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	podKind  = schema.GroupResource{Resource: "pods"}
	selector = labels.SelectorFromSet(labels.Set{"app": "web"})
	deleted  = metav1.NewTime(time.Unix(1, 0))
)

func newOwner(change ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	owner := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "owner"}}
	for _, c := range change {
		c(owner)
	}
	return owner
}

func newPod(name, app string, controller types.UID, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": app},
	}}
	if controller != "" {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", UID: controller, Controller: new(true)}}
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func terminatingPod(pod *corev1.Pod)            { pod.DeletionTimestamp = &deleted }
func terminatingOwner(owner *appsv1.ReplicaSet) { owner.DeletionTimestamp = &deleted }

func TestDecide(t *testing.T) {
	tests := []struct {
		name  string
		owner *appsv1.ReplicaSet
		pod   *corev1.Pod
		want  Decision
	}{
		{"own, matching", newOwner(), newPod("p", "web", "owner"), Keep},
		{"own, matching, terminating pod", newOwner(), newPod("p", "web", "owner", terminatingPod), Keep},
		{"own, matching, terminating owner", newOwner(terminatingOwner), newPod("p", "web", "owner"), Keep},
		{"own, not matching", newOwner(), newPod("p", "db", "owner"), Release},
		{"own, not matching, terminating owner", newOwner(terminatingOwner), newPod("p", "db", "owner"), Ignore},
		{"other controller, matching", newOwner(), newPod("p", "web", "other"), Ignore},
		{"other controller, not matching", newOwner(), newPod("p", "db", "other"), Ignore},
		{"orphan, matching", newOwner(), newPod("p", "web", ""), Adopt},
		{"orphan, not matching", newOwner(), newPod("p", "db", ""), Ignore},
		{"orphan, terminating pod", newOwner(), newPod("p", "web", "", terminatingPod), Ignore},
		{"orphan, terminating owner", newOwner(terminatingOwner), newPod("p", "web", ""), Ignore},
		{"orphan, another namespace", newOwner(), newPod("p", "web", "", func(p *corev1.Pod) { p.Namespace = "other" }), Ignore},
		{"owner reference without controller", newOwner(), newPod("p", "web", "other", func(p *corev1.Pod) {
			p.OwnerReferences[0].Controller = nil
		}), Adopt},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Decide(test.owner, test.pod, selector); got != test.want {
				t.Errorf("Decide = %s, want %s", got, test.want)
			}
		})
	}
}

func TestClaim(t *testing.T) {
	notFound := apierrors.NewNotFound(podKind, "p")
	conflict := apierrors.NewConflict(podKind, "p", errors.New("uid differs"))
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil)
	orphan, leaver, kept := newPod("orphan", "web", ""), newPod("leaver", "db", "owner"), newPod("kept", "web", "owner")
	tests := []struct {
		name        string
		candidates  []*corev1.Pod
		live        *appsv1.ReplicaSet
		liveErr     error
		patchErrs   map[string]error
		wantClaimed []string
		wantPatched []string
		wantReads   int
		wantErr     string
	}{
		{name: "no reads, no writes", candidates: []*corev1.Pod{kept}, wantClaimed: []string{"kept"}},
		{name: "release does not read the owner", candidates: []*corev1.Pod{leaver, kept}, wantClaimed: []string{"kept"}, wantPatched: []string{"leaver"}},
		{
			name:        "one read of the owner for several adoptions",
			candidates:  []*corev1.Pod{orphan, newPod("second", "web", ""), kept},
			wantClaimed: []string{"orphan", "second", "kept"}, wantPatched: []string{"orphan", "second"}, wantReads: 1,
		},
		{
			name: "owner is terminating in the API server", candidates: []*corev1.Pod{orphan, newPod("second", "web", ""), kept}, live: newOwner(terminatingOwner),
			wantClaimed: []string{"kept"}, wantReads: 1, wantErr: "has been terminating since",
		},
		{
			name: "owner was recreated in the API server", candidates: []*corev1.Pod{orphan}, live: newOwner(func(o *appsv1.ReplicaSet) { o.UID = "later" }),
			wantReads: 1, wantErr: "was recreated",
		},
		{name: "reading the owner fails", candidates: []*corev1.Pod{orphan}, liveErr: errors.New("no route"), wantReads: 1, wantErr: "no route"},
		{
			name: "deleted orphan is not an error", candidates: []*corev1.Pod{orphan, kept}, patchErrs: map[string]error{"orphan": notFound},
			wantClaimed: []string{"kept"}, wantPatched: []string{"orphan"}, wantReads: 1,
		},
		{
			name: "failed adoption does not stop the others", candidates: []*corev1.Pod{orphan, leaver, kept}, patchErrs: map[string]error{"orphan": conflict},
			wantClaimed: []string{"kept"}, wantPatched: []string{"orphan", "leaver"}, wantReads: 1, wantErr: "adopting ns/orphan",
		},
		{name: "deleted pod to release", candidates: []*corev1.Pod{leaver}, patchErrs: map[string]error{"leaver": notFound}, wantPatched: []string{"leaver"}},
		{name: "recreated pod to release", candidates: []*corev1.Pod{leaver}, patchErrs: map[string]error{"leaver": invalid}, wantPatched: []string{"leaver"}},
		{
			name: "failed release", candidates: []*corev1.Pod{leaver}, patchErrs: map[string]error{"leaver": conflict},
			wantPatched: []string{"leaver"}, wantErr: "releasing ns/leaver",
		},
		{
			name: "invalid adoption is an error", candidates: []*corev1.Pod{orphan}, patchErrs: map[string]error{"orphan": invalid},
			wantPatched: []string{"orphan"}, wantReads: 1, wantErr: "adopting ns/orphan",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var patched []string
			reads := 0
			claimer := Claimer[*corev1.Pod]{
				Owner: newOwner(), GVK: gvk, Selector: selector,
				Live: func(context.Context) (metav1.Object, error) {
					reads++
					if test.live == nil {
						return newOwner(), test.liveErr
					}
					return test.live, test.liveErr
				},
				Patch: func(_ context.Context, pod *corev1.Pod, _ []byte) error {
					patched = append(patched, pod.Name)
					return test.patchErrs[pod.Name]
				},
			}
			pods, err := claimer.Claim(t.Context(), test.candidates)
			var claimed []string
			for _, pod := range pods {
				claimed = append(claimed, pod.Name)
			}
			if diff := cmp.Diff(test.wantClaimed, claimed); diff != "" {
				t.Errorf("claimed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantPatched, patched); diff != "" {
				t.Errorf("patched (-want +got):\n%s", diff)
			}
			if reads != test.wantReads {
				t.Errorf("%d live reads, want %d", reads, test.wantReads)
			}
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error %v, want one with %q", err, test.wantErr)
			}
		})
	}
}

func TestPatches(t *testing.T) {
	tests := map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"adopt": {newPod("p", "web", ""), `{"metadata":{"uid":"uid-p","ownerReferences":[` +
			`{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"owner","controller":true,"blockOwnerDeletion":true}]}}`},
		"release": {newPod("p", "db", "owner"), `{"metadata":{"uid":"uid-p","ownerReferences":[{"$patch":"delete","uid":"owner"}]}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got string
			claimer := Claimer[*corev1.Pod]{
				Owner: newOwner(), GVK: gvk, Selector: selector,
				Live:  func(context.Context) (metav1.Object, error) { return newOwner(), nil },
				Patch: func(_ context.Context, _ *corev1.Pod, data []byte) error { got = string(data); return nil },
			}
			if _, err := claimer.Claim(t.Context(), []*corev1.Pod{test.pod}); err != nil {
				t.Fatal(err)
			}
			var wantJSON, gotJSON any
			if err := errors.Join(json.Unmarshal([]byte(test.want), &wantJSON), json.Unmarshal([]byte(got), &gotJSON)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wantJSON, gotJSON); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}
