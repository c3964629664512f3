package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

// TestFleetRunRefuses checks that "gauntlet fleet run" refuses campaigns that the pods cannot run.
// It must send no request for them.
func TestFleetRunRefuses(t *testing.T) {
	for _, test := range []struct{ flag, want string }{
		{"--claim=results --subjects=exec:/bin/true", `--subjects: found "exec:/bin/true"; expected ours or upstream, which are in the image`},
		{"--claim=results --seeds=7..3", "--seeds: found 7..3; the first seed must be at least 1"},
		{"--claim=results --seeds=10", `--seeds: found "10"; expected a range: 1..10 for the seeds 1 to 10, or 10..10 for one seed`},
		{"--claim=results --seeds=7-9", `--seeds: found "7-9"; expected a range such as 1..1000`},
		{"--claim=results --seeds=1..18446744073709551615", "--seeds: found 1..18446744073709551615; expected seeds of at most 18446744073709551614"},
		{"--claim=results --seeds=1..18446744073709551616", "expected seeds of at most 18446744073709551614"},
		{"--claim=results --deadline=10ms", "--deadline=10ms: expected 0, or 1s to 596523h14m7s"},
		{"--claim=results --keep-job=1500ms", "--keep-job=1.5s: expected whole seconds"},
		{"--claim=results --keep-job=999999h", "--keep-job=999999h0m0s: expected 0, or 1s to 596523h14m7s"},
		{"--claim=results --provider=kind", "--provider=kind: expected embedded or virtual"},
		{"--claim=results --scenario=burstt", "burstt"},
		{"--claim=results --scenario=./fleet_test.go", "found a file; expected a built-in scenario"},
		{"--claim=results --scenario=frozen-leader --provider=virtual", "freeze: not supported by provider virtual"},
		{"--claim=results --scenario=node-power-cut", "not supported by provider embedded"},
		{"--claim=results --parallelism=0", "--parallelism=0: expected 1 to 10000"},
		{"", "set exactly one: --claim for a PersistentVolumeClaim, or --store for a bucket"},
		{"--claim=results --store=s3://bucket", "set exactly one: --claim for a PersistentVolumeClaim, or --store for a bucket"},
		{"--store=ftp://bucket", `--store: found "ftp://bucket"; expected s3://BUCKET`},
		{"--store=s3://key:secret@bucket", "found a user in the URL of bucket bucket"},
		{"--claim=C_C", `--claim: found "C_C"; expected a name of lower-case letters`},
		{"--store=s3://bucket --store-secret=A_B", `--store-secret: found "A_B"; expected a name`},
		{"--claim=results --service-account=A_B", `--service-account: found "A_B"; expected a name`},
		{"--claim=results --priority-class=A_B", `--priority-class: found "A_B"; expected a name`},
		{"--claim=results --queue=A_B", `--queue: found "A_B"; expected a name`},
		{"--claim=results --namespace=A_B", `--namespace: found "A_B"; expected a name`},
		{"--claim=results --image=a:b:c", `--image: found "a:b:c"; expected the reference of an image`},
		{"--claim=results --image=..", `--image: found ".."; expected the reference of an image`},
		{"--claim=results --cpu=1e99", `--cpu: found "1e99"; expected a quantity from 1m to 10k`},
		{"--claim=results --memory=500m", `--memory: found "500m"; expected a quantity from 1Mi to 1Pi`},
		{"--claim=results --node-selector==x", `--node-selector: found "=x"; expected KEY=VALUE`},
		{"--claim=results --node-selector=zone=a --node-selector=zone=b", `--node-selector: found the key "zone" twice; give each key only once`},
		{"--claim=results --tolerations=" + file(t, "[]"), "found no toleration; expected a list with at least one"},
		{"--claim=results --tolerations=" + file(t, "- {key: a, operator: Foo}"), `[0].operator: found "Foo"; expected Equal or Exists`},
		{"--claim=results --tolerations=" + file(t, "- {key: a, effect: Foo}"), `[0].effect: found "Foo"; expected NoSchedule, PreferNoSchedule or NoExecute`},
		{"--claim=results --tolerations=" + file(t, "- {operator: Equal}"), `[0].key: found ""; expected a key, or the operator Exists`},
		{"--claim=results --tolerations=" + file(t, "- {operator: Exists}\n---\n- {operator: Equal}"), "found a second YAML document; expected one document per file"},
		{"--claim=results --seeds=1..900000000 --per-pod=10000", "--seeds: found 900000000 seeds in 1..900000000; expected at most 10000000"},
		{"--claim=results --store-secret=keys", "--store-secret has an effect only with --store"},
		{"--claim=results --prefer-uncovered=" + file(t, "{"), "--prefer-uncovered: "},
		{"--claim=results --scenario=burst --prefer-uncovered=" + file(t, `{"format":1}`), "apply to generated scenarios only"},
	} {
		_, err := command(t, append([]string{"fleet", "run", "night", "--dry-run"}, strings.Fields(test.flag)...)...)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v; want %q", test.flag, err, test.want)
		}
	}
}

