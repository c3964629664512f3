package library

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

func TestAll(t *testing.T) {
	var names []string
	for _, s := range All() {
		names = append(names, s.Name)
	}
	for _, want := range []string{"burst", "burst-down", "everything", "late-delete", "rollout", "watch-delay-pods"} {
		if !slices.Contains(names, want) {
			t.Errorf("scenario %s is missing from %v", want, names)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("scenarios are not in order: %v", names)
	}
}

func TestFilesAreNamedAfterScenarios(t *testing.T) {
	entries, err := files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if s := load(entry.Name()); s.Name+".yaml" != entry.Name() {
			t.Errorf("%s holds scenario %s", entry.Name(), s.Name)
		}
	}
}

// TestScenariosAreShort checks that the faults of each scenario end within 20 seconds. Every
// fault must have the field for or until. Otherwise the end of a short workload could end the
// fault before the fault changes anything.
func TestScenariosAreShort(t *testing.T) {
	const chaosMax = 20 * time.Second
	for _, s := range All() {
		var users time.Duration
		for _, step := range s.Workload {
			users += step.After
		}
		if users > chaosMax {
			t.Errorf("%s: the steps of its users take %s; expected at most %s", s.Name, users, chaosMax)
		}
		if len(s.Faults) == 0 || len(s.Exercises) == 0 {
			t.Errorf("%s: has %d faults and exercises %d checks; expected some", s.Name, len(s.Faults), len(s.Exercises))
		}
		for i, fault := range s.Faults {
			if fault.For == 0 && fault.Until == nil || fault.From+fault.For > chaosMax {
				t.Errorf("%s: fault %d lasts from %s for %s; expected an end within %s", s.Name, i, fault.From, fault.For, chaosMax)
			}
		}
	}
}

// TestBothKinds checks that a scenario with several owners of pods has both ReplicaSets and
// ReplicationControllers. Both controllers share one implementation. A Deployment may adopt ReplicaSets, so
// the test skips scenarios with Deployments.
func TestBothKinds(t *testing.T) {
	for _, s := range All() {
		kinds := map[scenario.Kind]int{}
		for _, step := range s.Workload {
			if create, ok := step.Operation.(*scenario.Create); ok {
				kinds[create.Kind]++
			}
		}
		owners := kinds[scenario.ReplicaSet] + kinds[scenario.ReplicationController]
		if owners > 1 && kinds[scenario.Deployment] == 0 && (kinds[scenario.ReplicaSet] == 0 || kinds[scenario.ReplicationController] == 0) {
			t.Errorf("%s: its owners are of one kind only: %v", s.Name, kinds)
		}
	}
}

func TestFind(t *testing.T) {
	if s, ok := Find("burst"); !ok || s.Name != "burst" {
		t.Errorf("Find(burst) = %v, %v", s, ok)
	}
	if s, ok := Find("brust"); ok {
		t.Errorf("Find(brust) = %v", s)
	}
}

// TestFindOldNames checks that Find accepts each old name of a renamed scenario, with a warning.
func TestFindOldNames(t *testing.T) {
	for old, name := range map[string]string{"moments": "triggers", "obstacles": "admission", "strays": "orphaned-pods"} {
		s, ok := Find(old)
		if !ok || s.Name != name {
			t.Errorf("Find(%s) = %v, %v", old, s, ok)
			continue
		}
		want := []string{scenario.RenameWarning(old, name)}
		if diff := cmp.Diff(want, s.Warnings()); diff != "" {
			t.Errorf("warnings of %s (-want +got):\n%s", old, diff)
		}
	}
}

// TestAllIsFresh checks that a change of a scenario from All does not affect the results of
// later calls.
func TestAllIsFresh(t *testing.T) {
	All()[0].Seed = 7
	if got := All()[0].Seed; got != 0 {
		t.Errorf("found seed %d of another caller's scenario; expected 0", got)
	}
}
