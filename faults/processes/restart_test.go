package processes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/interceptor"
	"github.com/kube-gauntlet/gauntlet/faults/internal/faulttest"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/trigger"
)

func TestRestartParams(t *testing.T) {
	tests := []faulttest.Case{
		{"{how: kill}", ""},
		{"{how: terminate, replica: all, downtime: 0s}", ""},
		{"{replica: all}", "s.yaml: restart.how: not given; expected one of kill, terminate"},
		{"{how: ask}", `s.yaml:1:7: restart.how: unknown value "ask"; expected one of kill, terminate`},
		{"{how: kill, replica: subject-0}", `s.yaml:1:22: restart.replica: unknown value "subject-0"; expected one of leader, all`},
		{"{how: kill, downtime: -1s}", "s.yaml:1:23: restart.downtime: -1s is out of bounds; expected 0s to 10m0s"},
		{"{how: kill, downtime: 11m}", "s.yaml:1:23: restart.downtime: 11m0s is out of bounds; expected 0s to 10m0s"},
	}
	tests = append(tests,
		faulttest.Case{Text: "{how: kill, times: 3, every: 0s}"},
		faulttest.Case{Text: "{how: kill, times: 0}", Want: "s.yaml:1:20: restart.times: 0 is out of bounds; expected 1 to 1000"},
		faulttest.Case{Text: "{how: kill, every: 11m}", Want: "s.yaml:1:20: restart.every: 11m0s is out of bounds; expected 0s to 10m0s"})
	faulttest.Params(t, Restart, tests)
	faulttest.Params(t, Crash, []faulttest.Case{
		{Text: "{}"}, {Text: "{downtime: 0s}"},
		{Text: "{downtime: -1s}", Want: "s.yaml:1:12: crash.downtime: -1s is out of bounds; expected 0s to 10m0s"},
	})
	faulttest.Params(t, Freeze, []faulttest.Case{
		{Text: "{}"}, {Text: "{replica: all}"},
		{Text: "{replica: some}", Want: `s.yaml:1:11: freeze.replica: unknown value "some"; expected one of leader, all`},
	})
}

// fakeSubject is a fake of the controllers under test, with two replicas. It is also a Recorder.
// It stores each call of its methods and each history record as text, with the time.
type fakeSubject struct {
	mu            sync.Mutex
	begun         time.Time
	log           []string
	running       map[string]bool
	leaderAfter   time.Duration // time after which the first replica holds the lease
	failingStarts int           // number of starts that fail
}

func newFakeSubject(leaderAfter time.Duration) *fakeSubject {
	return &fakeSubject{begun: time.Now(), running: map[string]bool{"subject-0": true, "subject-1": true}, leaderAfter: leaderAfter}
}

func (s *fakeSubject) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%s %s", time.Since(s.begun), fmt.Sprintf(format, args...)))
}

func (s *fakeSubject) Append(record history.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("%s %s", record.Fault.Event, record.Fault.Detail)
}

func (s *fakeSubject) Replicas() []string { return []string{"subject-0", "subject-1"} }

func (s *fakeSubject) Leader(context.Context) (string, error) {
	if time.Since(s.begun) < s.leaderAfter {
		return "", nil
	}
	return "subject-0", nil
}

func (s *fakeSubject) end(replica, how string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running[replica] {
		return false, nil
	}
	s.running[replica] = false
	s.note("%s %s", how, replica)
	return true, nil
}

func (s *fakeSubject) Kill(_ context.Context, replica string) (bool, error) {
	return s.end(replica, "kill")
}

func (s *fakeSubject) Terminate(_ context.Context, replica string) (bool, error) {
	return s.end(replica, "terminate")
}

func (s *fakeSubject) Pause(_ context.Context, replica string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("pause %s", replica)
	return s.running[replica], nil
}

func (s *fakeSubject) Resume(_ context.Context, replica string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("resume %s", replica)
	return nil
}

func (s *fakeSubject) Start(_ context.Context, replica string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failingStarts > 0 {
		s.failingStarts--
		return errors.New("no room")
	}
	s.running[replica] = true
	s.note("start %s", replica)
	return nil
}

