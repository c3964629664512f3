package check

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestDifference requires that the grouping of addresses into subsets does not matter. A
// missing, wrong or additional address does.
func TestDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := addressSet{}
		for i := range rapid.IntRange(1, 1400).Draw(t, "pods") {
			number := int32(rapid.IntRange(1, 2).Draw(t, "port"))
			want[addressAndPort{podTarget{ip: fmt.Sprint("10.0.0.", i), uid: "u"}, endpointPort{number: number}}] = rapid.Bool().Draw(t, "ready")
		}
		total, ready := want.size()
		got := addressSet{}
		for p, isReady := range want { // as many as fit, ready ones first
			if isReady && len(got) < addressesMax {
				got[p] = true
			}
		}
		for p, isReady := range want {
			if !isReady && len(got) < addressesMax {
				got[p] = false
			}
		}
		if d := describeDifference(got, want); d != "" {
			t.Fatalf("%d addresses, %d ready: %s", total, ready, d)
		}
		for p := range got {
			for name, change := range map[string]func(addressSet){
				"missing":         func(addresses addressSet) { delete(addresses, p) },
				"wrong readiness": func(addresses addressSet) { addresses[p] = !addresses[p] },
				"extra": func(addresses addressSet) {
					addresses[addressAndPort{podTarget{ip: "10.9.9.9"}, endpointPort{}}] = true
				},
			} {
				changed := maps.Clone(got)
				change(changed)
				if describeDifference(changed, want) == "" {
					t.Errorf("%s: no difference found among %d addresses", name, total)
				}
			}
			break
		}
	})
}
