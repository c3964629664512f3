package fleet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/generate"
	"github.com/kube-gauntlet/gauntlet/reports"
)

var update = flag.Bool("update", false, "write the golden files")

// verdictOf returns the verdict that a unit's run has in these tests.
func verdictOf(u Unit) check.Verdict {
	switch {
	case u.Seed%7 == 3:
		return check.Fail
	case u.Seed%11 == 5 && u.Subject == "upstream":
		return check.Unknown
	}
	return check.Pass
}

// fakeRun returns an attempt without a real run. It returns the verdict of the unit and creates a
// run directory.
func fakeRun(t *testing.T, u Unit) campaign.Attempt {
	return func(context.Context) (*reports.Run, error) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "scenario.yaml"), []byte(u.String()), 0o644); err != nil {
			return nil, err
		}
		return &reports.Run{
			Scenario: generate.ScenarioName("calm", u.Seed), Subject: u.Subject, Provider: "embedded", Seed: u.Seed, Directory: dir, Size: int(u.Seed),
			Verdict: verdictOf(u), Reason: "reason", Reproduce: "gauntlet run", Versions: map[string]string{"etcd": "v3"},
		}, nil
	}
}

// memory is a Store in memory. It makes tests faster, because a Directory syncs each file to the
// disk.
type memory struct{ files sync.Map }

func (m *memory) Put(_ context.Context, name string, content []byte) error {
	m.files.Store(name, content)
	return nil
}

func (m *memory) Get(_ context.Context, name string) ([]byte, error) {
	content, ok := m.files.Load(name)
	if !ok {
		return nil, fs.ErrNotExist
	}
	return content.([]byte), nil
}

func (m *memory) List(_ context.Context, prefix string) ([]string, error) {
	var names []string
	m.files.Range(func(name, _ any) bool {
		if strings.HasPrefix(name.(string), prefix) {
			names = append(names, name.(string))
		}
		return true
	})
	slices.Sort(names)
	return names, nil
}

// errKilled is the error that a killedStore returns after its worker was killed.
var errKilled = errors.New("killed")

// killedStore is the store of a worker that is killed after some writes. Later writes of this
// worker have no effect.
type killedStore struct {
	Store
	mu     sync.Mutex
	writes int // writes that are still possible
}

func (s *killedStore) Put(ctx context.Context, name string, content []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writes == 0 {
		return errKilled
	}
	s.writes--
	return s.Store.Put(ctx, name, content)
}

func newWorker(t *testing.T, c Campaign, store Store, index int, attempt string, at clock.PassiveClock) *Worker {
	return &Worker{
		Campaign: c, Index: index, Attempt: attempt, Store: store, Clock: at,
		Prepare: func(u Unit) (campaign.Attempt, error) { return fakeRun(t, u), nil },
	}
}

// TestOneVerdict kills workers at random writes, and lets several attempts at an index overlap.
// Each run must have exactly one verdict. The results must equal those of a campaign on one
// machine.
func TestOneVerdict(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			c := Campaign{Name: "night", Seeds: Seeds{First: 5, Last: 41}, PerPod: 8, Subjects: []string{"ours", "upstream"}, Profile: "calm"}
			store := &memory{}
			now := clocktesting.NewFakePassiveClock(time.Unix(1, 0))
			for index := range int(c.indexes()) {
				runIndex(t, random, c, store, index, now)
			}
			merged, err := Merge(t.Context(), store, "night")
			if err != nil {
				t.Fatal(err)
			}
			checkMerged(t, merged, store, c)
		})
	}
}