// TestRestart checks which method calls and history records the faults restart, crash and freeze
// cause, and at which times.
func TestRestart(t *testing.T) {
	between := interceptor.New(nil, clock.RealClock{})
	none, asked := trigger.Match{}, trigger.Match{Description: "asked", Replica: "subject-1"}
	for _, test := range []struct {
		name, params  string
		leaderAfter   time.Duration // time after which a replica holds the lease
		failingStarts int
		heal          time.Duration // time after which the fault is healed
		want          []string
		faultType     faults.Type
		match         trigger.Match
	}{
		{"the leader is killed", "{how: kill, downtime: 2s}", 0, 0, 5 * time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "2s start subject-0", "5s healed stopped 1 replica (kill)"}, Restart, none},
		{"the leader is terminated", "{how: terminate}", 0, 0, 5 * time.Second, []string{
			"0s injected ", "0s terminate subject-0", "0s fired terminated subject-0", "1s start subject-0", "5s healed stopped 1 replica (terminate)"}, Restart, none},
		{"all are killed", "{how: kill, replica: all, downtime: 3s}", 0, 0, 5 * time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "0s kill subject-1", "0s fired killed subject-1",
			"3s start subject-0", "3s start subject-1", "5s healed stopped 2 replicas (kill)"}, Restart, none},
		{"healing cuts the downtime short", "{how: kill, downtime: 9m}", 0, 0, time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "1s start subject-0", "1s healed stopped 1 replica (kill)"}, Restart, none},
		{"no leader at first", "{how: kill}", time.Second, 0, 5 * time.Second, []string{
			"0s injected ", "1s kill subject-0", "1s fired killed subject-0", "2s start subject-0", "5s healed stopped 1 replica (kill)"}, Restart, none},
		{"no leader", "{how: kill}", time.Hour, 0, 5 * time.Second, []string{"0s injected ", "5s healed stopped 0 replicas (kill)"}, Restart, none},
		{"the first start fails", "{how: kill}", 0, 1, 5 * time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "1s failed no room", "5s start subject-0", "5s healed stopped 1 replica (kill)"}, Restart, none},
		{"every start fails", "{how: kill}", 0, 2, 5 * time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "1s failed no room", "5s failed healing fault 3 (restart): no room"}, Restart, none},
		{"a loop", "{how: kill, times: 2, every: 1s, downtime: 500ms}", 0, 0, 5 * time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "500ms start subject-0",
			"1.5s kill subject-0", "1.5s fired killed subject-0", "2s start subject-0", "5s healed stopped 2 replicas (kill)"}, Restart, none},
		{"healing ends a loop", "{how: kill, times: 9, every: 3s, downtime: 0s}", 0, 0, time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "0s start subject-0", "1s healed stopped 1 replica (kill)"}, Restart, none},
		{"a crash of the replica that matched the trigger", "{downtime: 2s}", time.Hour, 0, 5 * time.Second, []string{
			"0s injected asked", "0s kill subject-1", "0s fired killed subject-1", "2s start subject-1", "5s healed stopped 1 replica (kill)"}, Crash, asked},
		{"a crash of the leader", "{}", 0, 0, 5 * time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "1s start subject-0", "5s healed stopped 1 replica (kill)"}, Crash, none},
		{"a freeze of the leader", "{}", time.Second, 0, 5 * time.Second, []string{
			"0s injected ", "1s pause subject-0", "1s fired paused subject-0", "5s resume subject-0", "5s healed paused 1 replica"}, Freeze, none},
		{"a freeze of the replica that matched the trigger", "{}", time.Hour, 0, 5 * time.Second, []string{
			"0s injected asked", "0s pause subject-1", "0s fired paused subject-1", "5s resume subject-1", "5s healed paused 1 replica"}, Freeze, asked},
		{"a freeze of all replicas", "{replica: all}", 0, 0, 5 * time.Second, []string{
			"0s injected ", "0s pause subject-0", "0s fired paused subject-0", "0s pause subject-1", "0s fired paused subject-1",
			"5s resume subject-0", "5s resume subject-1", "5s healed paused 2 replicas"}, Freeze, none},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeSubject(test.leaderAfter)
				s.failingStarts = test.failingStarts
				fault, err := faulttest.Parse(test.faultType, test.params)
				if err != nil {
					t.Fatal(err)
				}
				env := &faults.Env{Subject: s, Clock: clock.RealClock{}, Interceptor: between, Trigger: test.match, Report: faults.NewReporter(s, 3, "restart")}
				if err := faults.Inject(t.Context(), fault, env); err != nil {
					t.Fatal(err)
				}
				<-time.After(test.heal)
				err = faults.Heal(t.Context(), fault, env)
				if wantErr := test.failingStarts > 1; (err != nil) != wantErr {
					t.Errorf("healing: error %v; want one: %t", err, wantErr)
				}
				if test.name == "all are killed" { // the fault kills the replicas concurrently, in any order
					slices.SortStableFunc(s.log[1:5], func(a, b string) int { return int(a[len(a)-1]) - int(b[len(b)-1]) })
				}
				if diff := cmp.Diff(test.want, s.log); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestHealWithoutInject checks that Heal succeeds if Inject was never called.
func TestHealWithoutInject(t *testing.T) {
	fault, err := faulttest.Parse(Restart, "{how: kill}")
	if err != nil {
		t.Fatal(err)
	}
	if err := fault.Heal(t.Context()); err != nil {
		t.Error(err)
	}
}
