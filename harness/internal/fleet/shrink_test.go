package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// failingRun returns an attempt whose run fails if the seed is even. Its reason has the last digit of
// the seed as a word, so that there are several failure groups.
func failingRun(t *testing.T, u Unit) campaign.Attempt {
	return func(ctx context.Context) (*reports.Run, error) {
		run, err := fakeRun(t, u)(ctx)
		run.Verdict = check.Pass
		if u.Seed%2 == 0 {
			run.Verdict = check.Fail
			run.Results = []check.Result{{Check: "max-surge", Verdict: check.Fail, Reason: "reason " + strings.Repeat("x", int(u.Seed%10))}}
		}
		return run, err
	}
}

// failedCampaign makes the runs of a campaign, of which some fail, and merges them.
func failedCampaign(t *testing.T, store Store) *Merged {
	t.Helper()
	c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 24}, PerPod: 5, Subjects: []string{"ours"}, Profile: "calm", Provider: "embedded"}
	for index := range int(c.indexes()) {
		w := newWorker(t, c, store, index, fmt.Sprint("pod", index), clock.RealClock{})
		w.Prepare = func(u Unit) (campaign.Attempt, error) { return failingRun(t, u), nil }
		if err := w.Work(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := Merge(t.Context(), store, "night")
	if err != nil {
		t.Fatal(err)
	}
	return merged
}

// TestShrinking checks that a campaign that shrinks failures has one index for each failure group. Its
// pod must find the smallest run of the group in the store.
func TestShrinking(t *testing.T) {
	store := Directory(t.TempDir())
	merged := failedCampaign(t, store)
	c, err := merged.Shrinking("night-shrink")
	if err != nil {
		t.Fatal(err)
	}
	var seeds []uint64
	for index := range int(c.indexes()) {
		units, err := c.UnitsOf(index)
		if err != nil || len(units) != 1 || units[0].Check != "max-surge" {
			t.Fatalf("index %d: units %v, %v; want one failure of max-surge", index, units, err)
		}
		seeds = append(seeds, units[0].Seed)
		dir := filepath.Join(t.TempDir(), "run")
		run, err := c.Failed(t.Context(), store, units[0], dir)
		if err != nil || run.Seed != units[0].Seed || run.Verdict != check.Fail || run.Directory != dir {
			t.Fatalf("%s: run %+v, %v; want the failed run", units[0], run, err)
		}
		content, err := os.ReadFile(filepath.Join(dir, "scenario.yaml"))
		if want := (Unit{Seed: run.Seed, Subject: "ours"}).String(); err != nil || string(content) != want {
			t.Errorf("scenario of the run: found %q, %v; want %q", content, err, want)
		}
	}
	if diff := cmp.Diff([]uint64{10, 2, 4, 6, 8}, seeds); diff != "" {
		t.Errorf("seeds (-want +got):\n%s", diff)
	}
	if _, err := c.Failed(t.Context(), store, Unit{Seed: 99, Subject: "ours"}, t.TempDir()); err == nil {
		t.Error("found no error for a seed that the campaign does not have")
	}
	merged.Results.Failed = nil
	if _, err := merged.Shrinking("night-shrink"); !errors.Is(err, ErrNothingToShrink) {
		t.Errorf("without failures: error %v; want %v", err, ErrNothingToShrink)
	}
}

// TestJobLike compares the Job that shrinks failures with the Job that has the same flags.
func TestJobLike(t *testing.T) {
	c, err := failedCampaign(t, &memory{}).Shrinking("night-shrink")
	if err != nil {
		t.Fatal(err)
	}
	original := *c
	original.Name, original.Of, original.Units = "night", "", nil
	pods := Pods{Namespace: "chaos", Image: "gauntlet", Queue: "nights", Parallelism: 40, NodeSelector: map[string]string{"pool": "spot"}, Deadline: time.Hour}
	for _, change := range []func(){func() { pods.Claim = "results" }, func() { pods.Claim, pods.Bucket = "", "s3://bucket" }} {
		change()
		other := Job(&original, &pods)
		other.Spec.Suspend = ptr.To(false) // Kueue has started the Job
		if diff := cmp.Diff(Job(c, &pods), JobLike(other, c)); diff != "" {
			t.Errorf("job (-with flags +like the job of the campaign):\n%s", diff)
		}
	}
	compareJob(t, Job(c, &pods), "job-shrink.yaml")
}

// TestJournal kills workers after each step of a search. The next worker must continue after the
// steps that were saved. Such workers must not count as killed during the search.
func TestJournal(t *testing.T) {
	unit := Unit{Seed: 1, Subject: "ours", Check: "max-surge"}
	c := Campaign{Name: "shrink", Seeds: Seeds{First: 1, Last: 1}, PerPod: 1, Subjects: []string{"ours"}, Of: "night", Units: []Unit{unit}}
	store := &memory{}
	const steps = 2 * killedMax
	for n := range steps + 1 {
		w := newWorker(t, c, store, 0, fmt.Sprint(n), clocktesting.NewFakePassiveClock(time.Unix(int64(n), 0)))
		killable := &killedStore{Store: store, writes: 1000}
		w.Store = killable
		w.Prepare = func(u Unit) (campaign.Attempt, error) {
			return func(ctx context.Context) (*reports.Run, error) {
				journal, err := w.Journal(ctx, u)
				if err != nil || len(journal) != n {
					t.Errorf("attempt %d: journal %q, %v; want %d steps", n, journal, err, n)
				}
				if n == steps {
					return failingRun(t, Unit{Seed: 2})(ctx)
				}
				killable.writes = 2 // the journal, and progress.json
				if err := w.SaveJournal(ctx, u, append(journal, 'x')); err != nil {
					t.Error(err)
				}
				return nil, errKilled
			}, nil
		}
		if err := w.Work(t.Context()); (err == nil) != (n == steps) {
			t.Fatalf("attempt %d: error %v", n, err)
		}
	}
}
