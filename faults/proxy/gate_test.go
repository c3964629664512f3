package proxy

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestBurst sends far more requests at once than a connection to the API server
// carries: no more than slotsMax are there at a time, over one connection, and
// who gives up waiting has not reached it.
func TestBurst(t *testing.T) {
	const requests = 300
	var mu sync.Mutex
	connections := map[net.Conn]bool{}
	under, most, reached := 0, 0, false
	full, proceed := make(chan struct{}), make(chan struct{})
	f := start(t, clock.RealClock{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		connections[r.Context().Value(connKey{}).(net.Conn)] = true
		under++
		most = max(most, under)
		if under == slotsMax && !reached {
			reached = true
			close(full)
		}
		mu.Unlock()
		<-proceed
		mu.Lock()
		under--
		mu.Unlock()
		respond(w, r, http.StatusCreated, pod("web", 3))
	}))
	client := f.client(t, contentTypes["protobuf"])
	ctx, cancel := context.WithCancel(t.Context())
	var creates sync.WaitGroup
	for range slotsMax {
		creates.Go(func() {
			if err := createOnce(t.Context(), client); err != nil {
				t.Error(err)
			}
		})
	}
	<-full
	impatient := make(chan error, 1)
	go func() { impatient <- createOnce(ctx, client) }()
	f.await(t, "request that waits", func(r history.Record) bool { return r.Request != nil && r.Request.ID == slotsMax+1 })
	cancel()
	if err := <-impatient; err == nil {
		t.Error("a request succeeded without an answer")
	}
	gone := f.await(t, "response", func(r history.Record) bool { return r.Response != nil })
	if got := line(gone); got != "response 0 server 0 reached false" {
		t.Errorf("who waited in vain: %s", got)
	}
	for range requests {
		creates.Go(func() {
			if err := createOnce(t.Context(), client); err != nil {
				t.Error(err)
			}
		})
	}
	close(proceed)
	creates.Wait()
	if most != slotsMax || len(connections) != 1 {
		t.Errorf("%d requests at a time over %d connections, want %d over 1", most, len(connections), slotsMax)
	}
}
