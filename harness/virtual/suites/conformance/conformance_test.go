// Package conformance runs the specs of the conformance suite in virtual time:
//
//	make conformance PROVIDER=virtual
//
// The whole suite is in one bubble of testing/synctest: Ginkgo, the specs, and a control plane with
// controllers for each subject. All contexts, channels and timers thus belong to the bubble, and the
// clock advances whenever all goroutines wait.
package conformance

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/cluster/providers"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/apiserver"
	"github.com/kube-gauntlet/gauntlet/harness/virtual/controlplane"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/specs"
)

// root is the root directory of the repository.
var root = filepath.Join("..", "..", "..", "..")

func init() {
	specs.AddFlags(flag.CommandLine, specs.Options{Root: root, Provider: providers.Virtual, StartCluster: start})
}

// start starts a control plane in virtual time.
func start(ctx context.Context, seed uint64, o providers.Options) (cluster.Cluster, error) {
	c, err := controlplane.Start(ctx, seed, o)
	if err != nil {
		return nil, err // do not return c: a nil *ControlPlane is not a nil Cluster
	}
	return c, nil
}

// TestConformance runs the specs, and ends the process inside of the bubble. It thus need not stop
// goroutines of kube-controller-manager that have no way to stop.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("make conformance PROVIDER=virtual runs it")
	}
	if suite, _ := ginkgo.GinkgoConfiguration(); suite.ParallelTotal > 1 {
		t.Fatalf("found %d test processes (PROCS); expected 1, because the clock stands still while the processes of Ginkgo communicate", suite.ParallelTotal)
	}
	if err := apiserver.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	logToFile(t)
	startSignalLoop()
	synctest.Test(t, func(t *testing.T) {
		specs.Run(t)
		code := 0
		if t.Failed() {
			code = 1
		}
		klog.Flush()
		syscall.Exit(code) // os.Exit(0) panics in a test
	})
}

// logToFile writes the logs of all components to out/conformance/logs/virtual.log.
func logToFile(t *testing.T) {
	dir := filepath.Join(root, "out", "conformance", "logs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "virtual.log"))
	if err != nil {
		t.Fatal(err)
	}
	klog.SetLoggerWithOptions(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(file))), klog.ContextualLogger(true))
}

// startSignalLoop starts the goroutine in which package os/signal waits for signals. In the bubble,
// the clock would stand still until a signal arrives.
func startSignalLoop() {
	unused := make(chan os.Signal, 1)
	signal.Notify(unused, syscall.SIGWINCH)
	signal.Stop(unused)
}

// Before the suite, this Ginkgo node makes an interrupt end the process at once. Ginkgo waits for
// signals with a channel of the bubble, and package os/signal must not send to it from outside.
var _ = ginkgo.BeforeSuite(func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
