package subject

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// fakeInstance is an Instance without a process. The fakeInstance ends when the test calls finish.
type fakeInstance struct {
	pid    int
	once   sync.Once
	done   chan struct{}
	reason error
}

func (i *fakeInstance) finish(reason string) {
	i.once.Do(func() { i.reason = errors.New(reason); close(i.done) })
}

func (i *fakeInstance) PID() int { return i.pid }

func (i *fakeInstance) Stop(context.Context, time.Duration) error { i.finish("terminated"); return nil }
func (i *fakeInstance) Kill(context.Context) error                { i.finish("killed"); return nil }
func (i *fakeInstance) Pause(context.Context) error               { return nil }
func (i *fakeInstance) Resume(context.Context) error              { return nil }
func (i *fakeInstance) Done() <-chan struct{}                     { return i.done }
func (i *fakeInstance) Err() error                                { return i.reason }
func (i *fakeInstance) Usage() *history.Usage                     { return nil }
func (i *fakeInstance) LogTail() string                           { return "" }
func (i *fakeInstance) CommandLine() []string                     { return []string{"manager", "--leader-elect"} }

// fakeLauncher starts fakeInstances. As the Recorder of the Subject, it also collects the process
// records.
type fakeLauncher struct {
	mu        sync.Mutex
	pids      int
	instances map[string]*fakeInstance // the latest instance of each replica
	refuse    error
	records   []string
}

func (s *fakeLauncher) launch(_ context.Context, replica string) (Instance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return nil, s.refuse
	}
	s.pids++
	i := &fakeInstance{pid: s.pids, done: make(chan struct{})}
	s.instances[replica] = i
	return i, nil
}

func (s *fakeLauncher) Append(record history.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := record.Process
	s.records = append(s.records, strings.TrimSpace(fmt.Sprintf("%s %s %d %s", p.Name, p.Event, p.PID, p.Detail)))
}

