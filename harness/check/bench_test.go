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
)

// BenchmarkHistory judges histories of 10^4, 10^5 and 10^6 records, as `gauntlet
// check` does, from files: of a cluster that is as large at the end as at the
// beginning, so that only what is kept of the past may grow. Of the longest it prints
// what a million records take, of time and of CPU, what a record costs of the latter
// in terms of the shortest history, how much memory is held on the way, and that in
// terms of the one before: it grows until as much is kept as may be.
func BenchmarkHistory(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the command has it
	sizes := []int{1e4, 1e5, 1e6}
	var paths []string
	for _, records := range sizes {
		paths = append(paths, longHistory(b, records))
	}
	for b.Loop() {
		var seconds, cost, held []float64
		for i, path := range paths {
			begun, before := time.Now(), cpuSeconds(b)
			if _, _, err := Run(testSettings, history.ReadFile(path)); err != nil {
				b.Fatal(err)
			}
			seconds = append(seconds, time.Since(begun).Seconds()*1e6/float64(sizes[i]))
			cost = append(cost, (cpuSeconds(b)-before)*1e6/float64(sizes[i]))
			held = append(held, heldBytes(b, path, sizes[i]))
			b.Logf("%d records: a million take %.1f s, and %.1f s of CPU; %.1f MB held", sizes[i], seconds[i], cost[i], held[i]/1e6)
		}
		last := len(sizes) - 1
		b.ReportMetric(seconds[last], "s/million")
		b.ReportMetric(cost[last], "CPU-s/million")
		b.ReportMetric(cost[last]/cost[0], "cost-ratio")
		b.ReportMetric(held[last]/1e6, "MB-held")
		b.ReportMetric(held[last]/held[last-1], "memory-ratio")
	}
}

// cpuSeconds is what this process has used so far.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// heldBytes is how much memory is in use at the most while a history is judged.
func heldBytes(b *testing.B, path string, records int) float64 {
	b.Helper()
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	most := uint64(0)
	_, _, err := Run(testSettings, func(yield func(*history.Record, error) bool) {
		for record, err := range history.ReadFile(path) {
			if !yield(record, err) {
				return
			}
			if record.Seq%int64(records/8) == 0 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc)
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return float64(most - min(most, before.HeapAlloc))
}

// longHistory writes a history of about so many records to a file: two owners whose
// pods come and go, as users scale them and nodes fail.
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

// churn lets a user scale an owner and two pods die. Those that have failed are
// cleared away: the cluster stays as large as it is.
func (s *cluster) churn() {
	owners, pods := s.live(s.resource), s.live(podResource)
	if s.random.IntN(4) == 0 {
		s.scale(owners[s.random.IntN(len(owners))].UID, 30+s.random.IntN(40))
	}
	for range min(2, len(pods)) {
		s.kill(pods[s.random.IntN(len(pods))])
	}
}
