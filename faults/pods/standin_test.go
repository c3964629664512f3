package pods

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// standinServer is a fake API server with pod a. It records the requests to the pod's stand-in
// container, gauntlet's own container.
type standinServer struct {
	mu     sync.Mutex
	posted []string
	calls  int
	// absent contains the numbers of the requests, counted from 1, that fail as if the container
	// did not answer.
	absent map[int]bool
}

func (p *standinServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := pod("a")
	a.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost:
		p.calls++
		if p.absent[p.calls] {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		p.posted = append(p.posted, r.URL.Path)
	case r.URL.Path == "/api/v1/namespaces/ns/pods":
		_ = json.NewEncoder(w).Encode(&corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{*a}})
	default:
		_ = json.NewEncoder(w).Encode(a)
	}
}

// TestStandinCalls checks the requests to the stand-in container on a real kubelet. If the
// container does not answer, the fault must not fire, and must retry an undo. The action restart
// needs no undo, because the kubelet restarts the container.
func TestStandinCalls(t *testing.T) {
	const of = "/api/v1/namespaces/ns/pods/a:8080/proxy"
	for _, test := range []struct {
		params string
		absent map[int]bool
		want   []string
	}{
		{"{action: unready, downtime: 1h, times: 1}", nil, []string{of + "/unready", of + "/ready"}},
		{"{action: restart, downtime: 1h, times: 1}", nil, []string{of + "/die"}},
		{"{action: unready, downtime: 1h, times: 1}", map[int]bool{1: true, 3: true}, []string{of + "/unready", of + "/ready", of + "/ready"}},
	} {
		server := &standinServer{absent: test.absent}
		listener := httptest.NewServer(server)
		t.Cleanup(listener.Close)
		c := startChurning(t, test.params, 1)
		var err error
		if c.env.Admin, err = kubernetes.NewForConfig(&rest.Config{Host: listener.URL}); err != nil {
			t.Fatal(err)
		}
		c.env.Capabilities = cluster.Capabilities{cluster.RealKubelets}
		c.inject(t)
		c.tickUntilRecord(t)
		if err := faults.Heal(t.Context(), c.fault, c.env); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, server.posted); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", test.params, diff)
		}
	}
}
