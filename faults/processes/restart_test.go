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
	"github.com/kube-gauntlet/gauntlet/faults/internal/faulttest"
	"github.com/kube-gauntlet/gauntlet/harness/history"
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
	faulttest.Params(t, Restart, tests)
}

// world is a subject and a history in memory: what happens to both, and when.
type world struct {
	mu      sync.Mutex
	begun   time.Time
	log     []string
	running map[string]bool
	leads   time.Duration // when the first replica begins to lead
	refuses int           // so many starts fail
}

func newWorld(leads time.Duration) *world {
	return &world{begun: time.Now(), running: map[string]bool{"subject-0": true, "subject-1": true}, leads: leads}
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%s %s", time.Since(w.begun), fmt.Sprintf(format, args...)))
}

func (w *world) Append(record history.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("%s %s", record.Fault.Event, record.Fault.Detail)
}

func (w *world) Replicas() []string { return []string{"subject-0", "subject-1"} }

func (w *world) Leader(context.Context) (string, error) {
	if time.Since(w.begun) < w.leads {
		return "", nil
	}
	return "subject-0", nil
}

func (w *world) end(replica, how string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running[replica] {
		return false, nil
	}
	w.running[replica] = false
	w.note("%s %s", how, replica)
	return true, nil
}

func (w *world) Kill(_ context.Context, replica string) (bool, error) { return w.end(replica, "kill") }

func (w *world) Terminate(_ context.Context, replica string) (bool, error) {
	return w.end(replica, "terminate")
}

func (w *world) Start(_ context.Context, replica string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuses > 0 {
		w.refuses--
		return errors.New("no room")
	}
	w.running[replica] = true
	w.note("start %s", replica)
	return nil
}

// TestRestart: what happens, and when, to whom.
func TestRestart(t *testing.T) {
	for _, test := range []struct {
		name, params string
		leads        time.Duration // when there is a leader
		refuses      int
		heal         time.Duration // when the fault is healed
		want         []string
	}{
		{"the leader is killed", "{how: kill, downtime: 2s}", 0, 0, 5 * time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "2s start subject-0", "5s healed kill of 1 replicas"}},
		{"the leader is terminated", "{how: terminate}", 0, 0, 5 * time.Second, []string{
			"0s injected ", "0s terminate subject-0", "0s fired terminated subject-0", "1s start subject-0", "5s healed terminate of 1 replicas"}},
		{"all are killed", "{how: kill, replica: all, downtime: 3s}", 0, 0, 5 * time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "0s kill subject-1", "0s fired killed subject-1",
			"3s start subject-0", "3s start subject-1", "5s healed kill of 2 replicas"}},
		{"healing cuts the downtime short", "{how: kill, downtime: 9m}", 0, 0, time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "1s start subject-0", "1s healed kill of 1 replicas"}},
		{"there is no leader at first", "{how: kill}", time.Second, 0, 5 * time.Second, []string{
			"0s injected ", "1s kill subject-0", "1s fired killed subject-0", "2s start subject-0", "5s healed kill of 1 replicas"}},
		{"there is no leader", "{how: kill}", time.Hour, 0, 5 * time.Second, []string{"0s injected ", "5s healed kill of 0 replicas"}},
		{"it does not start at first", "{how: kill}", 0, 1, 5 * time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "1s failed no room", "5s start subject-0", "5s healed kill of 1 replicas"}},
		{"it does not start", "{how: kill}", 0, 2, 5 * time.Second, []string{
			"0s injected ", "0s kill subject-0", "0s fired killed subject-0", "1s failed no room", "5s failed healing fault 3 (restart): no room"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(test.leads)
				w.refuses = test.refuses
				fault, err := faulttest.Parse(Restart, test.params)
				if err != nil {
					t.Fatal(err)
				}
				env := &faults.Env{Subject: w, Clock: clock.RealClock{}, Report: faults.NewReporter(w, 3, "restart")}
				if err := faults.Inject(t.Context(), fault, env); err != nil {
					t.Fatal(err)
				}
				<-time.After(test.heal)
				err = faults.Heal(t.Context(), fault, env)
				if wantErr := test.refuses > 1; (err != nil) != wantErr {
					t.Errorf("healing: error %v; want one: %t", err, wantErr)
				}
				if test.name == "all are killed" { // they end at once, in any order
					slices.SortStableFunc(w.log[1:5], func(a, b string) int { return int(a[len(a)-1]) - int(b[len(b)-1]) })
				}
				if diff := cmp.Diff(test.want, w.log); diff != "" {
					t.Errorf("what happened (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestHealWithoutInject: a fault that never began is healed.
func TestHealWithoutInject(t *testing.T) {
	fault, err := faulttest.Parse(Restart, "{how: kill}")
	if err != nil {
		t.Fatal(err)
	}
	if err := fault.Heal(t.Context()); err != nil {
		t.Error(err)
	}
}
