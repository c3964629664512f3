package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/fleet"
	"github.com/kube-gauntlet/gauntlet/harness/internal/objectstore"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario/library"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

func newFleet(code *int) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Run the seeds of a campaign in the pods of a Kubernetes cluster",
		Example: `  gauntlet fleet run nightly --seeds=1..10000 --claim=results --image=REGISTRY/gauntlet-fleet:v1
  gauntlet fleet status nightly
  gauntlet fleet collect nightly --store=/mnt/results`,
	}
	cmd.AddCommand(newFleetRun(code), newFleetStatus(code), newFleetCollect(code), newFleetDelete(), newFleetShrink(code), newFleetExplore(code), newFleetNightly(), newFleetAcknowledge(),
		newFleetWorker(code), newFleetExport())
	return cmd
}

// fleetCampaignFlags has the values of the flags that describe a campaign: seeds, subjects and
// scenarios. A campaign is a series of runs, here in the pods of a Job.
type fleetCampaignFlags struct {
	campaign  fleet.Campaign
	seeds     string
	generated generateFlags
}

// addSeeds adds the flag --seeds to a command. The flag selects the seeds of a campaign's runs.
func (f *fleetCampaignFlags) addSeeds(flags *pflag.FlagSet) {
	flags.StringVar(&f.seeds, "seeds", "1..1000", "the `range` of seeds, FIRST..LAST")
}

// add adds flags to a command. The flags describe a campaign, which is a series of runs. The
// method addSeeds adds the only missing flag, --seeds.
func (f *fleetCampaignFlags) add(flags *pflag.FlagSet) {
	flags.Uint64Var(&f.campaign.PerPod, "per-pod", 50, "the number of seeds that one pod runs")
	f.addSubjects(flags)
	f.addProvider(flags)
	flags.StringVar(&f.campaign.Scenario, "scenario", "", "the `name` of a built-in scenario that runs with each seed (default: each seed generates a scenario)")
	f.generated.addProfile(flags)
	f.generated.addDuration(flags)
}

// checkRange returns an error if --seeds is one number. The user may mean this seed or the number of seeds.
func (f *fleetCampaignFlags) checkRange() error {
	if _, err := strconv.ParseUint(f.seeds, 10, 64); err == nil {
		return fmt.Errorf("--seeds: found %[1]q; expected a range: 1..%[1]s for the seeds 1 to %[1]s, or %[1]s..%[1]s for one seed", f.seeds)
	}
	return nil
}

// complete sets the fields of f.campaign from the flags. It returns an error if the pods of a Job
// cannot run the campaign.
func (f *fleetCampaignFlags) complete(cmd *cobra.Command) error {
	var err error
	if f.campaign.Seeds, err = fleet.ParseSeeds(f.seeds); err != nil {
		return fmt.Errorf("--%w", err) // the error begins with the name of the flag
	}
	if err := checkFleetSubjects(f.campaign.Subjects, f.campaign.Provider); err != nil {
		return err
	}
	if f.campaign.Explores() {
		return f.campaign.Validate()
	}
	if f.campaign.Scenario == "" {
		if _, err := f.generated.generate(f.campaign.Seeds.First, f.campaign.Provider); err != nil {
			return err
		}
		f.campaign.Profile, f.campaign.Duration = f.generated.profile, f.generated.duration
		if f.generated.covered != nil {
			f.campaign.PreferUncovered = f.generated.covered.Condensed()
		}
		return f.campaign.Validate()
	}
	if f.generated.changed(cmd) {
		return errors.New("--profile, --duration and --prefer-uncovered apply to generated scenarios only: omit them, or omit --scenario")
	}
	return cmp.Or(f.campaign.Validate(), checkInPods(f.campaign.Scenario, f.campaign.Subjects, f.campaign.Provider))
}

