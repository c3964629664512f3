package nearest

import "testing"

func TestWithArticle(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"Pod", "a Pod"},
		{"Ingress", "an Ingress"},
		{"Endpoints", "an Endpoints"},
		{"APIService", "an APIService"},
		{"update", "an update"},
		{"unknown", "an unknown"},
		{"Unit", "a Unit"},
		{"User", "a User"},
		{"HTTPRoute", "an HTTPRoute"},
		{"", ""},
	} {
		if got := WithArticle(test.name); got != test.want {
			t.Errorf("%q: found %q; expected %q", test.name, got, test.want)
		}
	}
}
