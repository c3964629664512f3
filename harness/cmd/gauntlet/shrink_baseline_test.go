package main

import (
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// TestWorkloadDigest checks that scenarios with the same workload share a baseline, whatever their
// faults are. A scenario with another workload must have another baseline.
func TestWorkloadDigest(t *testing.T) {
	digest := func(text string) string {
		t.Helper()
		s, err := scenario.Parse("x.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		sum, err := (&shrinkFlags{}).workloadDigest(explore.WithoutFaults(s))
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	const workload = "workload:\n  - create: {kind: ReplicaSet, name: web, replicas: 3}\n"
	first := digest("name: a\ndescription: x\n" + workload + "faults:\n  - watch-stall: {resource: pods}\n")
	if same := digest("name: b\ndescription: y\n" + workload); same != first {
		t.Errorf("found the digests %s and %s for the same workload; want one", first, same)
	}
	if other := digest("name: a\ndescription: x\nworkload:\n  - create: {kind: ReplicaSet, name: web, replicas: 2}\n"); other == first {
		t.Errorf("found the digest %s for two workloads; want two", other)
	}
}