// checkInPods returns an error if the pods of a fleet cannot run a scenario. It is not a built-in
// one, or it does not fit to the provider or one of the subjects, which are the controllers under
// test.
func checkInPods(name string, subjects []string, provider string) error {
	builtIn, ok := library.Find(name)
	if !ok {
		return notInImage(name)
	}
	for _, text := range subjects {
		target, err := subject.ParseTarget(text)
		if err != nil {
			return fmt.Errorf("--subjects: %w", err)
		}
		if err := (&run.Options{Scenario: builtIn.Clone(), Target: target, Provider: provider}).Check(); err != nil {
			return err
		}
	}
	return nil
}

// checkFleetSubjects returns an error if the pods of a fleet cannot run a subject or use the
// provider. A subject is the controllers under test. The image of the pods contains only ours and
// upstream.
func checkFleetSubjects(subjects []string, provider string) error {
	for _, subject := range subjects {
		if subject != "ours" && subject != "upstream" {
			return fmt.Errorf("--subjects: found %q; expected ours or upstream, which are in the image", subject)
		}
	}
	if provider != providers.Embedded && provider != providers.Virtual {
		return fmt.Errorf("--provider=%s: expected %s or %s, which need no privilege in a pod", provider, providers.Embedded, providers.Virtual)
	}
	return nil
}

// notInImage returns the error for a scenario of a campaign that is not a built-in one. The image of
// the pods contains no other scenarios.
func notInImage(name string) error {
	if _, err := os.Stat(name); err != nil {
		return noScenario(name)
	}
	return fmt.Errorf("scenario %q: found a file; expected a built-in scenario, because the image of the pods contains no files; \"gauntlet list scenarios\" lists the built-in scenarios", name)
}

// addSubjects adds the flag --subjects to a command. The flag selects the controllers under test.
func (f *fleetCampaignFlags) addSubjects(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.campaign.Subjects, "subjects", []string{"ours"}, "the controllers under test, of those in the image: ours, upstream")
}

// addProvider adds the flag --provider to a command. The flag selects the control planes of the
// runs.
func (f *fleetCampaignFlags) addProvider(flags *pflag.FlagSet) {
	flags.StringVar(&f.campaign.Provider, "provider", providers.Embedded, "the provider of the control planes: embedded or virtual; \"gauntlet image --virtual\" puts the program of virtual into the image")
}

// fleetClusterFlags has the values of the flags that select the cluster and the namespace of a
// campaign's Job.
type fleetClusterFlags struct {
	existing  cluster.Existing
	namespace string
}

// add adds flags to a command. The flags select the cluster and the namespace of a campaign's Job.
func (f *fleetClusterFlags) add(flags *pflag.FlagSet) {
	existingFlags(flags, &f.existing)
	flags.StringVarP(&f.namespace, "namespace", "n", "", "the namespace of the Job (default: that of the context)")
}

// connect returns a client for the selected cluster and namespace. It sends no request.
func (f *fleetClusterFlags) connect() (*fleet.Cluster, error) {
	if err := checkNamespace(f.namespace); err != nil {
		return nil, err
	}
	if err := checkKubeconfig(f.existing.Kubeconfig); err != nil {
		return nil, err
	}
	config, namespace, err := f.existing.Load()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &fleet.Cluster{Client: client, Namespace: cmp.Or(f.namespace, namespace), Config: config}, nil
}

// fleetImageDefault is the default name of the image that "gauntlet image --fleet" builds.
const fleetImageDefault = "localhost/gauntlet-fleet:dev"

// fleetPodFlags has the values of the flags that say how Kubernetes runs the pods of a campaign.
type fleetPodFlags struct {
	pods                fleet.Pods
	cpu, memory, disk   string
	tolerations         string // the path of a YAML file; empty for none
	parallelism, repeat int
}

