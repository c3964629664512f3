package cluster

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestCreateError checks which errors about an object that cannot be created blame the object.
func TestCreateError(t *testing.T) {
	kind := schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}
	versions := []string{"a version with a long name, which the message repeats", "another version with a long name"}
	for _, test := range []struct {
		name    string
		err     error
		refused bool
		want    string
	}{
		{"missing field", apierrors.NewInvalid(kind, "m", field.ErrorList{field.Required(field.NewPath("rules").Index(0).Child("verbs"), "must contain one")}), true,
			"m.yaml:7: Role m: rules[0].verbs: Required value: must contain one"},
		{"two fields", apierrors.NewInvalid(kind, "m", field.ErrorList{field.Invalid(field.NewPath("a"), versions, "no"), field.Invalid(field.NewPath("b"), 5, "no")}), true,
			`m.yaml:7: Role m: a: Invalid value: ["a version with a long name, which the message repeats","an…: no; b: Invalid value: 5: no`},
		{"wrong type", apierrors.NewBadRequest("found a number"), true, "m.yaml:7: Role m: found a number"},
		{"old version", &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: []string{"v1beta1"}}, true,
			`m.yaml:7: Role m: apiVersion: found "rbac.authorization.k8s.io/v1beta1"; expected a version of the kind that the API server serves`},
		{"no answer", errors.New("connection refused"), false, "creating Role m: connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1beta1", "kind": "Role", "metadata": map[string]any{"name": "m"}}}
			err := CreateError(o, test.err)
			refused := new(RefusedError)
			if errors.As(err, &refused) != test.refused {
				t.Errorf("error %v is a RefusedError: %t; want %t", err, !test.refused, test.refused)
			}
			refused.Place = "m.yaml:7"
			if err.Error() != test.want {
				t.Errorf("error\n got %v\nwant %s", err, test.want)
			}
		})
	}
}
