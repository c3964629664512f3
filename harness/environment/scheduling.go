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
	// schedulingInterval is the time between two measurements of the threads' run-queue waits.
	schedulingInterval = 500 * time.Millisecond
	// schedulingMin is the minimum delay in one interval that schedulingDelays records as a stall. A
	// stall is a time without CPU. Shorter delays add up on a busy machine, so the minimum is low.
	schedulingMin = 50 * time.Millisecond
	// schedulingMax is the maximum duration of a recorded stall, a time without CPU. Several threads
	// of a process may wait at the same time, so the sum of their delays may exceed the interval. The
	// limit keeps the recorded stall below the interval.
	schedulingMax = schedulingInterval * 3 / 4
)

// subjectPrefix is the prefix of the names of the replicas of the program under test, such as
// subject-0.
const subjectPrefix = "subject-"

// schedulingDelays measures how long the processes of the controllers under test were ready to run
// but got no CPU. It records long delays as stalls, and the checks extend their time limits by the
// stalls.
//
// schedulingDelays reads the run-queue wait of each thread from /proc of Linux. On other systems,
// and for processes on other machines, it records nothing.
type schedulingDelays struct {
	procDir string // the directory /proc; in tests, another directory

	mu   sync.Mutex
	pids map[string]int // process ID of each running replica, by replica name; 0 for a process on another machine
	// waits contains the total run-queue wait of each thread at the last measurement. The keys are
	// the replica name and the path of the thread's file schedstat.
	waits map[string]map[string]time.Duration
}

func newSchedulingDelays(procDir string) *schedulingDelays {
	return &schedulingDelays{procDir: procDir, pids: map[string]int{}, waits: map[string]map[string]time.Duration{}}
}

// observe updates the process IDs of the replicas of the controllers under test from the next
// record of the history.
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

// record starts a goroutine that measures the delays every schedulingInterval. If a replica got no
// CPU for a while, the goroutine appends a stall to the history. The goroutine ends when the
// caller calls the result stop.
func (s *schedulingDelays) record(clock clock.WithTicker, recorder *history.Recorder) (stop func()) {
	return history.Every(clock, schedulingInterval, func() {
		for _, stall := range s.measure() {
			recorder.Append(history.Record{Stall: &stall})
		}
	})
}

// measure returns a stall for each replica that got too little CPU time. Since the last
// measurement, the threads of such a replica have together waited at least schedulingMin for a CPU.
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

// runQueueWaits returns how long each thread of a process has waited for a CPU since the thread
// started. It reads the second number, in nanoseconds, of each file dir/task/*/schedstat. The
// argument dir is the process's directory in /proc.
func runQueueWaits(dir string) map[string]time.Duration {
	waits := map[string]time.Duration{}
	threads, _ := filepath.Glob(filepath.Join(dir, "task", "*", "schedstat")) // Glob fails only if the pattern is invalid
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
