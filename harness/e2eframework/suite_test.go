package e2eframework_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/kube-gauntlet/gauntlet/harness/e2eframework"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// Environment variables. If suiteVariable is set, the test binary runs as a user's suite, with the
// framework's flags. The value of suiteVariable says what the suite does; see TestSuite.
// outVariable contains the parent directory of the suite's run directories.
const (
	suiteVariable = "GAUNTLET_TEST_SUITE"
	outVariable   = "GAUNTLET_TEST_OUT"
)

// suiteHas reports whether the value of suiteVariable contains a word, such as "faults".
func suiteHas(word string) bool { return strings.Contains(os.Getenv(suiteVariable), word) }

// suiteMain is the TestMain of the suite. It returns the exit status.
func suiteMain(m *testing.M) int {
	config, err := envconf.NewFromFlags()
	if err != nil {
		panic(err)
	}
	testenv = env.NewWithConfig(config)
	chaos := &e2eframework.Chaos{
		Cluster: clusterName,
		Out:     os.Getenv(outVariable),
		Settle:  scenario.Settle{Within: 10 * time.Second, Quiet: 100 * time.Millisecond},
	}
	newProvider := e2eframework.NewEmbedded
	switch {
	case suiteHas("kind"):
		newProvider = e2eframework.NewKind
	case config.KubeconfigFile() != "":
		newProvider = func() support.E2EClusterProvider {
			return e2eframework.NewExisting().WithPath(config.KubeconfigFile()).WithOpts(e2eframework.WithContext(config.KubeContext()))
		}
	}
	if suiteHas("own-clusters") {
		chaos.NewCluster = newProvider
	} else {
		var options []support.ClusterOpts
		if suiteHas("with-scenario") {
			options = append(options, e2eframework.WithScenario(suiteScenario()))
		}
		testenv.Setup(envfuncs.CreateClusterWithOpts(newProvider(), clusterName, options...))
		testenv.Finish(envfuncs.DestroyCluster(clusterName))
	}
	if suiteHas("faults") { // the trigger never matches
		chaos.Faults = parseScenario("externalWorkload: {}\nfaults:\n" +
			"  - response-lost: {verb: create, resource: pods, how: error}\n    when: {request: {verb: delete, resource: pods}}\n").Faults
	}
	testenv.BeforeEachFeature(chaos.Begin)
	testenv.AfterEachFeature(chaos.End)
	return testenv.Run(m)
}

// suiteScenario returns a scenario whose verdict is pass. For some values of suiteVariable, the
// fault never fires, and the verdict is unknown.
func suiteScenario() *scenario.Scenario {
	nth := 1
	if suiteHas("never") {
		nth = 1000
	}
	return parseScenario(fmt.Sprintf(`
cluster: {nodes: 2, podStartDelay: 50ms}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 1}
  - scale: {kind: ReplicaSet, name: web, replicas: 3}
    after: 500ms
    await: {until: scaled}
faults:
  - response-lost: {verb: create, resource: pods, nth: %d, how: error}
`, nth))
}

// parseScenario parses a scenario. It adds a name, a description and a seed to the YAML text.
func parseScenario(text string) *scenario.Scenario {
	s, err := scenario.Parse("scenario.yaml", []byte("name: lost-create\ndescription: the response to a create of a pod is lost\nseed: 1\n"+text))
	if err != nil {
		panic(err)
	}
	return s
}

// TestSuite is the only test of the suite. TestFlags and TestKilled run the suite as a process.
func TestSuite(t *testing.T) {
	if os.Getenv(suiteVariable) == "" {
		t.Skip("the test runs in processes that other tests start")
	}
	if suiteHas("scenario") {
		feature := features.New("a scenario")
		if !suiteHas("recorded") {
			feature.WithLabel(e2eframework.Recording, "off")
		}
		testenv.Test(t, feature.Assess("it passes", e2eframework.RunScenario(clusterName, run.Options{
			Scenario: suiteScenario(), Target: subject.Upstream, Out: os.Getenv(outVariable),
		})).Feature())
		return
	}
	testenv.TestInParallel(t,
		features.New("orders").WithLabel("size", "small").
			WithSetup("ready", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
				if suiteHas("injects-nothing") { // the suite sends no request with this verb and resource
					e2eframework.Inject("api-error", "{verb: delete, resource: pods, code: 500}")(ctx, t, c)
				}
				if suiteHas("waits") {
					e2eframework.Converged()(ctx, t, c)
				}
				if suiteHas("blocks") {
					fmt.Printf("blocks %s\n", filepath.Dir(c.KubeconfigFile()))
					select {}
				}
				if suiteHas("setup-fails") {
					t.Fatal("the setup fails on purpose")
				}
				if suiteHas("setup-skips") {
					t.Skip("the setup skips on purpose")
				}
				return ctx
			}).
			Assess("an order", createConfigMap("order")).
			Assess("fails or not", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
				if suiteHas("assess-fails") {
					t.Fatal("the assessment fails on purpose")
				}
				return ctx
			}).Feature(),
		features.New("invoices").WithLabel("size", "large").Assess("an invoice", createConfigMap("invoice")).Feature(),
		features.New("unrecorded").WithLabel("size", "large").WithLabel(e2eframework.Recording, "off").
			Assess("no recording", func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
				var list corev1.NamespaceList
				if err := c.Client().Resources().List(ctx, &list); err != nil {
					t.Error(err)
				}
				if _, err := e2eframework.ProxyConfig(ctx, "client"); err == nil || !strings.Contains(err.Error(), "remove the label recording=off") {
					t.Errorf("ProxyConfig: error %v", err)
				}
				return ctx
			}).Feature(),
	)
}

