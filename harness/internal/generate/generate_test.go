package generate_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/faults/processes"
	"github.com/kube-gauntlet/gauntlet/faults/requests"
	"github.com/kube-gauntlet/gauntlet/faults/users"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/internal/coverage"
	"github.com/kube-gauntlet/gauntlet/harness/internal/generate"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

var update = flag.Bool("update", false, "write the golden files anew")

// seeds returns the number of seeds for which the tests generate scenarios. The tests combine
// the seeds with all profiles and providers.
func seeds() uint64 {
	if testing.Short() {
		return 500
	}
	return 10_000
}

func options(seed uint64) generate.Options {
	profile := generate.Profiles[seed%uint64(len(generate.Profiles))]
	return generate.Options{Seed: seed, Profile: profile, Provider: providerFor(profile, int(seed/7))}
}

// providerFor returns a provider that can run the scenarios of a profile. Usually, this is the
// provider with the given index.
func providerFor(profile generate.Profile, index int) providers.Provider {
	if profile.Name == hours {
		index = slices.IndexFunc(providers.All, func(p providers.Provider) bool { return p.Name == providers.Virtual })
	}
	return providers.All[index%len(providers.All)]
}

// hours is the name of the profile whose scenarios take hours.
const hours = "hours"

// TestEveryScenario checks that each generated scenario is valid and that the provider supports
// it. Parse must read the scenario's YAML back to an equal scenario.
func TestEveryScenario(t *testing.T) {
	const shares = 4
	for share := range uint64(shares) {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			t.Parallel()
			for seed := share; seed < seeds(); seed += shares {
				tryScenario(t, options(seed))
			}
		})
	}
}

func tryScenario(t *testing.T, o generate.Options) {
	t.Helper()
	s := generated(t, o)
	if err := run.Validate(s); err != nil {
		t.Fatalf("seed %d: %v", o.Seed, err)
	}
	if err := run.Supported(s, o.Provider.Name); err != nil {
		t.Fatalf("seed %d: %v", o.Seed, err)
	}
	written := marshal(t, s)
	read, err := scenario.Parse("x.yaml", written)
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", o.Seed, err, written)
	}
	if again := marshal(t, read); !bytes.Equal(written, again) {
		t.Fatalf("seed %d: read and written again (-first +again):\n%s", o.Seed, cmp.Diff(string(written), string(again)))
	}
}

// TestVariety checks that the scenarios of many seeds together have every fault type, every
// operation and every kind of object.
func TestVariety(t *testing.T) {
	var all strings.Builder
	for seed := range uint64(300) {
		all.Write(marshal(t, generated(t, options(seed))))
	}
	for _, kind := range catalog.All {
		if kind.NotGeneratedReason == "" && !strings.Contains(all.String(), "  - "+kind.Name+": ") {
			t.Errorf("300 seeds do not draw %s", kind.Name)
		}
	}
	for _, words := range []string{
		"- create: {kind: Deployment", "- create: {kind: ReplicaSet", "- create: {kind: ReplicationController", "- create: {kind: Service", "- create: {kind: Pod",
		"- scale: ", "- rollout: ", "- pause: ", "- resume: ", "- rollback: ", "- label: ", "- select: ", "- configure: ", "- publish: ", "- delete: ",
		"await: ", "until: gone", "until: complete", "propagation: orphan", "propagation: foreground", "strategy: Recreate", "maxSurge: 0",
		"controller: foreign", "replicas: 2, qps",
		// Of sequences.
		"- annotate: ", "- create: {kind: Endpoints", "delete: {kind: Endpoints", "progressDeadlineSeconds: 3", "- pod-disown: ", "leader: true", "ports: []",
	} {
		if !strings.Contains(all.String(), words) {
			t.Errorf("300 seeds do not draw %q", words)
		}
	}
}

// TestEdits checks that user-edit faults have all operations on existing objects. Such a fault
// changes objects as another user would, at the same time as the workload.
func TestEdits(t *testing.T) {
	var all strings.Builder
	for seed := range uint64(300) {
		o := options(seed)
		o.Kinds = []faults.Type{users.Edit, users.Edit, requests.Slow} // requests.Slow remains possible when every object has an edit
		s := generated(t, o)
		if err := run.Validate(s); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, fault := range s.Faults {
			if edits := fault.Name == users.Edit.Name; o.Profile.Name != hours && edits != (fault.When != nil) {
				t.Errorf("seed %d: %s waits for %v", seed, fault.Name, fault.When)
			}
		}
		all.Write(marshal(t, s))
	}
	for _, words := range []string{
		"[{scale: ", "[{configure: ", "[{rollout: ", "[{rollback: ", "[{pause: ", "[{label: ", "[{delete: ", "[{publish: ", "[{select: {kind: Service",
		"[{select: {kind: ReplicationController", ", resume: {", "{create: {kind: Deployment", "{create: {kind: Service", "at: begun", "at: done",
	} {
		if !strings.Contains(all.String(), words) {
			t.Errorf("300 seeds do not draw %q", words)
		}
	}
}

