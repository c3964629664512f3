package memetcd_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-gauntlet/gauntlet/harness/internal/memetcd"
)

// TestHalt checks what a halted Store does. Writes fail, reads wait until the Store resumes, and
// leases start again.
func TestHalt(t *testing.T) {
	const ttl, downtime = 20 * time.Second, 15 * time.Second
	synctest.Test(t, func(t *testing.T) {
		store := memetcd.New()
		c := store.Client(t.Context())
		lease, err := c.Grant(t.Context(), int64(ttl/time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Put(t.Context(), "/a", "1", clientv3.WithLease(lease.ID)); err != nil {
			t.Fatal(err)
		}
		<-time.After(ttl - time.Second)

		store.Halt()
		store.Halt() // no effect
		if _, err := c.Put(t.Context(), "/a", "2"); err == nil {
			t.Error("a halted Store accepted a put")
		}
		if _, err := c.Grant(t.Context(), 1); err == nil {
			t.Error("a halted Store granted a lease")
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Get(short, "/a"); err == nil {
			t.Error("a halted Store answered a read")
		}
		events := c.Watch(t.Context(), "/a")
		time.AfterFunc(downtime, store.Resume)
		halted := time.Now()
		read, err := c.Get(t.Context(), "/a")
		if err != nil || len(read.Kvs) != 1 || string(read.Kvs[0].Value) != "1" {
			t.Errorf("the read returned %v, %v; want the value 1", read, err)
		}
		if waited := time.Since(halted); waited != downtime {
			t.Errorf("the read waited for %v, want %v", waited, downtime)
		}

		resumed := time.Now()
		store.Resume() // no effect
		if event := <-events; len(event.Events) != 1 || event.Events[0].Type != clientv3.EventTypeDelete {
			t.Errorf("the watch received %v, want the deletion by the lease", event)
		}
		if lived := time.Since(resumed); lived != ttl {
			t.Errorf("the lease expired after %v, want %v", lived, ttl)
		}
	})
}