// add adds flags to a command. The flags say how Kubernetes runs the pods of a campaign.
func (f *fleetPodFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.pods.Image, "image", fleetImageDefault, "the `image` that \"gauntlet image --fleet\" built")
	flags.StringVar(&f.pods.Claim, "claim", "", "the PersistentVolumeClaim `name` for the results; its access mode must be ReadWriteMany if pods run on several nodes")
	flags.StringVar(&f.pods.Bucket, "store", "", "instead of --claim: the `URL` of a bucket for the results: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or azblob://CONTAINER/PREFIX")
	flags.StringVar(&f.pods.Secret, "store-secret", "", "the `name` of a Secret with credentials for --store; each key of the Secret becomes an environment variable of the pods, and a file in /credentials")
	flags.StringVar(&f.pods.ServiceAccount, "service-account", "", "the `name` of the pods' ServiceAccount, which may have access to --store")
	flags.IntVar(&f.parallelism, "parallelism", 4, "the maximum number of pods at the same time")
	flags.IntVar(&f.repeat, "retries", 2, "how often Kubernetes repeats an index of the Job after a failure of gauntlet itself; evictions and lost nodes do not count")
	flags.DurationVar(&f.pods.Deadline, "deadline", 8*time.Hour, "the time after which Kubernetes ends the Job; 0 means never")
	flags.DurationVar(&f.pods.Keep, "keep-job", 24*time.Hour, "how long Kubernetes keeps the Job after its end")
	flags.StringVar(&f.pods.Queue, "queue", "", "the `name` of a LocalQueue of Kueue, which starts the Job")
	flags.StringToStringVar(&f.pods.NodeSelector, "node-selector", nil, "a `KEY=VALUE` label of the nodes on which the pods run; repeatable")
	flags.StringVar(&f.tolerations, "tolerations", "", "a YAML `file` with a list of tolerations")
	flags.StringVar(&f.pods.PriorityClass, "priority-class", "", "the `name` of the PriorityClass of the pods")
	flags.StringVar(&f.cpu, "cpu", fleet.DefaultCPU.String(), "the CPU `request` of a pod")
	flags.StringVar(&f.memory, "memory", fleet.DefaultMemory.String(), "the memory `request` and limit of a pod")
	flags.StringVar(&f.disk, "disk", fleet.DefaultDisk.String(), "the `limit` of a pod's ephemeral storage")
}

// complete sets the fields of f.pods from the flags. It returns an error if a flag has an invalid
// value.
func (f *fleetPodFlags) complete() error {
	if err := f.checkStore(); err != nil {
		return err
	}
	if err := f.checkNames(); err != nil {
		return err
	}
	if f.parallelism < 1 || f.parallelism > fleetParallelismMax {
		return fmt.Errorf("--parallelism=%d: expected 1 to %d", f.parallelism, fleetParallelismMax)
	}
	if f.repeat < 0 || f.repeat > 100 {
		return fmt.Errorf("--retries=%d: expected 0 to 100", f.repeat)
	}
	f.pods.Parallelism, f.pods.Retries = int32(f.parallelism), int32(f.repeat)
	for _, limit := range []struct {
		flag  string
		value time.Duration
	}{{"deadline", f.pods.Deadline}, {"keep-job", f.pods.Keep}} {
		if limit.value != 0 && (limit.value < time.Second || limit.value > fleetDurationMax) {
			return fmt.Errorf("--%s=%s: expected 0, or 1s to %s", limit.flag, limit.value, fleetDurationMax)
		}
		if limit.value%time.Second != 0 {
			return fmt.Errorf("--%s=%s: expected whole seconds", limit.flag, limit.value)
		}
	}
	for _, quantity := range []struct {
		flag, text, least, most string
		to                      *resource.Quantity
	}{{"cpu", f.cpu, "1m", "10k", &f.pods.CPU}, {"memory", f.memory, "1Mi", "1Pi", &f.pods.Memory}, {"disk", f.disk, "1Mi", "1Pi", &f.pods.Disk}} {
		parsed, err := resource.ParseQuantity(quantity.text)
		if err != nil || parsed.Cmp(resource.MustParse(quantity.least)) < 0 || parsed.Cmp(resource.MustParse(quantity.most)) > 0 {
			return fmt.Errorf("--%s: found %q; expected a quantity from %s to %s", quantity.flag, quantity.text, quantity.least, quantity.most)
		}
		*quantity.to = parsed
	}
	if f.tolerations == "" {
		return nil
	}
	content, err := inputfile.ReadText(f.tolerations)
	if err != nil {
		return fmt.Errorf("--tolerations: %w", inputfile.WithExpected(err, "a list of tolerations in YAML"))
	}
	f.pods.Tolerations = []corev1.Toleration{}
	if err := yaml.UnmarshalStrict(content, &f.pods.Tolerations); err != nil {
		place, reason := inputfile.Locate(f.tolerations, content, err, f.pods.Tolerations)
		return fmt.Errorf("--tolerations: %s: expected a list of tolerations: %s", place, reason)
	}
	if err := inputfile.CheckOneDocument(f.tolerations, content); err != nil {
		return fmt.Errorf("--tolerations: %w", err)
	}
	return checkTolerations(f.tolerations, f.pods.Tolerations)
}

