package deployment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sizedFor returns the sizes of ReplicaSets whose pods are all available. Their annotations
// desired-replicas and max-replicas are desired and most. The last ReplicaSet is the new one.
func sizedFor(desired, most int, replicas ...int) replicaSetSizes {
	f := replicaSetSizes{newIndex: len(replicas) - 1}
	for _, n := range replicas {
		f.sizes = append(f.sizes, size{replicas: n, available: n, desiredReplicas: desired, maxReplicas: most})
	}
	return f
}

func TestIsScalingEvent(t *testing.T) {
	tests := []struct {
		name string
		f    replicaSetSizes
		want bool
	}{
		{"all annotations say 10", sizedFor(10, 13, 8, 5), false},
		{"annotation says 5", sizedFor(5, 7, 4, 3), true},
		{"inactive ReplicaSets are ignored", sizedFor(5, 7, 0, 0), false},
		{"missing annotation is ignored", sizedFor(none, 0, 4, 3), false},
		{"one of several ReplicaSets", replicaSetSizes{sizes: []size{{replicas: 1, desiredReplicas: 10}, {replicas: 1, desiredReplicas: 9}}}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := isScalingEvent(limits{10, 3, 2}, test.f); got != test.want {
				t.Errorf("isScalingEvent = %t, want %t", got, test.want)
			}
		})
	}
}

