package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/internal/campaign"
	"github.com/kube-gauntlet/gauntlet/harness/internal/fleet"
	"github.com/kube-gauntlet/gauntlet/harness/internal/generate"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// nightlyManifests are the manifests that the Helm chart renders, with different values.
var nightlyManifests = []string{
	"../../../examples/fleet/nightly/nightly.yaml",
	"../../internal/fleet/testdata/chart-all.yaml",
	"../../internal/fleet/testdata/chart-claim.yaml",
}

// nightManifest has what a test reads from the manifests of a CronJob.
type nightManifest struct {
	cronJob     batchv1.CronJob
	role        rbacv1.Role
	tolerations string // the content of the file for --tolerations; empty without one
}

// readNight decodes a file with the manifests of a CronJob.
func readNight(t *testing.T, path string) *nightManifest {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := &nightManifest{}
	var configMap corev1.ConfigMap
	targets := map[string]any{"CronJob": &n.cronJob, "Role": &n.role, "ConfigMap": &configMap}
	for documents := utilyaml.NewYAMLReader(bytesReader(file)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var kind struct{ Kind string }
		if err := errors.Join(err, yaml.Unmarshal(document, &kind)); err != nil {
			t.Fatal(err)
		}
		if target, ok := targets[kind.Kind]; ok {
			if err := yaml.UnmarshalStrict(document, target); err != nil {
				t.Fatal(err)
			}
		}
	}
	n.tolerations = configMap.Data["tolerations.yaml"]
	return n
}

// TestNightlyManifests checks that the CronJob of the Helm chart starts the same Job as "gauntlet fleet
// run". All containers must agree about the store.
func TestNightlyManifests(t *testing.T) {
	for _, path := range nightlyManifests {
		night := readNight(t, path)
		pod := night.cronJob.Spec.JobTemplate.Spec.Template.Spec
		tolerations := filepath.Join(t.TempDir(), "tolerations.yaml")
		if err := os.WriteFile(tolerations, []byte(night.tolerations), 0o644); err != nil {
			t.Fatal(err)
		}
		var nightly, run []string
		store := "/store"
		for _, arg := range pod.InitContainers[0].Args {
			arg = strings.NewReplacer("$(JOB_NAME)", "night-29876543", "/tolerations/tolerations.yaml", tolerations).Replace(arg)
			nightly = append(nightly, arg)
			switch flag, value, _ := strings.Cut(arg, "="); flag {
			case "--name", "--count", "--out":
			case "--store":
				store = value
				fallthrough
			default:
				run = append(run, arg)
			}
		}
		created := dryRun(t, nightly)
		var c fleet.Campaign
		if err := json.Unmarshal([]byte(created.Annotations["gauntlet/campaign"]), &c); err != nil {
			t.Fatal(err)
		}
		run[1], run[2] = "run", "night-29876543-run"
		if diff := cmp.Diff(dryRun(t, append(run, "--seeds="+c.Seeds.String())), created); diff != "" {
			t.Errorf("%s: job (-fleet run +CronJob):\n%s", path, diff)
		}
		worker := created.Spec.Template.Spec
		if worker.Containers[0].Image != pod.InitContainers[0].Image {
			t.Errorf("%s: image %s of the campaign; want that of the CronJob, %s", path, worker.Containers[0].Image, pod.InitContainers[0].Image)
		}
		if diff := cmp.Diff(worker.SecurityContext, pod.SecurityContext); diff != "" {
			t.Errorf("%s: security context (-campaign +CronJob):\n%s", path, diff)
		}
		if args := pod.Containers[0].Args; !slices.Contains(args, "--store="+store) {
			t.Errorf("%s: arguments %q; want the store %s", path, args, store)
		}
	}
}

// bytesReader returns a buffered reader, which the reader of YAML documents needs.
func bytesReader(content []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(content)) }

// TestNightlySeeds checks that nights have different seeds, and each night the given number.
func TestNightlySeeds(t *testing.T) {
	begin := time.Date(2026, 11, 27, 1, 30, 0, 0, time.UTC)
	seedsAt := func(now time.Time) (seeds fleet.Seeds, name string) {
		t.Helper()
		var f fleetNightlyFlags
		cmd := &cobra.Command{}
		f.fleetCampaignFlags.add(cmd.Flags())
		f.fleetPodFlags.add(cmd.Flags())
		f.count, f.pods.Claim = 1000, "results"
		if _, err := f.plan(cmd, "nightly", now); err != nil {
			t.Fatal(err)
		}
		return f.campaign.Seeds, f.campaign.Name
	}
	first, name := seedsAt(begin)
	if name != "nightly-20261127" || first.Last-first.First != 999 {
		t.Errorf("campaign %s, seeds %s; want nightly-20261127 and 1000 seeds", name, first)
	}
	if again, _ := seedsAt(begin.Add(10 * time.Minute)); again != first {
		t.Errorf("seeds %s after 10 minutes; want %s", again, first)
	}
	if next, _ := seedsAt(begin.Add(time.Hour)); next.First != first.Last+1 {
		t.Errorf("seeds %s after an hour; want those that follow %s", next, first)
	}
}