// checkStore returns an error if the flags do not name the bucket or PersistentVolumeClaim for the
// results.
func (f *fleetPodFlags) checkStore() error {
	switch {
	case (f.pods.Claim == "") == (f.pods.Bucket == ""):
		return fmt.Errorf("%s; set exactly one: --claim for a PersistentVolumeClaim, or --store for a bucket", foundFlags("claim", f.pods.Claim, "store", f.pods.Bucket))
	case f.pods.Bucket == "" && f.pods.Secret != "":
		return errors.New("--store-secret has an effect only with --store: add --store, or omit --store-secret")
	case f.pods.Bucket == "":
		return nil
	}
	if err := objectstore.Validate(f.pods.Bucket); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	return nil
}

// foundFlags returns a text about two flags for an error, such as "found --claim=x and no --store".
func foundFlags(first, firstValue, second, secondValue string) string {
	text := func(name, value string) string {
		if value == "" {
			return "no --" + name
		}
		return "--" + name + "=" + value
	}
	return "found " + text(first, firstValue) + " and " + text(second, secondValue)
}

// fleetDurationMax is the maximum value of the flags --deadline and --keep-job. Kubernetes has these
// times as numbers of seconds in 32 bits.
const fleetDurationMax = math.MaxInt32 * time.Second

// fleetParallelismMax is the maximum value of the flag --parallelism, the number of pods at the
// same time.
const fleetParallelismMax = 10_000

// fleetLaunchFlags has the values of the flags of commands that create the Job of a campaign.
type fleetLaunchFlags struct {
	fleetClusterFlags
	fleetPodFlags
	dryRun, detach bool
}

// add adds flags to a command. The flags say where and how the Job of a campaign runs.
func (f *fleetLaunchFlags) add(flags *pflag.FlagSet) {
	f.fleetClusterFlags.add(flags)
	f.fleetPodFlags.add(flags)
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the manifest of the Job; send no request")
	flags.BoolVar(&f.detach, "detach", false, "do not wait for the end of the Job")
}

// launch creates the Job of a campaign and follows it, unless --detach is set. With --dry-run, it
// only prints the Job's manifest. It returns the exit code.
func (f *fleetLaunchFlags) launch(cmd *cobra.Command, c *fleet.Campaign) (int, error) {
	if err := checkNamespace(f.namespace); err != nil {
		return exitPass, err
	}
	f.pods.Namespace = f.namespace
	if f.dryRun {
		return exitPass, printJob(cmd, fleet.Job(c, &f.pods))
	}
	cluster, err := f.connect()
	if err != nil {
		return exitPass, err
	}
	f.pods.Namespace = cluster.Namespace
	return submitFleet(cmd, cluster, fleet.Job(c, &f.pods), "", f.detach)
}

// printJob prints the manifest of a Job as YAML, for the flag --dry-run.
func printJob(cmd *cobra.Command, job *batchv1.Job) error {
	manifest, err := yaml.Marshal(job)
	if err != nil {
		return err
	}
	return writeText(cmd, string(manifest))
}

