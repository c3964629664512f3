package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/coverage"
	"github.com/kube-gauntlet/gauntlet/harness/internal/generate"
	"github.com/kube-gauntlet/gauntlet/harness/nearest"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// Merged has the results of a campaign, one result for each run.
type Merged struct {
	Campaign Campaign
	// Results has the runs in the order of their seeds. The runs that did not pass have no
	// directory until [Merged.Extract] is called.
	Results campaign.Results
	// Missing lists the runs of the campaign that have no result in the store.
	Missing []Unit
	// Repeated is the number of results that do not count, because an earlier pod has a result for
	// the same run.
	Repeated int
	// Attempts is the number of pods that have worked on the campaign.
	Attempts int
	// Coverage has how often faults acted in the runs of all pods. It also counts the runs whose
	// results do not count.
	Coverage coverage.Table

	failed   []Unit   // the units of Results.Failed
	archives []string // for each run of Results.Failed: the name in the store of the archive with the run directory
}

// ErrNoCampaign means that the store has no campaign with the given name. Either no pod has started
// yet, or the name is wrong.
var ErrNoCampaign = errors.New("the store has no campaign with this name")

// ErrInvalidCampaign means that the file campaign.json of a campaign is damaged.
var ErrInvalidCampaign = errors.New("expected the description of a campaign, as \"gauntlet fleet run\" writes it")

// parseCampaign parses the file campaign.json of the campaign with the given name. Users and other
// programs may have changed the file.
func parseCampaign(name string, content []byte) (Campaign, error) {
	var c Campaign
	err, place := json.Unmarshal(content, &c), path.Join(name, campaignName)
	switch {
	case err != nil:
		var reason string
		place, reason = inputfile.Locate(place, content, err, c)
		err = errors.New(reason)
	case c.Name != name:
		err = fmt.Errorf("name: found %q; expected %q", c.Name, name)
	case c.PerPod < 1:
		err = fmt.Errorf("perPod: found %d; expected at least 1", c.PerPod)
	default:
		err = c.Validate()
	}
	if err != nil {
		return c, fmt.Errorf("file %s in the store of results: %w: %w", place, ErrInvalidCampaign, err)
	}
	return c, nil
}

// noCampaign returns the error about a store without the named campaign. The error lists the campaigns
// that the store has.
func noCampaign(ctx context.Context, store Store, name string) error {
	names, _ := store.List(ctx, "") // after an error, the message lists no campaigns
	var known []string
	for _, file := range names {
		if path.Base(file) == campaignName {
			known = append(known, path.Dir(file))
		}
	}
	const most = 10 // of the names in the message
	text := "it has no campaign"
	if len(known) > 0 {
		text = "it has " + nearest.List(known[max(0, len(known)-most):], "and")
	}
	return fmt.Errorf("campaign %s: %w; %s%s", name, ErrNoCampaign, text, nearest.Suggestion(name, known))
}