// TestNightly runs two nights of a series on a cluster that only has Jobs. The first night finds a new
// failure group. After it is acknowledged, the second night finds none.
func TestNightly(t *testing.T) {
	store, out := fleet.Directory(t.TempDir()), t.TempDir()
	for n, name := range []string{"night-1-run", "night-2-run"} {
		f := fleetNightlyFlags{out: out}
		f.campaign = fleet.Campaign{Name: name, Seeds: fleet.Seeds{First: 1, Last: 2}, PerPod: 2, Subjects: []string{"ours"}, Provider: "embedded", Profile: "calm"}
		job := fleet.Job(&f.campaign, &fleet.Pods{Claim: "results", Parallelism: 1})
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		cmd.SetOut(io.Discard)
		var progress bytes.Buffer
		cmd.SetErr(&progress)
		cluster := endedCluster()
		for _, want := range []string{"created job", "following the existing job"} {
			progress.Reset()
			if err := f.follow(cmd, cluster, job); err != nil || !strings.Contains(progress.String(), want) {
				t.Fatalf("output %q, error %v; want %s", progress.String(), err, want)
			}
		}
		checkRole(t, cluster.Client.(*fake.Clientset).Actions())
		failingWorker(t, f.campaign, store)
		if err := f.collect(cmd, "nightly", store); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(out, nightName)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var night fleet.Night
		if err := json.Unmarshal(content, &night); err != nil {
			t.Fatal(err)
		}
		if night.Runs != 2 || night.Missing != 0 || night.Campaign != name || len(night.NewGroups) != 1-n {
			t.Errorf("night %d: %s; want 2 runs, and %d new groups", n+1, content, 1-n)
		}
		if _, err := os.Stat(filepath.Join(night.Report, "failures.md")); err != nil {
			t.Error(err)
		}
		if _, err := command(t, "fleet", "acknowledge", path, "--store="+string(store)); err != nil {
			t.Error(err)
		}
	}
}

// TestAcknowledgeRefuses checks that "gauntlet fleet acknowledge" refuses names that lead out of the
// store. It must write nothing.
func TestAcknowledgeRefuses(t *testing.T) {
	for _, test := range []struct{ night, want string }{
		{`{"newGroups":[{"id":"1"}]}`, `series: found ""`},
		{``, `found an empty file`},
		{`[]`, "found array at the top; expected an object"},
		{`{"series":"s","newGroups":[{"id":"1"},{"id":"1"}]}`, `newGroups[1].id: found "1" twice`},
		{`{"series":"../../x","newGroups":[{"id":"1"}]}`, `series: found "../../x"; expected at most 200 letters`},
		{`{"series":"s","newGroups":[{"id":"1"},{"id":"../../../evil"}]}`, `newGroups[1].id: found "../../../evil"; expected 1 to 64 hexadecimal digits`},
		{`{"series":"s","newGroups":[{"id":""}]}`, `newGroups[0].id: found ""; expected 1 to 64 hexadecimal digits`},
	} {
		dir := t.TempDir()
		store := filepath.Join(dir, "store")
		if err := os.Mkdir(store, 0o755); err != nil {
			t.Fatal(err)
		}
		path := file(t, test.night)
		_, err := command(t, "fleet", "acknowledge", path, "--store="+store)
		if err == nil || !strings.Contains(err.Error(), path+`: expected a file that "gauntlet fleet nightly" wrote: `+test.want) || exitCode(exitPass, err) != exitUsage {
			t.Errorf("%s: error %v; want %q and the exit status %d", test.night, err, test.want, exitUsage)
		}
		for _, name := range []string{dir, store} {
			if entries, err := os.ReadDir(name); err != nil || len(entries) > 1 || name == store && len(entries) > 0 {
				t.Errorf("%s: found the files %v, error %v; want no new file", test.night, entries, err)
			}
		}
	}
}

// endedCluster returns a cluster without real controllers, whose Jobs are complete at once.
func endedCluster() *fleet.Cluster {
	client := fake.NewClientset()
	client.PrependReactor("create", "jobs", func(action k8stesting.Action) (bool, runtime.Object, error) {
		job := action.(k8stesting.CreateAction).GetObject().(*batchv1.Job)
		job.Status.Succeeded, job.Status.Active = *job.Spec.Completions, 1 // Status then lists the pods
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		return false, nil, nil
	})
	return &fleet.Cluster{Client: client, Namespace: "chaos"}
}

// checkRole checks that the Role of the Helm chart permits what a night requests, and nothing else.
func checkRole(t *testing.T, actions []k8stesting.Action) {
	t.Helper()
	requested, permitted := map[string]bool{}, map[string]bool{}
	for _, action := range actions {
		requested[action.GetResource().Group+"/"+action.GetResource().Resource+"/"+action.GetVerb()] = true
	}
	for _, rule := range readNight(t, nightlyManifests[0]).role.Rules {
		for _, verb := range rule.Verbs {
			permitted[rule.APIGroups[0]+"/"+rule.Resources[0]+"/"+verb] = true
		}
	}
	if diff := cmp.Diff(permitted, requested); diff != "" {
		t.Errorf("permissions (-of the Role +requested):\n%s", diff)
	}
}

// failingWorker makes the runs of a campaign. Each run fails in the same way.
func failingWorker(t *testing.T, c fleet.Campaign, store fleet.Store) {
	t.Helper()
	w := fleet.Worker{Campaign: c, Attempt: "pod", Store: store, Clock: clock.RealClock{}}
	w.Prepare = func(u fleet.Unit) (campaign.Attempt, error) {
		return func(context.Context) (*reports.Run, error) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "scenario.yaml"), []byte("name: x\n"), 0o600); err != nil {
				return nil, err
			}
			return &reports.Run{
				Scenario: generate.ScenarioName(c.Profile, u.Seed), Subject: u.Subject, Provider: c.Provider, Seed: u.Seed, Directory: dir, Verdict: check.Fail,
				Results: []check.Result{{Check: "max-surge", Verdict: check.Fail, Reason: "found 5 pods; expected 4"}},
			}, nil
		}, nil
	}
	if err := w.Work(t.Context()); err != nil {
		t.Fatal(err)
	}
}
