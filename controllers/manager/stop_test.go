package manager

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// blockedRun is a running Manager whose only worker is in the middle of a sync. The worker's
// create of a pod blocks until a call of the method release.
type blockedRun struct {
	leases  *fake.Clientset
	stop    func()
	release func()
	ended   <-chan error
	created atomic.Int32
}

// startBlockedRun starts a Manager in a synctest bubble. It returns when the worker is blocked.
func startBlockedRun(t *testing.T) *blockedRun {
	t.Helper()
	h := &blockedRun{leases: fake.NewClientset()}
	gate := make(chan struct{})
	h.release = func() { close(gate) }
	// A fake client serves one call at a time, so the blocking calls need a separate client.
	writer, rest := newClient(), newClient()
	writer.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		<-gate
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		pod.Name = pod.GenerateName + string('a'+h.created.Add(1))
		pod.UID, pod.ResourceVersion = types.UID(pod.Name), "7"
		return true, pod, nil
	})
	clients := func(purpose string) (kubernetes.Interface, error) {
		switch purpose {
		case leaderElectionClient:
			return h.leases, nil
		case "replicaset-controller":
			return writer, nil
		default:
			return rest, nil
		}
	}
	options := NewOptions() // long timeouts take no real time in a synctest bubble
	options.Serving.SecurePort = 0
	h.stop, h.ended = startWith(t, options, clients)
	time.Sleep(time.Second)
	synctest.Wait()
	if leaseHolder(t, h.leases) == "" {
		t.Fatal("no lease holder")
	}
	return h
}

// TestStopLetsWorkersFinish checks that a worker can finish its sync before the Manager stops.
// The sync creates two pods. The Manager must release the lease only afterwards, so that no
// other replica begins earlier.
func TestStopLetsWorkersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startBlockedRun(t)
		h.stop()
		time.Sleep(drainTimeout - time.Second)
		select {
		case err := <-h.ended:
			t.Fatalf("Run ended with %v while a worker was running", err)
		default:
		}
		if leaseHolder(t, h.leases) == "" {
			t.Error("the lease was released while a worker was running")
		}
		h.release()
		if err := <-h.ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
		if got := h.created.Load(); got != 2 {
			t.Errorf("%d pods created, want 2: the sync was not finished", got)
		}
		if held := leaseHolder(t, h.leases); held != "" {
			t.Errorf("the lease is still held by %q", held)
		}
		time.Sleep(time.Minute) // wait until the queues' goroutines have ended, at their next tick
	})
}

// TestStopIsBounded checks the duration of a stop with a blocked worker, which must not exceed
// the limits. The Manager must not release the lease, because the worker may still be running.
func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startBlockedRun(t)
		begin := time.Now()
		h.stop()
		if err := <-h.ended; err == nil || !strings.Contains(err.Error(), "did not stop within") {
			t.Errorf("Run ended with %v, want an error that workers did not stop", err)
		}
		if took := time.Since(begin); took != drainTimeout+abortTimeout {
			t.Errorf("the stop took %s, want %s", took, drainTimeout+abortTimeout)
		}
		if leaseHolder(t, h.leases) == "" {
			t.Error("the lease was released while a worker may be running")
		}
		h.release()
		time.Sleep(time.Minute)
	})
}
