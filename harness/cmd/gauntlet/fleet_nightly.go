package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/fleet"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// nightName is the name of the file in which "gauntlet fleet nightly" lists the new failures of one
// night.
const nightName = "night.json"

// fleetNightlyFlags has the values of the flags of "gauntlet fleet nightly". This command runs a
// campaign with new seeds every night.
type fleetNightlyFlags struct {
	fleetCampaignFlags
	fleetClusterFlags
	fleetPodFlags
	count      uint64
	mount, out string
}

func newFleetNightly() *cobra.Command {
	var flags fleetNightlyFlags
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "nightly SERIES",
		Short: "Run a campaign with new seeds, and find the failures that are new in a series",
		Long: `Run a campaign with seeds that no earlier night of the series had. Wait for its end, and
write the report and ` + nightName + ` to the directory of --out. The file has the failure groups
that nobody has acknowledged in this series; see "gauntlet fleet acknowledge".

A CronJob runs this command; the documentation of fleets has a Helm chart. If the Job of
the campaign exists already, the command follows it. The exit status is 0 if ` + nightName + `
was written, whatever the verdicts are.`,
		Example: `  gauntlet fleet nightly storms --count=2000 --profile=storm --store=s3://bucket/fleets
  gauntlet fleet nightly nightly --claim=results --dry-run`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := flags.plan(cmd, args[0], time.Now())
			if err != nil {
				return err
			}
			if dryRun {
				return printJob(cmd, job)
			}
			return flags.run(cmd, args[0], job)
		},
	}
	f := cmd.Flags()
	flags.fleetCampaignFlags.add(f)
	flags.fleetClusterFlags.add(f)
	flags.fleetPodFlags.add(f)
	f.StringVar(&flags.campaign.Name, "name", "", "the `name` of the campaign and its Job (default: SERIES-DATE)")
	f.Uint64Var(&flags.count, "count", 1000, "the number of seeds of each night; after a change of this number, some seeds of earlier nights may run again")
	f.StringVar(&flags.mount, "mount", "/store", "the `directory` at which --claim is mounted")
	f.StringVar(&flags.out, "out", "out", "the `directory` for "+nightName+" and the report")
	f.BoolVar(&dryRun, "dry-run", false, "print the manifest of the Job; send no request")
	return cmd
}

// fleetCountMax is the maximum value of the flag --count, the number of seeds of one night.
const fleetCountMax = fleet.SeedsMax

// plan returns the Job of a campaign that starts at the time now, and chooses its seeds.
//
// The first seed depends on the number of hours since 1970. Two nights with the same --count
// therefore have no seed in common if they start at least an hour apart.
func (f *fleetNightlyFlags) plan(cmd *cobra.Command, series string, now time.Time) (*batchv1.Job, error) {
	if f.count < 1 || f.count > fleetCountMax {
		return nil, fmt.Errorf("--count=%d: expected 1 to %d", f.count, fleetCountMax)
	}
	if f.pods.Bucket != "" && cmd.Flags().Changed("mount") {
		return nil, errors.New("--mount has an effect only with --claim: omit --mount, or replace --store by --claim")
	}
	if f.mount != "" && !filepath.IsAbs(f.mount) {
		return nil, fmt.Errorf("--mount=%s: expected an absolute path", f.mount)
	}
	if filepath.Clean(f.mount) == "/" {
		return nil, fmt.Errorf("--mount=%s: found the root directory; expected a directory in which a pod can mount a volume", f.mount)
	}
	if err := fleet.CheckSeries(series); err != nil {
		return nil, err
	}
	first := uint64(now.Unix())/uint64(time.Hour/time.Second)*f.count + 1
	f.seeds = fmt.Sprintf("%d..%d", first, first+f.count-1)
	if f.campaign.Name == "" {
		f.campaign.Name = series + "-" + now.UTC().Format("20060102")
		if fleet.CheckName(f.campaign.Name) != nil {
			return nil, fmt.Errorf("series: found %q, which makes %q the name of the Job; expected a short name of lower-case letters, digits and \"-\", or another name of the Job with --name", series, f.campaign.Name)
		}
	}
	if err := errors.Join(f.fleetCampaignFlags.complete(cmd), f.fleetPodFlags.complete(), checkNamespace(f.namespace)); err != nil {
		return nil, err
	}
	f.pods.Namespace = f.namespace
	return fleet.Job(&f.campaign, &f.pods), nil
}

