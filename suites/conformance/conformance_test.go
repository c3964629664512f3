// Package conformance has a spec for each Kubernetes test of the four controllers. It
// also has a spec for every statement of controllers/CONTRACT.md that these tests do
// not cover. Package rows lists the tests and statements, and a test requires that
// specs and list agree.
//
//	make conformance SUBJECTS=ours,upstream
//	go test ./suites/conformance -args -subject=exec:/path/to/my-kcm -ginkgo.label-filter=Deployment
//
// Each spec has a namespace of its own. It can therefore run alone, in any order, and
// in parallel with other specs. Package testenv explains how specs state their
// guarantees. With a fault profile, the same specs run while faults are active:
//
//	make conformance PROFILE=steady
//
// The labels of a spec are its subject, its controller, the name of the Kubernetes
// test and the statements that it covers.
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
	provider         = flag.String("provider", "embedded", "the provider of the control plane")
	nodeImage        = flag.String("node-image", "", "the image of a kind node; empty means the default of the provider")
	kubeconfig       = flag.String("kubeconfig", "", "the absolute path of the kubeconfig of an existing cluster; empty means the default of kubectl")
	controllerSwitch = flag.String("controller-switch", "", "a program that turns off the four controllers of an existing cluster; gauntlet calls it with off and on")
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

// environments has the environment of each subject in this process. The first spec of a
// subject starts its environment.
var environments = map[string]*testenv.Env{}

// startTimeout limits how long the start of an environment may take.
const startTimeout = 3 * time.Minute

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

// The environments stop after the namespaces of all specs are deleted.
var _ = ginkgo.AfterSuite(func(ctx ginkgo.SpecContext) {
	for _, env := range environments {
		gone := env.WaitNamespacesGone(ctx)
		gomega.Expect(env.Stop(ctx)).To(gomega.Succeed())
		gomega.Expect(gone).To(gomega.Succeed())
	}
}, ginkgo.NodeTimeout(2*time.Minute))

// specTimeout limits how long a spec may take, without the start of its environment.
const specTimeout = 3 * time.Minute

// rowLabel is the prefix of the label that names the row of a spec.
const rowLabel = "row:"

// specBody is the body of a spec.
type specBody func(ginkgo.SpecContext, *testenv.Namespace)

// spec adds one spec for each subject, with the label of a row. The options are Ginkgo
// decorators or withoutProfile.
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

// label replaces the characters that have a special meaning in label filters.
func label(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("&|!,()/", r) {
			return '-'
		}
		return r
	}, text)
}

// withoutProfile is an option of spec. The spec then runs without the fault profile.
// The text of the option is the reason.
type withoutProfile string
