package memetcd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/embedded"
	"github.com/kube-gauntlet/gauntlet/harness/internal/memetcd"
)

// behaviors contains tests that must pass on memetcd and on the real etcd. Each test gets a
// client and a prefix for its keys. No test may depend on absolute revisions, because the tests
// share one etcd server.
var behaviors = []struct {
	name string
	test func(t *testing.T, c *clientv3.Client, prefix string)
}{
	{"versions of a key", testVersions},
	{"reads of ranges", testRanges},
	{"reads of old revisions", testOldRevisions},
	{"revisions that cannot be read", testUnreadableRevisions},
	{"transactions", testTransactions},
	{"a transaction with an error writes nothing", testFailedTransaction},
	{"optimistic writes of kube-apiserver", testOptimisticWrites},
	{"watches", testWatches},
	{"a watch from an old revision", testOldWatch},
	{"a watch from a compacted revision", testCompactedWatch},
	{"requested progress notifications", testProgress},
	{"the end of a watch", testWatchEnd},
	{"leases", testLeases},
	{"compaction", testCompaction},
}

func TestBehaviorInMemory(t *testing.T) {
	for _, behavior := range behaviors {
		t.Run(behavior.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				behavior.test(t, memetcd.New().Client(t.Context()), "/test/")
			})
		})
	}
}

func TestBehaviorOfEtcd(t *testing.T) {
	c := startEtcd(t)
	for i, behavior := range behaviors {
		t.Run(behavior.name, func(t *testing.T) { behavior.test(t, c, fmt.Sprintf("/test-%d/", i)) })
	}
}

// startEtcd starts the etcd that `gauntlet setup` builds, and returns a client of this etcd.
func startEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	binaries, err := embedded.FindBinaries("")
	if err != nil {
		t.Fatal(err)
	}
	clients, peers := freeURL(t), freeURL(t)
	log, err := os.Create(filepath.Join(t.TempDir(), "etcd.log"))
	if err != nil {
		t.Fatal(err)
	}
	etcd := exec.Command(binaries.Etcd, "--name=test", "--data-dir="+filepath.Join(t.TempDir(), "data"),
		"--listen-client-urls="+clients, "--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=test="+peers,
		"--unsafe-no-fsync=true", "--heartbeat-interval=10", "--election-timeout=100")
	etcd.Stdout, etcd.Stderr = log, log
	etcd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := etcd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = etcd.Process.Kill()
		_ = etcd.Wait() // the only error is that a signal ended etcd
		log.Close()
	})
	c, err := cluster.DialEtcd(clients, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := c.Get(ctx, "ready"); err != nil {
		output, _ := os.ReadFile(log.Name())
		t.Fatalf("etcd does not answer: %v\n%s", err, output)
	}
	return c
}

