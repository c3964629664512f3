package inprocess

import (
	"testing"
	"testing/synctest"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestProxy checks which requests of a replica succeed: those between Route and Disconnect.
func TestProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		proxy := NewProxy(f.interceptor, f.client)
		connect := func() *fixture {
			config := &rest.Config{Host: "http://apiserver", QPS: -1}
			if err := proxy.Route("subject-1", config); err != nil {
				t.Fatal(err)
			}
			return &fixture{api: kubernetes.NewForConfigOrDie(config)}
		}
		first := connect()
		if err := first.create(t.Context()); err != nil {
			t.Errorf("the first request failed: %v", err)
		}
		proxy.Disconnect("subject-1")
		proxy.Disconnect("subject-2") // never connected
		if err := first.create(t.Context()); !utilnet.IsConnectionRefused(err) {
			t.Errorf("error %v after Disconnect, want connection refused", err)
		}
		restarted := connect()
		if err := restarted.create(t.Context()); err != nil {
			t.Errorf("the first request after a restart failed: %v", err)
		}
		if err := first.create(t.Context()); !utilnet.IsConnectionRefused(err) {
			t.Errorf("error %v of the earlier instance, want connection refused", err)
		}
		if err := proxy.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := restarted.create(t.Context()); !utilnet.IsConnectionRefused(err) {
			t.Errorf("error %v after Stop, want connection refused", err)
		}
	})
}
