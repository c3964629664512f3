package environment

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

const (
	// schedulingInterval is the time between two measurements of scheduling delays.
	schedulingInterval = 500 * time.Millisecond
	// schedulingMin is the minimum delay in an interval that is recorded as a stall.
	schedulingMin = 200 * time.Millisecond
	// schedulingMax is the maximum delay that is recorded for an interval. The threads of a
	// process may wait at the same time, so the sum of their delays may be longer than the
	// interval.
	schedulingMax = schedulingInterval * 3 / 4
)

// subjectPrefix is the prefix of the names of the subject's processes.
const subjectPrefix = "subject-"

// schedulingDelays measures for how long the processes of the subject were ready to run but got
// no CPU. It records long delays as stalls.
//
// It reads the run-queue wait of each thread from Linux. On other systems, and for processes on
// other machines, it records nothing.
type schedulingDelays struct {
	procDir string // the directory /proc, except in tests

	mu   sync.Mutex
	pids map[string]int // the process ID of each running replica, by name
	// waits contains the total run-queue wait of each thread at the last measurement, by the
	// name of the replica and the path of the thread's statistics.
	waits map[string]map[string]time.Duration
}

func newSchedulingDelays(procDir string) *schedulingDelays {
	return &schedulingDelays{procDir: procDir, pids: map[string]int{}, waits: map[string]map[string]time.Duration{}}
}

// observe notes which processes of the subject run on this machine.
func (s *schedulingDelays) observe(r *history.Record) {
	if r.Process == nil || !strings.HasPrefix(r.Process.Name, subjectPrefix) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Process.Event {
	case history.ProcessStarted:
		s.pids[r.Process.Name] = r.Process.PID
		delete(s.waits, r.Process.Name)
	case history.ProcessStopped, history.ProcessDied:
		delete(s.pids, r.Process.Name)
	}
}

// record records long delays until the caller calls stop.
func (s *schedulingDelays) record(clock clock.WithTicker, recorder *history.Recorder) (stop func()) {
	return history.Every(clock, schedulingInterval, func() {
		for _, stall := range s.measure() {
			recorder.Append(history.Record{Stall: &stall})
		}
	})
}

// measure returns a stall for each replica whose threads waited for long since the last
// measurement.
func (s *schedulingDelays) measure() (stalls []history.Stall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, pid := range s.pids {
		if pid == 0 {
			continue
		}
		before, now := s.waits[name], runQueueWaits(filepath.Join(s.procDir, fmt.Sprint(pid)))
		s.waits[name] = now
		if before == nil {
			continue
		}
		var delay time.Duration
		for thread, wait := range now {
			delay += max(0, wait-before[thread])
		}
		if delay >= schedulingMin {
			stalls = append(stalls, history.Stall{Process: name, Duration: min(delay, schedulingMax)})
		}
	}
	return stalls
}

// runQueueWaits returns the total run-queue wait of each thread of a process since the thread
// started. The second number in the file schedstat of a thread is this time in nanoseconds. The
// argument dir is the directory of the process in /proc.
func runQueueWaits(dir string) map[string]time.Duration {
	waits := map[string]time.Duration{}
	threads, _ := filepath.Glob(filepath.Join(dir, "task", "*", "schedstat")) // the only error is for an invalid pattern
	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if err != nil {
			continue // the thread has ended
		}
		var running, waiting int64
		if n, _ := fmt.Sscan(string(content), &running, &waiting); n == 2 {
			waits[thread] = time.Duration(waiting)
		}
	}
	return waits
}
