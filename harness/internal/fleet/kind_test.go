package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/cluster/kind"
)

// These flags set the size of TestOnKind. For example, -args -seeds=200 -per-pod=10 makes it
// larger.
var (
	seeds     = flag.Int("seeds", 40, "the number of seeds of the fleet in TestOnKind")
	perPod    = flag.Int("per-pod", 5, "the number of seeds of each pod in TestOnKind")
	parallel  = flag.Int("pods", 4, "the number of pods at the same time in TestOnKind")
	runsNight = flag.Bool("night", false, "TestOnKind also runs a night of the CronJob in the examples, a campaign that prefers uncovered faults, an exploration, and a shrink")
)

const (
	campaignName = "night"
	namespace    = "fleet"
	claim        = "results"
	storePath    = "/store" // the directory of the results on the worker nodes

	// killedPart is the part of the pods that TestOnKind kills, besides the pods on the lost node.
	killedPart = 0.3
	// fleetWithin limits the time that the fleet has for its seeds.
	fleetWithin = 10 * time.Minute
	// sweepsMax is how many sweeps on one machine TestOnKind compares with. A verdict may depend on
	// the timing of a run, so that two sweeps may differ.
	sweepsMax = 3
)

// TestOnKind runs a fleet on a kind cluster with three nodes. The test removes one of the two worker
// nodes, and kills pods at random moments. Each run must have exactly one verdict. The merged report
// must have the verdicts and failure groups of a sweep over the same seeds on one machine.
//
// The runs are in virtual time. Their verdicts hardly depend on how busy the machine is.
func TestOnKind(t *testing.T) {
	requireKind(t)
	seed := rand.Uint64()
	t.Logf("random seed of the test: %d", seed)
	f := startFleetCluster(t, rand.New(rand.NewPCG(seed, 0)))

	// An interrupt leaves the Job running.
	run := f.start("fleet", "run", campaignName, "--provider=virtual", "--profile=calm", "--subjects=ours,upstream",
		fmt.Sprintf("--seeds=1..%d", *seeds), fmt.Sprintf("--per-pod=%d", *perPod), fmt.Sprintf("--parallelism=%d", *parallel),
		"--claim="+claim, "--cpu=250m", "--memory=1Gi", "--disk=1Gi")
	f.await("the first pod to run", func() error {
		if len(f.runningPods()) == 0 {
			return errors.New("no pod runs")
		}
		return nil
	})
	if err := run.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := run.wait(); code != 2 || !strings.Contains(run.output.String(), "the job still runs") {
		t.Errorf("interrupted fleet run: status %d, want 2; output:\n%s", code, run.output)
	}

	follow := f.start("fleet", "status", campaignName, "--follow")
	f.disturb(int(killedPart*float64(*seeds / *perPod) + 0.5))
	if code := follow.wait(); code != 0 {
		t.Errorf("fleet status --follow: status %d, want 0; output:\n%s", code, follow.output)
	}
	t.Logf("%s", follow.output)

	collect := f.start("fleet", "collect", campaignName, "--store="+f.store, "--out="+f.dir)
	collectCode := collect.wait()
	got := readOutcome(t, filepath.Join(f.dir, "fleet-"+campaignName))
	t.Logf("%s", collect.output)
	f.compareThroughPod(got)
	if *runsNight {
		f.runNight()
		f.runNext()
		f.runExploration()
		f.runShrink()
	}
	if len(got.Verdicts) != 2**seeds {
		t.Errorf("verdicts of %d runs, want %d", len(got.Verdicts), 2**seeds)
	}
	var diff string
	for n := range sweepsMax {
		out := filepath.Join(f.dir, fmt.Sprint("sweep", n))
		sweep := f.start("sweep", "seeds", "--provider=virtual", "--confirm=none", "--profile=calm", "--subjects=ours,upstream",
			"--from=1", fmt.Sprintf("--to=%d", *seeds), "--out="+out, "--quiet")
		code := sweep.wait()
		dirs, err := filepath.Glob(filepath.Join(out, "seeds-*"))
		if err != nil || len(dirs) != 1 {
			t.Fatalf("directories of the sweep: %q, %v; want one; output:\n%s", dirs, err, sweep.output)
		}
		if diff = cmp.Diff(readOutcome(t, dirs[0]), got); diff == "" {
			if collectCode != code {
				t.Errorf("fleet collect: status %d, want that of sweep seeds: %d", collectCode, code)
			}
			return
		}
		t.Logf("sweep %d differs (-sweep +fleet):\n%s", n+1, diff)
	}
	t.Errorf("the fleet differs from %d sweeps; the last (-sweep +fleet):\n%s", sweepsMax, diff)
}

