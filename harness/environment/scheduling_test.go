package environment

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestSchedulingDelays checks after which waits of threads for a CPU the method measure returns a
// stall. The threads belong to the controllers under test.
func TestSchedulingDelays(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []time.Duration // the total wait of each thread at the first measurement
		after  []time.Duration // the total wait of each thread at the second measurement
		events []history.ProcessEvent
		want   []history.Stall
	}{
		{"no delay", []time.Duration{time.Hour}, []time.Duration{time.Hour}, nil, nil},
		{"a short delay", []time.Duration{0}, []time.Duration{schedulingMin - 1}, nil, nil},
		{"one thread", []time.Duration{time.Second}, []time.Duration{1250 * time.Millisecond}, nil, []history.Stall{{Process: "subject-0", Duration: 250 * time.Millisecond}}},
		{"two threads", []time.Duration{0, 0}, []time.Duration{150 * time.Millisecond, 150 * time.Millisecond}, nil, []history.Stall{{Process: "subject-0", Duration: 300 * time.Millisecond}}},
		{"a new thread", []time.Duration{0}, []time.Duration{0, 210 * time.Millisecond}, nil, []history.Stall{{Process: "subject-0", Duration: 210 * time.Millisecond}}},
		{"all the time, by many threads", []time.Duration{0, 0}, []time.Duration{time.Second, time.Second}, nil, []history.Stall{{Process: "subject-0", Duration: schedulingMax}}},
		{"a thread that has ended", []time.Duration{0, time.Hour}, []time.Duration{0}, nil, nil},
		{"a process that has ended", []time.Duration{0}, []time.Duration{time.Second}, []history.ProcessEvent{history.ProcessDied}, nil},
		{"a process that has just started", []time.Duration{0}, []time.Duration{time.Second}, []history.ProcessEvent{history.ProcessStopped, history.ProcessStarted}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(waits []time.Duration) {
				if err := os.RemoveAll(filepath.Join(dir, "42")); err != nil {
					t.Fatal(err)
				}
				for i, wait := range waits {
					thread := filepath.Join(dir, "42", "task", fmt.Sprint(i))
					if err := os.MkdirAll(thread, 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(thread, "schedstat"), fmt.Appendf(nil, "17 %d 3\n", wait), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			delays := newSchedulingDelays(dir)
			observe := func(name string, pid int, event history.ProcessEvent) {
				delays.observe(&history.Record{Process: &history.Process{Name: name, PID: pid, Event: event}})
			}
			observe("subject-0", 42, history.ProcessStarted)
			observe("subject-1", 0, history.ProcessStarted) // a process in a pod has no PID on this machine
			observe("kube-apiserver", 42, history.ProcessStarted)
			write(c.before)
			if got := delays.measure(); got != nil {
				t.Errorf("first measurement: got %v, want none", got)
			}
			for _, event := range c.events {
				observe("subject-0", 42, event)
			}
			write(c.after)
			if diff := cmp.Diff(c.want, delays.measure()); diff != "" {
				t.Errorf("stalls (-want +got):\n%s", diff)
			}
		})
	}
}