func TestRescale(t *testing.T) {
	saturated := sizedFor(10, 13, 3, 10)
	unsaturated := sizedFor(10, 13, 3, 10)
	unsaturated.sizes[1].available = 9
	tests := []struct {
		name    string
		l       limits
		f       replicaSetSizes
		rolling bool
		want    []change
	}{
		{"no ReplicaSets", limits{10, 3, 2}, withoutNew(sizes()), true, nil},
		{"one active ReplicaSet gets all replicas", limits{10, 3, 2}, sizedFor(5, 7, 5, 0), true, []change{{0, 10}}},
		{"also if it has the size: the annotations must change", limits{4, 0, 1}, sizedFor(5, 5, 4, 0), true, []change{{0, 4}}},
		{"none active: new ReplicaSet", limits{3, 1, 0}, replicaSetSizes{newIndex: 0, sizes: make([]size, 2)}, true, []change{{0, 3}}},
		{"none active, no new ReplicaSet: newest", limits{3, 1, 0}, replicaSetSizes{newIndex: none, sizes: make([]size, 2)}, true, []change{{1, 3}}},
		{"new ReplicaSet is saturated: old ones go to 0", limits{10, 3, 2}, saturated, true, []change{{0, 0}}},
		{"new ReplicaSet is not saturated: in proportion", limits{10, 3, 2}, unsaturated, true, []change{{1, 10}, {0, 3}}},
		{"scale-up in proportion", limits{15, 5, 2}, sizedFor(10, 13, 8, 5), true, []change{{0, 12}, {1, 8}}},
		{"scale-down in proportion", limits{5, 2, 1}, sizedFor(10, 13, 8, 5), true, []change{{0, 4}, {1, 3}}},
		{"to 0", limits{0, 0, 0}, sizedFor(10, 13, 8, 5), true, []change{{0, 0}, {1, 0}}},
		{"Recreate is not proportional", limits{10, 0, 0}, sizedFor(5, 5, 3, 2), false, []change{{0, 3}, {1, 2}}},
		{"Recreate to 0, no new ReplicaSet: not saturated", limits{0, 0, 0}, withoutNew(sizedFor(5, 5, 3, 2)), false, []change{{0, 3}, {1, 2}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, rescale(test.l, test.f, test.rolling, 0), unexportedFields); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProportional(t *testing.T) {
	unknown := sizedFor(none, 0, 8, 4)
	tests := []struct {
		name     string
		l        limits
		f        replicaSetSizes
		reported int
		want     []change
	}{
		{"equal sizes, scale-up: newest gets the remainder", limits{5, 0, 1}, sizedFor(4, 4, 2, 2), 0, []change{{1, 3}, {0, 2}}},
		{"equal sizes, scale-down: oldest loses the remainder", limits{3, 0, 1}, sizedFor(4, 4, 2, 2), 0, []change{{0, 1}, {1, 2}}},
		{"rounding remainder goes to the largest", limits{10, 0, 1}, sizedFor(7, 7, 3, 2, 2), 0, []change{{0, 4}, {2, 3}, {1, 3}}},
		{"rounding remainder is taken from the largest", limits{8, 0, 1}, sizedFor(9, 9, 3, 3, 3), 0, []change{{0, 2}, {1, 3}, {2, 3}}},
		{"remainder is taken once", limits{8, 0, 1}, sizedFor(12, 12, 5, 5, 2), 0, []change{{0, 3}, {1, 3}, {2, 2}}},
		{"no annotation: by status.replicas", limits{24, 0, 1}, unknown, 12, []change{{0, 16}, {1, 8}}},
		{"no annotation, no status.replicas: all to the largest", limits{24, 0, 1}, unknown, 0, []change{{0, 20}, {1, 4}}},
		{"remainder above the largest is taken from the next", limits{2, 0, 1}, sizedFor(none, 0, 4, 3, 3), 0, []change{{0, 0}, {1, 0}, {2, 2}}},
		{"large share does not exceed the total", limits{6, 0, 1}, replicaSetSizes{newIndex: none, sizes: []size{{replicas: 3, maxReplicas: 1}, {replicas: 2, maxReplicas: 5}}}, 0, []change{{0, 4}, {1, 2}}},
		{"no ReplicaSet moves against the direction", limits{6, 0, 1}, replicaSetSizes{newIndex: none, sizes: []size{{replicas: 6, maxReplicas: 12}, {replicas: 2, maxReplicas: 3}}}, 0, []change{{0, 4}, {1, 2}}},
		{"no change", limits{10, 3, 2}, sizedFor(9, 13, 8, 5), 0, []change{{0, 8}, {1, 5}}},
		{"large numbers", limits{2147483647, 0, 1}, sizedFor(1073741824, 1073741824, 536870912, 536870912), 0, []change{{1, 1073741824}, {0, 1073741823}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, proportional(test.l, test.f, test.reported), unexportedFields); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSharesSumExactly checks that the sizes after a scaling add up to the maximum, for
// arbitrary annotations. No ReplicaSet may shrink on scale-up or grow on scale-down.
func TestSharesSumExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, f := drawLimits(t), drawSizes(t)
		if len(f.active()) == 0 {
			t.Skip("no active ReplicaSets")
		}
		changes := proportional(l, f, rapid.IntRange(0, 30).Draw(t, "reported"))
		most := l.maxReplicas()
		if l.replicas == 0 {
			most = 0
		}
		direction := most - f.total()
		for _, c := range changes {
			if gain := c.to - f.sizes[c.index].replicas; c.to < 0 || gain*direction < 0 {
				t.Fatalf("%+v for %+v, with a total difference of %d", c, f, direction)
			}
		}
		if got := apply(l, f, changes).total(); got != most {
			t.Fatalf("%d replicas in total, want %d", got, most)
		}
	})
}

// TestScalingIsIdempotent checks the retry of a scaling that failed halfway. The retry must
// compute the same sizes as the first attempt.
func TestScalingIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, f := drawLimits(t), drawSizes(t)
		reported := rapid.IntRange(1, 30).Draw(t, "reported")
		changes := proportional(l, f, reported)
		if l.replicas == 0 || len(changes) == 0 {
			t.Skip("no active ReplicaSets")
		}
		done := rapid.IntRange(0, len(changes)).Draw(t, "done")
		half := apply(l, f, changes[:done])
		again := proportional(l, half, reported)
		if diff := cmp.Diff(apply(l, f, changes), apply(l, half, again), cmp.AllowUnexported(replicaSetSizes{}, size{})); diff != "" {
			t.Fatalf("sizes in one call, and after a failure after %d of %d changes (-one +retried):\n%s", done, len(changes), diff)
		}
	})
}