// submitFleet creates the Job of a campaign, and follows the Job unless detach is true. It returns
// the exit code. The argument note is the end of the message about the new Job.
func submitFleet(cmd *cobra.Command, cluster *fleet.Cluster, job *batchv1.Job, note string, detach bool) (int, error) {
	if err := cluster.Submit(cmd.Context(), job); err != nil {
		return exitPass, &unfinishedError{err}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "created job %s/%s%s\n", cluster.Namespace, job.Name, note)
	if detach {
		return exitPass, nil
	}
	return followFleet(cmd, cluster, job.Name)
}

func newFleetRun(code *int) *cobra.Command {
	var flags struct {
		fleetCampaignFlags
		fleetLaunchFlags
	}
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Start a campaign as an Indexed Job, and follow it",
		Long: `Start a campaign as an Indexed Job in the cluster of the kubeconfig, and follow it until
it ends. Each index of the Job runs --per-pod seeds. A pod needs no privilege: it
satisfies the Pod Security Standard "restricted".

Ctrl-C leaves the Job running. With --dry-run, the command prints the manifest of the
Job, and sends no request.

The exit status says whether each seed has a verdict. "gauntlet fleet collect" tells
what the verdicts are.`,
		Example: `  gauntlet fleet run nightly --seeds=1..10000 --claim=results --dry-run
  gauntlet fleet run storm --seeds=1..500 --profile=storm --claim=results --parallelism=40`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			flags.campaign.Name = args[0]
			if err := errors.Join(flags.checkRange(), flags.fleetCampaignFlags.complete(cmd), flags.fleetPodFlags.complete()); err != nil {
				return err
			}
			*code, err = flags.launch(cmd, &flags.campaign)
			return err
		},
	}
	f := cmd.Flags()
	flags.fleetCampaignFlags.addSeeds(f)
	flags.fleetCampaignFlags.add(f)
	flags.fleetLaunchFlags.add(f)
	return cmd
}

// fleetPollInterval is the time between two requests for the status of a campaign's Job.
const fleetPollInterval = 5 * time.Second

// followFleet prints each change of a campaign's status until the campaign's Job ends. It returns
// exitPass if the campaign is then complete, and exitUnknown otherwise.
func followFleet(cmd *cobra.Command, cluster *fleet.Cluster, name string) (int, error) {
	ctx := cmd.Context()
	ticker := clock.RealClock{}.NewTicker(fleetPollInterval)
	defer ticker.Stop()
	for printed := ""; ; {
		status, err := cluster.Status(ctx, name, time.Now())
		switch {
		case ctx.Err() != nil:
			return exitUnknown, leftRunning(name)
		case err != nil:
			return exitUnknown, &unfinishedError{err}
		}
		// Print a status only if one of these fields changed. The remaining time always changes.
		if now := fmt.Sprint(status.Succeeded, status.FailedIndexes, status.Waiting, status.End); now != printed {
			fmt.Fprintln(cmd.ErrOrStderr(), status)
			printed = now
		}
		if status.End != "" {
			return fleetCode(status), nil
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return exitUnknown, leftRunning(name)
		}
	}
}

// leftRunning returns the error for an interrupt. The error says that the Job still runs, and how
// to observe or delete it.
func leftRunning(name string) error {
	return &unfinishedError{fmt.Errorf("interrupted; the job still runs: \"gauntlet fleet status %s --follow\" shows the progress, and \"gauntlet fleet delete %s\" deletes the job", name, name)}
}

// fleetCode returns the exit code for the status of a campaign. It is exitPass if the campaign is
// complete, and exitUnknown otherwise.
func fleetCode(status *fleet.Status) int {
	if status.Complete() {
		return exitPass
	}
	return exitUnknown
}