// Merge reads all results of a campaign from a store, and counts one result for each run.
//
// Several pods may have a result for the same run. For example, the pod on a node that was cut off
// may still work while Kubernetes has started another pod. Merge then uses the result of the pod
// that started first.
func Merge(ctx context.Context, store Store, name string) (*Merged, error) {
	content, err := store.Get(ctx, path.Join(name, campaignName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noCampaign(ctx, store, name)
	}
	if err != nil {
		return nil, err
	}
	merged := &Merged{}
	if merged.Campaign, err = parseCampaign(name, content); err != nil {
		return nil, err
	}
	names, err := store.List(ctx, name+"/")
	if err != nil {
		return nil, err
	}
	first := merged.choose(names)
	units := merged.Campaign.all()
	runs := make([]*reports.Run, len(units))
	err = forEach(ctx, len(units), func(ctx context.Context, i int) error {
		if result, ok := first[units[i].base()]; ok {
			var err error
			runs[i], err = merged.Campaign.read(ctx, store, units[i], result)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, run := range runs {
		merged.add(units[i], run, first[units[i].base()])
	}
	return merged, merged.addCoverage(ctx, store, names)
}

// addCoverage adds the coverage tables of all pods to m.Coverage. The argument names has the names
// of all files of the campaign.
func (m *Merged) addCoverage(ctx context.Context, store Store, names []string) error {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasSuffix(name, "/"+coverageName) })
	tables := make([]coverage.Table, len(names))
	err := forEach(ctx, len(names), func(ctx context.Context, i int) error {
		content, err := store.Get(ctx, names[i])
		if err != nil {
			return err
		}
		tables[i], err = decode[coverage.Table](names[i], content)
		return err
	})
	if err != nil {
		return err
	}
	for i := range tables {
		m.Coverage.Merge(&tables[i])
	}
	return nil
}

// requestsMax is how many files of a store are read at the same time. An object store answers many
// requests at once, each after some time.
const requestsMax = 32

// forEach calls a function with each number from 0 to n-1, at most requestsMax calls at the same
// time. With it, Merge reads many files of a store at once. forEach returns the first error.
func forEach(ctx context.Context, n int, call func(ctx context.Context, i int) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(requestsMax)
	for i := range n {
		if groupCtx.Err() != nil {
			break // an error or an interrupt: there may be millions of further calls
		}
		group.Go(func() error { return call(groupCtx, i) })
	}
	return cmp.Or(group.Wait(), context.Cause(ctx))
}

// choose returns the result that counts for each run: the result of the first pod that has one. The
// key is the base name of the run, such as "12-ours". choose also sets m.Attempts and m.Repeated.
//
// The argument names has the names of all files of the campaign, sorted. The files of a pod that
// started earlier thus come first, because the name of a pod's directory begins with the start time.
func (m *Merged) choose(names []string) map[string]resultFile {
	first := map[string]resultFile{}
	for _, name := range names {
		if strings.HasSuffix(name, "/"+startedName) {
			m.Attempts++
		}
		result, ok := parseResult(name)
		if !ok {
			continue
		}
		if _, ok := first[result.base]; ok {
			m.Repeated++
			continue
		}
		first[result.base] = result
	}
	return first
}

// read reads the result of a unit, which is one run of the campaign, from the store. The argument
// result has the name of the file. If the file has the result of another run, read returns an
// error.
func (c *Campaign) read(ctx context.Context, store Store, unit Unit, result resultFile) (*reports.Run, error) {
	content, err := store.Get(ctx, result.name)
	if err != nil {
		return nil, err
	}
	run, err := reports.ReadRunJSON(content)
	if err != nil {
		return nil, fmt.Errorf("file %s in the store of results: %w", result.name, err)
	}
	if err := c.checkResult(run, unit); err != nil {
		return nil, fmt.Errorf("file %s in the store of results: %w", result.name, err)
	}
	run.Directory = "" // only the worker had this directory
	return run, nil
}

// checkResult returns an error if a run is not that of a unit. A run without a name of the scenario
// or the provider is valid, because the program of an earlier version may have written it.
func (c *Campaign) checkResult(run *reports.Run, unit Unit) error {
	scenario := cmp.Or(unit.Scenario, c.Scenario)
	if scenario == "" && c.Profile != "" && unit.Check == "" {
		scenario = generate.ScenarioName(c.Profile, unit.Seed)
	}
	for _, field := range []struct {
		name, found, expected string
		optional              bool
	}{
		{"seed", strconv.FormatUint(run.Seed, 10), strconv.FormatUint(unit.Seed, 10), false},
		{"subject", run.Subject, unit.Subject, false},
		{"scenario", run.Scenario, scenario, run.Scenario == "" || scenario == ""},
		{"provider", run.Provider, c.Provider, run.Provider == "" || c.Provider == ""},
	} {
		if field.found != field.expected && !field.optional {
			return fmt.Errorf("found the result of %s %s; expected %s %s", field.name, cmp.Or(field.found, `""`), field.name, field.expected)
		}
	}
	return nil
}

// add adds the run of a unit (a seed and a subject) to m.Results. If the argument run is nil
// because the unit has no result, add lists the unit as missing.
func (m *Merged) add(unit Unit, run *reports.Run, result resultFile) {
	switch {
	case run == nil:
		m.Missing = append(m.Missing, unit)
		return
	case run.Verdict == check.Pass:
		m.Results.Passed = append(m.Results.Passed, *run)
	default:
		m.Results.Failed = append(m.Results.Failed, *run)
		m.failed = append(m.failed, unit)
		m.archives = append(m.archives, path.Join(result.attempt, runsDir, result.base+runSuffix))
	}
	m.Results.Runs++
}

// Extract writes the directories of the runs that did not pass to dir. It sets the fields
// Directory and Reproduce of these runs. A run during which too many pods were killed has no
// directory, because no pod completed it.
func (m *Merged) Extract(ctx context.Context, store Store, dir string) error {
	return forEach(ctx, len(m.Results.Failed), func(ctx context.Context, i int) error {
		archive, err := store.Get(ctx, m.archives[i])
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		run := &m.Results.Failed[i]
		to := filepath.Join(dir, m.failed[i].base())
		if err := Extract(archive, to); err != nil {
			return fmt.Errorf("file %s in the store of results: %w", m.archives[i], err)
		}
		scenario := "scenario.yaml"
		if _, err := os.Stat(filepath.Join(to, scenario)); err != nil && m.failed[i].Scenario == "" {
			return fmt.Errorf("file %s in the store of results: found no file %s; expected the directory of a run", m.archives[i], scenario)
		}
		run.Directory = to
		switch unit := m.failed[i]; {
		case unit.Scenario != "":
			return nil // an exploration has many runs, so it has no single command that reproduces it
		case unit.Check != "":
			scenario = "shrink/smallest.yaml"
		}
		run.Reproduce = fmt.Sprintf("bin/gauntlet run %s --subject=%s --provider=%s", filepath.Join(to, scenario), run.Subject, run.Provider)
		return nil
	})
}
