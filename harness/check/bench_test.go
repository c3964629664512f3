package check

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// BenchmarkHistory checks histories of 10^4, 10^5 and 10^6 records from files, as the command
// gauntlet check does.
//
// The cluster in these histories keeps its size from beginning to end. Time and memory per
// record should therefore not grow with the length of the history.
//
// For the longest history, the benchmark reports seconds and CPU seconds per million records,
// and the heap in use. cost-ratio is the CPU time per record of the longest history divided by
// that of the shortest. memory-ratio is the heap for the longest history divided by that for the
// second longest. In the shortest history, the model does not reach its full size.
func BenchmarkHistory(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the command gauntlet check sets the same value
	sizes := []int{1e4, 1e5, 1e6}
	var paths []string
	for _, records := range sizes {
		paths = append(paths, longHistory(b, records))
	}
	for b.Loop() {
		var seconds, cost, held []float64
		for i, path := range paths {
			start, before := time.Now(), cpuSeconds(b)
			if _, _, err := Run(testSettings, history.ReadFile(path)); err != nil {
				b.Fatal(err)
			}
			seconds = append(seconds, time.Since(start).Seconds()*1e6/float64(sizes[i]))
			cost = append(cost, (cpuSeconds(b)-before)*1e6/float64(sizes[i]))
			held = append(held, heldBytes(b, path, sizes[i]))
			b.Logf("%d records: %.1f s and %.1f s of CPU per million records; %.1f MB of heap", sizes[i], seconds[i], cost[i], held[i]/1e6)
		}
		last := len(sizes) - 1
		b.ReportMetric(seconds[last], "s/million")
		b.ReportMetric(cost[last], "CPU-s/million")
		b.ReportMetric(cost[last]/cost[0], "cost-ratio")
		b.ReportMetric(held[last]/1e6, "MB-held")
		b.ReportMetric(held[last]/held[last-1], "memory-ratio")
	}
}

// cpuSeconds returns how much CPU time this test process has used so far.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// heldBytes returns by how many bytes the heap grows while all checks read a history.
func heldBytes(b *testing.B, path string, records int) float64 {
	b.Helper()
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	maximum := uint64(0)
	_, _, err := Run(testSettings, func(yield func(*history.Record, error) bool) {
		for record, err := range history.ReadFile(path) {
			if !yield(record, err) {
				return
			}
			if record.Seq%int64(records/8) == 0 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				maximum = max(maximum, now.HeapAlloc)
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return float64(maximum - min(maximum, before.HeapAlloc))
}

// longHistory writes a history of at least the given number of records to a file, and returns
// the file's path. The cluster has two ReplicaSets. Users scale them and nodes delete their
// pods, so that the controller replaces pods all the time.
func longHistory(b *testing.B, records int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "history.jsonl")
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewWriterSize(file, 1<<20)
	encoder := json.NewEncoder(lines)
	s := newCluster(conditions{
		seed: 1, podLag: 200 * time.Millisecond, ownerLag: 100 * time.Millisecond, grace: time.Second,
		replicas: 100, resource: replicaSets, refused: 0.01, codes: anyCode,
	})
	s.addOwner("web", 50)
	s.addOwner("db", 50)
	s.run(10 * time.Millisecond)
	s.restart(rules{})
	s.append(history.Record{Phase: &history.Phase{Name: history.PhaseChaos}})
	for s.seq < int64(records) {
		s.churn()
		s.run(s.now + 100*time.Millisecond)
		for _, r := range s.records {
			if err := encoder.Encode(r); err != nil {
				b.Fatal(err)
			}
		}
		s.records = s.records[:0]
	}
	if err := lines.Flush(); err != nil {
		b.Fatal(err)
	}
	return path
}

// churn deletes two random pods. In one of four calls, it also scales a random ReplicaSet.
func (s *cluster) churn() {
	owners, pods := s.live(s.resource), s.live(objects.PodResource)
	if s.random.IntN(4) == 0 {
		s.scale(owners[s.random.IntN(len(owners))].UID, 30+s.random.IntN(40))
	}
	for range min(2, len(pods)) {
		s.kill(pods[s.random.IntN(len(pods))])
	}
}
