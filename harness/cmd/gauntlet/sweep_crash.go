package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// sweepCrashFlags has the values of the flags of "gauntlet sweep crash". This command runs a
// scenario once for each write, with a fault at that write.
type sweepCrashFlags struct {
	campaignFlags
	faults   []string // the names of the faults to inject
	from, to int      // the first and the last write, counted from 1; as the last write, 0 means the end of the run
}

// writeActions has the faults that "gauntlet sweep crash" can inject at a write of the program
// under test.
var writeActions = []explore.Action{explore.Crash, explore.Lost}

// actionNames returns the names of the faults that explore can inject, as the flag --at accepts
// them.
func actionNames(actions []explore.Action) []string {
	var names []string
	for _, a := range actions {
		names = append(names, string(a))
	}
	return names
}

func newSweepCrash(code *int) *cobra.Command {
	flags := sweepCrashFlags{}
	all := actionNames(writeActions)
	cmd := &cobra.Command{
		Use:   "crash SCENARIO",
		Short: "Run a scenario once for each write of the subject, with a fault at that write",
		Long: `Run the workload of a scenario without faults and record the writes of the subject.
Then run it again for each of these writes, with a single fault at that write.

The directories of runs that passed are deleted, the others are kept. At the end the
command prints one line for each failure group. The directory crash-TIME contains the
same lines and the reports of all runs.

"gauntlet explore" also injects other faults, and prunes places that cannot matter.`,
		Example: `  gauntlet sweep crash rollout
  gauntlet sweep crash burst --subjects=ours --from=3 --to=9`,
		ValidArgsFunction: completeScenarios,
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			*code, err = flags.run(cmd, args[0])
			return err
		},
	}
	f := cmd.Flags()
	flags.add(f)
	f.StringSliceVar(&flags.faults, "at", all, "the faults to inject at each write, one run each: "+strings.Join(all, ", "))
	f.IntVar(&flags.from, "from", 1, "inject the faults from this write on, counted from 1")
	f.IntVar(&flags.to, "to", 0, "inject the faults up to this write, counted from 1; 0 means up to the last one")
	f.Uint64Var(&flags.runs.seed, "seed", 0, "the seed of all random choices; 0 uses the seed in the scenario, or a random one if it has none")
	return cmd
}

// run learns the writes of each subject from a run without faults. For each write and each fault
// in f.faults, it then makes one run in which the fault is injected at this write. run returns
// the exit code for the verdicts.
func (f *sweepCrashFlags) run(cmd *cobra.Command, name string) (int, error) {
	if f.from < 1 || f.to < 0 || (f.to > 0 && f.to < f.from) {
		return exitPass, fmt.Errorf("--from=%d --to=%d: --from must be at least 1, and --to must be 0 or not less than --from", f.from, f.to)
	}
	actions, err := explore.ParseActions(f.faults, writeActions...)
	if err != nil {
		return exitPass, fmt.Errorf("--at: %w", err)
	}
	if err := f.checkSubjects(); err != nil {
		return exitPass, err
	}
	s, err := loadScenario(cmd.Context(), name, cmd.ErrOrStderr(), f.subjects...)
	if err != nil {
		return exitPass, err
	}
	s.Seed = seedOf(f.runs.seed, s.Seed)
	withoutFaults := explore.WithoutFaults(s)
	var all []campaign.Attempt
	for _, subject := range f.subjects {
		attempts, err := f.plan(cmd, withoutFaults, actions, subject)
		if err != nil {
			return exitPass, err
		}
		all = append(all, attempts...)
	}
	return f.runCampaign(cmd, "crash", campaign.Options{Series: seriesOf(all), Planned: len(all)})
}

// plan returns a function for each combination of a write of the subject and a fault in actions.
// The function makes one run, in which the fault is injected at the write.
//
// plan first makes a run without faults to learn the writes. It omits writes that the API server
// refused. Such a write commits nothing, so no fault can separate its commit from its response. It also
// omits writes of resources that no fault can name.
func (f *sweepCrashFlags) plan(cmd *cobra.Command, withoutFaults *scenario.Scenario, actions []explore.Action, subject string) ([]campaign.Attempt, error) {
	only := f.campaignFlags
	only.subjects = []string{subject}
	withoutFaults = withoutFaults.Clone() // a subject file sets the controllers in this copy
	writes, err := only.subjectWrites(cmd, withoutFaults)
	if err != nil {
		return nil, err
	}
	last := len(writes)
	if f.to > 0 {
		last = min(last, f.to)
	}
	if len(writes) == 0 {
		return nil, &unfinishedError{fmt.Errorf("scenario %s: found no write of subject %s in the run without faults; expected at least one, before or after which the subject can crash", withoutFaults.Name, subject)}
	}
	if f.from > len(writes) {
		return nil, &unfinishedError{fmt.Errorf("--from=%d: found %d writes of subject %s; expected at most this number", f.from, len(writes), subject)}
	}
	f.runs.announce(cmd, "scenario %s, subject %s: found %d writes; injecting faults at writes %d to %d: %s\n",
		withoutFaults.Name, subject, len(writes), f.from, last, strings.Join(f.faults, ", "))
	var disturbed []*scenario.Scenario
	resources, omitted := withoutFaults.Resources(), map[string]int{}
	for k := f.from; k <= last; k++ {
		if resource := writes[k-1].Resource; !slices.Contains(resources, resource) {
			omitted[resource]++
			continue
		}
		for _, action := range actions {
			if writes[k-1].Refused {
				continue
			}
			s, err := explore.Place{Action: action, Write: &writes[k-1].Write}.Scenario(withoutFaults)
			if err != nil {
				return nil, err
			}
			disturbed = append(disturbed, s)
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(omitted)) {
		f.runs.announce(cmd, "omitting %d writes of %s: no fault can name the resource; add its kind to operator.kinds of the scenario\n", omitted[resource], resource)
	}
	if len(disturbed) == 0 {
		return nil, &unfinishedError{fmt.Errorf("scenario %s: found no write of subject %s at which a fault can be injected; expected at least one between --from and --to", withoutFaults.Name, subject)}
	}
	return only.attemptsOf(cmd, func() ([]*scenario.Scenario, error) { return disturbed, nil }, withoutFaults.Seed)
}

// subjectWrites makes a run without faults, and returns the writes of the program under test in
// this run. If the subject is a subject file, it sets the controllers under test in withoutFaults. It deletes the run directory. It returns an error if a check failed.
func (f *campaignFlags) subjectWrites(cmd *cobra.Command, withoutFaults *scenario.Scenario) ([]explore.LearntWrite, error) {
	attempts, err := f.attemptsOf(cmd, func() ([]*scenario.Scenario, error) { return []*scenario.Scenario{withoutFaults}, nil }, withoutFaults.Seed)
	if err != nil {
		return nil, err
	}
	result, err := attempts[0](cmd.Context())
	if err != nil && cmd.Context().Err() != nil {
		err = errors.New("interrupted during the run without faults, before any run with a fault")
	}
	if err != nil {
		return nil, &unfinishedError{err}
	}
	if result.Verdict == check.Fail {
		return nil, &unfinishedError{fmt.Errorf("a check failed in the run without faults, so the sweep cannot begin; see %s", result.Directory)}
	}
	lesson, err := explore.Learn(history.ReadFile(run.HistoryFile(result.Directory)))
	if err != nil {
		return nil, &unfinishedError{err}
	}
	if err := os.RemoveAll(result.Directory); err != nil {
		return nil, &unfinishedError{err}
	}
	return lesson.Writes, nil
}
