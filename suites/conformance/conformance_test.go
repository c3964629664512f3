// Package conformance contains specs that every implementation of the four controllers must pass.
// A spec is a Ginkgo test. Each Kubernetes test of these controllers has a spec. Each statement of
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
package conformance

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

var (
	subjects         = flag.String("subject", "ours", "the subjects, separated by commas: ours, upstream, exec:PATH or image:REF")
	provider         = flag.String("provider", providers.Default(), "the provider of the control plane")
	nodeImage        = flag.String("node-image", "", "the image of a kind node; empty means the default of the provider")
	kubeconfig       = flag.String("kubeconfig", "", "the absolute path of the kubeconfig of an existing cluster; empty means the default of kubectl")
	controllerSwitch = flag.String("controller-switch", "", "a program that turns off the existing cluster's own instances of the four controllers; gauntlet calls it with off before the specs and with on after them")
	profile          = flag.String("profile", "", "the fault profile: steady, or empty for none")
	reportsDir       = flag.String("reports", "", "the directory for the table in JSON and Markdown, absolute or relative to the root of the repository; empty means no files")
)

// root is the root directory of the repository.
var root = filepath.Join("..", "..")

func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes; make conformance runs it")
	}
	chosen, err := providers.Named(*provider)
	if err != nil {
		t.Fatal(err)
	}
	if !chosen.Capabilities.Has(cluster.OwnsControlPlane) && strings.Contains(*subjects, ",") {
		t.Fatalf("-provider=%s -subject=%s: expected one subject, because a cluster runs one instance of each controller at a time", *provider, *subjects)
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
	chosen, err := testenv.FindProfile(*profile)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	name := fmt.Sprintf("%s-%d", filepath.Base(target), ginkgo.GinkgoParallelProcess())
	env, err := testenv.Start(ctx, testenv.Options{
		Provider:  *provider,
		Target:    parsed,
		Ours:      filepath.Join(root, "bin", "workload-controller-manager"),
		NodeImage: *nodeImage,
		Existing:  cluster.Existing{Kubeconfig: *kubeconfig, ControllerSwitch: *controllerSwitch},
		LogDir:    filepath.Join(root, "out", "conformance", "logs", name),
		Profile:   chosen,
		Seed:      uint64(ginkgo.GinkgoRandomSeed()),
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

// rowLabel is the prefix of a spec's Ginkgo label that names the row: the behavior that the spec
// tests.
const rowLabel = "row:"

// specBody is the function that tests the program under test in the namespace of one Ginkgo spec.
type specBody func(ginkgo.SpecContext, *testenv.Namespace)

// spec declares one Ginkgo spec for each program under test. The argument row is the ID of the
// behavior that the spec tests, such as "ReplicaSet/TestAdoption". The options are Ginkgo
// decorators, or a withoutProfile.
func spec(row, text string, body specBody, options ...any) {
	labels := ginkgo.Labels{label(rowLabel + row)}
	if known, ok := rows.Find(row); ok {
		labels = append(labels, string(known.Controller), string(known.Level), label(known.Name))
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
	for _, target := range strings.Split(*subjects, ",") {
		ginkgo.It(text, append(decorators, append(labels, label(target)), ginkgo.NodeTimeout(startTimeout+specTimeout), func(ctx ginkgo.SpecContext) {
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

// label replaces the characters of text that have a meaning in Ginkgo's label filters.
func label(text string) string {
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
