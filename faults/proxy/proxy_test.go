package proxy

import (
	"net/http"
	"net/url"
	"testing"

	"k8s.io/utils/clock"
)

// TestSubjectsAreSeparate checks that each request record names the replica that sent the
// request.
func TestSubjectsAreSeparate(t *testing.T) {
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	f.do(t, http.MethodGet, "/healthz", "")
	var err error
	if f.endpoint, err = f.proxy.Listen("subject-1"); err != nil {
		t.Fatal(err)
	}
	f.do(t, http.MethodGet, "/healthz", "")
	records := f.All()
	first, second := records[0].Request, records[2].Request
	if first.Subject != "subject-0" || second.Subject != "subject-1" || first.ID == second.ID {
		t.Errorf("request records %+v and %+v, want the names of two replicas and different IDs", first, second)
	}
	if _, err := f.proxy.Listen("subject-1"); err == nil || err.Error() != "fault proxy: cannot listen for replica subject-1: the replica already has a listener; call Listen once for each replica, and use the same URL after a restart" {
		t.Errorf("second Listen for subject-1: error %v, want one that it has a listener already", err)
	}
}

func TestStartErrors(t *testing.T) {
	tests := []struct{ target, ca, want string }{
		{"http://127.0.0.1:6443", "", `fault proxy: the target "http://127.0.0.1:6443" is not the URL of an API server; expected https://host:port`},
		{"https://127.0.0.1:6443/path", "", `fault proxy: the target "https://127.0.0.1:6443/path" is not the URL of an API server; expected https://host:port`},
		{"https://127.0.0.1:6443", "nonsense", `fault proxy: found no certificate in the CA of the API server; expected certificates in PEM`},
	}
	for _, test := range tests {
		target, err := url.Parse(test.target)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Start(t.Context(), Options{Target: target, TargetCA: []byte(test.ca), Clock: clock.RealClock{}})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: error %v, want %s", test.target, err, test.want)
		}
	}
}