// freeURL returns a loopback URL with a port that no process uses.
func freeURL(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func testVersions(t *testing.T, c *clientv3.Client, prefix string) {
	first := put(t, c, prefix+"a", "1")
	second := put(t, c, prefix+"a", "2")
	kv := get(t, c, prefix+"a").Kvs[0]
	if second != first+1 || kv.CreateRevision != first || kv.ModRevision != second || kv.Version != 2 || string(kv.Value) != "2" {
		t.Errorf("key with revisions %d and %d is %v; want one revision for each put, and version 2", first, second, kv)
	}
	response, err := c.Put(t.Context(), prefix+"a", "3", clientv3.WithPrevKV())
	if err != nil || string(response.PrevKv.Value) != "2" {
		t.Errorf("Put with the previous value returned %v, %v", response, err)
	}
	removed, err := c.Delete(t.Context(), prefix+"a", clientv3.WithPrevKV())
	if err != nil || removed.Deleted != 1 || string(removed.PrevKvs[0].Value) != "3" || removed.Header.Revision != second+2 {
		t.Errorf("Delete returned %v, %v; want 1 key", removed, err)
	}
	if removed, err = c.Delete(t.Context(), prefix+"a"); err != nil || removed.Deleted != 0 || removed.Header.Revision != second+2 {
		t.Errorf("Delete of a missing key returned %v, %v; want no key and no new revision", removed, err)
	}
	again := put(t, c, prefix+"a", "4")
	if kv := get(t, c, prefix+"a").Kvs[0]; kv.CreateRevision != again || kv.Version != 1 {
		t.Errorf("key after deletion and put at revision %d is %v; want version 1", again, kv)
	}
}

func testRanges(t *testing.T, c *clientv3.Client, prefix string) {
	for _, key := range []string{"b", "a", "c/1", "c/2", "d"} {
		put(t, c, prefix+key, "value of "+key)
	}
	end := prefix + "z"
	for _, test := range []struct {
		key     string
		options []clientv3.OpOption
		want    string // keys
		count   int64
		more    bool
	}{
		{"a", nil, "a", 1, false},
		{"missing", nil, "", 0, false},
		{"", []clientv3.OpOption{clientv3.WithPrefix()}, "a b c/1 c/2 d", 5, false},
		{"c/", []clientv3.OpOption{clientv3.WithPrefix()}, "c/1 c/2", 2, false},
		{"b", []clientv3.OpOption{clientv3.WithRange(end)}, "b c/1 c/2 d", 4, false},
		{"", []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithLimit(2)}, "a b", 5, true},
		{"b\x00", []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(3)}, "c/1 c/2 d", 3, false},
		{"", []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithCountOnly()}, "", 5, false},
		{"", []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithKeysOnly()}, "a b c/1 c/2 d", 5, false},
	} {
		response := get(t, c, prefix+test.key, test.options...)
		if got := keys(response, prefix); got != test.want || response.Count != test.count || response.More != test.more {
			t.Errorf("reading %q with %d options: keys %q, count %d, more %v; want %q, %d, %v", test.key, len(test.options), got, response.Count, response.More, test.want, test.count, test.more)
		}
	}
	if kv := get(t, c, prefix+"a", clientv3.WithKeysOnly()).Kvs[0]; len(kv.Value) > 0 {
		t.Errorf("a read of keys only returned the value %q", kv.Value)
	}
	if kv := get(t, c, prefix+"a").Kvs[0]; string(kv.Value) != "value of a" {
		t.Errorf("after a read of keys only, the value is %q", kv.Value)
	}
}

func testOldRevisions(t *testing.T, c *clientv3.Client, prefix string) {
	put(t, c, prefix+"a", "1")
	both := put(t, c, prefix+"b", "1")
	put(t, c, prefix+"a", "2")
	remove(t, c, prefix+"b")
	old := get(t, c, prefix, clientv3.WithPrefix(), clientv3.WithRev(both))
	if got := keys(old, prefix); got != "a b" || string(old.Kvs[0].Value) != "1" || old.Header.Revision != both+2 {
		t.Errorf("at revision %d, the keys are %q (%v); want a and b with their first values, and the current revision %d in the header", both, got, old, both+2)
	}
	if got := keys(get(t, c, prefix, clientv3.WithPrefix()), prefix); got != "a" {
		t.Errorf("now, the keys are %q; want a", got)
	}
}

func testUnreadableRevisions(t *testing.T, c *clientv3.Client, prefix string) {
	old := put(t, c, prefix+"a", "1")
	current := put(t, c, prefix+"a", "2")
	if _, err := c.Get(t.Context(), prefix+"a", clientv3.WithRev(current+1)); !errors.Is(err, rpctypes.ErrFutureRev) {
		t.Errorf("reading a future revision: error %v, want ErrFutureRev", err)
	}
	compact(t, c, current)
	if _, err := c.Get(t.Context(), prefix+"a", clientv3.WithRev(old)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("reading a compacted revision: error %v, want ErrCompacted", err)
	}
	if got := get(t, c, prefix+"a", clientv3.WithRev(current)); string(got.Kvs[0].Value) != "2" {
		t.Errorf("reading the revision of the compaction returned %v", got)
	}
	if _, err := c.Get(t.Context(), ""); !errors.Is(err, rpctypes.ErrEmptyKey) {
		t.Errorf("reading the empty key: error %v, want ErrEmptyKey", err)
	}
}