// TestPreferUncovered checks that the generator draws faults more often if they rarely fired in
// earlier runs. The same counts of earlier runs must always give the same scenario.
func TestPreferUncovered(t *testing.T) {
	seen := func(text string) *coverage.Table {
		t.Helper()
		var table coverage.Table
		if err := json.Unmarshal([]byte(text), &table); err != nil {
			t.Fatal(err)
		}
		return &table
	}
	restarts := seen(`{"format":1,"cells":[{"fault":"restart","outcome":"restart","phase":"steady","times":3}]}`)
	count := func(seen *coverage.Table) (all string, drawn int) {
		for seed := range uint64(20) {
			o := options(seed)
			o.PreferUncovered, o.Kinds = seen, []faults.Type{processes.Restart, requests.Slow}
			s := generated(t, o)
			if again := generated(t, o); !bytes.Equal(marshal(t, s), marshal(t, again)) {
				t.Fatalf("seed %d gives another scenario the second time", seed)
			}
			for _, fault := range s.Faults {
				if fault.Name == processes.Restart.Name && fault.When == nil { // not of a sequence
					drawn++
				}
			}
			all += string(marshal(t, s))
		}
		return all, drawn
	}
	_, plain := count(nil)
	_, fresh := count(seen(`{"format":1}`))
	preferring, rare := count(restarts)
	if plain < 10 || fresh < 10 || rare > plain/10 {
		t.Errorf("%d restarts, %d with nothing seen, %d where only restarts were seen; want many, many and few", plain, fresh, rare)
	}
	if want := ", preferring those with low counts in coverage " + restarts.Sum() + "."; !strings.Contains(preferring, want) {
		t.Errorf("no description has %q", want)
	}
}

// TestSameBytes compares generated scenarios with a golden file from another machine or an
// earlier commit. If a seed now gives another scenario, increase Version.
func TestSameBytes(t *testing.T) {
	// The fault types that the catalog had when the golden file was first written. The test
	// draws only from these, so that a new fault type does not change its scenarios.
	var kinds []faults.Type
	for _, name := range []string{
		"api-error", "request-reset", "request-slow", "request-hang", "response-lost", "watch-delay", "watch-stall",
		"watch-end", "bookmark-loss", "stale-list", "pod-churn", "restart",
	} {
		kind, err := catalog.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, kind)
	}
	for i, profile := range generate.Profiles {
		seed := uint64(i) + 1
		got := marshal(t, generated(t, generate.Options{Seed: seed, Profile: profile, Provider: providerFor(profile, 0), Kinds: kinds}))
		golden(t, fmt.Sprintf("%s-%d.yaml", profile.Name, seed), got)
	}
	hash := sha256.New()
	for seed := uint64(1); seed <= 200; seed++ {
		o := options(seed)
		o.Profile = generate.Profiles[seed%3] // the profiles that existed when the golden file was first written
		o.Kinds, o.Provider = kinds, providers.All[0]
		hash.Write(marshal(t, generated(t, o)))
	}
	golden(t, "first-200.sha256", fmt.Appendf(nil, "%x\n", hash.Sum(nil)))
}

// TestUserPods checks that no fault rejects pods in a scenario in which users create pods. A
// rejected pod would end the workload. Faults that reject requests must last for at most a
// second. After a longer fault, the back-off could exceed the time limit for convergence.
func TestUserPods(t *testing.T) {
	var kinds []faults.Type
	for _, name := range []string{"quota-exhausted", "admission-denied", "pod-relabel"} {
		kind, err := catalog.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, kind)
	}
	kept := 0
	for seed := range uint64(200) {
		o := options(seed)
		o.Profile = generate.Profiles[seed%4] // not hours, whose provider has none of these faults
		o.Provider, o.Kinds = providers.All[0], kinds
		s := generated(t, o)
		text := string(marshal(t, s))
		for _, fault := range s.Faults {
			if fault.Name != "pod-relabel" && fault.For > time.Second {
				t.Errorf("seed %d: %s rejects requests for %s", seed, fault.Name, fault.For)
			}
		}
		users := strings.Contains(text, "- create: {kind: Pod")
		out := strings.Contains(text, "- quota-exhausted") || strings.Contains(text, "- admission-denied: {reason") ||
			strings.Contains(text, "- admission-denied: {resource: pods")
		if users && out {
			t.Errorf("seed %d: users create pods, and a fault rejects pods:\n%s", seed, text)
		}
		if out {
			kept++
		}
	}
	if kept == 0 {
		t.Error("200 seeds draw no fault that rejects pods")
	}
}

