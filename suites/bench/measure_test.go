package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/environment"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// cost is what the controllers under test used in one phase of a load, such as CPU time and memory.
type cost struct {
	took      time.Duration // from the start of the phase until its operation had its result
	cpu, user time.Duration // by the clock of the subject's own process; cpu is user and system
	gc        time.Duration // the part of cpu for garbage collection, which Go estimates
	apiServer time.Duration // CPU time of kube-apiserver
	allocs    float64       // number of allocations
	allocated float64       // bytes
	peak      float64       // largest resident set of the subject during the phase, in bytes
	traffic
}

// traffic counts the requests and watch events of the controllers under test, which the fault proxy
// recorded. It leaves out leases, because their number depends on the time.
type traffic struct {
	requests       map[string]int // by verb, resource and subresource
	sent, received int            // bytes of bodies and watch events
	events         int            // watch events
}

// run is a subject on a running control plane.
type run struct {
	*environment.Environment
	subject, apiServer int // process IDs

	mu       sync.Mutex // guards the fields below
	traffic  traffic
	excluded map[uint64]bool // the IDs of requests that are not counted
	replica  int             // the process ID in the record of the subject's start
}

// observe adds a record of the history to the counts of requests, bytes and watch events.
func (r *run) observe(record *history.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.traffic
	switch {
	case record.Process != nil && record.Process.Event == history.ProcessStarted:
		r.replica = record.Process.PID
	case record.Request != nil && (record.Request.Resource == "" || record.Request.Resource == "leases.coordination.k8s.io"):
		r.excluded[record.Request.ID] = true
	case record.Request != nil:
		call := record.Request.Verb + " " + record.Request.Resource
		if record.Request.Subresource != "" {
			call += "/" + record.Request.Subresource
		}
		t.requests[call]++
		t.sent += record.Request.Bytes
	case record.Response != nil && !r.excluded[record.Response.ID]:
		t.received += record.Response.Bytes
	case record.Delivery != nil:
		t.received += record.Delivery.Bytes
		t.events++
	}
}

// now returns a copy of the counts of requests, bytes and watch events so far.
func (r *run) now() traffic {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.traffic
	t.requests = maps.Clone(t.requests)
	return t
}

// since returns the counts between two calls of [run.now]. The argument before is the result of the
// first call.
func (t traffic) since(before traffic) traffic {
	for call, count := range before.requests {
		if t.requests[call] -= count; t.requests[call] == 0 {
			delete(t.requests, call)
		}
	}
	t.sent, t.received, t.events = t.sent-before.sent, t.received-before.received, t.events-before.events
	return t
}

// total returns the number of requests of all kinds.
func (t traffic) total() (count int) {
	for _, n := range t.requests {
		count += n
	}
	return count
}

// measure runs a load on a subject, and returns the cost of each phase.
func measure(b *testing.B, l load, target subject.Target) []cost {
	b.Helper()
	costs, err := tryMeasure(b.Context(), b.TempDir(), l, target)
	if err != nil {
		b.Fatalf("%s on %s: %v", l.name(), target, err)
	}
	return costs
}

func tryMeasure(ctx context.Context, dir string, l load, target subject.Target) (costs []cost, err error) {
	r := &run{traffic: traffic{requests: map[string]int{}}, excluded: map[uint64]bool{}}
	const podsPerNode = 100
	r.Environment, err = environment.Start(ctx, environment.Options{
		ControlPlane: providers.Options{Nodes: max(2, l.pods/podsPerNode), Pods: l.pods},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Stop(context.WithoutCancel(ctx))) }()
	file := filepath.Join(dir, "history.jsonl")
	defer func() { err = errors.Join(err, os.Remove(file)) }()
	spec := scenario.DefaultSubject()
	spec.QPS, spec.Burst = 10_000, 20_000 // so high that they have no effect
	err = r.Record(ctx, environment.RecordOptions{File: file, Start: history.Start{Scenario: l.name()}, OnRecord: r.observe})
	if err == nil {
		err = r.StartProxy(ctx, nil)
	}
	if err == nil {
		err = r.StartSubject(ctx, environment.SubjectOptions{Target: target, Spec: spec, Ours: filepath.Join(repository, "bin", "workload-controller-manager")})
	}
	if err == nil {
		err = r.pin()
	}
	if err == nil { // the first pods open connections and fill caches
		err = r.warmUp(ctx)
	}
	if err != nil {
		return nil, err
	}
	stop := r.startProfiles(ctx, l, target)
	defer func() { err = errors.Join(err, stop()) }()
	for _, p := range l.phases {
		if err != nil {
			return nil, err
		}
		var c cost
		c, err = r.measure(ctx, p)
		costs = append(costs, c)
	}
	return costs, err
}

