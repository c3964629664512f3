package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
)

// ours is the path of our controllers, which `make build` builds.
var ours = filepath.Join("..", "..", "bin", "workload-controller-manager")

// This program runs a scenario and reads the verdict of each check.
func ExampleRun() {
	out, err := os.MkdirTemp("", "gauntlet-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(out)
	burst, err := scenario.Parse("burst.yaml", []byte(`
name: burst
description: some creates of pods fail
workload:
  - create: {kind: ReplicaSet, name: web, replicas: 6}
    await: {until: ready}
faults:
  - api-error: {verb: create, resource: pods, code: 500, every: 3}
settle: {within: 30s, quiet: 1s}
`))
	if err != nil {
		panic(err)
	}
	result, err := run.Run(context.Background(), run.Options{Scenario: burst, Target: subject.Ours, Ours: ours, Out: out})
	if err != nil {
		panic(err)
	}
	for _, r := range result.Results {
		if r.Check == "slow-start" {
			fmt.Println(r.Check, r.Verdict)
		}
	}
	fmt.Println(result.Verdict)
	// Output:
	// slow-start pass
	// pass
}
