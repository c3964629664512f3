package fleet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-gauntlet/gauntlet/harness/mutant"
	"github.com/kube-gauntlet/gauntlet/harness/mutant/library"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// runNight applies the manifests of a CronJob in the examples, and runs a night of four seeds. The
// subject is upstream, whose known issues give new failure groups in some nights.
func (f *fleetCluster) runNight() {
	f.Helper()
	const night, seeds = "nightly-1", 4
	cronJob := f.applyNight(seeds)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: night}, Spec: cronJob.Spec.JobTemplate.Spec}
	if _, err := f.client.BatchV1().Jobs(namespace).Create(f.Context(), job, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.await("the night to end", func() error {
		job, err := f.client.BatchV1().Jobs(namespace).Get(f.Context(), night, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(job.Status.Conditions) == 0 {
			return errors.New("the job runs")
		}
		return nil
	})
	campaign := night + "-run"
	status := f.start("fleet", "status", campaign)
	if status.wait(); !strings.Contains(status.output.String(), "1 of 1 indexes complete") {
		f.Errorf("status of the night:\n%s", status.output)
	}
	results, err := filepath.Glob(filepath.Join(f.store, campaign, "00000", "*", "artifacts", "results", "*-upstream.json"))
	if err != nil || len(results) != seeds {
		f.Errorf("results %q, %v; want %d", results, err, seeds)
	}
	failed, err := filepath.Glob(filepath.Join(f.store, campaign, "00000", "*", "artifacts", "runs", "*"))
	if err != nil {
		f.Fatal(err)
	}
	known, err := filepath.Glob(filepath.Join(f.store, ".known", "nightly", "*.json"))
	if err != nil || (len(known) == 0) != (len(failed) == 0) {
		f.Errorf("acknowledged failure groups %q, %v; want some for the runs %q", known, err, failed)
	}
	f.Logf("the night has %d runs that did not pass, and %d new failure groups", len(failed), len(known))
}

// applyNight creates the objects in the manifests of a CronJob, and returns the CronJob. The campaign
// has the given number of seeds, in virtual time.
func (f *fleetCluster) applyNight(seeds int) *batchv1.CronJob {
	f.Helper()
	content, err := os.ReadFile("../../../examples/fleet/nightly/nightly.yaml")
	if err != nil {
		f.Fatal(err)
	}
	text := strings.NewReplacer(
		"namespace: gauntlet", "namespace: "+namespace, "--count=1000", fmt.Sprintf("--count=%d", seeds),
		"--provider=embedded", "--provider=virtual", "--subjects=ours", "--subjects=upstream", "--cpu=1", "--cpu=250m",
	).Replace(string(content))
	var cronJob *batchv1.CronJob
	for document := range strings.SplitSeq(text, "\n---\n") {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
		if err != nil {
			f.Fatal(err)
		}
		ctx, options := f.Context(), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
		switch object := object.(type) {
		case *corev1.ServiceAccount:
			_, err = f.client.CoreV1().ServiceAccounts(namespace).Create(ctx, object, options)
		case *rbacv1.Role:
			_, err = f.client.RbacV1().Roles(namespace).Create(ctx, object, options)
		case *rbacv1.RoleBinding:
			_, err = f.client.RbacV1().RoleBindings(namespace).Create(ctx, object, options)
		case *batchv1.CronJob:
			cronJob, err = f.client.BatchV1().CronJobs(namespace).Create(ctx, object, options)
		default:
			err = fmt.Errorf("found %T in the manifests", object)
		}
		if err != nil {
			f.Fatal(err)
		}
	}
	return cronJob
}

// runNext runs another campaign, whose scenarios prefer faults that acted rarely in the campaign of
// TestOnKind.
func (f *fleetCluster) runNext() {
	f.Helper()
	const next = "next"
	covered := filepath.Join(f.dir, "fleet-"+campaignName, "coverage.json")
	if content, err := os.ReadFile(covered); err != nil || !strings.Contains(string(content), `"times"`) {
		f.Errorf("coverage of the campaign: %v\n%s", err, content)
	}
	f.runAndCollect(1, "run", next, "--provider=virtual", "--profile=calm", "--seeds=1001..1004", "--per-pod=2",
		"--prefer-uncovered="+covered, "--claim="+claim, "--cpu=250m", "--memory=1Gi", "--disk=1Gi")
	results := f.results(next)
	if len(results) != 4 {
		f.Errorf("results of %d runs, want 4", len(results))
	}
	for _, result := range results {
		if !strings.Contains(result.Description, "in coverage ") {
			f.Errorf("scenario of seed %d: description %q; want one with the coverage that it prefers", result.Seed, result.Description)
		}
	}
}

// results returns the results of a campaign in the store.
func (f *fleetCluster) results(campaign string) (results []reports.Run) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join(f.store, campaign, "*", "*", "artifacts", "results", "*.json"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		var result reports.Run
		if err = errors.Join(err, json.Unmarshal(content, &result)); err != nil {
			f.Fatal(err)
		}
		results = append(results, result)
	}
	return results
}

