package memetcd

import (
	"bytes"
	"cmp"
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// kvServer serves requests for keys. It implements pb.KVClient, through which clientv3 sends
// such requests.
type kvServer struct{ store *Store }

// Range returns the keys in a range with their values. While the Store is halted, Range waits.
func (k kvServer) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	if err := k.store.lockWhenRunning(ctx); err != nil {
		return nil, err
	}
	defer k.store.mu.Unlock()
	return k.store.read(r, k.store.revision)
}

// Put writes one key and its value.
func (k kvServer) Put(ctx context.Context, r *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	response, err := k.write(ctx, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}})
	if err != nil {
		return nil, err
	}
	return response.GetResponsePut(), nil
}

// DeleteRange deletes the keys in a range.
func (k kvServer) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest, _ ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	response, err := k.write(ctx, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}})
	if err != nil {
		return nil, err
	}
	return response.GetResponseDeleteRange(), nil
}

// write executes one put or delete as a transaction without comparisons.
func (k kvServer) write(ctx context.Context, op *pb.RequestOp) (*pb.ResponseOp, error) {
	response, err := k.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{op}})
	if err != nil {
		return nil, err
	}
	return response.Responses[0], nil
}

// Txn executes the operations in Success if all comparisons are true, and otherwise the
// operations in Failure. All writes of a transaction have the same revision.
func (k kvServer) Txn(ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	s := k.store
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	response := &pb.TxnResponse{Succeeded: true}
	for _, comparison := range r.Compare {
		holds, err := s.compare(comparison)
		if err != nil {
			return nil, err
		}
		response.Succeeded = response.Succeeded && holds
	}
	operations := r.Success
	if !response.Succeeded {
		operations = r.Failure
	}
	if err := s.checkOperations(operations); err != nil {
		return nil, err
	}
	t := transaction{Store: s, next: s.revision + 1}
	for _, operation := range operations {
		result, err := t.execute(operation)
		if err != nil {
			return nil, err
		}
		response.Responses = append(response.Responses, result)
	}
	t.commit()
	response.Header = s.header()
	return response, nil
}

// Compact removes the versions of keys that no read at the given revision or later needs.
func (k kvServer) Compact(ctx context.Context, r *pb.CompactionRequest, _ ...grpc.CallOption) (*pb.CompactionResponse, error) {
	if err := k.store.lock(ctx); err != nil {
		return nil, err
	}
	defer k.store.mu.Unlock()
	switch {
	case r.Revision > k.store.revision:
		return nil, rpctypes.ErrGRPCFutureRev
	case r.Revision <= k.store.compacted:
		return nil, rpctypes.ErrGRPCCompacted
	}
	k.store.compact(r.Revision)
	return &pb.CompactionResponse{Header: k.store.header()}, nil
}

// checkRead returns an error if the request is invalid, or if the Store does not support the
// request. The caller holds s.mu.
func (s *Store) checkRead(r *pb.RangeRequest) error {
	switch {
	case len(r.Key) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case r.SortOrder != pb.RangeRequest_NONE && (r.SortTarget != pb.RangeRequest_KEY || r.SortOrder != pb.RangeRequest_ASCEND):
		return unsupported("reads in an order other than ascending keys")
	case r.MinModRevision+r.MaxModRevision+r.MinCreateRevision+r.MaxCreateRevision != 0:
		return unsupported("reads with a minimum or maximum revision")
	}
	return s.checkRevision(r.Revision)
}

// read returns the keys in a range with their values, as of the revision in the request. If the
// request has no revision, read uses the revision in the argument current. The caller holds s.mu.
func (s *Store) read(r *pb.RangeRequest, current int64) (*pb.RangeResponse, error) {
	if err := s.checkRead(r); err != nil {
		return nil, err
	}
	found := s.scan(rangeOf(r.Key, r.RangeEnd), cmp.Or(r.Revision, current))
	response := &pb.RangeResponse{Header: s.header(), Count: int64(len(found))}
	if r.CountOnly {
		return response, nil
	}
	if r.Limit > 0 && int64(len(found)) > r.Limit {
		found, response.More = found[:r.Limit], true
	}
	response.Kvs = found
	if r.KeysOnly {
		for i, kv := range found {
			withoutValue := *kv
			withoutValue.Value = nil
			response.Kvs[i] = &withoutValue
		}
	}
	return response, nil
}