// runIndex starts attempts at an index until one attempt completes. Most of the attempts are
// killed.
func runIndex(t *testing.T, random *rand.Rand, c Campaign, store Store, index int, now *clocktesting.FakePassiveClock) {
	for n := 0; ; n++ {
		now.SetTime(now.Now().Add(time.Second))
		var both sync.WaitGroup
		errs := make([]error, 1+random.IntN(2)) // two attempts overlap, as after the loss of a node
		for i := range errs {
			killable := &killedStore{Store: store, writes: random.IntN(40)}
			if n > 10 {
				killable.writes = 1000
			}
			w := newWorker(t, c, killable, index, fmt.Sprintf("pod-%d-%d", n, i), now)
			both.Go(func() { errs[i] = w.Work(t.Context()) })
		}
		both.Wait()
		for _, err := range errs {
			if err == nil {
				return
			}
			if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
		}
	}
}

// checkMerged compares merged results with those of a campaign on one machine.
func checkMerged(t *testing.T, merged *Merged, store Store, c Campaign) {
	t.Helper()
	if len(merged.Missing) > 0 {
		t.Errorf("missing: %v", merged.Missing)
	}
	var series []campaign.Attempt
	for _, u := range c.units(c.Seeds) {
		series = append(series, fakeRun(t, u))
	}
	want, err := campaign.Run(t.Context(), campaign.Options{Parallel: campaign.Fixed(1), Clock: clock.RealClock{}, Series: func(yield func(campaign.Attempt, error) bool) {
		for _, attempt := range series {
			if !yield(attempt, nil) {
				return
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	places := cmpopts.IgnoreFields(reports.Run{}, "Directory")
	if diff := cmp.Diff(want, merged.Results, places, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("results (-one machine +fleet):\n%s", diff)
	}
	if err := merged.Extract(t.Context(), store, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, run := range merged.Results.Failed {
		content, err := os.ReadFile(filepath.Join(run.Directory, "scenario.yaml"))
		if want := (Unit{Seed: run.Seed, Subject: run.Subject}).String(); err != nil || string(content) != want {
			t.Errorf("scenario of the run: found %q, %v; want %q", content, err, want)
		}
	}
}

// TestInterrupted checks that a worker discards the run in progress when its pod must end. The
// worker must still write its last files, and the next attempt must make the discarded run.
func TestInterrupted(t *testing.T) {
	c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 4}, PerPod: 4, Subjects: []string{"ours"}, Profile: "calm"}
	store := Directory(t.TempDir())
	now := clocktesting.NewFakePassiveClock(time.Unix(1, 0))
	ctx, cancel := context.WithCancel(t.Context())
	w := newWorker(t, c, store, 0, "first", now)
	w.Prepare = func(u Unit) (campaign.Attempt, error) {
		return func(ctx context.Context) (*reports.Run, error) {
			if u.Seed == 3 {
				cancel()
			}
			return fakeRun(t, u)(ctx)
		}, nil
	}
	if err := w.Work(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want context.Canceled", err)
	}
	merged, err := Merge(t.Context(), store, "night")
	if err != nil || !cmp.Equal(merged.Missing, []Unit{{Seed: 3, Subject: "ours"}, {Seed: 4, Subject: "ours"}}) {
		t.Fatalf("missing %v, %v; want the seeds 3 and 4", merged.Missing, err)
	}
	now.SetTime(time.Unix(2, 0))
	if err := newWorker(t, c, store, 0, "second", now).Work(t.Context()); err != nil {
		t.Fatal(err)
	}
	names, err := store.List(t.Context(), "night/00000/")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first/started.json", "first/finished.json", "first/artifacts/junit_runs.xml", "second/finished.json"} {
		if !strings.Contains(strings.Join(names, "\n"), want) {
			t.Errorf("files %q, want %s", names, want)
		}
	}
	merged, err = Merge(t.Context(), store, "night")
	if err != nil || len(merged.Missing) > 0 || merged.Repeated > 0 || merged.Attempts != 2 {
		t.Errorf("merged %+v, %v; want 2 attempts, and each seed once", merged, err)
	}
}

// TestKilledTooOften checks that a run gets the verdict unknown if every pod that makes it is
// killed.
func TestKilledTooOften(t *testing.T) {
	c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 3}, PerPod: 3, Subjects: []string{"ours"}, Profile: "calm"}
	store := &memory{}
	for n := range killedMax {
		killable := &killedStore{Store: store, writes: 3} // until the first run is in progress
		w := newWorker(t, c, killable, 0, fmt.Sprint(n), clocktesting.NewFakePassiveClock(time.Unix(int64(n), 0)))
		w.Prepare = func(u Unit) (campaign.Attempt, error) {
			return func(ctx context.Context) (*reports.Run, error) {
				killable.writes = 0
				return fakeRun(t, u)(ctx)
			}, nil
		}
		if err := w.Work(t.Context()); !errors.Is(err, errKilled) {
			t.Fatalf("error %v, want %v", err, errKilled)
		}
	}
	if err := newWorker(t, c, store, 0, "last", clocktesting.NewFakePassiveClock(time.Unix(100, 0))).Work(t.Context()); err != nil {
		t.Fatal(err)
	}
	merged, err := Merge(t.Context(), store, "night")
	if err != nil {
		t.Fatal(err)
	}
	if len(merged.Missing) > 0 || merged.Results.Failed[0].Verdict != check.Unknown || merged.Results.Failed[0].Seed != 1 {
		t.Errorf("merged %+v, want the verdict unknown for seed 1", merged.Results.Failed)
	}
	if err := merged.Extract(t.Context(), store, t.TempDir()); err != nil {
		t.Error(err)
	}
}

// TestFailedStarts checks that an attempt ends after several runs that cannot start. The results
// of earlier runs must remain.
func TestFailedStarts(t *testing.T) {
	c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 9}, PerPod: 9, Subjects: []string{"ours"}, Profile: "calm"}
	store := Directory(t.TempDir())
	w := newWorker(t, c, store, 0, "pod", clock.RealClock{})
	w.Prepare = func(u Unit) (campaign.Attempt, error) {
		if u.Seed == 1 || u.Seed > 5 {
			return func(context.Context) (*reports.Run, error) { return nil, errors.New("no port") }, nil
		}
		return fakeRun(t, u), nil
	}
	err := w.Work(t.Context())
	if err == nil || !strings.Contains(err.Error(), "3 consecutive runs could not start") || !strings.Contains(err.Error(), "seed 1, subject ours: no port") {
		t.Errorf("error %v, want 3 consecutive runs, and seed 1", err)
	}
	merged, err := Merge(t.Context(), store, "night")
	if err != nil || merged.Results.Runs != 4 || len(merged.Missing) != 5 {
		t.Errorf("%d runs, missing %v, %v; want 4 and 5", merged.Results.Runs, merged.Missing, err)
	}
}