func newFleetStatus(code *int) *cobra.Command {
	var flags fleetClusterFlags
	var follow bool
	cmd := &cobra.Command{
		Use:   "status NAME",
		Short: "Print the progress of a campaign",
		Long: `Print the progress of a campaign. With --follow, the command prints each change until the
Job ends, as "gauntlet fleet run" does. It then has the same exit status.`,
		Example: `  gauntlet fleet status nightly --namespace=chaos
  gauntlet fleet status nightly --follow`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := fleet.CheckName(args[0]); err != nil {
				return err
			}
			cluster, err := flags.connect()
			if err != nil {
				return err
			}
			if follow {
				*code, err = followFleet(cmd, cluster, args[0])
				return err
			}
			status, err := cluster.Status(cmd.Context(), args[0], time.Now())
			if err != nil {
				return &unfinishedError{err}
			}
			return writeText(cmd, status.String()+"\n")
		},
	}
	flags.add(cmd.Flags())
	cmd.Flags().BoolVar(&follow, "follow", false, "wait for the end of the Job, and print each change to standard error")
	return cmd
}

func newFleetDelete() *cobra.Command {
	var flags fleetClusterFlags
	cmd := &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete the Job of a campaign, and leave its results",
		Example: `  gauntlet fleet delete nightly --namespace=chaos`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := fleet.CheckName(args[0]); err != nil {
				return err
			}
			cluster, err := flags.connect()
			if err != nil {
				return err
			}
			if err := cluster.Delete(cmd.Context(), args[0]); err != nil {
				return &unfinishedError{err}
			}
			return writeText(cmd, fmt.Sprintf("deleted job %s/%s; the results are still in the bucket or the PersistentVolumeClaim\n", cluster.Namespace, args[0]))
		},
	}
	flags.add(cmd.Flags())
	return cmd
}

// fleetCollectFlags has the values of the flags of "gauntlet fleet collect". This command merges
// the results of a campaign into one report.
type fleetCollectFlags struct {
	fleetClusterFlags
	store, claim, image, out string
}

func newFleetCollect(code *int) *cobra.Command {
	var flags fleetCollectFlags
	cmd := &cobra.Command{
		Use:   "collect NAME",
		Short: "Merge the results of a campaign into one report",
		Long: `Merge the results of a campaign into one report, in OUT/fleet-NAME. Each run has exactly
one verdict, however many pods made it. The command also works before the campaign has
ended; it then has status 2, and prints how many runs have no verdict yet.

Without --store, the command reads the claim or the bucket of the campaign's Job. If the
Job does not exist any more, name the claim and the image. A pod of a second Job reads
the claim, and the command deletes this Job at the end.`,
		Example: `  gauntlet fleet collect nightly
  gauntlet fleet collect nightly --claim=results --image=REGISTRY/gauntlet-fleet:v1
  gauntlet fleet collect nightly --store=/mnt/results
  gauntlet fleet collect nightly --store=s3://bucket/fleets`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (result error) {
			if err := fleet.CheckName(args[0]); err != nil {
				return err
			}
			dir := filepath.Join(flags.out, fleet.ReportDirectory(args[0]))
			if err := checkDirectory("out", flags.out); err != nil {
				return err
			}
			if err := checkCampaignDirectory(dir); err != nil {
				return err
			}
			store, closeStore, err := flags.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer func() { result = errors.Join(result, closeStore()) }()
			*code, err = collectFleet(cmd, store, args[0], dir)
			return err
		},
	}
	f := cmd.Flags()
	flags.fleetClusterFlags.add(f)
	f.StringVar(&flags.store, "store", "", "the `directory` of the results, or the URL of the bucket (default: that of the Job)")
	f.StringVar(&flags.claim, "claim", "", "the `name` of the PersistentVolumeClaim of the results (default: that of the Job)")
	f.StringVar(&flags.image, "image", "", "the `image` that reads the claim (default: that of the Job)")
	f.StringVar(&flags.out, "out", "out", "the `directory` in which the report is created")
	cmd.MarkFlagsMutuallyExclusive("store", "claim")
	cmd.MarkFlagsMutuallyExclusive("store", "image")
	return cmd
}

