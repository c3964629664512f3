package check

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestDifference: how addresses are put into subsets makes no difference; one
// that is missing, wrong or too many does.
func TestDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := listing{}
		for i := range rapid.IntRange(1, 1400).Draw(t, "pods") {
			number := int32(rapid.IntRange(1, 2).Draw(t, "port"))
			want[pair{target{ip: fmt.Sprint("10.0.0.", i), uid: "u"}, port{number: number}}] = rapid.Bool().Draw(t, "ready")
		}
		total, ready := want.size()
		got := listing{}
		for p, isReady := range want { // ready ones first, as many as fit
			if isReady && len(got) < addressesMax {
				got[p] = true
			}
		}
		for p, isReady := range want {
			if !isReady && len(got) < addressesMax {
				got[p] = false
			}
		}
		if d := difference(got, want); d != "" {
			t.Fatalf("%d addresses, %d ready: %s", total, ready, d)
		}
		for p := range got {
			for name, spoil := range map[string]func(listing){
				"missing":   func(l listing) { delete(l, p) },
				"misjudged": func(l listing) { l[p] = !l[p] },
				"extra":     func(l listing) { l[pair{target{ip: "10.9.9.9"}, port{}}] = true },
			} {
				spoilt := maps.Clone(got)
				spoil(spoilt)
				if difference(spoilt, want) == "" {
					t.Errorf("%s goes unnoticed among %d", name, total)
				}
			}
			break
		}
	})
}