// createConfigMap returns a step that creates the named ConfigMap in the namespace of the
// framework's configuration.
func createConfigMap(name string) features.Func {
	return func(ctx context.Context, t *testing.T, c *envconf.Config) context.Context {
		t.Logf("%s in namespace %s", name, c.Namespace())
		err := c.Client().Resources().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace()}})
		if err != nil {
			t.Fatal(err)
		}
		return ctx
	}
}

// suiteCommand returns the command that runs the suite with a value of suiteVariable and with
// flags.
func suiteCommand(ctx context.Context, suite, out string, flags ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"-test.run=^TestSuite$", "-test.v"}, flags...)...)
	cmd.Env = append(os.Environ(), suiteVariable+"="+suite, outVariable+"="+out)
	return cmd
}

// TestFlags verifies that the framework's flags work with Chaos, and that features end in the right
// way.
func TestFlags(t *testing.T) {
	for _, test := range []struct {
		name, suite string
		flags       []string
		fails       bool
		runs        int      // number of recorded features and scenarios
		want        []string // texts in the output
		missing     []string // texts that are not in the output
	}{
		{name: "none", suite: "plain", runs: 2, want: []string{"order in namespace gauntlet", "invoice in namespace gauntlet", "PASS: TestSuite/unrecorded/no_recording"}},
		{name: "dry run", suite: "plain", flags: []string{"--dry-run"}, want: []string{"PASS: TestSuite/orders/an_order"}, missing: []string{"in namespace"}},
		{name: "feature", suite: "plain", flags: []string{"--feature=invoices"}, runs: 1, want: []string{"invoice in namespace"}, missing: []string{"order in namespace"}},
		{name: "labels", suite: "plain", flags: []string{"--labels=size=small"}, runs: 1, want: []string{"order in namespace"}, missing: []string{"invoice in namespace"}},
		{name: "namespace", suite: "plain", flags: []string{"--namespace=team-a"}, runs: 2, want: []string{"order in namespace team-a"}},
		{name: "assessment fails", suite: "assess-fails", fails: true, runs: 2, want: []string{"the assessment fails on purpose", "invoice in namespace"}, missing: []string{"did not reach its end"}},
		{name: "fail fast", suite: "assess-fails", flags: []string{"--fail-fast"}, fails: true, runs: 1,
			want: []string{"the assessment fails on purpose", `feature "orders": the feature did not reach its end`, "report.html"}, missing: []string{"invoice in namespace"}},
		{name: "fault without effect", suite: "injects-nothing", flags: []string{"--feature=orders"}, fails: true, runs: 1,
			want: []string{"the feature was not tested under faults"}},
		{name: "converged", suite: "waits", runs: 2, want: []string{"order in namespace gauntlet"}},
		{name: "setup fails", suite: "setup-fails", fails: true, runs: 2, want: []string{`feature "orders": the feature did not reach its end`, "invoice in namespace"}},
		{name: "setup fails with faults in the background", suite: "setup-fails faults", fails: true, runs: 2,
			want: []string{`feature "orders": the feature did not reach its end`, "invoice in namespace"}, missing: []string{"injecting or healing the faults in Chaos.Faults:"}},
		{name: "setup skips", suite: "setup-skips", runs: 2, want: []string{`feature "orders": the feature did not reach its end`, "invoice in namespace"}},
		{name: "parallel on one cluster", suite: "plain", flags: []string{"--parallel"}, fails: true, runs: 1,
			want: []string{"cluster demo is in use by feature", "for features that run in parallel, set Chaos.NewCluster"}},
		{name: "parallel on own clusters", suite: "own-clusters", flags: []string{"--parallel"}, runs: 2, want: []string{"order in namespace", "invoice in namespace"}},
		{name: "scenario", suite: "scenario with-scenario", runs: 1, want: []string{"PASS: TestSuite/a_scenario/it_passes"}},
		{name: "scenario whose fault never fires", suite: "scenario with-scenario never", fails: true, runs: 1, want: []string{"scenario lost-create: verdict unknown: "}},
		{name: "scenario on a cluster that runs the controllers", suite: "scenario", fails: true,
			want: []string{`running scenario lost-create on cluster demo: controllers that the cluster does not run: found []; expected the controllers under test, ["deployment-controller"`, "create the cluster with the option WithScenario"}},
		{name: "recorded scenario", suite: "scenario with-scenario recorded", fails: true, runs: 1, want: []string{"cluster demo is in use by feature a scenario, ", "add the label recording=off"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			output, err := suiteCommand(t.Context(), test.suite, dir, test.flags...).CombinedOutput()
			if failed := err != nil; failed != test.fails {
				t.Errorf("the suite failed: %v; want %v", err, test.fails)
			}
			for _, want := range test.want {
				if !strings.Contains(string(output), want) {
					t.Errorf("the output does not contain %q", want)
				}
			}
			for _, missing := range test.missing {
				if strings.Contains(string(output), missing) {
					t.Errorf("the output contains %q", missing)
				}
			}
			histories, err := filepath.Glob(filepath.Join(dir, "*", "history.jsonl"))
			if err != nil || len(histories) != test.runs {
				t.Errorf("histories %v, error %v; want %d", histories, err, test.runs)
			}
			if reports, err := filepath.Glob(filepath.Join(dir, "*", "report.html")); err != nil || len(reports) != test.runs {
				t.Errorf("reports %v, error %v; want %d", reports, err, test.runs)
			}
			if test.name == "namespace" {
				for _, path := range histories {
					if found := recordedNamespace(t, path); found != "team-a" {
						t.Errorf("%s: namespace %q, want team-a", path, found)
					}
				}
			}
			if t.Failed() {
				t.Logf("%s", output)
			}
		})
	}
}

