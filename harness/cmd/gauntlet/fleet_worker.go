package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/fleet"
	"github.com/kube-gauntlet/gauntlet/harness/internal/objectstore"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// fleetWorkerFlags has the values of the flags of "gauntlet fleet worker", the command that each
// pod of a campaign runs.
type fleetWorkerFlags struct {
	fleetCampaignFlags
	runs           runFlags
	store          string
	units          string // the failures to shrink or the scenarios to explore, as JSON; empty for runs of seeds
	coverage       string // the counts of faults in earlier runs, as fleet.EncodeCoverage returns them; empty for none
	metricsAddress string
}

func newFleetWorker(code *int) *cobra.Command {
	var flags fleetWorkerFlags
	cmd := &cobra.Command{
		Use:    "worker",
		Short:  "Run the seeds of one index of a campaign",
		Hidden: true, // only the Job of a campaign runs this command
		Long: `Run the seeds of one index of a campaign. Kubernetes sets JOB_COMPLETION_INDEX, and the
manifest sets POD_NAME and NODE_NAME.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := flags.work(cmd)
			if errors.Is(err, fleet.ErrOutOfMemory) {
				*code = fleet.ExitKilled
				fmt.Fprintln(cmd.ErrOrStderr(), "gauntlet: another pod repeats the run:", err)
				return nil
			}
			if err != nil && cmd.Context().Err() != nil {
				*code = fleet.ExitTerminated
				fmt.Fprintln(cmd.ErrOrStderr(), "gauntlet: received SIGTERM; another pod continues the work:", err)
				return nil
			}
			return err
		},
	}
	f := cmd.Flags()
	flags.addSeeds(f)
	flags.add(f)
	f.StringVar(&flags.campaign.Name, "name", "", "the `name` of the campaign")
	f.StringVar(&flags.units, "units", "", "as `JSON`, the failures to shrink or the scenarios to explore, instead of runs of seeds")
	f.StringVar(&flags.coverage, "coverage", "", "the `counts` of faults that acted in earlier runs, compressed")
	f.StringVar(&flags.campaign.Of, "of", "", "the `name` of the campaign whose failures are shrunk")
	f.StringSliceVar(&flags.campaign.Faults, "at", nil, "the faults with which scenarios are explored")
	f.DurationVar(&flags.campaign.Budget, "budget", 0, "how long each scenario is explored")
	f.StringVar(&flags.store, "store", "", "the `directory` or the URL of the bucket for the results")
	f.StringVar(&flags.metricsAddress, "metrics-address", "", "the `address` at which metrics are served")
	f.StringVar(&flags.runs.out, "out", "out", "the `directory` for runs in progress")
	upstreamDirFlag(f, &flags.runs.upstreamDir)
	return cmd
}

// work makes the runs of one pod. The index of the pod in its Job decides which runs these are.
// work reads this index and the names of the pod and the node from environment variables.
func (f *fleetWorkerFlags) work(cmd *cobra.Command) (result error) {
	if f.units != "" {
		if err := json.Unmarshal([]byte(f.units), &f.campaign.Units); err != nil {
			return fmt.Errorf("--units: %s; expected a list of units as JSON, which \"gauntlet fleet run\" writes", inputfile.JSONReason(err))
		}
	}
	if f.coverage != "" {
		var err error
		if f.generated.covered, err = fleet.DecodeCoverage(f.coverage); err != nil {
			return fmt.Errorf("--coverage: %s; expected a coverage table, which \"gauntlet fleet run\" writes in compressed form", inputfile.JSONReason(err))
		}
	}
	if err := f.complete(cmd); err != nil {
		return err
	}
	index, pod, err := f.pod()
	if err != nil {
		return err
	}
	units, err := f.campaign.UnitsOf(index)
	if err != nil {
		return err
	}
	store, closeStore, err := openExistingStore(f.store) // a new directory would be lost with the pod
	if err != nil {
		return err
	}
	defer func() { result = errors.Join(result, closeStore()) }()
	f.runs.provider, f.runs.parallel = f.campaign.Provider, 1
	f.runs.terminal = f.runs.newTerminal(cmd)
	worker := fleet.Worker{
		Campaign: f.campaign,
		Index:    index,
		Attempt:  pod,
		Node:     os.Getenv("NODE_NAME"),
		Store:    store,
		Clock:    clock.RealClock{},
		Metrics:  fleet.NewMetrics(&f.campaign),

		MemoryKills: fleet.MemoryKills,
		History:     run.HistoryFile,
	}
	worker.Prepare = func(u fleet.Unit) (campaign.Attempt, error) {
		switch {
		case u.Check != "":
			return f.prepareShrink(cmd, &worker, u), nil
		case u.Scenario != "":
			return f.prepareExplore(cmd, &worker, u), nil
		}
		return f.prepare(cmd, u)
	}
	if _, err := worker.Prepare(units[0]); err != nil {
		return err // the options are wrong; no run has started
	}
	stop, err := serveMetrics(f.metricsAddress, worker.Metrics)
	if err != nil {
		return &unfinishedError{err}
	}
	defer stop()
	err = worker.Work(cmd.Context())
	if err == nil || isWrongStore(err) {
		return err
	}
	return &unfinishedError{err}
}

// pod returns the index of the pod in its Job, and the name of the pod. It reads both from
// environment variables.
func (f *fleetWorkerFlags) pod() (index int, name string, err error) {
	if index, err = strconv.Atoi(os.Getenv("JOB_COMPLETION_INDEX")); err != nil {
		return 0, "", fmt.Errorf("environment variable JOB_COMPLETION_INDEX: found %q; expected the pod's index in the job, a whole number", os.Getenv("JOB_COMPLETION_INDEX"))
	}
	name = os.Getenv("POD_NAME")
	if f.store == "" || name == "" {
		return 0, "", errors.New("set the flag --store and the environment variable POD_NAME: at least one of them is missing")
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 { // the name is part of file names in the store
		return 0, "", fmt.Errorf("environment variable POD_NAME: found %q; expected the name of a pod, of lower-case letters, digits, \"-\" and \".\"", name)
	}
	return index, name, nil
}

func newFleetExport() *cobra.Command {
	var store string
	var wait bool
	cmd := &cobra.Command{
		Use:    "export [NAME]",
		Short:  "Print the results of a campaign as an archive",
		Hidden: true, // only the pod of "gauntlet fleet collect" runs this command
		Long: `Print the files of a campaign as a compressed tar archive. With --wait, do nothing until
SIGTERM; "gauntlet fleet collect" then runs the command again in the same pod.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if wait == (len(args) == 1) {
				return fmt.Errorf("export: found %d names of campaigns and --wait=%t; expected either one name or --wait", len(args), wait)
			}
			if wait {
				<-cmd.Context().Done()
				return nil
			}
			if err := fleet.Export(cmd.Context(), fleet.Directory(store), args[0], cmd.OutOrStdout()); err != nil {
				return &unfinishedError{err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&store, "store", "", "the `directory` of the results")
	f.BoolVar(&wait, "wait", false, "wait for SIGTERM; print nothing")
	return cmd
}

// openStore opens the store for a campaign's results: a directory, or the bucket with the given
// URL. The caller must call the returned function close at the end.
func openStore(location string) (store fleet.Store, close func() error, err error) {
	if !objectstore.IsURL(location) {
		if info, err := os.Stat(location); err == nil && !info.IsDir() {
			return nil, nil, fmt.Errorf("--store: %s: found a file; expected a directory, or the URL of a bucket", location)
		}
		return fleet.Directory(location), func() error { return nil }, nil
	}
	if err := objectstore.Validate(location); err != nil {
		return nil, nil, fmt.Errorf("--store: %w", err)
	}
	gauntlet, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	program, err := objectstore.Find(gauntlet)
	if err != nil {
		return nil, nil, err
	}
	bucket, err := objectstore.Open(program, location)
	if err != nil {
		return nil, nil, fmt.Errorf("--store: %w", err)
	}
	return bucket, bucket.Close, nil
}

// prepare returns a function that makes the run of a unit. A unit is one seed with one subject
// (controllers under test).
func (f *fleetWorkerFlags) prepare(cmd *cobra.Command, u fleet.Unit) (campaign.Attempt, error) {
	flags := campaignFlags{runs: f.runs, subjects: []string{u.Subject}, confirm: noProvider}
	if f.campaign.Scenario == "" {
		return first(flags.attemptsOfSeed(cmd, f.generated, u.Seed))
	}
	return first(flags.attemptsOf(cmd, func() ([]*scenario.Scenario, error) {
		s, err := loadScenario(cmd.Context(), f.campaign.Scenario, cmd.ErrOrStderr(), flags.subjects...)
		return []*scenario.Scenario{s}, err
	}, u.Seed))
}

// first returns the only element of the argument attempts. There is only one, because a unit has
// only one run. If err is not nil, first returns err.
func first(attempts []campaign.Attempt, err error) (campaign.Attempt, error) {
	if err != nil {
		return nil, err
	}
	return attempts[0], nil
}

// serveMetrics serves the metrics of a worker over HTTP until the caller calls the returned
// function stop. It serves nothing if the address is empty.
func serveMetrics(address string, metrics *fleet.Metrics) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving the metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }, nil
}
