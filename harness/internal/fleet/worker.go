package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/coverage"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Worker makes the runs of one completion index of a campaign's Job, one after another. A pod runs
// one Worker, which is an attempt at the index. If the pod ends early, Kubernetes starts another
// pod, which is the next attempt.
type Worker struct {
	Campaign Campaign
	Index    int
	// Attempt is the name of the pod. It identifies this attempt at the index, because every pod
	// has a different name.
	Attempt string
	// Node is the name of the pod's node. It may be empty.
	Node  string
	Store Store
	// Prepare returns a function that makes one run, shrink or exploration of the campaign. If it
	// returns an error, the worker ends with this error.
	Prepare func(Unit) (campaign.Attempt, error)
	Clock   clock.PassiveClock
	// Metrics counts the results. It may be nil.
	Metrics *Metrics
	// MemoryKills returns how many processes the kernel has killed in this pod because memory ran
	// out. It may be nil.
	MemoryKills func() int
	// History returns the path of the history in a run directory. The worker counts in it how often
	// faults acted. If History is nil, the worker counts nothing.
	History func(directory string) string

	dir     string // the directory of the attempt in the store
	begun   time.Time
	results []reports.Run
	covered coverage.Table // how often faults acted in the runs of this pod
	kills   int            // the result of MemoryKills before the run in progress
	saved   int            // how often the journal of the run in progress was saved
}

// These are the limits after which a worker, the program in each pod of a campaign, gives up.
const (
	// failedStartsMax is the number of consecutive failed starts of runs after which the attempt
	// ends with an error.
	failedStartsMax = 3
	// killedMax is how many pods can be killed during the same run. After that, no pod makes this
	// run again, and the next pod records the verdict unknown for it. Without this limit, the pods
	// could repeat the run forever, and the index of the Job would never be complete.
	killedMax = 5
)

// ErrOtherCampaign means that the store has a campaign with the same name but other options.
var ErrOtherCampaign = errors.New("the store has another campaign with this name; use another name, or delete the old results")

// ErrOutOfMemory means that the kernel killed a process of a run because the pod's memory ran out.
// The verdict of such a run says nothing about the controllers under test.
var ErrOutOfMemory = errors.New("the kernel killed a process of the run, because the memory of the pod ran out")

// Work makes the runs of the pod's completion index that have no result yet.
//
// It returns nil if each of these runs has a result, whatever the verdicts are. If ctx ends, Work
// discards the run in progress and returns ctx's error. If memory runs out, Work discards the run
// in progress and returns ErrOutOfMemory. It then writes no finished.json, so that later attempts
// count this attempt as killed.
func (w *Worker) Work(ctx context.Context) error {
	units, err := w.Campaign.UnitsOf(w.Index)
	if err != nil {
		return err
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	earlier, err := w.earlierAttempts(ctx)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(units), func(u Unit) bool { return earlier.results[u.base()] })
	w.Metrics.plan(len(left))
	err = w.makeRuns(ctx, left, earlier.killed)
	if errors.Is(err, ErrOutOfMemory) {
		return err // without finished.json, later attempts count this attempt as killed
	}
	// The end of ctx must not prevent these last writes.
	return errors.Join(err, w.finish(context.WithoutCancel(ctx), err))
}