func testTransactions(t *testing.T, c *clientv3.Client, prefix string) {
	a, b := prefix+"a", prefix+"b"
	revision := put(t, c, a, "1")
	for _, test := range []struct {
		name string
		when clientv3.Cmp
		want bool
	}{
		{"mod revision", clientv3.Compare(clientv3.ModRevision(a), "=", revision), true},
		{"another mod revision", clientv3.Compare(clientv3.ModRevision(a), "=", revision-1), false},
		{"mod revision of a missing key", clientv3.Compare(clientv3.ModRevision(b), "=", 0), true},
		{"create revision", clientv3.Compare(clientv3.CreateRevision(a), "<", revision+1), true},
		{"version", clientv3.Compare(clientv3.Version(a), ">", 1), false},
		{"value", clientv3.Compare(clientv3.Value(a), "=", "1"), true},
		{"value of a missing key", clientv3.Compare(clientv3.Value(b), "!=", "1"), false},
		{"lease", clientv3.Compare(clientv3.LeaseValue(a), "!=", clientv3.LeaseID(0)), false},
	} {
		response, err := c.Txn(t.Context()).If(test.when).Then(clientv3.OpGet(a)).Else(clientv3.OpGet(b)).Commit()
		if err != nil || response.Succeeded != test.want {
			t.Errorf("%s: %v, %v; want %v", test.name, response, err, test.want)
		}
		if found := len(response.Responses[0].GetResponseRange().Kvs) == 1; found != test.want {
			t.Errorf("%s: the transaction executed the wrong operations", test.name)
		}
	}
	response, err := c.Txn(t.Context()).Then(clientv3.OpPut(b, "2"), clientv3.OpGet(b), clientv3.OpDelete(a), clientv3.OpGet(a)).Commit()
	if err != nil || response.Header.Revision != revision+1 {
		t.Fatalf("two writes in one transaction: %v, %v; want revision %d", response, err, revision+1)
	}
	if read := response.Responses[1].GetResponseRange(); len(read.Kvs) != 1 || read.Kvs[0].ModRevision != revision+1 {
		t.Errorf("a read after a put in the same transaction returned %v", read)
	}
	if read := response.Responses[3].GetResponseRange(); len(read.Kvs) != 0 {
		t.Errorf("a read after a deletion in the same transaction returned %v", read)
	}
}

func testFailedTransaction(t *testing.T, c *clientv3.Client, prefix string) {
	revision := put(t, c, prefix+"a", "1")
	for name, operations := range map[string][]clientv3.Op{
		"duplicate key": {clientv3.OpPut(prefix+"b", "1"), clientv3.OpPut(prefix+"b", "2")},
		"unknown lease": {clientv3.OpPut(prefix+"b", "1"), clientv3.OpPut(prefix+"c", "1", clientv3.WithLease(12345))},
		"future read":   {clientv3.OpPut(prefix+"b", "1"), clientv3.OpGet(prefix+"a", clientv3.WithRev(revision+100))},
	} {
		if _, err := c.Txn(t.Context()).Then(operations...).Commit(); err == nil {
			t.Errorf("%s: the transaction succeeded", name)
		}
		if got := get(t, c, prefix, clientv3.WithPrefix()); got.Header.Revision != revision || keys(got, prefix) != "a" {
			t.Errorf("%s: after the transaction, etcd has %v; want nothing written", name, got)
		}
	}
}

