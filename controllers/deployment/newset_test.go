package deployment

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/templatehash"
)

func TestFindNewReplicaSet(t *testing.T) {
	d := newDeployment(1, image("v2"))
	v1, v2, twin := newSetOf(d, "v1", 1, 1), newSetOf(d, "v2", 2, 1), newSetOf(d, "v2", 3, 1)
	tests := []struct {
		name string
		sets []*appsv1.ReplicaSet
		want int
	}{
		{"no ReplicaSets", nil, none},
		{"only old ReplicaSets", []*appsv1.ReplicaSet{v1}, none},
		{"hash label is ignored", []*appsv1.ReplicaSet{v1, v2}, 1},
		{"oldest of two equal ones", []*appsv1.ReplicaSet{v1, v2, twin}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := findNewReplicaSet(&d.Spec.Template, test.sets); got != test.want {
				t.Errorf("findNewReplicaSet = %d, want %d", got, test.want)
			}
		})
	}
}

func TestNewReplicaSet(t *testing.T) {
	d := newDeployment(10, surgeAndUnavailable(3, 2), annotated("team", "blue"), annotated(corev1.LastAppliedConfigAnnotation, "{}"), func(d *appsv1.Deployment) {
		d.Spec.MinReadySeconds = 7
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Exists"}}
	})
	before := d.DeepCopy()
	got, err := newReplicaSet(d, limits{10, 3, 2}, 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := templatehash.Of(&d.Spec.Template, nil)
	if err != nil {
		t.Fatal(err)
	}
	labeled := map[string]string{"app": "web", "pod-template-hash": hash}
	want := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web-" + hash, Labels: labeled,
			Annotations: annotations{
				"team": "blue", "deployment.kubernetes.io/revision": "4",
				"deployment.kubernetes.io/desired-replicas": "10", "deployment.kubernetes.io/max-replicas": "13",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "deployment", Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(3)), MinReadySeconds: 7,
			Selector: &metav1.LabelSelector{MatchLabels: labeled, MatchExpressions: d.Spec.Selector.MatchExpressions},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labeled}, Spec: d.Spec.Template.Spec},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReplicaSet (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, d); diff != "" {
		t.Errorf("the Deployment was modified (-before +after):\n%s", diff)
	}
}

func TestNewReplicaSetAfterCollision(t *testing.T) {
	d := newDeployment(1)
	first, d2 := newReplicaSetName(d), d.DeepCopy()
	d2.Status.CollisionCount = new(int32(1))
	if second := newReplicaSetName(d2); first == second {
		t.Errorf("both ReplicaSets are named %s", first)
	}
}

func TestReplicaSetName(t *testing.T) {
	hash := strings.Repeat("x", templatehash.Length)
	room := 253 - 1 - len(hash)
	for what, deployment := range map[string]string{
		"short":                       "web",
		"just fits":                   strings.Repeat("a", room),
		"too long":                    strings.Repeat("a", 253),
		"truncated after a dot":       strings.Repeat("a", room-1) + ".aaaaaaa",
		"truncated after dashes":      strings.Repeat("a", room-3) + "---aaaaaaa",
		"just fits, ends with a dash": strings.Repeat("a", room-1) + "b",
	} {
		name := replicaSetName(deployment, hash)
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s: %q: %v", what, name, problems)
		}
		if !strings.HasSuffix(name, "-"+hash) {
			t.Errorf("%s: %q does not end in the hash", what, name)
		}
	}
	if got := replicaSetName("web", "h"); got != "web-h" {
		t.Errorf("name %q, want web-h", got)
	}
}

func TestAdjust(t *testing.T) {
	d := newDeployment(3, annotated("team", "blue"))
	set := newSetOf(d, "v1", 2, 3)
	tests := []struct {
		name     string
		change   func(*appsv1.Deployment)
		revision int64
		want     func(*appsv1.ReplicaSet) // nil means that nothing changes
	}{
		{"up to date", func(*appsv1.Deployment) {}, 2, nil},
		{"higher revision is kept", func(*appsv1.Deployment) {}, 1, nil},
		{"last-applied is not copied", annotated(corev1.LastAppliedConfigAnnotation, "{}"), 2, nil},
		{"replicas are not changed", scaled(9), 2, nil},
		{"annotation removed from the Deployment stays", func(d *appsv1.Deployment) { d.Annotations = nil }, 2, nil},
		{"reused ReplicaSet gets a new revision", func(*appsv1.Deployment) {}, 5, func(s *appsv1.ReplicaSet) {
			s.Annotations[revisionAnnotation], s.Annotations[historyAnnotation] = "5", "2"
		}},
		{"an annotation", annotated("team", "red"), 2, func(s *appsv1.ReplicaSet) { s.Annotations["team"] = "red" }},
		{"minReadySeconds", func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 9 }, 2, func(s *appsv1.ReplicaSet) { s.Spec.MinReadySeconds = 9 }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			changed, before := d.DeepCopy(), set.DeepCopy()
			test.change(changed)
			got := adjust(set, changed, test.revision)
			want := set.DeepCopy()
			if test.want != nil {
				test.want(want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("adjusted (-want +got):\n%s", diff)
			}
			if (got == set) != (test.want == nil) {
				t.Errorf("returns the same object: %t", got == set)
			}
			if diff := cmp.Diff(before, set); diff != "" {
				t.Errorf("the cached ReplicaSet was modified (-before +after):\n%s", diff)
			}
		})
	}
}