// TestFleetExplorePlan checks that each scenario with each subject is an index of the Job, and which
// campaigns are refused.
func TestFleetExplorePlan(t *testing.T) {
	job := dryRun(t, strings.Fields("fleet explore places rollout burst --subjects=ours,upstream --at=crash,stale --budget=1h --claim=results"))
	if n := *job.Spec.Completions; n != 4 {
		t.Errorf("%d indexes; want 4", n)
	}
	args := strings.Join(job.Spec.Template.Spec.Containers[0].Args, " ")
	for _, want := range []string{`{"seed":1,"subject":"upstream","scenario":"burst"}`, "--at=crash,stale", "--budget=1h0m0s"} {
		if !strings.Contains(args, want) {
			t.Errorf("arguments %s; want %s", args, want)
		}
	}
	for flag, want := range map[string]string{
		"rollout rollout":      "found the same unit of work twice: seed 1, subject ours, scenario rollout",
		"rollout --subjects=x": `--subjects: found "x"`,
		"./fleet_test.go":      `scenario "./fleet_test.go": found a file; expected a built-in scenario`,
		"rollout --budget=-1s": "--budget=-1s",
		"node-power-cut":       "not supported by provider embedded",
	} {
		_, err := command(t, strings.Fields("fleet explore places "+flag+" --claim=results --dry-run")...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want %q", flag, err, want)
		}
	}
}

// dryRun returns the Job that a command prints with --dry-run.
func dryRun(t *testing.T, args []string) *batchv1.Job {
	t.Helper()
	out, err := command(t, append(slices.Clone(args), "--dry-run")...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict([]byte(out), &job); err != nil {
		t.Fatal(err)
	}
	return &job
}

// TestFleetNames checks that commands for a fleet refuse wrong names before any request. The
// kubeconfig does not exist, so a request would have another error.
func TestFleetNames(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	for line, want := range map[string]string{
		"status a/b":                                  `name of the campaign: found "a/b"`,
		"delete a/b":                                  `name of the campaign: found "a/b"`,
		"shrink a/b --claim=c":                        `name of the campaign: found "a/b"`,
		"shrink n --name=n --claim=c":                 "--name=n: found the name of the campaign; expected another name",
		"nightly S --claim=c --dry-run":               `series: found "S"`,
		"nightly s --claim=c --mount=/a/.. --dry-run": "--mount=/a/..: found the root directory",
	} {
		_, err := command(t, append([]string{"fleet"}, strings.Fields(line)...)...)
		if unfinished := new(unfinishedError); err == nil || !strings.Contains(err.Error(), want) || errors.As(err, &unfinished) {
			t.Errorf("%s: error %v; want wrong usage with %q", line, err, want)
		}
	}
}

// TestFleetWorkerRefuses checks that a worker starts no run if its results would be lost.
func TestFleetWorkerRefuses(t *testing.T) {
	t.Setenv("JOB_COMPLETION_INDEX", "0")
	for _, test := range []struct{ pod, store, want string }{
		{"pod-0", filepath.Join(t.TempDir(), "absent"), "no such file or directory; expected the directory of the results"},
		{"../evil", t.TempDir(), `environment variable POD_NAME: found "../evil"; expected the name of a pod`},
	} {
		t.Setenv("POD_NAME", test.pod)
		_, err := command(t, "fleet", "worker", "--name=n", "--seeds=1", "--provider=virtual", "--store="+test.store)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("pod %s: error %v; want %q", test.pod, err, test.want)
		}
	}
}