// newSubject starts a program under test with two replicas whose instances are fakeInstances.
func newSubject(t *testing.T, client *fake.Clientset) (*Subject, *fakeLauncher) {
	t.Helper()
	all := &fakeLauncher{instances: map[string]*fakeInstance{}}
	s, err := Start(t.Context(), Options{
		LeaseNamespace: LeaseNamespace,
		Target:         Upstream, Replicas: 2, Launch: all.launch, Admin: client, Recorder: all,
		Holder: func(identity string) string { return strings.TrimPrefix(identity, "host_") },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s, all
}

// TestStopAndStart verifies that Kill, Terminate, Start and Stop end and start replicas. The
// process records must be in order, and the channel of Failed must stay open.
func TestStopAndStart(t *testing.T) {
	s, all := newSubject(t, fake.NewClientset())
	ctx := t.Context()
	for _, act := range []struct {
		description string
		do          func() (bool, error)
		want        bool
	}{
		{"kill subject-0", func() (bool, error) { return s.Kill(ctx, "subject-0") }, true},
		{"kill subject-0 again", func() (bool, error) { return s.Kill(ctx, "subject-0") }, false},
		{"start subject-0", func() (bool, error) { return true, s.Start(ctx, "subject-0") }, true},
		{"start a running replica", func() (bool, error) { return true, s.Start(ctx, "subject-1") }, true},
		{"terminate subject-1", func() (bool, error) { return s.Terminate(ctx, "subject-1") }, true},
		{"start subject-1", func() (bool, error) { return true, s.Start(ctx, "subject-1") }, true},
		{"stop all", func() (bool, error) { return true, s.Stop(ctx) }, true},
	} {
		if got, err := act.do(); err != nil || got != act.want {
			t.Errorf("%s: %t, error %v; want %t", act.description, got, err, act.want)
		}
	}
	stopped := all.records[len(all.records)-2:]
	slices.Sort(stopped) // the replicas stop concurrently
	want := []string{
		"subject-0 started 1", "subject-1 started 2",
		"subject-0 stopped 1 killed", "subject-0 started 3",
		"subject-1 stopped 2 terminated", "subject-1 started 4",
		"subject-0 stopped 3 terminated", "subject-1 stopped 4 terminated",
	}
	if diff := cmp.Diff(want, all.records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if err := s.Err(); err != nil {
		t.Errorf("the subject failed: %v", err)
	}
	if err := s.Start(ctx, "subject-0"); err == nil || err.Error() != "starting subject-0: the subject has been stopped" {
		t.Errorf("starting a replica after Stop: error %v", err)
	}
}

// TestFailedLaunch checks that the error of a replica that cannot start names the replica once.
func TestFailedLaunch(t *testing.T) {
	for _, text := range []string{"no such file", "starting subject-0: no such file"} {
		s, _ := newSubject(t, fake.NewClientset())
		if _, err := s.Kill(t.Context(), "subject-0"); err != nil {
			t.Fatal(err)
		}
		s.options.Launch = func(context.Context, string) (Instance, error) { return nil, errors.New(text) }
		if err := s.Start(t.Context(), "subject-0"); err == nil || err.Error() != "starting subject-0: no such file" {
			t.Errorf("error %v; want one that names the replica once", err)
		}
	}
}

// TestDumpStacks verifies that DumpStacks ends a replica only if its instance is a StackDumper.
func TestDumpStacks(t *testing.T) {
	s, all := newSubject(t, fake.NewClientset())
	s.options.Launch = func(ctx context.Context, replica string) (Instance, error) {
		i, err := all.launch(ctx, replica)
		return stackDumper{i.(*fakeInstance)}, err
	}
	if _, err := s.Kill(t.Context(), "subject-1"); err != nil {
		t.Fatal(err)
	}
	if ended, err := s.DumpStacks(t.Context(), "subject-1"); ended || err != nil {
		t.Errorf("ended a replica that is not running: %t, error %v", ended, err)
	}
	if err := s.Start(t.Context(), "subject-1"); err != nil {
		t.Fatal(err)
	}
	for replica, want := range map[string]bool{"subject-0": false, "subject-1": true} {
		if ended, err := s.DumpStacks(t.Context(), replica); ended != want || err != nil {
			t.Errorf("%s was ended: %t, error %v; want %t", replica, ended, err, want)
		}
	}
	want := []string{"subject-0 started 1", "subject-1 started 2", "subject-1 stopped 2 killed", "subject-1 started 3", "subject-1 stopped 3 dumped stacks"}
	if diff := cmp.Diff(want, all.records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// stackDumper is a fake instance that implements StackDumper.
type stackDumper struct{ *fakeInstance }

func (t stackDumper) DumpStacks(context.Context) error { t.finish("dumped stacks"); return nil }

// TestUnexpectedEnd verifies that the channel of Failed is closed when a restarted replica ends
// unexpectedly.
func TestUnexpectedEnd(t *testing.T) {
	s, all := newSubject(t, fake.NewClientset())
	if _, err := s.Kill(t.Context(), "subject-1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), "subject-1"); err != nil {
		t.Fatal(err)
	}
	all.instances["subject-1"].finish("panicked")
	<-s.Failed()
	if err := s.Err(); err == nil || err.Error() != "the subject ended unexpectedly: panicked" {
		t.Errorf("error %v", err)
	}
	if last := all.records[len(all.records)-1]; last != "subject-1 died 3 panicked" {
		t.Errorf("last record %q", last)
	}
}

// TestPause verifies that a Subject restarts a replica that ends because of a pause. This end must
// not close the channel of Failed. An unexpected end of the next instance must close the channel.
func TestPause(t *testing.T) {
	s, all := newSubject(t, fake.NewClientset())
	if paused, err := s.Pause(t.Context(), "subject-0"); !paused || err != nil {
		t.Fatalf("paused %t, error %v", paused, err)
	}
	for _, replica := range []string{"subject-0", "subject-1"} { // subject-1 was not paused
		if err := s.Resume(t.Context(), replica); err != nil {
			t.Fatal(err)
		}
	}
	all.last("subject-0").finish("lost its lease")
	want := []string{"subject-0 started 1", "subject-1 started 2", "subject-0 paused 1", "subject-0 resumed 1",
		"subject-0 stopped 1 after a pause: lost its lease", "subject-0 started 3"}
	all.await(t, want)
	all.last("subject-0").finish("panicked")
	<-s.Failed()
	all.await(t, append(want, "subject-0 died 3 panicked"))
	if paused, err := s.Pause(t.Context(), "subject-0"); paused || err != nil {
		t.Errorf("paused a replica that has ended: %t, error %v", paused, err)
	}
}

// TestEndWithoutRenewal verifies that a Subject restarts a replica that ended by itself only in one case.
// The replica is the leader, and could not renew its lease for so long that it had to exit.
func TestEndWithoutRenewal(t *testing.T) {
	for _, test := range []struct {
		name      string
		holder    string
		renewed   time.Duration // how long ago the holder renewed the lease of 15 s
		restarted bool
	}{
		{"the lease is old", "host_subject-0", 11 * time.Second, true},
		{"the lease is new", "host_subject-0", time.Second, false},
		{"another replica holds the lease", "host_subject-1", 11 * time.Second, false},
		{"nobody holds the lease", "", 11 * time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, all := newSubject(t, fake.NewClientset(&coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: LeaseNamespace, Name: leaseName},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity: &test.holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-test.renewed))),
				},
			}))
			all.last("subject-0").finish("leader election lost")
			want := []string{"subject-0 started 1", "subject-1 started 2", "subject-0 died 1 leader election lost"}
			if test.restarted {
				all.await(t, append(want, "subject-0 started 3"))
			} else {
				<-s.Failed()
				all.await(t, want)
			}
			if failed := s.Err() != nil; failed == test.restarted {
				t.Errorf("error %v; restarted: %t", s.Err(), test.restarted)
			}
		})
	}
}

