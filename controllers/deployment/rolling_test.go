package deployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var unexportedFields = cmp.AllowUnexported(change{})

// sizes returns the sizes of ReplicaSets. A pair contains the replicas and the available
// replicas of one ReplicaSet. The last pair belongs to the new ReplicaSet.
func sizes(pairs ...[2]int) replicaSetSizes {
	f := replicaSetSizes{newIndex: len(pairs) - 1}
	for _, p := range pairs {
		f.sizes = append(f.sizes, size{replicas: p[0], available: p[1], desiredReplicas: none})
	}
	return f
}

// withoutNew returns the sizes f, but marks no ReplicaSet as the new one. All ReplicaSets are then
// old.
func withoutNew(f replicaSetSizes) replicaSetSizes { f.newIndex = none; return f }

func TestScaleUpNew(t *testing.T) {
	tests := []struct {
		name string
		l    limits
		f    replicaSetSizes
		want int
	}{
		{"no ReplicaSets", limits{5, 1, 0}, withoutNew(sizes()), 5},
		{"first step", limits{10, 3, 2}, withoutNew(sizes([2]int{10, 10})), 3},
		{"no room", limits{10, 3, 2}, sizes([2]int{10, 10}, [2]int{3, 0}), 3},
		{"maxSurge leaves room after a scale-down", limits{10, 3, 2}, sizes([2]int{8, 8}, [2]int{3, 0}), 5},
		{"never above replicas", limits{10, 3, 2}, sizes([2]int{1, 1}, [2]int{9, 9}), 10},
		{"maxSurge 0", limits{5, 0, 1}, sizes([2]int{5, 5}, [2]int{0, 0}), 0},
		{"maxSurge 0, one old replica removed", limits{5, 0, 1}, sizes([2]int{4, 4}, [2]int{0, 0}), 1},
		{"already above maxReplicas", limits{5, 1, 0}, sizes([2]int{9, 9}, [2]int{2, 2}), 2},
		{"new ReplicaSet above replicas", limits{5, 1, 0}, sizes([2]int{7, 7}), 5},
		{"done", limits{5, 1, 0}, sizes([2]int{0, 0}, [2]int{5, 5}), 5},
		{"to 0", limits{0, 0, 0}, sizes([2]int{5, 5}), 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := scaleUpNew(test.l, test.f); got != test.want {
				t.Errorf("scaleUpNew = %d, want %d", got, test.want)
			}
		})
	}
}