func testOptimisticWrites(t *testing.T, etcd *clientv3.Client, prefix string) {
	c := &kubernetes.Client{Client: etcd}
	created, err := c.OptimisticPut(t.Context(), prefix+"a", []byte("1"), 0, kubernetes.PutOptions{})
	if err != nil || !created.Succeeded {
		t.Fatalf("creating a key: %v, %v", created, err)
	}
	conflict, err := c.OptimisticPut(t.Context(), prefix+"a", []byte("2"), 0, kubernetes.PutOptions{GetOnFailure: true})
	if err != nil || conflict.Succeeded || string(conflict.KV.Value) != "1" {
		t.Errorf("creating an existing key: %v, %v; want a failure with the present value", conflict, err)
	}
	if wrong, err := c.OptimisticDelete(t.Context(), prefix+"a", created.Revision+1, kubernetes.DeleteOptions{}); err != nil || wrong.Succeeded {
		t.Errorf("deleting another revision: %v, %v; want a failure", wrong, err)
	}
	if right, err := c.OptimisticDelete(t.Context(), prefix+"a", created.Revision, kubernetes.DeleteOptions{}); err != nil || !right.Succeeded {
		t.Errorf("deleting the present revision: %v, %v", right, err)
	}
}

func testWatches(t *testing.T, c *clientv3.Client, prefix string) {
	next := put(t, c, prefix+"a", "before") + 1
	events := c.Watch(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(next))
	put(t, c, prefix+"a", "1")
	put(t, c, strings.TrimSuffix(prefix, "/"), "outside")
	put(t, c, prefix+"b", "1")
	remove(t, c, prefix+"a")
	got := receive(t, events, 3)
	if diff := cmp.Diff([]string{"PUT a=1 modified from before", "PUT b=1 created", "DELETE a was 1"}, describe(got, prefix)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func testOldWatch(t *testing.T, c *clientv3.Client, prefix string) {
	put(t, c, prefix+"a", "1")
	second := put(t, c, prefix+"b", "1")
	remove(t, c, prefix+"b")
	events := c.Watch(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(second))
	got := receive(t, events, 2)
	put(t, c, prefix+"c", "1")
	got = append(got, receive(t, events, 1)...)
	if diff := cmp.Diff([]string{"PUT b=1 created", "DELETE b was 1", "PUT c=1 created"}, describe(got, prefix)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func testCompactedWatch(t *testing.T, c *clientv3.Client, prefix string) {
	put(t, c, prefix+"a", "1")
	second := put(t, c, prefix+"a", "2")
	third := put(t, c, prefix+"a", "3")
	compact(t, c, third)
	response := <-c.Watch(t.Context(), prefix+"a", clientv3.WithRev(second))
	if response.CompactRevision != third || !errors.Is(response.Err(), rpctypes.ErrCompacted) {
		t.Errorf("watching from a compacted revision: %v; want compact revision %d", response, third)
	}
	if got := describe(receive(t, c.Watch(t.Context(), prefix+"a", clientv3.WithPrevKV(), clientv3.WithRev(third)), 1), prefix); got[0] != "PUT a=3 modified" {
		t.Errorf("watching from the revision of the compaction: %v", got)
	}
}

func testProgress(t *testing.T, c *clientv3.Client, prefix string) {
	events := c.Watch(t.Context(), prefix, clientv3.WithPrefix())
	revision := put(t, c, strings.TrimSuffix(prefix, "/"), "outside of the prefix")
	for {
		if err := c.RequestProgress(t.Context()); err != nil {
			t.Fatal(err)
		}
		// While another watch of the connection has unread events, etcd may not answer.
		select {
		case response := <-events:
			if !response.IsProgressNotify() || response.Header.Revision < revision {
				t.Errorf("response %v; want a progress notification for revision %d", response, revision)
			}
			return
		case <-time.After(time.Second):
		}
	}
}

func testWatchEnd(t *testing.T, c *clientv3.Client, prefix string) {
	ctx, cancel := context.WithCancel(t.Context())
	revision := put(t, c, prefix+"a", "1")
	events := c.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision))
	receive(t, events, 1)
	cancel()
	for range events { // reads until the channel is closed
	}
}

func testLeases(t *testing.T, c *clientv3.Client, prefix string) {
	granted, err := c.Grant(t.Context(), 600)
	if err != nil || granted.TTL != 600 {
		t.Fatalf("granting a lease: %v, %v", granted, err)
	}
	for _, key := range []string{"a", "b", "moved"} {
		if _, err := c.Put(t.Context(), prefix+key, "1", clientv3.WithLease(granted.ID)); err != nil {
			t.Fatal(err)
		}
	}
	revision := put(t, c, prefix+"moved", "without lease")
	if kv := get(t, c, prefix+"a").Kvs[0]; kv.Lease != int64(granted.ID) {
		t.Errorf("key %v has another lease than %d", kv, granted.ID)
	}
	left, err := c.TimeToLive(t.Context(), granted.ID, clientv3.WithAttachedKeys())
	if err != nil || left.GrantedTTL != 600 || left.TTL > 600 || left.TTL < 500 || len(left.Keys) != 2 {
		t.Errorf("TimeToLive returned %v, %v; want 2 keys and 600 s", left, err)
	}
	all, err := c.Leases(t.Context())
	if err != nil || len(all.Leases) != 1 {
		t.Errorf("Leases returned %v, %v; want 1", all, err)
	}
	if _, err := c.Put(t.Context(), prefix+"c", "1", clientv3.WithLease(granted.ID+1)); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("Put with an unknown lease: error %v, want ErrLeaseNotFound", err)
	}
	if _, err := c.Revoke(t.Context(), granted.ID); err != nil {
		t.Fatal(err)
	}
	got := get(t, c, prefix, clientv3.WithPrefix())
	if keys(got, prefix) != "moved" || got.Header.Revision != revision+1 {
		t.Errorf("after Revoke: %v; want the key without lease, and one revision for all deletions", got)
	}
	if _, err := c.Revoke(t.Context(), granted.ID); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("second Revoke: error %v, want ErrLeaseNotFound", err)
	}
	if left, err := c.TimeToLive(t.Context(), granted.ID); err != nil || left.TTL != -1 {
		t.Errorf("TimeToLive of a revoked lease returned %v, %v; want -1", left, err)
	}
}

