package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-gauntlet/gauntlet/harness/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/sweep"
)

// sweepCrashFlags are the flags of `gauntlet sweep crash`.
type sweepCrashFlags struct {
	huntFlags
	mishaps  []string
	from, to int
}

func newSweepCrash(code *int) *cobra.Command {
	flags := sweepCrashFlags{}
	var all []string
	for _, m := range sweep.Disturbances {
		all = append(all, m.Name)
	}
	cmd := &cobra.Command{
		Use:   "crash SCENARIO",
		Short: "Run a scenario once for every write of the subject, with a mishap at it",
		Long: `Run the workload of a scenario without faults and count the subject's writes; then
run it again for each of them, with nothing going wrong but at that one write.

Runs that did not pass are kept. At the end each distinct failure is printed in
a line; the same lines, and the reports of the runs that were kept, are in the
directory crash-TIME beside them.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			*code, err = flags.run(cmd, args[0])
			return err
		},
	}
	f := cmd.Flags()
	flags.add(f)
	f.StringSliceVar(&flags.mishaps, "at", all, "what goes wrong at each write, in turn: "+strings.Join(all, ", "))
	f.IntVar(&flags.from, "from", 1, "the first write")
	f.IntVar(&flags.to, "to", 0, "the last write; 0 is the last of all")
	f.Uint64Var(&flags.runs.seed, "seed", 0, "where random draws start; 0 takes the scenario's own seed, or else a random one")
	return cmd
}

// run makes the runs, and returns what the verdicts amount to.
func (f *sweepCrashFlags) run(cmd *cobra.Command, name string) (int, error) {
	if f.from < 1 || f.to < 0 || (f.to > 0 && f.to < f.from) {
		return exitPass, fmt.Errorf("--from=%d --to=%d: expected the first write, from 1 on, and the last", f.from, f.to)
	}
	var mishaps []sweep.Disturbance
	for _, name := range f.mishaps {
		m, err := sweep.Find(name)
		if err != nil {
			return exitPass, err
		}
		mishaps = append(mishaps, m)
	}
	s, err := loadScenario(name)
	if err != nil {
		return exitPass, err
	}
	if s.Seed = seedOf(f.runs.seed, s.Seed); len(mishaps) == 0 {
		return exitPass, errors.New("--at: found none; expected one or more, separated by commas")
	}
	calm := sweep.WithoutFaults(s)
	var all []campaign.Attempt
	for _, subject := range f.subjects {
		attempts, err := f.plan(cmd, calm, mishaps, subject)
		if err != nil {
			return exitPass, err
		}
		all = append(all, attempts...)
	}
	return f.hunt(cmd, "crash", campaign.Options{Series: series(all)})
}

// plan finds out what a subject writes, and plans the runs.
func (f *sweepCrashFlags) plan(cmd *cobra.Command, calm *scenario.Scenario, mishaps []sweep.Disturbance, subject string) ([]campaign.Attempt, error) {
	only := f.huntFlags
	only.subjects = []string{subject}
	writes, err := only.writes(cmd, calm)
	if err != nil {
		return nil, err
	}
	last := len(writes)
	if f.to > 0 {
		last = min(last, f.to)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s, %s: %d writes; sweeping through %d to %d with %s\n",
		calm.Name, subject, len(writes), f.from, last, strings.Join(f.mishaps, ", "))
	var disturbed []*scenario.Scenario
	for k := f.from; k <= last; k++ {
		for _, m := range mishaps {
			s, err := m.At(calm, k, writes[k-1])
			if err != nil {
				return nil, err
			}
			disturbed = append(disturbed, s)
		}
	}
	return only.attempts(cmd, func() ([]*scenario.Scenario, error) { return disturbed, nil }, calm.Seed)
}

// writes makes the run in which nothing goes wrong, and reads off what the subject
// writes in it.
func (f *huntFlags) writes(cmd *cobra.Command, calm *scenario.Scenario) ([]sweep.Write, error) {
	attempts, err := f.attempts(cmd, func() ([]*scenario.Scenario, error) { return []*scenario.Scenario{calm}, nil }, calm.Seed)
	if err != nil {
		return nil, err
	}
	judged, err := attempts[0](cmd.Context())
	if err != nil {
		return nil, &unfinishedError{err}
	}
	if judged.Verdict == check.Fail {
		return nil, &unfinishedError{fmt.Errorf("it fails with nothing going wrong, see %s", judged.Directory)}
	}
	writes, err := sweep.Writes(history.ReadFile(run.HistoryFile(judged.Directory)))
	if err != nil {
		return nil, &unfinishedError{err}
	}
	return writes, os.RemoveAll(judged.Directory)
}
