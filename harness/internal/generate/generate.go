// Package generate generates random scenarios: each has a workload and faults. The same
// [Options] give the same scenario, byte for byte, on any machine. This holds as long as the
// version of the generator and the catalog of faults do not change. The description of a
// generated scenario has the options and the version.
//
// In a generated scenario, users change only objects that exist. Faults affect requests and
// objects of the workload, and end soon after the workload. The generator avoids scenarios that
// trigger some known bugs of Kubernetes (see upstream_issues.go). Other known bugs, such as
// namesake-status, occur, and checks recognize them. A profile with a workload of hours avoids only
// those that no check recognizes.
package generate

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kube-gauntlet/gauntlet/faults"
	"github.com/kube-gauntlet/gauntlet/faults/catalog"
	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/internal/coverage"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Version is the version of the generator. A change of the generator increases the version if a
// seed then gives another scenario. A new fault type in the catalog also makes seeds give other
// scenarios, but does not increase the version.
const Version = 8

// Options are the inputs from which [Scenario] generates a scenario.
type Options struct {
	// Seed is the number from which all random draws start.
	Seed uint64
	// Profile says how many objects, operations and faults the scenario has.
	Profile Profile
	// Duration is the approximate duration of the workload. It is from DurationMin to
	// DurationMax, or for a long profile to LongDurationMax. 0 means the profile's own duration.
	Duration time.Duration
	// Provider is the provider of the cluster, such as kind. The generator draws only faults
	// that this provider supports.
	Provider providers.Provider
	// Kinds are the fault types from which the generator draws. If Kinds is nil, the generator
	// draws from all fault types of the catalog.
	Kinds []faults.Type
	// PreferUncovered has the counts of faults that fired in earlier runs, or is nil. The
	// generator prefers faults with low counts. The same seed may therefore give different
	// scenarios with different counts.
	PreferUncovered *coverage.Table

	// supported has the fault types of Kinds that the provider supports. It includes types whose
	// field Sample is nil, such as pod-disown. Only the last changes of a workload inject these.
	supported []faults.Type
	// finishes is the index of the step at which the workload's last changes begin; see
	// [lastChange]. From this step on, no user-edit fault changes objects. 0 means that the workload
	// has no last changes.
	finishes int
}

// These are the bounds of Options.Duration.
const (
	DurationMin     = time.Second
	DurationMax     = 2 * time.Minute
	LongDurationMax = 48 * time.Hour
)

// Profile says how many objects, operations and faults a generated scenario has. [Profiles]
// lists all profiles.
type Profile struct {
	Name     string
	duration time.Duration // duration of the workload, unless Options.Duration is set
	owners   interval      // number of objects with replicas that the workload creates first
	pods     int           // maximum sum of spec.replicas of all objects
	gap      time.Duration // maximum time from one step to the next
	faults   interval      // number of faults for a workload of the profile's duration
	slowPods bool          // true if pods start slowly, stop slowly, or both
	reorder  bool          // true if messages pass the fault proxy in a random order during the workload
	// long is true if faults last minutes and users pause for minutes. Then known upstream issues
	// may appear, and only a provider in virtual time can run the scenario.
	long bool
}

// durationMax returns the maximum of Options.Duration for the profile.
func (p *Profile) durationMax() time.Duration {
	if p.long {
		return LongDurationMax
	}
	return DurationMax
}

// leaseDuration returns the duration of the leader-election lease. A new leader waits until the lease
// of a killed one expires. With a workload of hours, the lease is long, because renewals take most of
// the CPU time of an idle hour.
func (p *Profile) leaseDuration() time.Duration {
	if p.long {
		return time.Minute
	}
	return 5 * time.Second
}

// interval is a range of integers. It includes both bounds.
type interval struct{ least, most int }

// draw returns a random integer from least to most.
func (b interval) draw(r *rand.Rand) int { return b.least + r.IntN(b.most-b.least+1) }