// compareThroughPod collects the results through a pod, as a user without access to the volume
// does. They must be those that the test has read from the volume's directory.
func (f *fleetCluster) compareThroughPod(want outcome) {
	f.Helper()
	out := filepath.Join(f.dir, "through-pod")
	collect := f.start("fleet", "collect", campaignName, "--out="+out)
	collect.wait()
	f.Logf("%s", collect.output)
	if diff := cmp.Diff(want, readOutcome(f.T, filepath.Join(out, "fleet-"+campaignName))); diff != "" {
		f.Errorf("results through a pod (-directory +pod):\n%s", diff)
	}
	f.await("the pod that read the claim to end", func() error {
		pods, err := f.client.CoreV1().Pods(namespace).List(f.Context(), metav1.ListOptions{LabelSelector: "gauntlet/collect"})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d pods exist", len(pods.Items))
		}
		return err
	})
}

// requireKind skips the test without a container engine.
func requireKind(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the test creates a kind cluster")
	}
	if _, err := kind.ChooseImage(t.Context(), ""); err != nil {
		t.Skipf("the test needs a container engine and a node image: %v", err)
	}
}

// fleetCluster is a kind cluster whose worker nodes share a directory for the results of a fleet.
type fleetCluster struct {
	*testing.T
	random  *rand.Rand
	dir     string // a temporary directory for reports and other files
	store   string // the directory of the results
	program string // the path of the gauntlet executable
	kind    *kind.Cluster
	client  kubernetes.Interface
}

// startFleetCluster starts a cluster with two worker nodes, and loads the image of the fleet onto
// them. It also creates a namespace with a PersistentVolumeClaim for the results. The namespace
// enforces the Pod Security Standard "restricted".
func startFleetCluster(t *testing.T, random *rand.Rand) *fleetCluster {
	t.Helper()
	dir := t.TempDir()
	f := &fleetCluster{T: t, random: random, dir: dir, store: filepath.Join(dir, "store")}
	var err error
	if f.program, err = filepath.Abs("../../../bin/gauntlet"); err != nil {
		t.Fatal(err)
	}
	archive := f.buildImage()
	// The pods have a user of their own. A umask would take the permission away from Mkdir.
	if err := errors.Join(os.Mkdir(f.store, 0o700), os.Chmod(f.store, 0o777)); err != nil {
		t.Fatal(err)
	}
	worker := v1alpha4.Node{Role: v1alpha4.WorkerRole, ExtraMounts: []v1alpha4.Mount{{HostPath: f.store, ContainerPath: storePath}}}
	f.kind, err = kind.Start(t.Context(), kind.Options{
		Config: &v1alpha4.Cluster{Nodes: []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole}, worker, worker}},
		Dir:    dir, LogDir: filepath.Join(dir, "logs"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		// The files in the store belong to the user of the pods.
		_, err := f.kind.Workers()[0].Exec(ctx, "sh", "-c", "rm -rf "+storePath+"/* "+storePath+"/.known")
		if err := errors.Join(err, f.kind.Stop(ctx)); err != nil {
			t.Error(err)
		}
	})
	for _, node := range f.kind.Workers() {
		if err := node.LoadImage(t.Context(), archive); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(archive); err != nil {
		t.Fatal(err)
	}
	if f.client, err = kubernetes.NewForConfig(f.kind.Config(cluster.Admin)); err != nil {
		t.Fatal(err)
	}
	f.createNamespace()
	return f
}

// buildImage builds the image of a fleet from the programs beside f.program, and returns the path of
// its archive.
func (f *fleetCluster) buildImage(args ...string) (archive string) {
	f.Helper()
	archive = filepath.Join(f.dir, "fleet.tar")
	build := f.start(append([]string{"image", "--fleet", "--virtual", "--output=" + archive}, args...)...)
	if build.wait() != 0 {
		f.Fatalf("building the image of the fleet; first run `make build virtual upstream`:\n%s", build.output)
	}
	return archive
}