// begin writes campaign.json to the store of results if it does not exist, and then started.json
// for this pod. It returns ErrOtherCampaign if campaign.json has other options.
func (w *Worker) begin(ctx context.Context) error {
	w.begun = w.Clock.Now()
	w.dir = path.Join(indexDir(w.Campaign.Name, w.Index), w.begun.UTC().Format("20060102T150405.000000000Z")+"-"+w.Attempt)
	record, err := w.Store.Get(ctx, path.Join(w.Campaign.Name, campaignName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = w.Store.Put(ctx, path.Join(w.Campaign.Name, campaignName), w.Campaign.encode())
	case err == nil && !bytes.Equal(record, w.Campaign.encode()):
		err = fmt.Errorf("campaign %s: %w", w.Campaign.Name, ErrOtherCampaign)
	}
	if err != nil {
		return err
	}
	return w.put(ctx, startedName, started{
		Timestamp: w.begun.Unix(),
		Node:      w.Node,
		Metadata:  map[string]string{"campaign": w.Campaign.Name, "index": fmt.Sprint(w.Index), "pod": w.Attempt},
	})
}

// earlier says what other pods with the same index of the Job have done.
type earlier struct {
	results map[string]bool // true for each unit that has a result; the key is [Unit.base]
	killed  map[Unit]int    // how many pods were killed during a unit before they saved a journal of this unit
}

// earlierAttempts reads from the store what other pods with the same index of the Job have done.
// This pod then makes only the runs without a result.
func (w *Worker) earlierAttempts(ctx context.Context) (earlier, error) {
	found := earlier{results: map[string]bool{}, killed: map[Unit]int{}}
	names, err := w.Store.List(ctx, indexDir(w.Campaign.Name, w.Index)+"/")
	if err != nil {
		return found, err
	}
	for _, name := range names {
		if result, ok := parseResult(name); ok {
			found.results[result.base] = true
		}
		dir, base := path.Split(name)
		if base != progressName || slices.Contains(names, path.Join(dir, finishedName)) {
			continue
		}
		content, err := w.Store.Get(ctx, name)
		if err != nil {
			return found, err
		}
		last, err := decode[progress](name, content)
		if err != nil {
			return found, err
		}
		if last.InProgress != nil && last.Journal == 0 {
			found.killed[*last.InProgress]++
		}
	}
	return found, nil
}

// makeRuns makes the given runs and writes their results to the store. The argument killed says how
// many pods were killed during each run. makeRuns returns nil only if each of the runs has a
// result.
func (w *Worker) makeRuns(ctx context.Context, units []Unit, killed map[Unit]int) error {
	failedStarts := 0
	var missed []error // the errors of runs that could not start
	series := w.series(ctx, units, killed)
	err := campaign.RunParallel(ctx, campaign.Fixed(1), series, func(i int, run *reports.Run, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err() // the run was interrupted, so its verdict says nothing about the subject
		case w.memoryKills() > w.kills && (run == nil || run.Verdict == check.Fail || run.Verdict == check.Unknown):
			return fmt.Errorf("%s: %w", units[i], ErrOutOfMemory)
		case run == nil:
			missed = append(missed, fmt.Errorf("%s: %w", units[i], err))
			if failedStarts++; failedStarts == failedStartsMax {
				return fmt.Errorf("%d consecutive runs could not start", failedStarts)
			}
			return nil
		}
		failedStarts = 0
		return w.record(ctx, units[i], run)
	})
	if err == nil {
		err = ctx.Err()
	}
	return errors.Join(append([]error{err}, missed...)...)
}

// series returns an iterator over the given runs. Before each run, it writes to the store which run
// is in progress. If too many pods were killed during a run, the iterator does not make this run;
// see [Worker.abandoned].
func (w *Worker) series(ctx context.Context, units []Unit, killed map[Unit]int) iter.Seq2[campaign.Attempt, error] {
	return func(yield func(campaign.Attempt, error) bool) {
		for _, unit := range units {
			attempt, err := w.Prepare(unit)
			if killed[unit] >= killedMax {
				attempt = w.abandoned(unit, killed[unit])
			}
			if err == nil {
				w.kills, w.saved = w.memoryKills(), 0
				err = w.note(ctx, &unit)
			}
			if !yield(attempt, err) || err != nil {
				return
			}
		}
	}
}

// memoryKills returns the result of w.MemoryKills, or 0 if w.MemoryKills is nil.
func (w *Worker) memoryKills() int {
	if w.MemoryKills == nil {
		return 0
	}
	return w.MemoryKills()
}

