// Package memetcd implements an etcd server in memory, for a control plane in virtual time.
// There the clock jumps ahead when all goroutines wait.
//
// [Store.Client] returns a clientv3 client that reaches the Store through function calls. No
// sockets are involved, so client and Store also work in a bubble of testing/synctest. In a
// bubble, the clock is virtual, so a lease of an hour takes no real time.
//
// The Store has revisions, transactions, watches, leases, compaction and progress notifications.
// The package's tests also run on the real etcd. The Store answers a request that it does not
// support with the gRPC code Unimplemented.
//
// Values are shared, not copied: callers must not change the bytes that they put or get.
//
// [Store.Halt] makes the Store behave like an etcd whose process was killed, until [Store.Resume].
//
// kv.go serves reads and transactions, watch.go serves watches, lease.go serves leases, and halt.go
// halts the Store.
package memetcd

import (
	"context"
	"slices"
	"sort"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Store is an in-memory etcd server with a single member. Create it with [New].
type Store struct {
	mu       sync.Mutex
	revision int64 // revision of the latest transaction that wrote; 1 if no transaction has written
	// compacted is the revision of the latest compaction, or 0 if there was no compaction.
	compacted int64
	// versions contains each key's versions since the latest compaction, oldest first. It also
	// contains the latest earlier version of each key, unless that version is a deletion.
	versions map[string][]*mvccpb.KeyValue
	keys     []string         // sorted keys of the map versions
	log      []*mvccpb.Event  // all events since the latest compaction, oldest first
	watchers []*watcher       // open watches, in the order of their creation
	leases   map[int64]*lease // leases that have not expired, by ID
	lastID   int64            // ID of the latest lease
	resumed  chan struct{}    // closed when the halted Store resumes; nil while the Store runs
}

// New returns an empty Store. Its first transaction gets revision 2, as in etcd.
func New() *Store {
	return &Store{revision: 1, versions: map[string][]*mvccpb.KeyValue{}, leases: map[int64]*lease{}}
}

// Client returns a client of the Store. The client's watches end when ctx ends. The client
// supports only methods for keys, watches and leases.
func (s *Store) Client(ctx context.Context) *clientv3.Client {
	client := clientv3.NewCtxClient(ctx)
	client.KV = clientv3.NewKVFromKVClient(kvServer{s}, client)
	client.Watcher = &watches{s, ctx}
	client.Lease = clientv3.NewLeaseFromLeaseClient(leaseServer{s}, client, 0)
	return client
}

// header returns a response header with the current revision. The caller holds s.mu.
func (s *Store) header() *pb.ResponseHeader { return &pb.ResponseHeader{Revision: s.revision} }

// deleted reports whether kv is the version of a key that records the key's deletion.
func deleted(kv *mvccpb.KeyValue) bool { return kv.Version == 0 }

// at returns the version of a key as of a revision, or nil if the key did not exist. The caller
// holds s.mu.
func (s *Store) at(key string, revision int64) *mvccpb.KeyValue {
	versions := s.versions[key]
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].ModRevision > revision {
			continue
		}
		if deleted(versions[i]) {
			return nil
		}
		return versions[i]
	}
	return nil
}

// scan returns, for each key in a range, its version as of a revision. It omits keys that did
// not exist, and sorts the result by key. The caller holds s.mu.
func (s *Store) scan(keys keyRange, revision int64) []*mvccpb.KeyValue {
	if keys.end == "" {
		if kv := s.at(keys.start, revision); kv != nil {
			return []*mvccpb.KeyValue{kv}
		}
		return nil
	}
	var found []*mvccpb.KeyValue
	for _, key := range s.keys[sort.SearchStrings(s.keys, keys.start):] {
		if !keys.contains(key) {
			break
		}
		if kv := s.at(key, revision); kv != nil {
			found = append(found, kv)
		}
	}
	return found
}

// append adds a new version of a key to the Store, and returns the watch event of this change. The
// argument previous is the key's earlier version, which the event contains. The caller holds s.mu.
func (s *Store) append(kv *mvccpb.KeyValue, event mvccpb.Event_EventType, previous *mvccpb.KeyValue) *mvccpb.Event {
	key := string(kv.Key)
	if _, known := s.versions[key]; !known {
		i := sort.SearchStrings(s.keys, key)
		s.keys = slices.Insert(s.keys, i, key)
	}
	s.versions[key] = append(s.versions[key], kv)
	appended := &mvccpb.Event{Type: event, Kv: kv, PrevKv: previous}
	s.log = append(s.log, appended)
	return appended
}

// checkRevision returns an error if the Store cannot read at a revision: it is compacted or in
// the future. The caller holds s.mu.
func (s *Store) checkRevision(revision int64) error {
	switch {
	case revision > s.revision:
		return rpctypes.ErrGRPCFutureRev
	case revision > 0 && revision < s.compacted:
		return rpctypes.ErrGRPCCompacted
	}
	return nil
}

// compact removes the versions of keys that no read at the given revision or later needs. The
// caller holds s.mu.
func (s *Store) compact(revision int64) {
	s.compacted = revision
	for key, versions := range s.versions {
		needed := 0
		for i, kv := range versions {
			if kv.ModRevision <= revision {
				needed = i
			}
		}
		if deleted(versions[needed]) && versions[needed].ModRevision <= revision {
			needed++
		}
		if versions = versions[needed:]; len(versions) > 0 {
			s.versions[key] = slices.Clone(versions) // a clone, so that the memory of the removed versions is freed
		} else {
			delete(s.versions, key)
		}
	}
	s.keys = slices.DeleteFunc(s.keys, func(key string) bool { return s.versions[key] == nil })
	s.log = slices.DeleteFunc(s.log, func(e *mvccpb.Event) bool { return e.Kv.ModRevision < revision })
	for i, event := range s.log {
		if event.Kv.ModRevision == revision { // remove PrevKv, because its revision is compacted
			s.log[i] = &mvccpb.Event{Type: event.Type, Kv: event.Kv}
		}
	}
}

// keyRange is a range of keys, as in etcd requests: from start, inclusive, to end, exclusive. If
// the field end is empty, the range contains only one key, which is the field start. If the field
// end is one zero byte, the range has no end.
type keyRange struct{ start, end string }

func rangeOf(start, end []byte) keyRange { return keyRange{string(start), string(end)} }

// contains reports whether a key is in the range.
func (r keyRange) contains(key string) bool {
	switch r.end {
	case "":
		return key == r.start
	case "\x00":
		return key >= r.start
	}
	return key >= r.start && key < r.end
}

// unsupported returns the gRPC error Unimplemented for a request that the Store does not
// support.
func unsupported(what string) error {
	return status.Error(codes.Unimplemented, "memetcd does not support "+what)
}
