package inputfile_test

import (
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
)

func TestMistaken(t *testing.T) {
	for _, test := range []struct{ text, expected, want string }{
		{"<!DOCTYPE html>\n<html>", "a scenario", "found an HTML page; expected a scenario (a browser shows it, such as report.html of a run; from a web site, download the file itself)"},
		{`{"seq":1,"at":5}`, "a baseline", "found the history of a run; expected a baseline (gauntlet check reads the directory of the run)"},
		{"{\n  \"schema\": 2,\n  \"verdict\": \"pass\"", "a scenario", "found the verdicts of runs; expected a scenario"},
		{"<?xml version='1.0'?>", "a scenario", "found XML; expected a scenario"},
		{"name: a\nworkload: []\n", "a baseline", "found a scenario; expected a baseline (gauntlet run reads it)"},
		{"subject: {exec: a}\n", "a baseline", "found a subject file; expected a baseline (pass it with the flag --subject)"},
		{"apiVersion: v1\nkind: Config\nclusters: []\nusers: []\n", "a baseline", "found a kubeconfig; expected a baseline (pass it with the flag --kubeconfig)"},
		{"apiVersion: v1\nkind: Config\nclusters: []\nusers: []\n", "a kubeconfig", ""},
		{"apiVersion: v1\nkind: Pod\n", "a kubeconfig", "found a Kubernetes manifest"},
		{"{\n  \"series\": \"a\",\n  \"campaign\": \"a-1\"", "a baseline", "found a file that \"gauntlet fleet nightly\" wrote; expected a baseline"},
		{"apiVersion: v2\nname: a\nversion: 1.0.0\n", "a Kubernetes manifest", "found the Chart.yaml of a Helm chart; expected a Kubernetes manifest (render the chart with helm template)"},
		{"nameReference:\n- kind: Service\n", "a Kubernetes manifest", "found a configuration of kustomize"},
		{"annotations:\n  operators.operatorframework.io.bundle.package.v1: a\n", "a Kubernetes manifest", "found the annotations of an OLM bundle"},
		{"domain: a.b\nlayout:\n- go.kubebuilder.io/v4\nprojectName: a\n", "a Kubernetes manifest", "found the PROJECT file of kubebuilder"},
		{"format: 3\nworkload: 88f6a5555dfaa38e\n", "a file", ""},
		{"effects: {}\nend: {}\n", "a baseline", ""},
		{"name: a\nworkload: []\n", "a scenario", ""},
	} {
		err := inputfile.Mistaken([]byte(test.text), test.expected)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("Mistaken(%q, %q) = %v; want %s", test.text, test.expected, err, test.want)
		}
	}
	if err := inputfile.MistakenRunFile([]byte("workload: []"), "a subject file"); err != nil {
		t.Errorf("a scenario is no file of a run: %v", err)
	}
}
