package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/fleet"
	"github.com/kube-gauntlet/gauntlet/harness/internal/shrink"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// fleetShrinkFlags has the values of the flags of "gauntlet fleet shrink". This command shrinks the
// failures of a campaign in the pods of a second Job.
type fleetShrinkFlags struct {
	fleetClusterFlags
	fleetPodFlags
	name   string
	detach bool
}

func newFleetShrink(code *int) *cobra.Command {
	var flags fleetShrinkFlags
	cmd := &cobra.Command{
		Use:   "shrink NAME",
		Short: "Shrink the failures of a campaign in the pods of an Indexed Job",
		Long: `Shrink the smallest failed run of each failure group of a campaign, as "gauntlet shrink"
does. Each failure group is an index of a second Job, NAME-shrink. If a pod is killed,
the next pod continues its search.

The commands status, collect and delete accept the name NAME-shrink. After collect, the
directory of a run has the smallest scenario so far, shrink/smallest.yaml.

The pods are like those of the campaign's Job. If this Job does not exist any more, name
the results with --claim or --store, and the image. Only then, the other flags of the
pods have an effect.`,
		Example: `  gauntlet fleet shrink nightly
  gauntlet fleet shrink nightly --claim=results --image=REGISTRY/gauntlet-fleet:v1 --parallelism=10`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			*code, err = flags.run(cmd, args[0])
			return err
		},
	}
	f := cmd.Flags()
	flags.fleetClusterFlags.add(f)
	flags.fleetPodFlags.add(f)
	f.StringVar(&flags.name, "name", "", "the `name` of the second Job and its results (default: NAME-shrink)")
	f.BoolVar(&flags.detach, "detach", false, "do not wait for the end of the Job")
	return cmd
}

// run creates a Job that shrinks the failures of the named campaign, and follows the Job. It returns
// the exit code.
func (f *fleetShrinkFlags) run(cmd *cobra.Command, name string) (int, error) {
	second := f.shrinkName(name)
	if err := cmp.Or(fleet.CheckName(name), fleet.CheckName(second)); err != nil {
		return exitPass, err
	}
	if second == name {
		return exitPass, fmt.Errorf("--name=%s: found the name of the campaign; expected another name for the second Job", second)
	}
	if f.named() {
		if err := f.fleetPodFlags.complete(); err != nil {
			return exitPass, err
		}
	}
	cluster, err := f.connect()
	if err != nil {
		return exitPass, err
	}
	plan, err := f.plan(cmd.Context(), name)
	if err != nil {
		return exitPass, err
	}
	job, err := f.job(cmd.Context(), cluster, plan)
	if err != nil {
		return exitPass, &unfinishedError{err}
	}
	return submitFleet(cmd, cluster, job, fmt.Sprintf("; failure groups: %d", len(plan.Units)), f.detach)
}

// shrinkName returns the name of the campaign that shrinks the failures of the named campaign.
func (f *fleetShrinkFlags) shrinkName(name string) string { return cmp.Or(f.name, name+"-shrink") }

// named reports whether the flag --claim or --store is set. These flags say where the results of
// the campaign are. If neither is set, gauntlet reads the place from the campaign's Job.
func (f *fleetShrinkFlags) named() bool { return f.pods.Claim != "" || f.pods.Bucket != "" }

// plan reads the results of a campaign, and returns a second campaign that shrinks the failures of
// the first campaign.
func (f *fleetShrinkFlags) plan(ctx context.Context, name string) (*fleet.Campaign, error) {
	results := fleetCollectFlags{fleetClusterFlags: f.fleetClusterFlags, store: f.pods.Bucket, claim: f.pods.Claim}
	if f.named() {
		results.image = f.pods.Image
	}
	store, closeStore, err := results.open(ctx, name)
	if err != nil {
		return nil, err
	}
	merged, err := fleet.Merge(ctx, store, name)
	if isWrongStore(err) {
		return nil, errors.Join(err, closeStore())
	}
	if err = errors.Join(err, closeStore()); err != nil {
		return nil, &unfinishedError{err}
	}
	return merged.Shrinking(f.shrinkName(name))
}

// job returns the Job of plan, a campaign that shrinks the failures of an earlier campaign. If
// neither --claim nor --store is set, the pods of the Job are like those of the earlier
// campaign's Job.
func (f *fleetShrinkFlags) job(ctx context.Context, cluster *fleet.Cluster, plan *fleet.Campaign) (*batchv1.Job, error) {
	if f.named() {
		f.pods.Namespace = cluster.Namespace
		return fleet.Job(plan, &f.pods), nil
	}
	other, err := cluster.Job(ctx, plan.Of)
	if err != nil {
		return nil, err
	}
	return fleet.JobLike(other, plan), nil
}

// prepareShrink returns a function that shrinks the failure of the unit u in a pod. The function
// returns the failed run, whose directory then also contains the smallest scenario.
func (f *fleetWorkerFlags) prepareShrink(cmd *cobra.Command, worker *fleet.Worker, u fleet.Unit) campaign.Attempt {
	return func(ctx context.Context) (*reports.Run, error) {
		dir, err := filepath.Abs(filepath.Join(f.runs.out, "shrink"))
		if err == nil {
			err = os.RemoveAll(dir)
		}
		if err != nil {
			return nil, err
		}
		failed, err := f.campaign.Failed(ctx, worker.Store, u, dir)
		if err != nil {
			return nil, err
		}
		search := shrinkFlags{runs: f.runs, check: u.Check}
		for _, failure := range reports.FailedChecks([]reports.Run{*failed}) {
			if failure.Check == u.Check {
				search.failure = &failure
			}
		}
		saved := &savedJournal{ctx: ctx, worker: worker, unit: u}
		if saved.content, err = worker.Journal(ctx, u); err != nil {
			return nil, err
		}
		if err := saved.restore(filepath.Join(dir, "shrink"), u.Check+".jsonl"); err != nil {
			return nil, err
		}
		search.journal = saved
		err = search.run(cmd, dir)
		if errors.Is(err, shrink.ErrNeverFails) {
			failed.Verdict, failed.Reason, failed.Results = check.Unknown, fmt.Sprintf("the failure of %s cannot be shrunk: %v", u.Check, err), nil
			return failed, nil
		}
		if err != nil {
			return nil, err
		}
		// This unit shrank only the failure of u.Check. Other units shrink other failures of the run.
		failed.Results = slices.DeleteFunc(failed.Results, func(result check.Result) bool { return result.Check != u.Check })
		return failed, nil
	}
}

// savedJournal is a writer that receives the journal of a search for the smallest failing scenario.
// The journal has one line for each run of the search. savedJournal saves the journal in the store
// after each line, so that the next pod can continue the search.
type savedJournal struct {
	ctx     context.Context
	worker  *fleet.Worker
	unit    fleet.Unit
	content []byte
}

var _ io.Writer = (*savedJournal)(nil)

// restore writes the journal of earlier pods to the file dir/name, from which the search continues.
func (s *savedJournal) restore(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), s.content, 0o644)
}

// Write adds a line to the journal, and saves the whole journal in the store.
func (s *savedJournal) Write(line []byte) (int, error) {
	s.content = append(s.content, line...)
	return len(line), s.worker.SaveJournal(s.ctx, s.unit, s.content)
}
