package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// examples is the directory of the manifests that people apply without "gauntlet fleet run".
const examples = "../../../examples/fleet"

// exampleJob returns the Job in the examples, which "gauntlet fleet run --dry-run" prints.
func exampleJob() *batchv1.Job {
	return Job(
		&Campaign{Name: "nightly", Seeds: Seeds{First: 1, Last: 1000}, PerPod: 50, Subjects: []string{"ours"}, Profile: "calm", Provider: "embedded"},
		&Pods{
			Image: "registry.example/gauntlet-fleet:v1", Claim: "results", Parallelism: 4, Deadline: 8 * time.Hour,
			Retries: 2, Keep: 24 * time.Hour, CPU: DefaultCPU, Memory: DefaultMemory, Disk: DefaultDisk,
		})
}

// podMonitor returns the PodMonitor of the Prometheus operator for the pods of all campaigns.
func podMonitor() map[string]any {
	pods := exampleJob().Spec.Template
	labels := maps.Clone(pods.Labels)
	delete(labels, campaignLabel)
	return map[string]any{
		"apiVersion": "monitoring.coreos.com/v1",
		"kind":       "PodMonitor",
		"metadata":   map[string]any{"name": "gauntlet-fleet", "labels": labels},
		"spec": map[string]any{
			"selector":            map[string]any{"matchLabels": labels, "matchExpressions": []any{map[string]any{"key": campaignLabel, "operator": "Exists"}}},
			"podMetricsEndpoints": []any{map[string]any{"port": pods.Spec.Containers[0].Ports[0].Name}},
		},
	}
}

// TestKustomize checks the kustomization in the examples. It must have the Job of "gauntlet fleet
// run", and a PodMonitor for its pods. With -update, the test writes both.
func TestKustomize(t *testing.T) {
	dir := filepath.Join(examples, "kustomize")
	want := map[string]any{"job.yaml": exampleJob(), "pod-monitor.yaml": podMonitor()}
	for name, object := range want {
		content, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if diff := cmp.Diff(string(content), string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, object := range built.Resources() {
		kinds[object.GetKind()] = true
		if object.GetKind() != "Job" {
			continue
		}
		content, err := object.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		var job batchv1.Job
		if err := yaml.UnmarshalStrict(content, &job); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(exampleJob(), &job); diff != "" {
			t.Errorf("built job (-want +got):\n%s", diff)
		}
	}
	if want := map[string]bool{"Job": true, "PodMonitor": true}; !maps.Equal(kinds, want) {
		t.Errorf("kinds %v; want %v", kinds, want)
	}
}

// TestNightlyKustomize checks that the kustomization of a CronJob has one namespace, also in its
// RoleBinding.
func TestNightlyKustomize(t *testing.T) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(examples, "nightly"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, object := range built.Resources() {
		kinds[object.GetKind()] = true
		namespaces := []string{object.GetNamespace()}
		if object.GetKind() == "RoleBinding" {
			subject, err := object.GetFieldValue("subjects.0.namespace")
			if err != nil {
				t.Fatal(err)
			}
			namespaces = append(namespaces, fmt.Sprint(subject))
		}
		for _, namespace := range namespaces {
			if namespace != "gauntlet" {
				t.Errorf("%s: namespace %s; want gauntlet", object.GetKind(), namespace)
			}
		}
	}
	if want := map[string]bool{"CronJob": true, "ServiceAccount": true, "Role": true, "RoleBinding": true}; !maps.Equal(kinds, want) {
		t.Errorf("kinds %v; want %v", kinds, want)
	}
}

// TestDashboard checks that the dashboard queries only metrics and labels that a worker has, and
// each metric of a worker.
func TestDashboard(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(examples, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(content) {
		t.Error("the dashboard is not valid JSON")
	}
	metrics := NewMetrics(&Campaign{Name: "nightly"})
	metrics.plan(1)
	metrics.add(reports.Run{Subject: "ours", Verdict: check.Pass})
	families, err := metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	labels := []string{"le"}
	var exported []string
	for _, family := range families {
		exported = append(exported, family.GetName())
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
	}
	var queried []string
	for _, name := range regexp.MustCompile(`gauntlet_[a-z_]+`).FindAllString(string(content), -1) {
		queried = append(queried, regexp.MustCompile(`_bucket$`).ReplaceAllString(name, ""))
	}
	slices.Sort(queried)
	if diff := cmp.Diff(exported, slices.Compact(queried)); diff != "" {
		t.Errorf("metrics (-exported +queried):\n%s", diff)
	}
	for _, match := range regexp.MustCompile(`by \(([a-z, ]+)\)`).FindAllStringSubmatch(string(content), -1) {
		for _, label := range regexp.MustCompile(`[a-z]+`).FindAllString(match[1], -1) {
			if !slices.Contains(labels, label) {
				t.Errorf("label %s in the dashboard; want one of %q", label, labels)
			}
		}
	}
}