func TestScaleDownOld(t *testing.T) {
	tests := []struct {
		name string
		l    limits
		f    replicaSetSizes
		want []change
	}{
		{"maxUnavailable allows a scale-down", limits{10, 0, 2}, sizes([2]int{10, 10}, [2]int{0, 0}), []change{{0, 8}}},
		{"unavailable new replicas do not count", limits{10, 3, 2}, sizes([2]int{10, 10}, [2]int{3, 0}), []change{{0, 8}}},
		{"available new replicas count", limits{10, 3, 2}, sizes([2]int{10, 10}, [2]int{3, 3}), []change{{0, 5}}},
		{"nothing may be removed", limits{10, 3, 2}, sizes([2]int{8, 8}, [2]int{5, 0}), nil},
		{"old replica unavailable: nothing more may be removed", limits{10, 3, 2}, sizes([2]int{8, 7}, [2]int{5, 0}), nil},
		{"surge replica available", limits{1, 1, 0}, sizes([2]int{1, 1}, [2]int{1, 1}), []change{{0, 0}}},
		{"surge replica not available", limits{1, 1, 0}, sizes([2]int{1, 1}, [2]int{1, 0}), nil},
		{"unavailable old replicas are removed even below minAvailable", limits{10, 3, 2}, sizes([2]int{10, 0}, [2]int{3, 3}), []change{{0, 5}}},
		{"unavailable replicas first, in any ReplicaSet", limits{4, 0, 2}, sizes([2]int{2, 2}, [2]int{2, 0}, [2]int{0, 0}), []change{{1, 0}}},
		{"then the oldest ReplicaSet", limits{6, 0, 3}, sizes([2]int{2, 2}, [2]int{2, 1}, [2]int{2, 2}, [2]int{0, 0}), []change{{0, 0}, {1, 1}}},
		{"rollover of a stuck rollout", limits{10, 3, 2}, sizes([2]int{8, 8}, [2]int{5, 0}, [2]int{0, 0}), []change{{1, 0}}},
		{"new ReplicaSet is not the newest", limits{4, 4, 0}, replicaSetSizes{newIndex: 1, sizes: []size{{replicas: 2, available: 2}, {replicas: 4, available: 4}, {replicas: 2, available: 2}}},
			[]change{{0, 0}, {2, 0}}},
		{"no old ReplicaSets", limits{4, 1, 1}, sizes([2]int{4, 2}), nil},
		{"no new ReplicaSet yet", limits{4, 0, 1}, withoutNew(sizes([2]int{4, 4})), []change{{0, 3}}},
		{"Deployment scaled to 0", limits{0, 0, 0}, sizes([2]int{4, 4}, [2]int{0, 0}), []change{{0, 0}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, scaleDownOld(test.l, test.f), unexportedFields); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// drawSizes draws ReplicaSets with arbitrary sizes.
func drawSizes(t *rapid.T) replicaSetSizes {
	n := rapid.IntRange(1, 6).Draw(t, "sets")
	f := replicaSetSizes{newIndex: rapid.IntRange(none, n-1).Draw(t, "new"), sizes: make([]size, n)}
	for i := range f.sizes {
		replicas := rapid.IntRange(0, 20).Draw(t, "set")
		f.sizes[i] = size{
			replicas:        replicas,
			available:       rapid.IntRange(0, replicas).Draw(t, "available"),
			desiredReplicas: rapid.IntRange(none, 20).Draw(t, "desired"),
			maxReplicas:     rapid.IntRange(0, 40).Draw(t, "most"),
		}
	}
	return f
}

// apply returns the sizes after the changes. Like the ReplicaSet controller, it first removes
// unavailable pods.
func apply(l limits, f replicaSetSizes, changes []change) replicaSetSizes {
	after := replicaSetSizes{newIndex: f.newIndex, sizes: append([]size(nil), f.sizes...)}
	for _, c := range changes {
		s := &after.sizes[c.index]
		*s = size{replicas: c.to, available: min(s.available, c.to), desiredReplicas: l.replicas, maxReplicas: l.maxReplicas()}
	}
	return after
}

func (f replicaSetSizes) available() int {
	sum := 0
	for _, s := range f.sizes {
		sum += s.available
	}
	return sum
}

// TestRollingStepsKeepLimits checks that no step of a rollout exceeds spec.replicas plus
// maxSurge. No step may reduce the available replicas below minAvailable. If they are already
// below minAvailable, no step may reduce them further.
func TestRollingStepsKeepLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, f := drawLimits(t), drawSizes(t)
		if f.newIndex != none {
			to := scaleUpNew(l, f)
			up := apply(l, f, []change{{f.newIndex, to}})
			if to > f.sizes[f.newIndex].replicas && up.total() > l.maxReplicas() {
				t.Fatalf("%d replicas in total, maxReplicas is %d", up.total(), l.maxReplicas())
			}
			if to > l.replicas {
				t.Fatalf("the new ReplicaSet has %d replicas, want at most %d", to, l.replicas)
			}
		}
		changes := scaleDownOld(l, f)
		for _, c := range changes {
			if c.index == f.newIndex || c.to < 0 || c.to >= f.sizes[c.index].replicas {
				t.Fatalf("%+v does not scale down an old ReplicaSet", c)
			}
		}
		down := apply(l, f, changes)
		if got := down.available(); got < min(l.minAvailable(), f.available()) {
			t.Fatalf("%d available after %d, minAvailable is %d", got, f.available(), l.minAvailable())
		}
		if down.total() < min(l.minAvailable(), f.total()) {
			t.Fatalf("%d replicas left of %d, minAvailable is %d", down.total(), f.total(), l.minAvailable())
		}
	})
}

// TestRolloutCompletes checks that a rollout completes from arbitrary sizes if all new pods
// become available.
func TestRolloutCompletes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, f := drawLimits(t), drawSizes(t)
		f.newIndex = len(f.sizes) - 1
		for step := 0; f.total() != l.replicas || f.newSize().replicas != l.replicas; step++ {
			if step > 1000 {
				t.Fatalf("rollout does not complete: %+v within %+v", f, l)
			}
			if to := scaleUpNew(l, f); to != f.newSize().replicas {
				f = apply(l, f, []change{{f.newIndex, to}})
			} else {
				f = apply(l, f, scaleDownOld(l, f))
			}
			for i := range f.sizes {
				if i == f.newIndex {
					f.sizes[i].available = f.sizes[i].replicas // new pods become available, unavailable old pods never do
				}
			}
		}
	})
}