// last returns the latest fakeInstance of a replica.
func (s *fakeLauncher) last(replica string) *fakeInstance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.instances[replica]
}

// await waits until the collected process records are equal to want.
func (s *fakeLauncher) await(t *testing.T, want []string) {
	t.Helper()
	var got []string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-time.After(time.Millisecond) {
		s.mu.Lock()
		got = slices.Clone(s.records)
		s.mu.Unlock()
		if slices.Equal(got, want) {
			return
		}
	}
	t.Fatalf("records (-want +got):\n%s", cmp.Diff(want, got))
}

func TestUnknownReplica(t *testing.T) {
	s, all := newSubject(t, fake.NewClientset())
	const want = `the subject has no replica "subject-7"; expected one of [subject-0 subject-1]`
	if _, err := s.Kill(t.Context(), "subject-7"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := s.Kill(t.Context(), "subject-0"); err != nil {
		t.Fatal(err)
	}
	all.refuse = errors.New("out of memory")
	if err := s.Start(t.Context(), "subject-0"); !errors.Is(err, all.refuse) {
		t.Errorf("error %v, want one that wraps %v", err, all.refuse)
	}
}

// TestLeader verifies that Leader returns the name of the replica that holds the lease.
func TestLeader(t *testing.T) {
	client := fake.NewClientset()
	s, _ := newSubject(t, client)
	leases := client.CoordinationV1().Leases(LeaseNamespace)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName}}
	if got, err := s.Leader(t.Context()); got != "" || err != nil {
		t.Errorf("without a lease: %q, %v", got, err)
	}
	if _, err := leases.Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Leader(t.Context()); got != "" || err != nil {
		t.Errorf("with a lease that was released: %q, %v", got, err)
	}
	lease.Spec.HolderIdentity = ptr.To("host_subject-1")
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Leader(t.Context()); got != "subject-1" || err != nil {
		t.Errorf("with a holder: %q, %v; want subject-1", got, err)
	}
	if err := s.WaitForLeader(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFlags verifies the leader-election durations in a replica's flags. client-go requires lease
// duration > renew deadline > retry period.
func TestFlags(t *testing.T) {
	for lease, want := range map[time.Duration][]string{
		15 * time.Second: {"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s"},
		3 * time.Second:  {"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=400ms"},
	} {
		got := Settings{LeaseDuration: lease}.Flags("k", nil)
		for _, flag := range want {
			if !slices.Contains(got, flag) {
				t.Errorf("lease %s: flags %v; want %s among them", lease, got, flag)
			}
		}
	}
}

// TestExplainStart verifies the error message for a program under test that does not become ready.
func TestExplainStart(t *testing.T) {
	notReady := errors.New("nobody holds the lease")
	for _, test := range []struct {
		name   string
		target Target
		err    error
		want   string
	}{
		{"timeout", Target{kind: execKind, name: "/manager"}, notReady,
			"nobody holds the lease\ngauntlet waited 60.0 s; last lines of the log of subject-0:\n\t(empty)\n" +
				"command line: manager --leader-elect\n" +
				"gauntlet passes flags of kube-controller-manager to this program; if the program has other flags, wrap the program in a script that translates the flags, or use subject.Command in Go"},
		{"exit", Ours, fmt.Errorf("%w: exited with status 1", ErrDied),
			"the subject ended unexpectedly: exited with status 1\ngauntlet waited 60.0 s\ncommand line: manager --leader-elect"},
		{"port in use", Ours, fmt.Errorf("%w: listen tcp :8080: bind: address already in use", ErrDied),
			"the subject ended unexpectedly: listen tcp :8080: bind: address already in use\ngauntlet waited 60.0 s\ncommand line: manager --leader-elect\n" +
				"another process on this machine listens on this port, perhaps the same program in another run; if the program listens on all addresses, pass {{.Metrics}}, {{.Health}} or {{.Address}} to its flags for addresses in the subject file of each run; if its port is fixed, make one run at a time with --parallel=1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &Subject{options: Options{Target: test.target}}
			s.replicas = []*replica{{name: "subject-0", subject: s, mu: make(lock, 1), current: &trackedInstance{Instance: &fakeInstance{}}}}
			err := s.ExplainStart(test.err, time.Minute)
			if err.Error() != test.want || !errors.Is(err, test.err) {
				t.Errorf("error %q, want %q", err, test.want)
			}
		})
	}
}