func testCompaction(t *testing.T, c *clientv3.Client, prefix string) {
	put(t, c, prefix+"a", "1")
	put(t, c, prefix+"gone", "1")
	remove(t, c, prefix+"gone")
	revision := put(t, c, prefix+"b", "1")
	put(t, c, prefix+"a", "2")
	compact(t, c, revision)
	old := get(t, c, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision))
	if keys(old, prefix) != "a b" || string(old.Kvs[0].Value) != "1" {
		t.Errorf("at the revision of the compaction: %v; want a=1 and b=1", old)
	}
	if _, err := c.Compact(t.Context(), revision); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Errorf("second compaction: error %v, want ErrCompacted", err)
	}
	if _, err := c.Compact(t.Context(), revision+100); !errors.Is(err, rpctypes.ErrFutureRev) {
		t.Errorf("compaction of a future revision: error %v, want ErrFutureRev", err)
	}
}

// TestTime checks behavior that takes minutes, such as the expiry of leases. The virtual clock
// makes these minutes pass at once.
func TestTime(t *testing.T) {
	t.Run("a lease expires", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := memetcd.New().Client(t.Context())
			granted, err := c.Grant(t.Context(), 3600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Put(t.Context(), "a", "1", clientv3.WithLease(granted.ID)); err != nil {
				t.Fatal(err)
			}
			events := c.Watch(t.Context(), "a")
			<-time.After(time.Hour - time.Second)
			if got := get(t, c, "a"); got.Count != 1 {
				t.Error("the key was deleted before the lease expired")
			}
			begun := time.Now()
			if got := describe(receive(t, events, 1), ""); got[0] != "DELETE a was 1" || time.Since(begun) != time.Second {
				t.Errorf("event %v after %s; want the deletion after 1 s", got, time.Since(begun))
			}
		})
	})
	t.Run("an idle watch gets progress notifications", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := memetcd.New().Client(t.Context())
			events := c.Watch(t.Context(), "a", clientv3.WithProgressNotify())
			begun, revision := time.Now(), put(t, c, "b", "1")
			for range 2 {
				if response := <-events; !response.IsProgressNotify() || response.Header.Revision != revision {
					t.Errorf("response %v; want a progress notification for revision %d", response, revision)
				}
			}
			if took := time.Since(begun); took != 20*time.Minute {
				t.Errorf("two notifications took %s, want 20 min", took)
			}
		})
	})
}

