package check

import "testing"

func TestSameTemplate(t *testing.T) {
	read := func(v any) *template {
		t.Helper()
		pods, err := decodeTemplate(encoded(v))
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
		if got := plain.same(read(c.other)); got != c.same {
			t.Errorf("%s: same returned %t", c.name, got)
		}
	}
}