// warmUp makes the subject handle a few pods before the measurement.
func (r *run) warmUp(ctx context.Context) error {
	for _, p := range ladder(10).phases {
		if err := p.run(ctx, r.Admin); err != nil {
			return fmt.Errorf("warming up: %w", err)
		}
	}
	return r.rest(ctx)
}

// measure runs a phase and returns its cost. The cost includes requests that the subject still
// sends after the phase has its result, such as status updates.
func (r *run) measure(ctx context.Context, p phase) (c cost, err error) {
	before, err := r.sample(ctx, true)
	if err != nil {
		return c, err
	}
	start := time.Now()
	if err := p.run(ctx, r.Admin); err != nil {
		return c, fmt.Errorf("phase %s: %w", p.name, err)
	}
	took := time.Since(start)
	if err := r.rest(ctx); err != nil {
		return c, err
	}
	after, err := r.sample(ctx, false)
	if err != nil {
		return c, err
	}
	return cost{
		took: took,
		cpu:  after.cpu - before.cpu, user: after.user - before.user, gc: after.gc - before.gc,
		apiServer: after.apiServer - before.apiServer,
		allocs:    after.allocs - before.allocs, allocated: after.allocated - before.allocated,
		peak:    after.peak,
		traffic: after.traffic.since(before.traffic),
	}, nil
}

// restTime is how long the subject must send nothing before a phase has ended.
const restTime = time.Second

// rest waits until the subject has sent no request for restTime. Thus no late request of a phase
// counts for the next phase.
func (r *run) rest(ctx context.Context) error {
	last, since := -1, time.Duration(0)
	return waitUntil(ctx, func(at time.Duration) (bool, error) {
		if n := r.now().total(); n != last {
			last, since = n, at
		}
		return at-since >= restTime, nil
	}, phaseTimeout)
}

// sample reads all clocks and counters. The subject must be idle.
//
// The request for the subject's metrics itself costs the subject CPU time. The parameter begins
// says on which side of the measured time this request must be.
func (r *run) sample(ctx context.Context, begins bool) (c cost, err error) {
	clocks := func() {
		var errs [3]error
		c.cpu, errs[0] = cpuClock(r.subject)
		c.user, errs[1] = userTime(r.subject)
		c.apiServer, errs[2] = cpuClock(r.apiServer)
		err = errors.Join(append(errs[:], err)...)
	}
	if !begins {
		clocks()
		c.peak, err = peakMemory(r.subject, err)
	}
	metrics, fetchErr := r.Subject.Fetch(ctx, r.Subject.Replicas()[0], subject.MetricsPath)
	err = errors.Join(err, fetchErr)
	values := parseMetrics(string(metrics))
	c.allocs, c.allocated = values["go_memstats_mallocs_total"], values["go_memstats_alloc_bytes_total"]
	c.gc = time.Duration(values["go_cpu_classes_gc_total_cpu_seconds_total"] * float64(time.Second))
	if begins {
		err = errors.Join(err, os.WriteFile(procFile(r.subject, "clear_refs"), []byte("5"), 0)) // resets the peak
		clocks()
	}
	c.traffic = r.now()
	return c, err
}

