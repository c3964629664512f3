package proxy

import (
	"net/http"
	"net/url"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history/historytest"
)

// TestSubjectsAreSeparate checks that the history distinguishes the replicas.
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
		t.Errorf("requests %+v and %+v", first, second)
	}
	if _, err := f.proxy.Listen("subject-1"); err == nil || err.Error() != "fault proxy of subject-1: a listener of this name exists already" {
		t.Errorf("error %v", err)
	}
}

func TestStartErrors(t *testing.T) {
	tests := []struct{ target, ca, want string }{
		{"http://127.0.0.1:6443", "", `fault proxy: target "http://127.0.0.1:6443": expected https://host:port`},
		{"https://127.0.0.1:6443/path", "", `fault proxy: target "https://127.0.0.1:6443/path": expected https://host:port`},
		{"https://127.0.0.1:6443", "nonsense", `fault proxy: the API server's CA: expected certificates in PEM`},
	}
	for _, test := range tests {
		target, err := url.Parse(test.target)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Start(t.Context(), Options{Target: target, TargetCA: []byte(test.ca), Recorder: &historytest.Recording{}, Clock: clock.RealClock{}})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: error %v, want %s", test.target, err, test.want)
		}
	}
}
