// Package specs contains specs that every implementation of the four controllers must pass. A spec
// is a Ginkgo test. Each Kubernetes test of these controllers has a spec. Each statement of
// controllers/CONTRACT.md that no Kubernetes test covers has a spec too. Package rows lists these
// tests and statements.
//
//	make conformance SUBJECTS=ours,upstream
//	go test ./suites/conformance -args -subject=exec:/path/to/my-kcm -ginkgo.label-filter=Deployment
//
// Each spec has its own namespace. It can therefore run alone, in any order, and in parallel
// with other specs. Package testenv explains how specs state what they expect. With a fault
// profile, the specs run while faults are active:
//
//	make conformance PROFILE=steady
//
// A spec has these Ginkgo labels: its subject, its controller, the name of the Kubernetes test that
// it repeats, and the statements that it tests.
//
// Two test binaries run the specs. suites/conformance runs them on the clusters of a provider, and
// harness/virtual/suites/conformance on control planes in virtual time.
package specs

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/rows"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

// Options are the options of a test binary that runs the specs.
type Options struct {
	// Root is the path of the repository's root directory.
	Root string
	// Provider is the name of the provider of the control planes. The flag -provider sets it.
	Provider string
	// StartCluster starts a control plane in this process. It is nil if the provider starts the
	// control planes.
	StartCluster testenv.StartCluster

	subjects, profile, reportsDir string
	nodeImage                     string
	existing                      cluster.Existing
}

// options are the options of this test binary.
var options Options

// AddFlags sets the options of the test binary, and adds flags that change them. Call it before the
// flags are parsed.
func AddFlags(flags *flag.FlagSet, o Options) {
	options = o
	flags.StringVar(&options.subjects, "subject", "ours", "the subjects, separated by commas: ours, upstream, exec:PATH or image:REF")
	flags.StringVar(&options.Provider, "provider", o.Provider, "the provider of the control plane")
	flags.StringVar(&options.nodeImage, "node-image", "", "the image of a kind node; empty means the default of the provider")
	flags.StringVar(&options.existing.Kubeconfig, "kubeconfig", "", "the absolute path of the kubeconfig of an existing cluster; empty means the default of kubectl")
	flags.StringVar(&options.existing.ControllerSwitch, "controller-switch", "", "a program that turns off the existing cluster's own instances of the four controllers; gauntlet calls it with off before the specs and with on after them")
	flags.StringVar(&options.profile, "profile", "", "the fault profile: steady, or empty for none")
	flags.StringVar(&options.reportsDir, "reports", "", "the directory for the table in JSON and Markdown, absolute or relative to the root of the repository; empty means no files")
}

// Subjects returns the programs under test, such as "ours".
func Subjects() []string { return strings.Split(options.subjects, ",") }

// Run runs the specs. It fails the test if a spec fails, or if the options do not fit the provider.
func Run(t *testing.T) {
	t.Helper()
	chosen, err := providers.Named(options.Provider)
	if err != nil {
		t.Fatal(err)
	}
	if inProcess := chosen.Capabilities.Has(cluster.VirtualTime); inProcess != (options.StartCluster != nil) {
		t.Fatalf("-provider=%s: found the test binary of another provider; run make conformance PROVIDER=%s", options.Provider, options.Provider)
	}
	if !chosen.Capabilities.Has(cluster.OwnsControlPlane) && len(Subjects()) > 1 {
		t.Fatalf("-provider=%s -subject=%s: expected one subject, because a cluster runs one instance of each controller at a time", options.Provider, options.subjects)
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "conformance")
}

// environments maps a program under test, such as "ours", to its environment: a control plane on
// which the program runs. The first Ginkgo spec of the program starts the environment.
var environments = map[string]*testenv.Env{}

// startTimeout is the maximum time for the start of an environment.
const startTimeout = 3 * time.Minute

// environmentOf returns the environment of a program under test: a control plane on which the
// program runs. The first call for a program starts its environment.
func environmentOf(ctx ginkgo.SpecContext, target string) *testenv.Env {
	ginkgo.GinkgoHelper()
	if env := environments[target]; env != nil {
		return env
	}
	parsed, err := subject.ParseTarget(target)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	chosen, err := testenv.FindProfile(options.profile)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	name := fmt.Sprintf("%s-%d", filepath.Base(target), ginkgo.GinkgoParallelProcess())
	env, err := testenv.Start(ctx, testenv.Options{
		Provider:     options.Provider,
		StartCluster: options.StartCluster,
		Target:       parsed,
		Ours:         filepath.Join(options.Root, "bin", "workload-controller-manager"),
		NodeImage:    options.nodeImage,
		Existing:     options.existing,
		LogDir:       filepath.Join(options.Root, "out", "conformance", "logs", name),
		Profile:      chosen,
		Seed:         uint64(ginkgo.GinkgoRandomSeed()),
	})
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "starting the environment of %s", target)
	environments[target] = env
	return env
}

// After the suite, this Ginkgo node waits until the namespaces of all Ginkgo specs are gone. It
// then stops the environments.
var _ = ginkgo.AfterSuite(func(ctx ginkgo.SpecContext) {
	for _, env := range environments {
		gone := env.WaitNamespacesGone(ctx)
		gomega.Expect(env.Stop(ctx)).To(gomega.Succeed())
		gomega.Expect(gone).To(gomega.Succeed())
	}
}, ginkgo.NodeTimeout(2*time.Minute))

// specTimeout is the maximum duration of a Ginkgo spec, without the start of its environment.
const specTimeout = 3 * time.Minute

// RowPrefix is the prefix of a spec's Ginkgo label that names the row: the behavior that the spec
// tests. The label is Label(RowPrefix + ID of the row).
const RowPrefix = "row:"

// specBody is the function that tests the program under test in the namespace of one Ginkgo spec.
type specBody func(ginkgo.SpecContext, *testenv.Namespace)

// spec declares one Ginkgo spec for each program under test. The argument row is the ID of the
// behavior that the spec tests, such as "ReplicaSet/TestAdoption". The options are Ginkgo
// decorators, or a withoutProfile.
func spec(row, text string, body specBody, options ...any) {
	labels := ginkgo.Labels{Label(RowPrefix + row)}
	if known, ok := rows.Find(row); ok {
		labels = append(labels, string(known.Controller), string(known.Level), Label(known.Name))
		labels = append(labels, known.StatementIDs()...)
	}
	withProfile := true
	var decorators []any
	for _, option := range options {
		if _, ok := option.(withoutProfile); ok {
			withProfile = false
			continue
		}
		decorators = append(decorators, option)
	}
	for _, target := range Subjects() {
		ginkgo.It(text, append(decorators, append(labels, Label(target)), ginkgo.NodeTimeout(startTimeout+specTimeout), func(ctx ginkgo.SpecContext) {
			env := environmentOf(ctx, target)
			n, err := env.NewNamespace(ctx, withProfile)
			gomega.Expect(err).NotTo(gomega.HaveOccurred(), "creating a namespace")
			ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
				gomega.Expect(n.Cleanup(ctx)).To(gomega.Succeed())
			}, ginkgo.NodeTimeout(specTimeout))
			body(ctx, n)
		})...)
	}
}

// Label replaces the characters of text that have a meaning in Ginkgo's label filters.
func Label(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("&|!,()/", r) {
			return '-'
		}
		return r
	}, text)
}

// withoutProfile is an option of the function spec: the Ginkgo spec runs without the faults of the
// profile. Its text is the reason.
type withoutProfile string