// runExploration explores a scenario in a pod for a minute, with our controllers on the embedded
// control plane.
func (f *fleetCluster) runExploration() {
	f.Helper()
	const places = "places"
	f.runAndCollect(2, "explore", places, "cheap", "--at=crash", "--budget=1m", "--claim="+claim, "--cpu=500m", "--memory=2Gi", "--disk=2Gi")
	for _, result := range f.results(places) {
		f.Logf("the exploration: %s", result.Reason)
		if result.Reason == "" || strings.HasPrefix(result.Reason, "runs: 0;") {
			f.Errorf("the exploration has the reason %q; want some runs", result.Reason)
		}
	}
}

// runShrink runs a campaign on a broken controller, and shrinks its failures in pods. It kills the
// first of these pods, so that another pod continues its search.
func (f *fleetCluster) runShrink() {
	f.Helper()
	const broken, image = "broken", "localhost/gauntlet-fleet:broken"
	program := f.program
	f.program = f.buildBroken()
	archive := f.buildImage("--reference=" + image)
	f.program = program
	if err := errors.Join(f.kind.Workers()[0].LoadImage(f.Context(), archive), os.Remove(archive)); err != nil {
		f.Fatal(err)
	}
	f.runAndCollect(1, "run", broken, "--provider=virtual", "--profile=calm", "--seeds=1..4", "--per-pod=4", "--image="+image,
		"--claim="+claim, "--cpu=250m", "--memory=1Gi", "--disk=1Gi")
	shrunk := broken + "-shrink"
	shrink := f.start("fleet", "shrink", broken)
	f.await("a pod to save the journal of a search", func() error {
		journals, err := filepath.Glob(filepath.Join(f.store, shrunk, "*", "*", "artifacts", "journals", "*"))
		if err == nil && len(journals) == 0 {
			err = errors.New("no journal")
		}
		return err
	})
	for _, pod := range f.runningPods() {
		if err := f.sigkill(&pod); err != nil {
			f.Error(err)
		}
		f.Logf("killed pod %s", pod.Name)
	}
	if code := shrink.wait(); code != 0 {
		f.Errorf("fleet shrink: status %d, want 0; output:\n%s", code, shrink.output)
	}
	collect := f.start("fleet", "collect", shrunk, "--store="+f.store, "--out="+f.dir)
	if code := collect.wait(); code != 1 {
		f.Errorf("fleet collect %s: status %d, want 1; output:\n%s", shrunk, code, collect.output)
	}
	f.Logf("%s", collect.output)
	smallest, err := filepath.Glob(filepath.Join(f.dir, "fleet-"+shrunk, "runs", "*", "shrink", "smallest.yaml"))
	if err != nil || len(smallest) == 0 {
		f.Errorf("smallest scenarios %q, %v; want at least one", smallest, err)
	}
	for _, file := range smallest {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Error(err)
		}
		f.Logf("%s:\n%s", file, content)
	}
}

// buildBroken builds controllers with a bug. It returns the path of a gauntlet executable that runs
// them as the subject "ours".
func (f *fleetCluster) buildBroken() string {
	f.Helper()
	const id = "own-no-surge-limit"
	mutants := library.All()
	at := slices.IndexFunc(mutants, func(m mutant.Mutant) bool { return m.ID == id })
	if at < 0 {
		f.Fatalf("there is no mutant %s", id)
	}
	dir := filepath.Join(f.dir, "broken")
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(f.program))); err != nil {
		f.Fatal(err)
	}
	for name, virtual := range map[string]bool{"workload-controller-manager": false, "gauntlet-virtual": true} {
		builder := mutant.Builder{Tree: "../../..", Virtual: virtual, Dir: filepath.Join(f.dir, "mutants", name)}
		built, err := builder.Build(f.Context(), &mutants[at])
		if err == nil {
			err = os.Rename(built, filepath.Join(dir, name))
		}
		if err != nil {
			f.Fatal(err)
		}
	}
	return filepath.Join(dir, "gauntlet")
}

// runAndCollect starts a campaign with a command of gauntlet fleet, waits for its end and collects the
// results. The status of the collection must be at most statusMax.
func (f *fleetCluster) runAndCollect(statusMax int, command, name string, args ...string) {
	f.Helper()
	run := f.start(append([]string{"fleet", command, name}, args...)...)
	if code := run.wait(); code != 0 {
		f.Errorf("fleet %s %s: status %d, want 0; output:\n%s", command, name, code, run.output)
	}
	collect := f.start("fleet", "collect", name, "--store="+f.store, "--out="+f.dir)
	if code := collect.wait(); code > statusMax {
		f.Errorf("fleet collect %s: status %d, want at most %d; output:\n%s", name, code, statusMax, collect.output)
	}
	f.Logf("%s", collect.output)
}
