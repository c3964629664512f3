package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	"github.com/kube-gauntlet/gauntlet/harness/mutant/library"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/rows"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/specs"
	"github.com/kube-gauntlet/gauntlet/suites/conformance/table"
)

// mutantRows lists mutants of our controllers: copies with a small bug on purpose. A row is one
// tested behavior. The Ginkgo specs of the row must detect the bug. If they pass, they do not test
// the behavior.
var mutantRows = []struct{ mutant, row string }{
	{"R10", "ReplicaSet/statement 5"},
	{"R11", "ReplicaSet/TestAdoption"},
	{"R29", "ReplicaSet/statement 7"},
	{"own-no-expectations", "ReplicationController/statement 2"},
	{"own-no-release", "ReplicaSet/adopt matching pods on creation and release no longer matching pods"},
	{"own-failed-counts", "ReplicationController/TestDeletingAndFailedPods"},
	{"own-cost-ignored", "ReplicaSet/TestPodDeletionCost"},
	{"own-ready-first", "ReplicaSet/statement 10"},
	{"own-min-ready-ignored", "ReplicationController/TestReadyAndAvailableReplicas"},
	{"own-no-failure", "ReplicaSet/surface a failure condition on a common issue like exceeded quota"},
	{"own-no-annotations", "ReplicaSet/statement 11"},
	{"own-terminating-adopts", "ReplicaSet/statement 7"},
	{"own-terminating-uncounted", "ReplicaSet/TestTerminatingReplicas"},
	{"D1", "Deployment/TestDeploymentHashCollision"},
	{"D11", "Deployment/TestFailedDeployment"},
	{"D19", "Deployment/delete old replica sets"},
	{"own-paused-rolls", "Deployment/TestPausedDeployment"},
	{"own-paused-unscaled", "Deployment/TestScalePausedDeployment"},
	{"own-sets-not-adopted", "Deployment/TestGeneralReplicaSetAdoption"},
	{"own-not-proportional", "Deployment/proportional scaling"},
	{"own-recreate-overlaps", "Deployment/TestRecreateDeploymentForPodReplacement"},
	{"own-rollback-ignored", "Deployment/statement 18"},
	{"own-rollback-to-first", "Deployment/statement 18"},
	{"E4", "Endpoints/statement 1"},
	{"E6", "Endpoints/TestExternalNameToClusterIPTransition"},
	{"own-terminal-addresses", "Endpoints/statement 3"},
	{"own-not-ready-served", "Endpoints/TestEndpointWithMultiplePodUpdates"},
	{"own-no-truncation", "Endpoints/TestEndpointTruncate"},
	{"own-port-zero", "Endpoints/statement 6"},
	{"own-headless-unlabeled", "Endpoints/TestEndpointsHeadlessLabel"},
	{"own-labels-lost", "Endpoints/TestEndpointsControllersLabelSemantics"},
}

// mutantTimeout is the maximum time for building one mutant, a controller with a deliberate bug,
// and testing it.
const mutantTimeout = 10 * time.Minute

// TestBrokenSubjectsFailTheirRow runs Ginkgo specs on each mutant in mutantRows, in a separate
// process. At least one spec must fail, because the mutant has a bug that the specs test.
func TestBrokenSubjectsFailTheirRow(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes; make conformance-broken runs it")
	}
	builder := mutant.Builder{Tree: root, Dir: t.TempDir()}
	for _, b := range mutantRows {
		t.Run(b.mutant, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), mutantTimeout)
			defer cancel()
			if _, ok := rows.Find(b.row); !ok {
				t.Fatalf("row %q: not found", b.row)
			}
			all := library.All()
			i := slices.IndexFunc(all, func(m mutant.Mutant) bool { return m.ID == b.mutant })
			if i < 0 {
				t.Fatalf("mutant %q: not found", b.mutant)
			}
			executable, err := builder.Build(ctx, &all[i])
			if err != nil {
				t.Fatal(err)
			}
			run, err := runRow(ctx, executable, b.row, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			failed := slices.ContainsFunc(run.Results, func(r table.Result) bool { return r.State == table.Failed })
			if !failed {
				t.Errorf("row %s: all specs passed; expected a failure, because the mutant has this bug: %s", b.row, all[i].Description)
			}
			for _, r := range run.Results {
				if r.State != table.NotRun {
					t.Logf("%s: %s in %.1f s: %.300s", r.Spec, r.State, r.Duration.Seconds(), r.Reason)
				}
			}
		})
	}
}

// runRow runs the Ginkgo specs of a row, which is one tested behavior, on the controllers in an
// executable. It starts a new process for them. It saves the results in dir. It returns an error
// if no spec ran, but not if specs failed.
func runRow(ctx context.Context, executable, row, dir string) (table.Run, error) {
	var run table.Run
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestConformance$",
		"-subject=exec:"+executable, "-reports="+dir,
		"-ginkgo.label-filter="+specs.Label(specs.RowPrefix+row), "-ginkgo.fail-on-empty")
	// An interrupt makes the process stop its environment. Linux sends Pdeathsig when the
	// thread that started the process exits, so this goroutine stays locked to its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	output, ranErr := cmd.CombinedOutput()
	encoded, err := os.ReadFile(filepath.Join(dir, "conformance.json"))
	if err == nil {
		err = json.Unmarshal(encoded, &run)
	}
	if err == nil && !slices.ContainsFunc(run.Results, func(r table.Result) bool { return r.State != table.NotRun }) {
		err = errors.New("no spec ran")
	}
	if err != nil {
		return run, fmt.Errorf("running row %s: %w\n%s", row, errors.Join(err, ranErr), output)
	}
	return run, nil
}