// open opens the store with the results of a campaign. If the results are in a
// PersistentVolumeClaim, open copies them to a temporary directory. The caller must call the
// returned function close at the end.
func (f *fleetCollectFlags) open(ctx context.Context, name string) (store fleet.Store, close func() error, err error) {
	if f.store != "" {
		return openExistingStore(f.store)
	}
	cluster, err := f.connect()
	if err != nil {
		return nil, nil, err
	}
	claim := f.claim
	if claim == "" {
		var bucket string
		if bucket, claim, err = cluster.Location(ctx, name); err != nil {
			if apierrors.IsNotFound(err) {
				err = fmt.Errorf("%w; set --store or --claim to say where the results are", err)
			}
			return nil, nil, &unfinishedError{err}
		}
		if bucket != "" {
			return openStore(bucket)
		}
	}
	dir, err := os.MkdirTemp("", "gauntlet-fleet-")
	if err != nil {
		return nil, nil, &unfinishedError{err}
	}
	remove := func() error { return os.RemoveAll(dir) }
	err = cluster.ReadClaim(ctx, name, claim, f.image, dir)
	switch {
	case err == nil:
		return fleet.Directory(dir), remove, nil
	case errors.Is(err, fleet.ErrNoClaim):
		return nil, nil, errors.Join(err, remove())
	}
	return nil, nil, &unfinishedError{errors.Join(err, remove())}
}

// openExistingStore opens the store from which a command reads results. It returns an error for a
// directory that does not exist.
func openExistingStore(location string) (store fleet.Store, close func() error, err error) {
	if _, err := os.Stat(location); !objectstore.IsURL(location) && err != nil {
		return nil, nil, fmt.Errorf("--store: %s: %w; expected the directory of the results, or the URL of a bucket", location, inputfile.Reason(err))
	}
	return openStore(location)
}

// collectFleet merges the results of a campaign, writes the report to dir, and returns the exit
// code for the verdicts.
func collectFleet(cmd *cobra.Command, store fleet.Store, name, dir string) (int, error) {
	merged, code, err := mergeFleet(cmd, store, name, dir)
	if isWrongStore(err) {
		return exitPass, err
	}
	if err != nil {
		return code, &unfinishedError{err}
	}
	if n := len(merged.Missing); n > 0 {
		return code, &unfinishedError{fmt.Errorf("campaign %s: %d runs have no verdict; the first of these runs is %s", name, n, merged.Missing[0])}
	}
	return code, nil
}

// isWrongStore reports whether an error says that a store does not contain what the command needs.
// The user then has to name another store or campaign.
func isWrongStore(err error) bool {
	for _, wrong := range []error{fleet.ErrNoCampaign, fleet.ErrInvalidCampaign, fleet.ErrOtherCampaign, inputfile.ErrIrregular, inputfile.ErrTooLarge} {
		if errors.Is(err, wrong) {
			return true
		}
	}
	return false
}

// coverageName is the name of the file with the coverage table in the directory of a campaign.
const coverageName = "coverage.json"

// mergeFleet merges the results of a campaign, and writes the report to dir. It returns the results,
// and the exit code for the verdicts.
func mergeFleet(cmd *cobra.Command, store fleet.Store, name, dir string) (*fleet.Merged, int, error) {
	ctx := cmd.Context()
	merged, err := fleet.Merge(ctx, store, name)
	if err != nil {
		return nil, exitUnknown, err
	}
	if err := merged.Extract(ctx, store, filepath.Join(dir, "runs")); err != nil {
		return nil, exitUnknown, err
	}
	code := verdictCode(merged.Results.Failed)
	if merged.Results.Runs > 0 && len(merged.Results.Failed) == 0 {
		code = exitPass
	}
	if err := reportCampaign(cmd, dir, merged.Results); err != nil {
		return nil, code, err
	}
	if err := writeCoverage(filepath.Join(dir, coverageName), &merged.Coverage); err != nil {
		return nil, code, err
	}
	if preferred := merged.Campaign.PreferUncovered; preferred != nil {
		// The command that repeats a run names this file.
		if err := writeCoverage(filepath.Join(dir, fleet.PreferredFile), preferred); err != nil {
			return nil, code, err
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "pods: %d; results that do not count, because an earlier pod has a result for the same run: %d\n", merged.Attempts, merged.Repeated)
	return merged, code, nil
}