// compare reports whether a comparison of a transaction is true. The caller holds s.mu.
func (s *Store) compare(c *pb.Compare) (bool, error) {
	if len(c.RangeEnd) > 0 {
		return false, unsupported("comparisons of key ranges in transactions")
	}
	kv := s.at(string(c.Key), s.revision)
	if kv == nil {
		if c.Target == pb.Compare_VALUE {
			return false, nil // a missing key has no value, so every comparison of its value is false
		}
		kv = &mvccpb.KeyValue{}
	}
	var order int
	switch c.Target {
	case pb.Compare_VERSION:
		order = cmp.Compare(kv.Version, c.GetVersion())
	case pb.Compare_CREATE:
		order = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
	case pb.Compare_MOD:
		order = cmp.Compare(kv.ModRevision, c.GetModRevision())
	case pb.Compare_VALUE:
		order = bytes.Compare(kv.Value, c.GetValue())
	case pb.Compare_LEASE:
		order = cmp.Compare(kv.Lease, c.GetLease())
	}
	switch c.Result {
	case pb.Compare_EQUAL:
		return order == 0, nil
	case pb.Compare_NOT_EQUAL:
		return order != 0, nil
	case pb.Compare_GREATER:
		return order > 0, nil
	}
	return order < 0, nil
}

// checkOperations returns an error if an operation of a transaction is invalid. Txn calls it
// before the first write, because a failed transaction must write nothing. The caller holds
// s.mu.
func (s *Store) checkOperations(operations []*pb.RequestOp) error {
	written := map[string]bool{}
	for _, operation := range operations {
		switch {
		case operation.GetRequestTxn() != nil:
			return unsupported("nested transactions")
		case operation.GetRequestRange() != nil:
			if err := s.checkRead(operation.GetRequestRange()); err != nil {
				return err
			}
		case operation.GetRequestPut() != nil:
			put := operation.GetRequestPut()
			switch {
			case len(put.Key) == 0:
				return rpctypes.ErrGRPCEmptyKey
			case put.IgnoreValue || put.IgnoreLease:
				return unsupported("puts with IgnoreValue or IgnoreLease")
			case put.Lease != 0 && s.leases[put.Lease] == nil:
				return rpctypes.ErrGRPCLeaseNotFound
			case written[string(put.Key)]:
				return rpctypes.ErrGRPCDuplicateKey
			}
			written[string(put.Key)] = true
		case operation.GetRequestDeleteRange() != nil:
			if len(operation.GetRequestDeleteRange().Key) == 0 {
				return rpctypes.ErrGRPCEmptyKey
			}
		}
	}
	return nil
}

// transaction executes the operations of one transaction and collects the resulting events.
type transaction struct {
	*Store
	next   int64 // revision that the Store gets if the transaction writes
	events []*mvccpb.Event
}

// execute executes one operation of the transaction: a read, a put or a delete. The caller holds
// the Store's mutex.
func (t *transaction) execute(operation *pb.RequestOp) (*pb.ResponseOp, error) {
	switch {
	case operation.GetRequestRange() != nil:
		response, err := t.read(operation.GetRequestRange(), t.next)
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: response}}, err
	case operation.GetRequestPut() != nil:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: t.put(operation.GetRequestPut())}}, nil
	default:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: t.deleteRange(operation.GetRequestDeleteRange())}}, nil
	}
}

// put writes one key and its value. The caller holds the Store's mutex.
func (t *transaction) put(r *pb.PutRequest) *pb.PutResponse {
	previous := t.at(string(r.Key), t.next)
	kv := &mvccpb.KeyValue{Key: r.Key, Value: r.Value, CreateRevision: t.next, ModRevision: t.next, Version: 1, Lease: r.Lease}
	if previous != nil {
		kv.CreateRevision, kv.Version = previous.CreateRevision, previous.Version+1
	}
	t.attach(kv, previous)
	t.events = append(t.events, t.append(kv, mvccpb.PUT, previous))
	response := &pb.PutResponse{Header: &pb.ResponseHeader{Revision: t.next}}
	if r.PrevKv {
		response.PrevKv = previous
	}
	return response
}

// deleteRange deletes the keys in a range. The caller holds the Store's mutex.
func (t *transaction) deleteRange(r *pb.DeleteRangeRequest) *pb.DeleteRangeResponse {
	found := t.scan(rangeOf(r.Key, r.RangeEnd), t.next)
	for _, kv := range found {
		t.remove(kv)
	}
	response := &pb.DeleteRangeResponse{Deleted: int64(len(found))}
	response.Header = &pb.ResponseHeader{Revision: t.revision}
	if len(t.events) > 0 {
		response.Header.Revision = t.next
	}
	if r.PrevKv {
		response.PrevKvs = found
	}
	return response
}

// remove deletes one existing key. The caller holds the Store's mutex.
func (t *transaction) remove(kv *mvccpb.KeyValue) {
	t.attach(nil, kv)
	t.events = append(t.events, t.append(&mvccpb.KeyValue{Key: kv.Key, ModRevision: t.next}, mvccpb.DELETE, kv))
}

// commit increases the revision of the Store and sends the transaction's events to the watches.
// If the transaction wrote nothing, commit does nothing. The caller holds the Store's mutex.
func (t *transaction) commit() {
	if len(t.events) == 0 {
		return
	}
	t.revision = t.next
	for _, w := range t.watchers {
		w.send(t.revision, t.events)
	}
}
