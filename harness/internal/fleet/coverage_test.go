package fleet

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/coverage"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// restart is a history in which one fault acted, once.
var restart = []*history.Record{
	{Fault: &history.Fault{Name: "restart", Event: history.FaultFired}},
	{Phase: &history.Phase{Name: history.PhaseEnd}},
}

// TestCoverage checks that the counts of all pods are added up. One of the pods is killed after its
// first run, whose counts remain.
func TestCoverage(t *testing.T) {
	c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 6}, PerPod: 3, Subjects: []string{"ours"}, Profile: "calm"}
	store, now := &memory{}, clocktesting.NewFakePassiveClock(time.Unix(1, 0))
	work := func(index int, attempt string, into Store) error {
		now.SetTime(now.Now().Add(time.Second))
		w := newWorker(t, c, into, index, attempt, now)
		w.History = func(dir string) string { return filepath.Join(dir, "history.jsonl") }
		w.Prepare = func(u Unit) (campaign.Attempt, error) {
			attempt := fakeRun(t, u)
			return func(ctx context.Context) (*reports.Run, error) {
				run, err := attempt(ctx)
				if err == nil {
					writeHistory(t, w.History(run.Directory))
				}
				return run, err
			}, nil
		}
		return w.Work(t.Context())
	}
	// The writes of the first pod: campaign.json, started.json, progress.json, coverage.json, the result.
	if err := work(0, "killed", &killedStore{Store: store, writes: 5}); err == nil {
		t.Error("the killed pod has completed its work")
	}
	for index := range 2 {
		if err := work(index, "complete", store); err != nil {
			t.Error(err)
		}
	}
	merged, err := Merge(t.Context(), store, "night")
	if err != nil {
		t.Fatal(err)
	}
	counts := merged.Coverage.Counts()
	if len(counts) != 1 || counts[0].Fault != "restart" || counts[0].Times != 6 {
		t.Errorf("coverage %+v; want one cell of the fault restart, 6 times", counts)
	}
}

// writeHistory writes the history restart to a file.
func writeHistory(t *testing.T, path string) {
	t.Helper()
	recorder, err := history.Create(path, history.Start{}, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range restart {
		recorder.Append(*record)
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCoverageInJob checks that the pods of a Job get the coverage table of the campaign. A table is
// refused if a Job cannot contain it.
func TestCoverageInJob(t *testing.T) {
	var table coverage.Table
	err := table.Add(func(yield func(*history.Record, error) bool) {
		for _, record := range restart {
			if !yield(record, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 6}, PerPod: 3, Subjects: []string{"ours"}, Profile: "calm", PreferUncovered: &table}
	args := workerArgs(&c, "/store")
	at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--coverage=") })
	if at < 0 {
		t.Fatalf("arguments %q; want --coverage", args)
	}
	decoded, err := DecodeCoverage(strings.TrimPrefix(args[at], "--coverage="))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(table.Counts(), decoded.Counts()); diff != "" {
		t.Errorf("coverage in the pods (-want +got):\n%s", diff)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.PreferUncovered = new(coverage.Table)
	text := `{"format":1,"cells":[{"fault":"` + strings.Repeat("x", coverageMax) + `","outcome":"x","phase":"steady","times":1}]}`
	if err := c.PreferUncovered.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--prefer-uncovered") {
		t.Errorf("a large coverage table: error %v; want one about --prefer-uncovered", err)
	}
	if _, err := DecodeCoverage("rubbish"); err == nil {
		t.Error("DecodeCoverage accepts rubbish")
	}
}