// parseMetrics returns the metrics without labels from the text format of Prometheus.
func parseMetrics(text string) map[string]float64 {
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = number
		}
	}
	return values
}

// procFile returns the path of a file in /proc about a process.
func procFile(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// cpuClock returns the CPU time that a process has used, by the process's own clock. It has
// nanoseconds, while /proc/PID/stat counts hundredths of seconds.
func cpuClock(pid int) (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED: the time that the scheduler gave to all threads
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|scheduled), &t)
	return time.Duration(t.Nano()), err
}

// userTime returns the part of the CPU time that a process did not spend in the kernel.
func userTime(pid int) (time.Duration, error) {
	const user = 1 // CPUCLOCK_VIRT
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|user), &t)
	return time.Duration(t.Nano()), err
}

// peakMemory returns the largest resident set of a process, in bytes. It returns the parameter err
// too if it is not nil.
func peakMemory(pid int, err error) (float64, error) {
	text, readErr := os.ReadFile(procFile(pid, "status"))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, parseErr := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kib * 1024, errors.Join(err, parseErr)
		}
	}
	return 0, errors.Join(err, readErr, errors.New("found no VmHWM"))
}

// pin moves the subject to a CPU of its own. This process and the control plane move to the other
// CPUs. On a machine with one CPU it does nothing. It also finds the process IDs.
func (r *run) pin() error {
	r.mu.Lock()
	r.subject = r.replica
	r.mu.Unlock()
	var available unix.CPUSet
	if err := unix.SchedGetaffinity(1, &available); err != nil {
		return fmt.Errorf("reading the available CPUs: %w", err)
	}
	var cpus []int
	for i := range len(available) * 64 {
		if available.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	var own, others unix.CPUSet
	own.Set(cpus[len(cpus)-1])
	for _, i := range cpus[:len(cpus)-1] {
		others.Set(i)
	}
	family, err := descendants(os.Getpid())
	if err != nil {
		return err
	}
	for pid, name := range family {
		set := &others
		switch {
		case pid == r.subject:
			set = &own
		case name == "kube-apiserver":
			r.apiServer = pid
		}
		if len(cpus) > 1 {
			if err := setAffinity(pid, set); err != nil {
				return fmt.Errorf("choosing a CPU for %s (process %d): %w", name, pid, err)
			}
		}
	}
	if family[r.subject] == "" || r.apiServer == 0 {
		return fmt.Errorf("found the processes %v; expected the subject %d and a kube-apiserver", family, r.subject)
	}
	return nil
}

// setAffinity sets the CPUs of all threads of a process. A thread that has ended meanwhile needs
// none, and a new thread has those of its parent.
func setAffinity(pid int, set *unix.CPUSet) error {
	threads, err := os.ReadDir(procFile(pid, "task"))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err == nil {
			err = unix.SchedSetaffinity(id, set)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// descendants returns a process and all processes that it has started, directly or indirectly,
// with the names of the programs.
func descendants(root int) (map[int]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	parents, names := map[int]int{}, map[int]string{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(procFile(pid, "stat"))
		if err != nil {
			continue // the process has ended
		}
		names[pid], parents[pid] = parseStat(string(text))
	}
	family := map[int]string{}
	for pid := range names {
		for at := pid; at > 1; at = parents[at] {
			if at == root {
				family[pid] = names[pid]
				break
			}
		}
	}
	return family, nil
}

// parseStat returns the name of the program and the parent from the content of /proc/PID/stat. The
// name is in parentheses and may contain any character.
func parseStat(text string) (name string, parent int) {
	start, end := strings.Index(text, "("), strings.LastIndex(text, ")")
	if start < 0 || end < start {
		return "", 0
	}
	if fields := strings.Fields(text[end+1:]); len(fields) > 1 {
		parent, _ = strconv.Atoi(fields[1])
	}
	return text[start+1 : end], parent
}
