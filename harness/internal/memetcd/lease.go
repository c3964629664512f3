package memetcd

import (
	"context"
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// lease is an etcd lease, and the keys that the Store deletes when the lease expires.
type lease struct {
	seconds int64           // the TTL with which the lease was granted
	expires time.Time       // the time at which the lease expires
	timer   *time.Timer     // calls Store.expire at that time
	keys    map[string]bool // the keys that are attached to the lease
}

// leaseServer serves requests for leases. It implements pb.LeaseClient, through which clientv3
// sends such requests. It does not support keep-alive, because kube-apiserver does not use
// keep-alive.
type leaseServer struct{ store *Store }

// LeaseGrant creates a lease with the TTL in the request, in seconds. The Store chooses an ID if
// the request has none.
func (l leaseServer) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest, _ ...grpc.CallOption) (*pb.LeaseGrantResponse, error) {
	s := l.store
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	id := r.ID
	if id == 0 {
		s.lastID++
		id = s.lastID
	}
	if s.leases[id] != nil {
		return nil, rpctypes.ErrGRPCLeaseExist
	}
	granted := &lease{seconds: r.TTL, keys: map[string]bool{}}
	s.leases[id] = granted
	granted.timer = time.AfterFunc(granted.renew(), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.resumed == nil && !time.Now().Before(granted.expires) { // Resume may have renewed the lease
			s.expire(id)
		}
	})
	return &pb.LeaseGrantResponse{Header: s.header(), ID: id, TTL: r.TTL}, nil
}

// LeaseRevoke ends a lease and deletes the keys that are attached to the lease.
func (l leaseServer) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest, _ ...grpc.CallOption) (*pb.LeaseRevokeResponse, error) {
	if err := l.store.lock(ctx); err != nil {
		return nil, err
	}
	defer l.store.mu.Unlock()
	if !l.store.expire(r.ID) {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}
	return &pb.LeaseRevokeResponse{Header: l.store.header()}, nil
}

// LeaseKeepAlive always returns the error Unimplemented.
func (leaseServer) LeaseKeepAlive(context.Context, ...grpc.CallOption) (pb.Lease_LeaseKeepAliveClient, error) {
	return nil, unsupported("keep-alive of leases")
}

// LeaseTimeToLive returns the remaining seconds of a lease, or -1 if the lease does not exist.
// If the request asks for keys, it also returns the keys that are attached to the lease.
func (l leaseServer) LeaseTimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest, _ ...grpc.CallOption) (*pb.LeaseTimeToLiveResponse, error) {
	if err := l.store.lock(ctx); err != nil {
		return nil, err
	}
	defer l.store.mu.Unlock()
	response := &pb.LeaseTimeToLiveResponse{Header: l.store.header(), ID: r.ID, TTL: -1}
	if found := l.store.leases[r.ID]; found != nil {
		response.TTL, response.GrantedTTL = int64(time.Until(found.expires)/time.Second), found.seconds
		if r.Keys {
			for _, key := range slices.Sorted(maps.Keys(found.keys)) {
				response.Keys = append(response.Keys, []byte(key))
			}
		}
	}
	return response, nil
}

// LeaseLeases lists all leases.
func (l leaseServer) LeaseLeases(ctx context.Context, _ *pb.LeaseLeasesRequest, _ ...grpc.CallOption) (*pb.LeaseLeasesResponse, error) {
	if err := l.store.lock(ctx); err != nil {
		return nil, err
	}
	defer l.store.mu.Unlock()
	response := &pb.LeaseLeasesResponse{Header: l.store.header()}
	for _, id := range slices.Sorted(maps.Keys(l.store.leases)) {
		response.Leases = append(response.Leases, &pb.LeaseStatus{ID: id})
	}
	return response, nil
}

// renew makes a lease expire after its whole TTL from now, and returns the TTL. The caller starts
// the lease's timer.
func (l *lease) renew() time.Duration {
	ttl := time.Duration(l.seconds) * time.Second
	l.expires = time.Now().Add(ttl)
	return ttl
}

// expire removes a lease and deletes the lease's keys in one transaction. It returns false if
// the lease does not exist. The caller holds s.mu.
func (s *Store) expire(id int64) bool {
	expired := s.leases[id]
	if expired == nil {
		return false
	}
	expired.timer.Stop()
	t := transaction{Store: s, next: s.revision + 1}
	for _, key := range slices.Sorted(maps.Keys(expired.keys)) {
		t.remove(s.at(key, s.revision))
	}
	delete(s.leases, id)
	t.commit()
	return true
}

// attach moves a key from one lease to another after a write. The argument previous is the key's
// version before the write, or nil if the key did not exist. The argument kv is the version after
// the write, or nil if the write deleted the key. The caller holds s.mu.
func (s *Store) attach(kv, previous *mvccpb.KeyValue) {
	if previous != nil && s.leases[previous.Lease] != nil {
		delete(s.leases[previous.Lease].keys, string(previous.Key))
	}
	if kv != nil && s.leases[kv.Lease] != nil {
		s.leases[kv.Lease].keys[string(kv.Key)] = true
	}
}