// run creates the Job of a campaign and waits for its end. It then writes the campaign's report and
// new failures to the directory of --out.
func (f *fleetNightlyFlags) run(cmd *cobra.Command, series string, job *batchv1.Job) error {
	if _, err := os.Stat(f.mount); err != nil && f.pods.Bucket == "" {
		return fmt.Errorf("--mount: %s: expected the directory at which PersistentVolumeClaim %s is mounted", f.mount, f.pods.Claim)
	}
	if err := checkCampaignDirectory(filepath.Join(f.out, fleet.ReportDirectory(f.campaign.Name))); err != nil {
		return err
	}
	store, closeStore, err := openStore(cmp.Or(f.pods.Bucket, f.mount))
	if err != nil {
		return err
	}
	cluster, err := f.connect()
	if err == nil {
		err = f.follow(cmd, cluster, job)
	}
	if err == nil {
		err = f.collect(cmd, series, store)
	}
	return errors.Join(err, closeStore())
}

// follow creates a Job, unless the Job exists, and prints the Job's progress until the Job ends.
func (f *fleetNightlyFlags) follow(cmd *cobra.Command, cluster *fleet.Cluster, job *batchv1.Job) error {
	job.Namespace = cluster.Namespace
	created, err := cluster.Ensure(cmd.Context(), job)
	if err != nil {
		return &unfinishedError{err}
	}
	action := "following the existing"
	if created {
		action = "created"
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s job %s/%s\n", action, cluster.Namespace, job.Name)
	_, err = followFleet(cmd, cluster, job.Name)
	return err
}

// collect merges the results of a campaign from the store. It writes the campaign's report and
// night.json, which lists the new failures.
func (f *fleetNightlyFlags) collect(cmd *cobra.Command, series string, store fleet.Store) error {
	dir := filepath.Join(f.out, fleet.ReportDirectory(f.campaign.Name))
	merged, _, err := mergeFleet(cmd, store, f.campaign.Name, dir)
	if err != nil {
		return &unfinishedError{err}
	}
	night := fleet.Night{Series: series, Campaign: f.campaign.Name, Runs: merged.Results.Runs, Missing: len(merged.Missing), Report: dir}
	if night.NewGroups, err = fleet.NewGroups(cmd.Context(), store, series, reports.Groups(merged.Results.Failed)); err != nil {
		return &unfinishedError{err}
	}
	content, err := json.MarshalIndent(night, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(f.out, nightName)
	if err := os.WriteFile(path, append(content, '\n'), 0o644); err != nil {
		return &unfinishedError{err}
	}
	return writeText(cmd, fmt.Sprintf("runs without a verdict: %d; new failure groups: %d, listed in %s\n", night.Missing, len(night.NewGroups), path))
}

func newFleetAcknowledge() *cobra.Command {
	var location string
	cmd := &cobra.Command{
		Use:   "acknowledge FILE",
		Short: "Record the failures of a night, so that later nights do not report them",
		Long: `Record the new failure groups in FILE, which "gauntlet fleet nightly" wrote. Later nights
of the series do not report these groups as new.`,
		Example: `  gauntlet fleet acknowledge out/` + nightName + ` --store=s3://bucket/fleets`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (result error) {
			night, err := loadNight(args[0])
			if err != nil {
				return err
			}
			store, closeStore, err := openExistingStore(location)
			if err != nil {
				return err
			}
			defer func() { result = errors.Join(result, closeStore()) }()
			if err := fleet.Acknowledge(cmd.Context(), store, night); err != nil {
				return &unfinishedError{err}
			}
			return writeText(cmd, fmt.Sprintf("acknowledged failure groups of %s: %d\n", night.Series, len(night.NewGroups)))
		},
	}
	cmd.Flags().StringVar(&location, "store", "", "the `directory` of the results, or the URL of the bucket")
	_ = cmd.MarkFlagRequired("store")
	return cmd
}

// loadNight reads a file that "gauntlet fleet nightly" wrote.
func loadNight(path string) (*fleet.Night, error) {
	const expected = "a file that \"gauntlet fleet nightly\" wrote"
	content, err := inputfile.Read(path)
	if err != nil {
		return nil, inputfile.WithExpected(err, expected)
	}
	if mistaken := inputfile.Mistaken(content, expected); mistaken != nil {
		return nil, fmt.Errorf("%s: %w", path, mistaken)
	}
	night := new(fleet.Night)
	if err := json.Unmarshal(content, night); err != nil {
		place, reason := inputfile.Locate(path, content, err, night)
		return nil, fmt.Errorf("%s: expected %s: %s", place, expected, reason)
	}
	if err := night.Validate(); err != nil {
		return nil, fmt.Errorf("%s: expected %s: %w", path, expected, err)
	}
	return night, nil
}