// TestDuration checks that a longer workload has more steps and faults, within the bounds.
func TestDuration(t *testing.T) {
	o := options(5)
	short := generated(t, o)
	o.Duration = time.Minute
	long := generated(t, o)
	if len(long.Workload) < 5*len(short.Workload) || len(long.Faults) < 5*len(short.Faults) {
		t.Errorf("%d steps and %d faults in a minute, %d and %d in the profile's own time",
			len(long.Workload), len(long.Faults), len(short.Workload), len(short.Faults))
	}
	for _, duration := range []time.Duration{generate.DurationMin, generate.DurationMax} {
		o.Duration = duration
		generated(t, o)
	}
	for _, duration := range []time.Duration{-time.Second, time.Millisecond, generate.DurationMax + 1} {
		o.Duration = duration
		if _, err := generate.Scenario(o); err == nil || !strings.Contains(err.Error(), "expected 1s to 2m0s") {
			t.Errorf("%s: error %v", duration, err)
		}
	}
}

// TestHours checks that the profile hours has long faults and long pauses. Only a provider in
// virtual time can run its scenarios.
func TestHours(t *testing.T) {
	profile, err := generate.ProfileNamed(hours)
	if err != nil {
		t.Fatal(err)
	}
	o := generate.Options{Profile: profile, Provider: providerFor(profile, 0)}
	var longFaults, together, outages int
	for o.Seed = range uint64(50) {
		s := generated(t, o)
		var all time.Duration
		for _, step := range s.Workload {
			all += step.After
		}
		if all < time.Hour || all > 2*time.Hour+time.Minute {
			t.Errorf("seed %d: the pauses take %s; want 1 to 2 hours, and less than a minute in a sequence", o.Seed, all)
		}
		begun := map[int]bool{}
		for _, fault := range s.Faults {
			if fault.When == nil {
				t.Fatalf("seed %d: a fault has no trigger", o.Seed)
			}
			if fault.For > 5*time.Minute {
				longFaults++
			}
			if begun[fault.When.Step.Index] {
				together++
			}
			begun[fault.When.Step.Index] = true
			if fault.Name == requests.Error.Name && fault.For > 3*time.Minute && fault.Params.Text("probability") == "" && fault.Params.Text("nth") == "" {
				outages++
			}
		}
	}
	if longFaults < 50 || together < 50 || outages == 0 {
		t.Errorf("50 seeds have %d faults of more than 5 minutes, %d that begin with another one, and %d outages; want many, many and some", longFaults, together, outages)
	}
	o.Duration = generate.LongDurationMax + 1
	if _, err := generate.Scenario(o); err == nil || !strings.Contains(err.Error(), "expected 1s to 48h0m0s") {
		t.Errorf("duration %s: error %v", o.Duration, err)
	}
	o.Duration, o.Provider = 0, providers.All[0]
	want := "the workload of profile hours takes 2h0m0s on provider embedded; expected provider virtual"
	if _, err := generate.Scenario(o); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestProfileNamed(t *testing.T) {
	if p, err := generate.ProfileNamed("storm"); err != nil || p.Name != "storm" {
		t.Errorf("%q, %v", p.Name, err)
	}
	if _, err := generate.ProfileNamed("breeze"); err == nil || err.Error() != `found profile "breeze"; expected calm, steady, storm, slow, hours or orders` {
		t.Errorf("error %v", err)
	}
	if !slices.ContainsFunc(generate.Profiles, func(p generate.Profile) bool { return p.Name == generate.DefaultProfile }) {
		t.Errorf("no profile %s", generate.DefaultProfile)
	}
}

func generated(t *testing.T, o generate.Options) *scenario.Scenario {
	t.Helper()
	s, err := generate.Scenario(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func marshal(t *testing.T, s *scenario.Scenario) []byte {
	t.Helper()
	data, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
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
		t.Errorf("%s (-golden +got):\n%s", path, diff)
	}
}
