package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// stuck is a run that cannot converge: no pod ever becomes ready.
const stuck = `
name: stuck
description: pods that start long after the run
cluster: {podStartDelay: 1m}
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 3}
    await: {until: scaled}
faults:
  - api-error: {verb: create, resource: pods, code: 500, every: 3}
settle: {within: 2s, quiet: 1s}
`

// TestDiagnose: a run that has not converged leaves what is pending, the objects,
// and what the subject's goroutines did; nothing of it is a credential.
func TestDiagnose(t *testing.T) {
	for _, target := range []subject.Target{subject.Ours, subject.Upstream} {
		t.Run(target.String(), func(t *testing.T) {
			judged, err := Run(t.Context(), options(parse(t, stuck), target, t.TempDir(), func(m string) { t.Log(m) }))
			if err != nil {
				t.Fatal(err)
			}
			for _, result := range judged.Results {
				if result.Check == "alive" && result.Verdict != check.Pass {
					t.Errorf("alive: %s (%s), want pass: the subject was ended by the run", result.Verdict, result.Reason)
				}
			}
			for name, part := range map[string]string{
				"diagnostics/pending.txt":      "0 of 3 pods ready",
				"diagnostics/replicasets.yaml": "name: web",
				"diagnostics/pods.yaml":        "generateName: web-",
				"diagnostics/events.yaml":      "SuccessfulCreate",
				"logs/subject-0.log":           "goroutine 1 ",
				"report.html":                  "0 of 3 pods ready",
			} {
				content, err := os.ReadFile(filepath.Join(judged.Directory, name))
				if err != nil || !strings.Contains(string(content), part) {
					t.Errorf("%s: error %v, want %q in it", name, err, part)
				}
			}
			nothingLeft(t, judged.Directory)
			noCredentials(t, judged.Directory)
		})
	}
}

func TestCredential(t *testing.T) {
	for text, want := range map[string]bool{
		"-----BEGIN EC PRIVATE KEY-----":                       true,
		"client-key-data: LS0tLS1CRUdJTiBFQyBQUklWQVRF":        true,
		`"eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJrdWJlcm5ldGVz.c2ln"`: true,
		"authorization: Bearer abc":                            true,
		"kind: Secret":                                         true,
		`{"kind":"Secret"}`:                                    true,
		"kind: SecretsStore":                                   false,
		"container \"pause\" is ready":                         false,
	} {
		if got := credential.MatchString(text); got != want {
			t.Errorf("%q is taken for a credential: %t, want %t", text, got, want)
		}
	}
}