// createNamespace creates the namespace of the fleet, and a PersistentVolume and a
// PersistentVolumeClaim for the results.
func (f *fleetCluster) createNamespace() {
	f.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	core, options := f.client.CoreV1(), metav1.CreateOptions{}
	_, err1 := core.Namespaces().Create(f.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, options)
	_, err2 := core.PersistentVolumes().Create(f.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: storePath, Type: ptr.To(corev1.HostPathDirectory)}},
		},
	}, options)
	_, err3 := core.PersistentVolumeClaims(namespace).Create(f.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: ptr.To(""), VolumeName: claim, Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, options)
	if err := errors.Join(err1, err2, err3); err != nil {
		f.Fatal(err)
	}
}

// command is a running gauntlet command.
type command struct {
	t      *testing.T
	cmd    *exec.Cmd
	output *strings.Builder // standard output and standard error; complete after wait
}

// start starts gauntlet in the namespace of the fleet. The end of the test interrupts the command.
func (f *fleetCluster) start(args ...string) *command {
	f.Helper()
	c := &command{t: f.T, cmd: exec.CommandContext(f.Context(), f.program, args...), output: &strings.Builder{}}
	if args[0] == "fleet" {
		c.cmd.Args = append(c.cmd.Args, "--kubeconfig="+f.kind.Kubeconfig(), "--namespace="+namespace)
	}
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	c.cmd.Stdout, c.cmd.Stderr = c.output, c.output
	if err := c.cmd.Start(); err != nil {
		f.Fatalf("%v; first run `make build virtual upstream`", err)
	}
	return c
}

// wait waits for the end of the command and returns its exit status.
func (c *command) wait() int {
	c.t.Helper()
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return c.cmd.ProcessState.ExitCode()
}

// await waits until the function returns nil.
func (f *fleetCluster) await(what string, reached func() error) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), fleetWithin)
	defer cancel()
	if err := cluster.Poll(ctx, 200*time.Millisecond, what, func(context.Context) error { return reached() }); err != nil {
		f.Fatal(err)
	}
}

// requireActive ends the test if the Job of the fleet has ended. The argument before says what should
// have happened earlier.
func (f *fleetCluster) requireActive(before string) {
	f.Helper()
	job, err := f.client.BatchV1().Jobs(namespace).Get(f.Context(), campaignName, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	if len(job.Status.Conditions) == 0 {
		return
	}
	status := f.start("fleet", "status", campaignName)
	status.wait()
	f.Fatalf("the job ended before %s; a larger -seeds may help:\n%s", before, status.output)
}

// runningPods returns the running pods of the fleet that nobody has deleted.
func (f *fleetCluster) runningPods() []corev1.Pod {
	f.Helper()
	pods, err := f.client.CoreV1().Pods(namespace).List(f.Context(), metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodRunning)})
	if err != nil {
		f.Fatal(err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// disturb removes a node, and then kills pods at random moments, in three ways. A pod that completes
// before it is killed does not count.
func (f *fleetCluster) disturb(kills int) {
	f.Helper()
	ways := []struct {
		name string
		kill func(*corev1.Pod) error
	}{{"SIGKILL", f.sigkill}, {"deletion", f.deletePod}, {"eviction", f.evict}}
	// The Job cannot end before it has replaced the pods of the lost node, so there are pods to kill.
	lost := f.loseNode()
	tried := map[string]bool{}
	for killed := 0; killed < kills; {
		select {
		case <-time.After(time.Duration(f.random.Int64N(int64(3 * time.Second)))):
		case <-f.Context().Done():
			f.Fatal(f.Context().Err())
		}
		pod := f.pick(tried, lost)
		tried[pod.Name] = true
		way := ways[killed%len(ways)]
		if err := way.kill(pod); err != nil {
			f.Logf("%s of pod %s: %v", way.name, pod.Name, err) // the pod may have completed
		}
		if f.died(pod) {
			killed++
			f.Logf("killed pod %s by %s", pod.Name, way.name)
		}
	}
}

// pick waits until a pod runs whose name is not in tried, and returns such a pod. It ignores pods of
// the lost node, which the API server does not delete at once.
func (f *fleetCluster) pick(tried map[string]bool, lost string) *corev1.Pod {
	f.Helper()
	var pod corev1.Pod
	f.await("another pod to run", func() error {
		pods := slices.DeleteFunc(f.runningPods(), func(p corev1.Pod) bool { return tried[p.Name] || p.Spec.NodeName == lost })
		if len(pods) == 0 {
			f.requireActive("all pods were killed")
			return errors.New("no other pod runs")
		}
		pod = pods[f.random.IntN(len(pods))]
		return nil
	})
	return &pod
}

// died waits until a pod ends. It returns false if the pod has completed its work, that is, if its
// phase is Succeeded.
func (f *fleetCluster) died(pod *corev1.Pod) bool {
	f.Helper()
	phase := corev1.PodRunning
	f.await("pod "+pod.Name+" to end", func() error {
		found, err := f.client.CoreV1().Pods(namespace).Get(f.Context(), pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil // the phase is that of the request before
		}
		if err != nil {
			return err
		}
		phase = found.Status.Phase
		if phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			return fmt.Errorf("phase %s", phase)
		}
		return nil
	})
	return phase != corev1.PodSucceeded
}

// sigkill kills the process of a pod.
func (f *fleetCluster) sigkill(pod *corev1.Pod) error {
	for _, node := range f.kind.Workers() {
		if node.Name() != pod.Spec.NodeName {
			continue
		}
		// Processes whose parent is not in the same pod have the lowest IDs.
		_, err := node.Exec(f.Context(), "sh", "-c",
			"pid=$(grep -lzx POD_NAME="+pod.Name+" /proc/[0-9]*/environ | cut -d/ -f3 | sort -n | head -n 1); kill -9 $pid")
		return err
	}
	return fmt.Errorf("node %s is not in the cluster", pod.Spec.NodeName)
}

func (f *fleetCluster) deletePod(pod *corev1.Pod) error {
	return f.client.CoreV1().Pods(namespace).Delete(f.Context(), pod.Name, metav1.DeleteOptions{})
}

func (f *fleetCluster) evict(pod *corev1.Pod) error {
	return f.client.PolicyV1().Evictions(namespace).Evict(f.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: namespace}})
}