// Profiles has all profiles. The first three have increasing numbers of faults. The profile
// named slow has slow pods. The profile named hours spreads its workload over hours. The profile named
// orders changes the order of messages.
var Profiles = []Profile{
	{Name: "calm", duration: 4 * time.Second, owners: interval{1, 2}, pods: 20, gap: 1200 * time.Millisecond, faults: interval{1, 2}},
	{Name: "steady", duration: 4 * time.Second, owners: interval{2, 4}, pods: 50, gap: 700 * time.Millisecond, faults: interval{3, 5}},
	{Name: "storm", duration: 5 * time.Second, owners: interval{3, 5}, pods: 80, gap: 400 * time.Millisecond, faults: interval{6, 10}},
	{Name: "slow", duration: 6 * time.Second, owners: interval{3, 5}, pods: 40, gap: 400 * time.Millisecond, faults: interval{7, 11}, slowPods: true},
	{Name: "hours", duration: 2 * time.Hour, owners: interval{1, 3}, pods: 16, gap: 20 * time.Minute, faults: interval{5, 9}, long: true},
	{Name: "orders", duration: 4 * time.Second, owners: interval{2, 3}, pods: 30, gap: 700 * time.Millisecond, faults: interval{1, 3}, reorder: true},
}

// DefaultProfile is the name of the profile that commands use without the flag --profile.
const DefaultProfile = "steady"

// ScenarioName returns the name of the scenario that a seed generates with a profile, such as calm-7.
func ScenarioName(profile string, seed uint64) string { return fmt.Sprintf("%s-%d", profile, seed) }

// ProfileNamed returns the profile with the given name, such as "calm". For an unknown name, it
// returns an error with the names of all profiles.
func ProfileNamed(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("found profile %q; expected %s%s", name, nearest.List(names, "or"), nearest.Suggestion(name, names))
}

// OptionError is an error about one field of [Options]. Option is the name of the field in lower
// case, such as duration.
type OptionError struct{ Option, text string }

func (e *OptionError) Error() string { return e.text }

// Scenario generates the scenario for the options. It returns an error if the options are
// invalid or if no fault fits the workload.
func Scenario(o Options) (*scenario.Scenario, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	s := &scenario.Scenario{
		Name:        ScenarioName(o.Profile.Name, o.Seed),
		Description: o.description(),
		Seed:        o.Seed,
		Cluster:     scenario.Cluster{Nodes: clusterNodes},
		Subject:     scenario.DefaultSubject(),
		Settle:      scenario.Settle{Within: time.Minute, Quiet: time.Second},
	}
	r := o.random("the stage") // random hashes this text, so another text would change all scenarios
	if r.IntN(3) == 0 {
		s.Cluster.PodStartDelay = faults.PickTime(r, 100*time.Millisecond, time.Second, 100*time.Millisecond)
	}
	if r.IntN(4) == 0 {
		s.Subject.Replicas = 2
	}
	if o.Profile.slowPods {
		slowDown(s, r)
	} else {
		o.delayPods(s)
	}
	s.Subject.LeaseDuration = o.Profile.leaseDuration()
	if o.Profile.long {
		// While a watch is held, a controller may write all the time. The defaults of
		// kube-controller-manager limit this.
		s.Subject.QPS, s.Subject.Burst = 20, 30
		s.Settle = scenario.Settle{Within: longSettle, Quiet: 5 * time.Second}
	}
	users := newUsers(o.random("users"), o.Profile, o.sequences(), o.lastChanges())
	s.Workload = users.workload(o.Duration)
	if users.err != nil {
		return nil, fmt.Errorf("generating from seed %d: %w", o.Seed, users.err)
	}
	s.Faults = users.faults
	if err := o.addFaults(s, users); err != nil {
		return nil, fmt.Errorf("generating from seed %d: %w", o.Seed, err)
	}
	if o.Profile.reorder {
		fault, err := o.randomOrder()
		if err != nil {
			return nil, err
		}
		s.Faults = append(s.Faults, fault)
	}
	text, err := s.Marshal()
	if err != nil {
		return nil, fmt.Errorf("generating from seed %d: %w", o.Seed, err)
	}
	parsed, err := scenario.Parse(s.Name+".yaml", text) // sets the defaults, as for a scenario that is read from a file
	if err != nil {
		return nil, err
	}
	parsed.HideFile()
	return parsed, nil
}