// TestOtherCampaign checks that a worker does not add results to a campaign of the same name with
// other options.
func TestOtherCampaign(t *testing.T) {
	c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 2}, PerPod: 2, Subjects: []string{"ours"}, Profile: "calm"}
	store := Directory(t.TempDir())
	if err := newWorker(t, c, store, 0, "pod", clock.RealClock{}).Work(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Profile = "storm"
	if err := newWorker(t, c, store, 0, "other", clock.RealClock{}).Work(t.Context()); !errors.Is(err, ErrOtherCampaign) {
		t.Errorf("error %v, want %v", err, ErrOtherCampaign)
	}
	if _, err := Merge(t.Context(), store, "nihgt"); !errors.Is(err, ErrNoCampaign) || !strings.HasSuffix(err.Error(), "; it has night; did you mean night?") {
		t.Errorf("error %v, want %v, and the campaigns of the store", err, ErrNoCampaign)
	}
	if _, err := Merge(t.Context(), Directory(t.TempDir()), "night"); !errors.Is(err, ErrNoCampaign) || !strings.HasSuffix(err.Error(), "; it has no campaign") {
		t.Errorf("error %v, want %v, and that the store is empty", err, ErrNoCampaign)
	}
}

// TestDamagedCampaign checks that Merge refuses a campaign.json that gauntlet did not write. It must
// not list the runs of a range of seeds that is too long.
func TestDamagedCampaign(t *testing.T) {
	for _, test := range []struct{ content, want string }{
		{`{`, "found the end of the file"},
		{`[]`, "found array at the top"},
		{`{}`, `name: found ""; expected "night"`},
		{`{"name": "other"}`, `name: found "other"; expected "night"`},
		{`{"name": "night", "seeds": {"first": 1, "last": 18446744073709551615}, "perPod": 1, "subjects": ["ours"]}`, "expected seeds of at most"},
		{`{"name": "night", "seeds": {"first": 1, "last": 2}, "perPod": 1, "subjects": ["ours"], "profile": "nope"}`, `profile: found profile "nope"; expected calm, steady`},
		{`{"name": "night", "seeds": {"first": 1, "last": 2}, "perPod": 1, "subjects": ["ours"], "duration": -5}`, "duration: found -5ns; expected a duration that is not negative"},
		{`{"name": "night", "seeds": {"first": 1, "last": 2}, "perPod": 1, "subjects": ["ours"], "budget": -5}`, "budget: found -5ns; expected a duration that is not negative"},
		{`{"name": "night", "seeds": {"first": 1, "last": 2}, "perPod": 1, "subjects": ["ours"], "faults": ["nope"]}`, `faults: found unknown fault "nope"; expected`},
		{`{"name": "night", "seeds": {"first": 1, "last": 900000000}, "perPod": 10000, "subjects": ["ours"]}`, "--seeds: found 900000000 seeds in 1..900000000; expected at most 10000000"},
	} {
		store := &memory{}
		if err := store.Put(t.Context(), "night/campaign.json", []byte(test.content)); err != nil {
			t.Fatal(err)
		}
		_, err := Merge(t.Context(), store, "night")
		if !errors.Is(err, ErrInvalidCampaign) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v; want %q", test.content, err, test.want)
		}
	}
}

