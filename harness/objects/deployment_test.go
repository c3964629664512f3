package objects

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

// TestFenceposts checks that percentages are rounded as documented: up for maxSurge, and down
// for maxUnavailable. The two results must never both be 0, because a rollout could then not
// proceed.
func TestFenceposts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.IntRange(0, 1000).Draw(t, "replicas")
		draw := func(label string) (value intstr.IntOrString, exact float64) {
			n := rapid.IntRange(0, 100).Draw(t, label)
			if rapid.Bool().Draw(t, label+" is a percentage") {
				return intstr.FromString(strconv.Itoa(n) + "%"), float64(n) * float64(replicas) / 100
			}
			return intstr.FromInt32(int32(n)), float64(n)
		}
		maxSurge, exactSurge := draw("maxSurge")
		maxUnavailable, exactUnavailable := draw("maxUnavailable")
		surge, unavailable, err := fenceposts(&maxSurge, &maxUnavailable, replicas)
		if err != nil {
			t.Fatal(err)
		}
		if s := float64(surge); s < exactSurge-1e-9 || s >= exactSurge+1 {
			t.Errorf("maxSurge is %d, want %v rounded up", surge, exactSurge)
		}
		if u := float64(unavailable); u > max(exactUnavailable+1e-9, 1) || unavailable > replicas {
			t.Errorf("maxUnavailable is %d, want %v rounded down", unavailable, exactUnavailable)
		}
		if replicas > 0 && surge+unavailable == 0 {
			t.Error("maxSurge and maxUnavailable are 0, so no rollout could proceed")
		}
	})
}