// clusterNodes is the number of nodes of each generated scenario.
const clusterNodes = 4

// longSettle is the time limit for convergence after a workload of hours. It is above the maximum
// delay of a retry that the check "converged" allows after a long outage.
const longSettle = 3 * time.Minute

// slowDown makes the pods of a scenario start slowly, stop slowly, or both. It also raises the
// time limit for convergence, because rollouts then take longer.
func slowDown(s *scenario.Scenario, r *rand.Rand) {
	start := faults.PickTime(r, 500*time.Millisecond, 2*time.Second, timeStep)
	end := faults.PickTime(r, 500*time.Millisecond, 2*time.Second, timeStep)
	switch r.IntN(3) {
	case 0:
		s.Cluster.PodStartDelay = start
	case 1:
		s.Cluster.PodStopDelay = end
	default:
		s.Cluster.PodStartDelay, s.Cluster.PodStopDelay = start, end
	}
	s.Settle.Within = 2 * time.Minute
}

// delayPods makes the pods of most scenarios stop slowly, start slowly, or both. Without delays,
// controllers never see a pod that terminates, and nearly never a pod that is not ready yet.
func (o *Options) delayPods(s *scenario.Scenario) {
	r := o.random("delays of pods")
	if r.IntN(2) == 0 {
		s.Cluster.PodStopDelay = faults.PickTime(r, 200*time.Millisecond, 2*time.Second, timeStep)
	}
	if s.Cluster.PodStartDelay == 0 && r.IntN(3) == 0 {
		s.Cluster.PodStartDelay = faults.PickTime(r, 200*time.Millisecond, 2*time.Second, timeStep)
	}
}

// complete sets the defaults of the options and the field o.supported. It returns an error for
// invalid options. From o.Kinds, it removes the fault types that the provider does not support, and
// those without the field Sample.
func (o *Options) complete() error {
	if o.Duration == 0 {
		o.Duration = o.Profile.duration
	}
	if most := o.Profile.durationMax(); o.Duration < DurationMin || o.Duration > most {
		return &OptionError{"duration", fmt.Sprintf("found %s; expected %s to %s", o.Duration, DurationMin, most)}
	}
	if o.Profile.long && !o.Provider.Capabilities.Has(cluster.VirtualTime) {
		return &OptionError{"profile", fmt.Sprintf("the workload of profile %s takes %s on provider %s; expected provider virtual", o.Profile.Name, o.Duration, o.Provider.Name)}
	}
	if o.Kinds == nil {
		o.Kinds = catalog.All
	}
	o.supported = slices.DeleteFunc(slices.Clone(o.Kinds), func(kind faults.Type) bool { return !o.Provider.Capabilities.Has(kind.Needs...) })
	o.Kinds = slices.DeleteFunc(slices.Clone(o.supported), func(kind faults.Type) bool { return kind.Sample == nil })
	if len(o.Kinds) == 0 {
		return fmt.Errorf("no type of fault can run on provider %q; expected another provider, such as %s", o.Provider.Name, strings.Join(providers.Names(), ", "))
	}
	return nil
}

// description returns the text for the field description of the generated scenario, with all
// options.
func (o *Options) description() string {
	preferred := ""
	if o.PreferUncovered != nil {
		preferred = ", preferring those with low counts in coverage " + o.PreferUncovered.Sum()
	}
	return fmt.Sprintf("Generated from seed %d by version %d, profile %s, duration %s, provider %s, from %d types of faults%s.",
		o.Seed, Version, o.Profile.Name, o.Duration, o.Provider.Name, len(o.Kinds), preferred)
}

// random returns a source of random numbers for one purpose, such as "faults". Each purpose has
// its own source. Therefore additional draws for one purpose do not change the draws for another
// purpose.
func (o *Options) random(purpose string) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s %s", o.Profile.Name, purpose)
	return rand.New(rand.NewPCG(o.Seed, hash.Sum64()))
}