// abandoned returns an Attempt that does not make the run, but returns a report with the verdict
// unknown. Otherwise, pods would repeat the run forever if the run itself is the reason why pods
// are killed. The argument times is the number of killed pods.
func (w *Worker) abandoned(unit Unit, times int) campaign.Attempt {
	return func(context.Context) (*reports.Run, error) {
		return &reports.Run{
			Scenario:  w.Campaign.Scenario,
			Subject:   unit.Subject,
			Provider:  w.Campaign.Provider,
			Seed:      unit.Seed,
			Started:   w.Clock.Now(),
			Verdict:   check.Unknown,
			Reproduce: w.Campaign.Command(unit),
			Reason:    fmt.Sprintf("%d pods were killed during this run; expected at most %d; increase the memory limit of the pods (--memory)", times, killedMax-1),
		}, nil
	}
}

// record writes the result of a run to the store, and then removes the run directory. Before the
// result, it writes how often faults acted in all runs of this pod. If the run did not pass, record
// also writes an archive of the run directory.
func (w *Worker) record(ctx context.Context, unit Unit, run *reports.Run) error {
	result := *run
	if run.Verdict == check.Pass {
		result.Reproduce, result.Results, result.Versions = "", nil, nil
	} else if run.Directory != "" {
		archive, err := Compress(run.Directory)
		if err != nil {
			return fmt.Errorf("compressing the directory of %s: %w", unit, err)
		}
		if err := w.Store.Put(ctx, path.Join(w.dir, runsDir, unit.base()+runSuffix), archive); err != nil {
			return err
		}
	}
	if err := w.cover(ctx, run); err != nil {
		return err
	}
	result.Directory = ""
	var content bytes.Buffer
	if err := reports.RunJSON(&content, &result); err != nil {
		return err
	}
	if err := w.Store.Put(ctx, path.Join(w.dir, resultsDir, unit.base()+resultSuffix), content.Bytes()); err != nil {
		return err
	}
	w.results = append(w.results, result)
	w.Metrics.add(result)
	if run.Directory == "" {
		return nil
	}
	return os.RemoveAll(run.Directory)
}

// cover counts how often faults acted in a run. It writes the counts of all runs of this pod to the
// store. A shrink or an exploration has no history of its own, so cover counts nothing.
func (w *Worker) cover(ctx context.Context, run *reports.Run) error {
	if w.History == nil || run.Directory == "" {
		return nil
	}
	file := w.History(run.Directory)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// The counts of a damaged history end at the damage. The run's verdict says that it is damaged.
	_ = w.covered.Add(history.ReadFile(file))
	return w.put(ctx, coverageName, &w.covered)
}

// note writes to progress.json which run is in progress, and what this pod has done so far. The
// argument unit is the run in progress, or nil between two runs.
func (w *Worker) note(ctx context.Context, unit *Unit) error {
	return w.put(ctx, progressName, progress{InProgress: unit, Journal: w.saved, Runs: len(w.results), Seconds: w.Clock.Since(w.begun).Seconds()})
}

// finish writes the last files of this pod: the JUnit report, progress.json and finished.json. The
// argument workErr says why the pod ends early. It is nil if the work is complete.
func (w *Worker) finish(ctx context.Context, workErr error) error {
	end := finished{Timestamp: w.Clock.Now().Unix(), Result: "SUCCESS", Metadata: map[string]string{"runs": fmt.Sprint(len(w.results))}}
	for _, run := range w.results {
		if run.Verdict == check.Fail || run.Verdict == check.Unknown {
			end.Result = "FAILURE"
		}
	}
	if workErr != nil {
		end.Result, end.Metadata["error"] = "ABORTED", workErr.Error()
	}
	end.Passed = end.Result == "SUCCESS"
	var junit bytes.Buffer
	if err := reports.JUnit(&junit, w.results); err != nil {
		return err
	}
	w.saved = 0
	return errors.Join(
		w.Store.Put(ctx, path.Join(w.dir, junitName), junit.Bytes()),
		w.note(ctx, nil),
		w.put(ctx, finishedName, end))
}

// put writes a value as JSON to a file in this pod's directory of the store.
func (w *Worker) put(ctx context.Context, name string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.Store.Put(ctx, path.Join(w.dir, name), append(content, '\n'))
}
