// Package generate generates scenarios from seeds: a workload and its faults. The same
// seed, profile, duration, provider and preferred coverage give the same scenario, byte for
// byte, on any machine. This holds as long as the version of the generator and the catalog
// of faults do not change. The description of a scenario names all of them.
//
// In a generated scenario, users act on objects that exist, faults act on requests and
// objects of the workload, and all faults end soon after the workload. The generator avoids
// known upstream issues (see upstream_issues.go).
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
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/internal/coverage"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Version is the version of the generator. It increases whenever a seed gives a
// different scenario, unless only the catalog of faults has grown.
const Version = 4

// Options are the inputs of the generator.
type Options struct {
	Seed    uint64
	Profile Profile
	// Duration is the duration of the workload, DurationMin to DurationMax. 0 means the
	// duration of the profile.
	Duration time.Duration
	// Provider is the provider of the cluster. Its capabilities decide which faults the
	// generator draws.
	Provider providers.Provider
	// Kinds are the types of faults to draw from; nil is the whole catalog.
	Kinds []faults.Type
	// PreferUncovered is the coverage of earlier runs; it may be nil. The generator prefers
	// faults with low counts in the coverage. Therefore the same seed with another coverage
	// may give another scenario.
	PreferUncovered *coverage.Table
}

// Bounds of a workload's duration.
const (
	DurationMin = time.Second
	DurationMax = 2 * time.Minute
)

// Profile is the intensity of the workload and of the faults.
type Profile struct {
	Name     string
	duration time.Duration
	owners   interval      // number of owners that exist at the beginning
	pods     int           // maximum sum of the replicas of all owners
	gap      time.Duration // maximum time from one step to the next
	faults   interval      // number of faults in the duration of the profile
}

// interval is a minimum and a maximum.
type interval struct{ least, most int }

func (b interval) draw(r *rand.Rand) int { return b.least + r.IntN(b.most-b.least+1) }

// Profiles is the table of profiles.
var Profiles = []Profile{
	{Name: "calm", duration: 4 * time.Second, owners: interval{1, 2}, pods: 20, gap: 1200 * time.Millisecond, faults: interval{1, 2}},
	{Name: "steady", duration: 4 * time.Second, owners: interval{2, 4}, pods: 50, gap: 700 * time.Millisecond, faults: interval{3, 5}},
	{Name: "storm", duration: 5 * time.Second, owners: interval{3, 5}, pods: 80, gap: 400 * time.Millisecond, faults: interval{6, 10}},
}

// DefaultProfile is the name of the default profile.
const DefaultProfile = "steady"

// ProfileNamed returns the profile with a name. Its error lists all profiles.
func ProfileNamed(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("found profile %q; expected %s", name, strings.Join(names, ", "))
}

// Scenario generates a scenario.
func Scenario(o Options) (*scenario.Scenario, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	s := &scenario.Scenario{
		Name:        fmt.Sprintf("%s-%d", o.Profile.Name, o.Seed),
		Description: o.description(),
		Seed:        o.Seed,
		Cluster:     scenario.Cluster{Nodes: 4},
		Subject:     scenario.DefaultSubject(),
		Settle:      scenario.Settle{Within: time.Minute, Quiet: time.Second},
	}
	r := o.random("the stage") // the text is part of the seed: another text gives other scenarios
	if r.IntN(3) == 0 {
		s.Cluster.PodStartDelay = faults.PickTime(r, 100*time.Millisecond, time.Second, 100*time.Millisecond)
	}
	if r.IntN(4) == 0 {
		s.Subject.Replicas = 2
	}
	s.Subject.LeaseDuration = 5 * time.Second // a new leader must wait until the lease expires
	users := newUsers(o.random("users"), o.Profile.pods)
	s.Workload = users.workload(o.Profile, o.Duration)
	if err := o.addFaults(s, users); err != nil {
		return nil, fmt.Errorf("generating from seed %d: %w", o.Seed, err)
	}
	text, err := s.Marshal()
	if err != nil {
		return nil, fmt.Errorf("generating from seed %d: %w", o.Seed, err)
	}
	return scenario.Parse(s.Name+".yaml", text) // the result equals a scenario that is read from the file
}

// complete sets the defaults and checks the options.
func (o *Options) complete() error {
	if o.Duration == 0 {
		o.Duration = o.Profile.duration
	}
	if o.Duration < DurationMin || o.Duration > DurationMax {
		return fmt.Errorf("found duration %s; expected %s to %s", o.Duration, DurationMin, DurationMax)
	}
	if o.Kinds == nil {
		o.Kinds = catalog.All
	}
	o.Kinds = slices.DeleteFunc(slices.Clone(o.Kinds), func(kind faults.Type) bool {
		return kind.Sample == nil || !o.Provider.Capabilities.Has(kind.Needs...)
	})
	if len(o.Kinds) == 0 {
		return fmt.Errorf("no fault supports provider %q; expected one of %s", o.Provider.Name, strings.Join(providers.Names(), ", "))
	}
	return nil
}

func (o *Options) description() string {
	preferred := ""
	if o.PreferUncovered != nil {
		preferred = ", preferring those with low counts in coverage " + o.PreferUncovered.Sum()
	}
	return fmt.Sprintf("Generated from seed %d by version %d, profile %s, duration %s, provider %s, from %d types of faults%s.",
		o.Seed, Version, o.Profile.Name, o.Duration, o.Provider.Name, len(o.Kinds), preferred)
}

// random returns a source of random numbers for one purpose, derived from the seed. Each
// purpose has a source of its own, so that more draws for one do not change those for
// another.
func (o *Options) random(purpose string) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s %s", o.Profile.Name, purpose)
	return rand.New(rand.NewPCG(o.Seed, hash.Sum64()))
}
