// Package conformance has a spec for every behaviour that upstream tests of the
// four controllers, and for every statement of controllers/CONTRACT.md that none
// of those tests puts to the question. Package rows lists them; a test keeps the
// specs and the list in step.
//
//	make conformance SUBJECTS=ours,upstream
//	go test ./suites/conformance -args -subject=exec:/path/to/my-kcm -ginkgo.label-filter=Deployment
//
// A spec lives in a namespace of its own, so that any of them runs alone, in any
// order and beside any other; see package world for how it states what is always
// so, what comes about, and what has come about in the end. With a profile of
// faults the same specs run while things go wrong:
//
//	make conformance PROFILE=steady
//
// Every spec is labelled with its subject, its controller, the name of upstream's
// test and the statements of the contract that it puts to the question.
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

	"github.com/kube-gauntlet/gauntlet/harness/cluster/existing"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/rows"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/testenv"
)

var (
	subjects         = flag.String("subject", "ours", "what is under test: ours, upstream, exec:PATH or image:REF, more than one separated by commas")
	provider         = flag.String("provider", "embedded", "the kind of control plane to run on")
	nodeImage        = flag.String("node-image", "", "the image of a kind node; empty is the provider's choice")
	kubeconfig       = flag.String("kubeconfig", "", "the absolute path of the kubeconfig of an existing cluster; empty is what kubectl takes")
	controllerSwitch = flag.String("controller-switch", "", "a program that turns off the four controllers of an existing cluster; it is called with off and on")
	profile          = flag.String("profile", "", "what goes wrong while specs run: steady, or nothing")
	reportsDir       = flag.String("reports", "", "the directory, if not absolute from the top of the project, for the table in JSON and Markdown; empty is none")
)

// root is the top of the project, as the specs see it.
var root = filepath.Join("..", "..")

func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes; make conformance runs it")
	}
	if *provider == "existing" && strings.Contains(*subjects, ",") {
		t.Fatalf("-provider=existing -subject=%s: expected one subject, for a cluster runs one of each controller at a time", *subjects)
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "conformance")
}

// environments are those of this process, by subject. A subject's is made for the first
// of its specs.
var environments = map[string]*testenv.Env{}

// startTimeout bounds the start of a world.
const startTimeout = 3 * time.Minute

func environmentOf(ctx ginkgo.SpecContext, target string) *testenv.Env {
	ginkgo.GinkgoHelper()
	if w := environments[target]; w != nil {
		return w
	}
	parsed, err := subject.ParseTarget(target)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	chosen, err := testenv.FindProfile(*profile)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	name := fmt.Sprintf("%s-%d", filepath.Base(target), ginkgo.GinkgoParallelProcess())
	w, err := testenv.Start(ctx, testenv.Options{
		Provider:  *provider,
		Target:    parsed,
		Ours:      filepath.Join(root, "bin", "workload-controller-manager"),
		NodeImage: *nodeImage,
		Existing:  existing.Options{Kubeconfig: *kubeconfig, ControllerSwitch: *controllerSwitch},
		LogDir:    filepath.Join(root, "out", "conformance", "logs", name),
		Profile:   chosen,
		Seed:      uint64(ginkgo.GinkgoRandomSeed()),
	})
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "starting a world for %s", target)
	environments[target] = w
	return w
}

// Every namespace goes for good, and then the worlds.
var _ = ginkgo.AfterSuite(func(ctx ginkgo.SpecContext) {
	for _, w := range environments {
		gone := w.WaitNamespacesGone(ctx)
		gomega.Expect(w.Stop(ctx)).To(gomega.Succeed())
		gomega.Expect(gone).To(gomega.Succeed())
	}
}, ginkgo.NodeTimeout(2*time.Minute))

// specTimeout bounds a spec, the start of its world not counted.
const specTimeout = 3 * time.Minute

// rowLabel begins the label that names a spec's row.
const rowLabel = "row:"

// specBody is what a spec does.
type specBody func(ginkgo.SpecContext, *testenv.Namespace)

// spec states what a row promises, for every subject. Options are decorators of
// Ginkgo's, and calm.
func spec(row, text string, does specBody, options ...any) {
	labels := ginkgo.Labels{label(rowLabel + row)}
	if known, ok := rows.Find(row); ok {
		labels = append(labels, string(known.Controller), string(known.Level), label(known.Name))
		labels = append(labels, known.StatementIDs()...)
	}
	untroubled := false
	var decorators []any
	for _, option := range options {
		if _, ok := option.(withoutProfile); ok {
			untroubled = true
			continue
		}
		decorators = append(decorators, option)
	}
	for _, target := range strings.Split(*subjects, ",") {
		ginkgo.It(text, append(decorators, append(labels, label(target)), ginkgo.NodeTimeout(startTimeout+specTimeout), func(ctx ginkgo.SpecContext) {
			w := environmentOf(ctx, target)
			n, err := w.NewNamespace(ctx, untroubled)
			gomega.Expect(err).NotTo(gomega.HaveOccurred(), "making a namespace")
			ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
				gomega.Expect(n.Cleanup(ctx)).To(gomega.Succeed())
			}, ginkgo.NodeTimeout(specTimeout))
			does(ctx, n)
		})...)
	}
}

// label makes a label of a text: some characters have a meaning where labels are
// filtered by.
func label(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("&|!,()/", r) {
			return '-'
		}
		return r
	}, text)
}

// withoutProfile says why a spec runs without the profile's faults.
type withoutProfile string