func TestSeedsOf(t *testing.T) {
	c := Campaign{Name: "night", Seeds: Seeds{First: 11, Last: 30}, PerPod: 8, Subjects: []string{"ours"}}
	for index, want := range []string{"11..18", "19..26", "27..30"} {
		seeds, err := c.SeedsOf(index)
		if err != nil || seeds.String() != want {
			t.Errorf("index %d: %s, %v; want %s", index, seeds, err, want)
		}
	}
	for _, index := range []int{-1, 3} {
		if seeds, err := c.SeedsOf(index); err == nil {
			t.Errorf("index %d: %s, want an error", index, seeds)
		}
	}
}

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string]Seeds{"1..1000": {1, 1000}, "7": {7, 7}, "3..3": {3, 3}} {
		if seeds, err := ParseSeeds(text); err != nil || seeds != want {
			t.Errorf("%s: %v, %v; want %v", text, seeds, err, want)
		}
	}
	for _, text := range []string{"", "0..5", "5..4", "1..", "..4", "1-4", "1..18446744073709551615"} {
		if seeds, err := ParseSeeds(text); err == nil {
			t.Errorf("%q: %v, want an error", text, seeds)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Campaign){
		"":                                  func(*Campaign) {},
		"name of the campaign":              func(c *Campaign) { c.Name = "Night" },
		"--per-pod=0: expected at least 1":  func(c *Campaign) { c.PerPod = 0 },
		"at most 100000 indexes":            func(c *Campaign) { c.Seeds.Last = 10_000_000 },
		"found no subject":                  func(c *Campaign) { c.Subjects = nil },
		"twice":                             func(c *Campaign) { c.Subjects = []string{"exec:/a", "exec:_a"} },
		"the first seed must be at least 1": func(c *Campaign) { c.Seeds.First = 0 },
	} {
		c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 1000}, PerPod: 50, Subjects: []string{"ours"}, Profile: "calm"}
		change(&c)
		if err := c.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestJob compares the manifests of Jobs with those in testdata.
