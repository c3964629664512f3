package kind

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
)

// testHalt verifies that the cluster is healthy after Halt and Resume. It halts the API server
// alone, and the API server together with etcd.
func testHalt(t *testing.T, c *Cluster) {
	admin := clientFor(t, c, cluster.Admin)
	for name, parts := range map[string][]cluster.Component{
		"api-server": {cluster.APIServer}, "both": {cluster.Etcd, cluster.APIServer},
	} {
		etcd, err := c.Etcd(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer etcd.Close()
		before, err := etcd.Get(t.Context(), "/")
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if err := c.Halt(t.Context(), part); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := admin.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !cluster.Unavailable(err) {
			t.Errorf("%s: request while halted: error %v, want one for which Unavailable() is true", name, err)
		}
		short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if err := c.Health(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: Health() while halted: error %v, want %v", name, err, context.DeadlineExceeded)
		}
		cancel()
		started := time.Now()
		for _, part := range parts {
			if err := c.Resume(t.Context(), part); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: resumed after %s", name, time.Since(started).Round(time.Second))
		if err := errors.Join(c.Health(t.Context()), c.Err()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		after, err := etcd.Get(t.Context(), "/")
		if err != nil || after.Header.Revision < before.Header.Revision {
			t.Errorf("%s: etcd response after Resume(): %v (error %v), want at least revision %d", name, after, err, before.Header.Revision)
		}
		if _, err := admin.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Errorf("%s: request after Resume(): %v, want no error", name, err)
		}
	}
	if err := c.Halt(t.Context(), "kubelet"); !errorHas(err, `"kubelet"`, "expected kube-apiserver or etcd") {
		t.Errorf("Halt(kubelet): error %v, want one that lists the allowed components", err)
	}
}