// loseNode kills the container of the last worker node while a pod of the fleet runs there. It then
// deletes the Node object, as a cloud provider does. It returns the name of the node.
func (f *fleetCluster) loseNode() (node string) {
	f.Helper()
	node = f.kind.Workers()[1].Name()
	var lost []string
	f.await("a pod to run on node "+node, func() error {
		for _, pod := range f.runningPods() {
			if pod.Spec.NodeName == node {
				lost = append(lost, pod.Name)
			}
		}
		if len(lost) == 0 {
			f.requireActive("a node was lost")
			return errors.New("no pod runs there")
		}
		return nil
	})
	err := errors.Join(f.kind.KillNode(f.Context(), node), f.client.CoreV1().Nodes().Delete(f.Context(), node, metav1.DeleteOptions{}))
	if err != nil {
		f.Fatal(err)
	}
	f.Logf("removed node %s with the pods %q", node, lost)
	return node
}

// outcome is the part of a report that does not depend on where and when its runs were made.
type outcome struct {
	Verdicts map[string]string // the verdict of each run, by seed and subject (controllers under test)
	Groups   []string          // the failure groups, without the reasons of the runs
}

// group matches the beginning of a failure group in failures.md. The rest of the line has the
// reason of one run.
var group = regexp.MustCompile(`(?m)^- (.+?, smallest run with seed \d+): `)

// readOutcome reads the report of a campaign. Each run must be in the report once.
func readOutcome(t *testing.T, dir string) outcome {
	t.Helper()
	var report struct {
		Runs []struct {
			Seed             uint64
			Subject, Verdict string
		}
	}
	content, err1 := os.ReadFile(filepath.Join(dir, "verdicts.json"))
	failures, err2 := os.ReadFile(filepath.Join(dir, "failures.md"))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &report); err != nil {
		t.Fatal(err)
	}
	o := outcome{Verdicts: map[string]string{}}
	for _, run := range report.Runs {
		key := fmt.Sprintf("seed %d, subject %s", run.Seed, run.Subject)
		if _, twice := o.Verdicts[key]; twice {
			t.Errorf("%s: %s has two verdicts", dir, key)
		}
		o.Verdicts[key] = run.Verdict
	}
	for _, match := range group.FindAllStringSubmatch(string(failures), -1) {
		o.Groups = append(o.Groups, match[1])
	}
	return o
}