func TestJob(t *testing.T) {
	c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 10_000}, PerPod: 50, Subjects: []string{"ours", "upstream"}, Provider: "embedded", Profile: "storm"}
	job := Job(&c, &Pods{
		Namespace: "chaos", Image: "registry.example/gauntlet:v1", Claim: "results", Parallelism: 40, Deadline: 8 * time.Hour, Retries: 2,
		Keep: 24 * time.Hour, Queue: "nights", NodeSelector: map[string]string{"pool": "spot"}, PriorityClass: "low",
		Tolerations: []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}},
		CPU:         DefaultCPU, Memory: DefaultMemory, Disk: DefaultDisk,
	})
	compareJob(t, job, "job.yaml")
	c = Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 10}, PerPod: 5, Subjects: []string{"ours"}, Provider: "virtual", Profile: "calm"}
	compareJob(t, Job(&c, &Pods{
		Image: "gauntlet", Bucket: "s3://results/fleets?region=eu-west-1", Secret: "keys", ServiceAccount: "fleet", Parallelism: 2,
		CPU: DefaultCPU, Memory: DefaultMemory, Disk: DefaultDisk,
	}), "job-bucket.yaml")
}

// compareJob compares a manifest with a file in testdata.
func compareJob(t *testing.T, job *batchv1.Job, name string) {
	t.Helper()
	got, err := yaml.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
}

// TestOutOfMemory checks that a worker discards a run during which the kernel killed a process. The
// next attempt must make this run. Such attempts count as killed during the run.
func TestOutOfMemory(t *testing.T) {
	c := Campaign{Name: "night", Seeds: Seeds{First: 1, Last: 5}, PerPod: 5, Subjects: []string{"ours"}, Provider: "embedded", Profile: "calm"}
	store := &memory{}
	for n := range killedMax {
		w := newWorker(t, c, store, 0, fmt.Sprint(n), clocktesting.NewFakePassiveClock(time.Unix(int64(n), 0)))
		kills := 0
		w.MemoryKills = func() int { return kills }
		w.Prepare = func(u Unit) (campaign.Attempt, error) {
			return func(ctx context.Context) (*reports.Run, error) {
				if u.Seed == 1 || u.Seed == 3 { // seed 1 passes, and seed 3 fails
					kills++
				}
				return fakeRun(t, u)(ctx)
			}, nil
		}
		if err := w.Work(t.Context()); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "seed 3, subject ours") {
			t.Fatalf("error %v, want %v for seed 3", err, ErrOutOfMemory)
		}
	}
	merged, err := Merge(t.Context(), store, "night")
	if err != nil || merged.Results.Runs != 2 || merged.Repeated != 0 {
		t.Fatalf("merged %+v, %v; want the results of the seeds 1 and 2", merged, err)
	}
	if err := newWorker(t, c, store, 0, "last", clocktesting.NewFakePassiveClock(time.Unix(100, 0))).Work(t.Context()); err != nil {
		t.Fatal(err)
	}
	merged, err = Merge(t.Context(), store, "night")
	if err != nil || len(merged.Missing) > 0 || len(merged.Results.Failed) != 1 || merged.Results.Failed[0].Verdict != check.Unknown {
		t.Errorf("merged %+v, %v; want the verdict unknown for seed 3", merged, err)
	}
}

// TestMemoryKills checks that the number of killed processes is read from both versions of cgroups.
func TestMemoryKills(t *testing.T) {
	for name, content := range map[string]string{
		"memory.events":             "low 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 1\n",
		"memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
	} {
		root := t.TempDir()
		if n := memoryKills(root); n != 0 {
			t.Errorf("without cgroups: %d, want 0", n)
		}
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
		if n := memoryKills(root); n != 3 {
			t.Errorf("%s: %d, want 3", name, n)
		}
	}
}