// TestUnsupported checks that the Store returns an error for requests that it does not support.
func TestUnsupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memetcd.New().Client(t.Context())
		for name, request := range map[string]func() error{
			"descending order": func() error {
				_, err := c.Get(t.Context(), "a", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
				return err
			},
			"bounds of revisions": func() error { _, err := c.Get(t.Context(), "a", clientv3.WithMinModRev(5)); return err },
			"nested transaction": func() error {
				_, err := c.Txn(t.Context()).Then(clientv3.OpTxn(nil, nil, nil)).Commit()
				return err
			},
			"put that keeps the value": func() error { _, err := c.Put(t.Context(), "a", "", clientv3.WithIgnoreValue()); return err },
		} {
			if err := request(); err == nil || !strings.Contains(err.Error(), "memetcd does not support") {
				t.Errorf("%s: error %v, want one that says that it is not supported", name, err)
			}
		}
	})
}

func put(t *testing.T, c *clientv3.Client, key, value string) (revision int64) {
	t.Helper()
	response, err := c.Put(t.Context(), key, value)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

func remove(t *testing.T, c *clientv3.Client, key string) {
	t.Helper()
	if _, err := c.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, c *clientv3.Client, key string, options ...clientv3.OpOption) *clientv3.GetResponse {
	t.Helper()
	response, err := c.Get(t.Context(), key, options...)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func compact(t *testing.T, c *clientv3.Client, revision int64) {
	t.Helper()
	if _, err := c.Compact(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
}

// keys returns the keys in a response, without the given prefix and separated by spaces.
func keys(response *clientv3.GetResponse, prefix string) string {
	var found []string
	for _, kv := range response.Kvs {
		found = append(found, strings.TrimPrefix(string(kv.Key), prefix))
	}
	return strings.Join(found, " ")
}

// receive returns the next count events of a watch.
func receive(t *testing.T, watch clientv3.WatchChan, count int) []*clientv3.Event {
	t.Helper()
	var events []*clientv3.Event
	timeout := time.After(30 * time.Second)
	for len(events) < count {
		select {
		case response := <-watch:
			if err := response.Err(); err != nil {
				t.Fatal(err)
			}
			events = append(events, response.Events...)
		case <-timeout:
			t.Fatalf("received %d events within 30 s, want %d", len(events), count)
		}
	}
	return events
}

// describe returns each event as text, such as "PUT a=1 created".
func describe(events []*clientv3.Event, prefix string) []string {
	var texts []string
	for _, event := range events {
		text := event.Type.String() + " " + strings.TrimPrefix(string(event.Kv.Key), prefix)
		switch {
		case event.IsCreate():
			text += "=" + string(event.Kv.Value) + " created"
		case event.IsModify():
			text += "=" + string(event.Kv.Value) + " modified"
			if event.PrevKv != nil {
				text += " from " + string(event.PrevKv.Value)
			}
		case event.PrevKv != nil:
			text += " was " + string(event.PrevKv.Value)
		}
		texts = append(texts, text)
	}
	return texts
}
