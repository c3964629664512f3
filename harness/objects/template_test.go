package objects

import (
	"encoding/json"
	"testing"
)

func TestSameTemplate(t *testing.T) {
	type fields = map[string]any
	podTemplate := func(app, image, hash string) fields {
		labels := fields{"app": app}
		if hash != "" {
			labels[PodTemplateHashLabel] = hash
		}
		return fields{"metadata": fields{"labels": labels}, "spec": fields{"image": image}}
	}
	read := func(v any) *Template {
		t.Helper()
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		pods, err := decodeTemplate(raw)
		if err != nil {
			t.Fatal(err)
		}
		return pods
	}
	plain := read(podTemplate("web", "v1", ""))
	for _, c := range []struct {
		name  string
		other fields
		same  bool
	}{
		{"a hash label", podTemplate("web", "v1", "abc"), true},
		{"a null creationTimestamp", fields{
			"spec": fields{"image": "v1"}, "metadata": fields{"creationTimestamp": nil, "labels": fields{"app": "web"}},
		}, true},
		{"another image", podTemplate("web", "v2", ""), false},
		{"another label", podTemplate("shop", "v1", ""), false},
		{"no labels", fields{"spec": fields{"image": "v1"}}, false},
	} {
		if got := plain.Same(read(c.other)); got != c.same {
			t.Errorf("%s: same returned %t", c.name, got)
		}
	}
}
