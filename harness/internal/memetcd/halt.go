package memetcd

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errHalted is the error of a write to a halted Store. clientv3 returns this code while it cannot
// connect to etcd.
var errHalted = status.Error(codes.Unavailable, "connection error: the etcd in memory is halted")

// Halt stops the Store, as if the process of etcd was killed. Until Resume, writes fail, reads wait,
// watches receive nothing, and no lease expires. The data remain. A second call has no effect.
//
// Reads wait because clientv3 retries them.
func (s *Store) Halt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed == nil {
		s.resumed = make(chan struct{})
	}
}

// Resume continues a halted Store. All leases start again with their whole TTL, as after the
// election of a new leader in etcd. Resume has no effect on a Store that runs.
func (s *Store) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resumed == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(s.leases)) { // sorted, so that timers have the same order in each run
		l := s.leases[id]
		l.timer.Reset(l.renew())
	}
	for _, w := range s.watchers {
		w.progress.Reset(progressInterval)
	}
	close(s.resumed)
	s.resumed = nil
}

// lock locks s.mu and returns nil. If the Store is halted or ctx has ended, lock returns an error,
// and s.mu stays unlocked.
func (s *Store) lock(ctx context.Context) error {
	s.mu.Lock()
	err := ctx.Err()
	if s.resumed != nil {
		err = errHalted
	}
	if err != nil {
		s.mu.Unlock()
	}
	return err
}

// lockWhenRunning waits until the Store runs, then locks s.mu and returns nil. If ctx ends earlier,
// it returns an error, and s.mu stays unlocked.
func (s *Store) lockWhenRunning(ctx context.Context) error {
	for {
		if err := s.AwaitRunning(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		if s.resumed == nil {
			return nil
		}
		s.mu.Unlock() // another goroutine has halted the Store again
	}
}

// AwaitRunning waits until the Store runs. It returns an error if ctx ends earlier.
func (s *Store) AwaitRunning(ctx context.Context) error {
	s.mu.Lock()
	resumed := s.resumed
	s.mu.Unlock()
	if resumed != nil {
		select {
		case <-resumed:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
