// Package generate makes scenarios from seeds: what users do, and what goes wrong
// meanwhile. The same seed, profile, duration, provider and coverage to lean away
// from give the same scenario, byte for byte, on any machine, as long as the version
// and the catalogue of faults are the same; the description of a scenario names all.
//
// A scenario that is generated makes sense: users act on what is there, faults
// spoil what the workload brings about, and all of them are over soon after it.
// What upstream's controllers are known not to survive is left out (see avoid.go),
// as in the scenarios that gauntlet brings along.
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
	"github.com/kube-gauntlet/gauntlet/harness/coverage"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Version is that of the generator. It is raised whenever a seed gives another
// scenario than before, other than by a catalogue that has grown.
const Version = 4

// Options say what to generate.
type Options struct {
	Seed    uint64
	Profile Profile
	// Duration is how long the workload goes on, DurationMin to DurationMax; 0 is
	// the profile's own.
	Duration time.Duration
	// Provider is the cluster that the scenario is for, one of [faults.Providers].
	Provider string
	// Kinds are the faults to draw from; nil is the whole catalogue.
	Kinds []faults.Type
	// PreferUncovered, if set, is what was seen before: faults that it has little of are
	// preferred. It is as much a part of what makes the scenario as the seed.
	PreferUncovered *coverage.Table
}

// Bounds of a workload's duration.
const (
	DurationMin = time.Second
	DurationMax = 2 * time.Minute
)

// Profile is how much is going on.
type Profile struct {
	Name     string
	duration time.Duration
	owners   between       // that there are from the beginning
	pods     int           // that all owners together ask for, at most
	gap      time.Duration // from one step to the next, at most
	faults   between       // in the time of the profile's own duration
}

// between are the least and the most of something.
type between struct{ least, most int }

func (b between) draw(r *rand.Rand) int { return b.least + r.IntN(b.most-b.least+1) }

// Profiles is the table of all.
var Profiles = []Profile{
	{Name: "calm", duration: 4 * time.Second, owners: between{1, 2}, pods: 20, gap: 1200 * time.Millisecond, faults: between{1, 2}},
	{Name: "steady", duration: 4 * time.Second, owners: between{2, 4}, pods: 50, gap: 700 * time.Millisecond, faults: between{3, 5}},
	{Name: "storm", duration: 5 * time.Second, owners: between{3, 5}, pods: 80, gap: 400 * time.Millisecond, faults: between{6, 10}},
}

// DefaultProfile is the one that holds if none is asked for.
const DefaultProfile = "steady"

// ProfileNamed finds a profile. Its error names those that there are.
func ProfileNamed(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("profile %q: expected %s", name, strings.Join(names, ", "))
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
	r := o.random("the stage")
	if r.IntN(3) == 0 {
		s.Cluster.PodStartDelay = faults.PickTime(r, 100*time.Millisecond, time.Second, 100*time.Millisecond)
	}
	if r.IntN(4) == 0 {
		s.Subject.Replicas = 2
	}
	s.Subject.LeaseDuration = 5 * time.Second // who takes over has to wait for it
	users := newUsers(o.random("users"), o.Profile.pods)
	s.Workload = users.work(o.Profile, o.Duration)
	if err := o.addFaults(s, users); err != nil {
		return nil, fmt.Errorf("generating from seed %d: %w", o.Seed, err)
	}
	text, err := s.Marshal()
	if err != nil {
		return nil, fmt.Errorf("generating from seed %d: %w", o.Seed, err)
	}
	return scenario.Parse(s.Name+".yaml", text) // as whoever replays the file
}

// complete fills in what was left open, and refuses what makes no sense.
func (o *Options) complete() error {
	if o.Duration == 0 {
		o.Duration = o.Profile.duration
	}
	if o.Duration < DurationMin || o.Duration > DurationMax {
		return fmt.Errorf("duration %s: expected %s to %s", o.Duration, DurationMin, DurationMax)
	}
	if o.Kinds == nil {
		o.Kinds = catalog.All
	}
	o.Kinds = slices.DeleteFunc(slices.Clone(o.Kinds), func(kind faults.Type) bool {
		return kind.Sample == nil || !slices.Contains(kind.Providers, o.Provider)
	})
	if len(o.Kinds) == 0 {
		return fmt.Errorf("no fault can happen on %q", o.Provider)
	}
	return nil
}

func (o *Options) description() string {
	lean := ""
	if o.PreferUncovered != nil {
		lean = ", those preferred that coverage " + o.PreferUncovered.Sum() + " has little of"
	}
	return fmt.Sprintf("Generated from seed %d by version %d, profile %s, over %s, on %s, from %d kinds of faults%s.",
		o.Seed, Version, o.Profile.Name, o.Duration, o.Provider, len(o.Kinds), lean)
}

// random is a source of draws for one purpose: more draws for one do not shift
// those for another.
func (o *Options) random(purpose string) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s %s", o.Profile.Name, purpose)
	return rand.New(rand.NewPCG(o.Seed, hash.Sum64()))
}
