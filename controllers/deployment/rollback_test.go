package deployment

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/kube-gauntlet/gauntlet/controllers/internal/templatehash"
)

func TestRollbackTo(t *testing.T) {
	if _, requested := rollbackTo(annotations{"a": "b"}); requested {
		t.Error("requested without the annotation")
	}
	for _, text := range []string{"", "0", "x"} {
		if got, requested := rollbackTo(annotations{appsv1.DeprecatedRollbackTo: text}); !requested || got != text {
			t.Errorf("annotation %q: requested %q, %t", text, got, requested)
		}
	}
}

// FuzzPlanRollback checks that a plan always removes the rollback annotation. The new template
// must be the template of the requested revision, or the old template.
func FuzzPlanRollback(f *testing.F) {
	for _, text := range []string{"", "0", "1", "2", "3", "+1", "01", "-1", "x", "1.0", "1 ", "9223372036854775808"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := newDeployment(1, image("v3"), annotated(appsv1.DeprecatedRollbackTo, text))
		var sets []*appsv1.ReplicaSet
		for revision, name := range []string{"v1", "v2", "v3"} {
			sets = append(sets, newSetOf(d, name, int64(revision+1), 0))
		}
		want := "v3"
		if digits := strings.TrimLeft(strings.TrimPrefix(text, "+"), "0"); text != "" && strings.Trim(text, "0") == "" || digits == "2" {
			want = "v2"
		} else if digits == "1" {
			want = "v1"
		}
		plan := planRollback(d, sets, text)
		if _, requested := rollbackTo(plan.deployment.Annotations); requested {
			t.Error("the rollback annotation was not removed")
		}
		if got := plan.deployment.Spec.Template.Spec.Containers[0].Image; got != want || (want != "v3") != (plan.reason == reasonRollback) {
			t.Errorf("annotation %q: image %s with event %s, want %s", text, got, plan.reason, want)
		}
	})
}

func TestFindRevision(t *testing.T) {
	d := newDeployment(1)
	v1, v3, v7 := newSetOf(d, "v1", 1, 0), newSetOf(d, "v3", 3, 0), newSetOf(d, "v7", 7, 0)
	odd, unset := newSetOf(d, "odd", 2, 0, revision("x")), newSetOf(d, "unset", 2, 0, revision("0"))
	tests := []struct {
		name string
		sets []*appsv1.ReplicaSet
		to   int64
		want *appsv1.ReplicaSet
	}{
		{"by number", []*appsv1.ReplicaSet{v1, v3, v7}, 1, v1},
		{"newest revision", []*appsv1.ReplicaSet{v1, v3, v7}, 7, v7},
		{"missing revision", []*appsv1.ReplicaSet{v1, v3, v7}, 2, nil},
		{"negative", []*appsv1.ReplicaSet{v1, v3, v7}, -1, nil},
		{"previous revision", []*appsv1.ReplicaSet{v3, v7, v1}, 0, v3},
		{"previous of two revisions", []*appsv1.ReplicaSet{v7, v1}, 0, v1},
		{"previous of one revision", []*appsv1.ReplicaSet{v1}, 0, nil},
		{"no ReplicaSets", nil, 0, nil},
		{"malformed revisions are ignored", []*appsv1.ReplicaSet{v1, odd, v7}, 0, v1},
		{"revision 0 is ignored", []*appsv1.ReplicaSet{unset, v7}, 0, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := findRevision(test.sets, test.to); got != test.want {
				t.Errorf("found %v, want %v", got, test.want)
			}
		})
	}
}

func TestWithTemplateOf(t *testing.T) {
	d := newDeployment(1, image("v2"), annotated("cause", "edit"), annotated(appsv1.DeprecatedRollbackTo, "1"))
	before := d.DeepCopy()
	set := newSetOf(newDeployment(1, annotated("cause", "create")), "v1", 1, 0)
	got := withTemplateOf(d, set)
	want := newDeployment(1, image("v1"), annotated("cause", "create"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rolled back (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, d); diff != "" {
		t.Errorf("the cached Deployment was changed (-before +after):\n%s", diff)
	}
	if set.Spec.Template.Labels[templatehash.Label] == "" {
		t.Error("the template of the ReplicaSet was modified")
	}
}

func TestWithoutRollbackTo(t *testing.T) {
	d := newDeployment(1, annotated("a", "b"), annotated(appsv1.DeprecatedRollbackTo, "1"))
	if diff := cmp.Diff(newDeployment(1, annotated("a", "b")), withoutRollbackTo(d)); diff != "" {
		t.Errorf("without the rollback annotation (-want +got):\n%s", diff)
	}
	if _, requested := rollbackTo(d.Annotations); !requested {
		t.Error("the cached Deployment was modified")
	}
}
