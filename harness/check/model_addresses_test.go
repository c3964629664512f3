package check

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// TestDifference requires that describeDifference finds a missing address, an additional address
// and a wrong readiness. It must find nothing in correct Endpoints, even if a Service has more
// addresses than Endpoints may list.
func TestDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := objects.AddressSet{}
		for i := range rapid.IntRange(1, 1400).Draw(t, "pods") {
			number := int32(rapid.IntRange(1, 2).Draw(t, "port"))
			want[objects.AddressAndPort{PodTarget: objects.PodTarget{IP: fmt.Sprint("10.0.0.", i), UID: "u"}, Port: objects.EndpointPort{Number: number}}] = rapid.Bool().Draw(t, "ready")
		}
		total, ready := want.Size()
		got := objects.AddressSet{}
		for p, isReady := range want { // as many as fit, ready ones first
			if isReady && len(got) < objects.AddressesMax {
				got[p] = true
			}
		}
		for p, isReady := range want {
			if !isReady && len(got) < objects.AddressesMax {
				got[p] = false
			}
		}
		if d := describeDifference(got, want); d != "" {
			t.Fatalf("%d addresses, %d ready: %s", total, ready, d)
		}
		for p := range got {
			for name, change := range map[string]func(objects.AddressSet){
				"missing":         func(addresses objects.AddressSet) { delete(addresses, p) },
				"wrong readiness": func(addresses objects.AddressSet) { addresses[p] = !addresses[p] },
				"extra": func(addresses objects.AddressSet) {
					addresses[objects.AddressAndPort{PodTarget: objects.PodTarget{IP: "10.9.9.9"}}] = true
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