// recordedNamespace returns the namespace that the history file at path recorded.
func recordedNamespace(t *testing.T, path string) string {
	for record, err := range history.ReadFile(path) {
		if err != nil {
			t.Fatal(err)
		}
		if record.Start != nil {
			return record.Start.Namespace
		}
	}
	return ""
}

// TestExisting runs suites on an existing cluster, with the framework's flags. After a suite is
// killed, its namespace must be deleted.
func TestExisting(t *testing.T) {
	p := e2eframework.NewEmbedded().SetDefaults().WithName("existing")
	kubeconfig, err := p.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	namespaces := kubernetes.NewForConfigOrDie(p.KubernetesRestConfig()).CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		flags []string
		want  string
		fails bool
	}{
		{nil, "invoice in namespace gauntlet", false},
		{[]string{"--context=existing"}, "invoice in namespace gauntlet", false},
		{[]string{"--context=other"}, `context "other" does not exist`, true},
		{[]string{"--namespace=team-a"}, "invoice in namespace team-a", false},
		{[]string{"--namespace=team-b"}, `namespaces "team-b" not found; expected a namespace that exists`, true},
	} {
		flags := append([]string{"--kubeconfig=" + kubeconfig}, test.flags...)
		output, err := suiteCommand(t.Context(), "plain", t.TempDir(), flags...).CombinedOutput()
		if failed := err != nil; failed != test.fails || !strings.Contains(string(output), test.want) {
			t.Errorf("suite with %v: failed: %v, want %v and the text %q:\n%s", test.flags, failed, test.fails, test.want, output)
		}
	}
	cmd := suiteCommand(t.Context(), "blocks", t.TempDir(), "--kubeconfig="+kubeconfig)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stateDirOf(t, stdout)
	if _, err := namespaces.Get(t.Context(), "gauntlet", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	_, _ = cmd.Process.Kill(), cmd.Wait()
	if err := wait.For(func(ctx context.Context) (bool, error) {
		_, err := namespaces.Get(ctx, "gauntlet", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	}, wait.WithTimeout(time.Minute), wait.WithInterval(100*time.Millisecond)); err != nil {
		t.Errorf("namespace gauntlet after SIGKILL of the suite: %v", err)
	}
	if err := p.WaitForControlPlane(t.Context(), nil); err != nil {
		t.Errorf("the cluster after the suites: %v", err)
	}
}

// TestKilled verifies that a suite that a signal has ended leaves nothing behind.
func TestKilled(t *testing.T) {
	for _, test := range []struct {
		name, suite string
		signal      syscall.Signal
	}{
		{"embedded, SIGINT", "blocks", syscall.SIGINT},
		{"embedded, SIGKILL", "blocks", syscall.SIGKILL},
		{"kind, SIGINT", "blocks kind", syscall.SIGINT},
		{"kind, SIGKILL", "blocks kind", syscall.SIGKILL},
	} {
		t.Run(test.name, func(t *testing.T) {
			onKind := strings.Contains(test.suite, "kind")
			if onKind {
				requireKind(t)
			}
			cmd := suiteCommand(t.Context(), test.suite, t.TempDir())
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			dir := stateDirOf(t, stdout)
			if left := leftovers(t, dir, onKind); len(left) == 0 {
				t.Error("found no process and no file of the cluster while the suite runs; the test would see nothing")
			}
			if err := cmd.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the suite exited with status 0")
			}
			var left []string
			if err := wait.For(func(context.Context) (bool, error) {
				left = leftovers(t, dir, onKind)
				return len(left) == 0, nil
			}, wait.WithTimeout(time.Minute), wait.WithInterval(100*time.Millisecond), wait.WithImmediate()); err != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
