package endpoints

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// newEntry returns the entry of a pod that has the given IP and serves the given ports.
func newEntry(ip string, pod types.UID, ready bool, ports ...int32) addressEntry {
	o := addressEntry{address: address{IP: ip, TargetRef: &corev1.ObjectReference{UID: pod}}, ready: ready}
	for _, number := range ports {
		o.ports = append(o.ports, portIDOf(port{Name: fmt.Sprint("p", number), Port: number, Protocol: corev1.ProtocolTCP}))
	}
	return o
}

func TestPack(t *testing.T) {
	tests := []struct {
		name    string
		entries []addressEntry
		want    []string
	}{
		{"nothing", nil, nil},
		{"ports of the same addresses share a subset", []addressEntry{newEntry("1", "a", true, 80, 443), newEntry("2", "b", true, 443, 80)}, []string{"p443:443/TCP,p80:80/TCP> 1 2"}},
		{"ports of different addresses do not", []addressEntry{newEntry("1", "a", true, 80, 443), newEntry("2", "b", true, 80)}, []string{"p443:443/TCP> 1", "p80:80/TCP> 1 2"}},
		{"ports with different readiness do not", []addressEntry{newEntry("1", "a", true, 80), newEntry("1", "a", false, 443)}, []string{"p443:443/TCP> !1", "p80:80/TCP> 1"}},
		{"entries of one address are merged", []addressEntry{newEntry("1", "a", true, 80), newEntry("1", "a", true, 443)}, []string{"p443:443/TCP,p80:80/TCP> 1"}},
		{"duplicate entries are merged", []addressEntry{newEntry("1", "a", true, 80), newEntry("1", "a", true, 80)}, []string{"p80:80/TCP> 1"}},
		{"not-ready takes precedence", []addressEntry{newEntry("1", "a", true, 80), newEntry("1", "a", false, 80), newEntry("1", "a", true, 80)}, []string{"p80:80/TCP> !1"}},
		{"two pods with one IP are two addresses", []addressEntry{newEntry("1", "b", true, 80), newEntry("1", "a", false, 80)}, []string{"p80:80/TCP> 1 !1"}},
		{"addresses are sorted as strings", []addressEntry{newEntry("10", "b", true, 80), newEntry("9", "a", true, 80)}, []string{"p80:80/TCP> 10 9"}},
		{"addresses without ports", []addressEntry{newEntry("2", "b", true), newEntry("1", "a", false), newEntry("1", "a", false)}, []string{"> 2 !1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, render(pack(test.entries))); diff != "" {
				t.Errorf("subsets (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPackPorts checks that pack compares all fields of ports by value.
func TestPackPorts(t *testing.T) {
	of := func(p port) addressEntry {
		return addressEntry{newEntry("1", "a", true).address, true, []portID{portIDOf(p)}}
	}
	base := port{Name: "p", Port: 1, Protocol: corev1.ProtocolTCP, AppProtocol: new("h2c")}
	if got := pack([]addressEntry{of(base), of(*base.DeepCopy())}); len(got) != 1 || len(got[0].Ports) != 1 || !cmp.Equal(got[0].Ports[0], base) {
		t.Errorf("equal ports were not merged: %v", got)
	}
	others := []port{
		{Name: "q", Port: 1, Protocol: corev1.ProtocolTCP, AppProtocol: new("h2c")},
		{Name: "p", Port: 2, Protocol: corev1.ProtocolTCP, AppProtocol: new("h2c")},
		{Name: "p", Port: 1, Protocol: corev1.ProtocolUDP, AppProtocol: new("h2c")},
		{Name: "p", Port: 1, Protocol: corev1.ProtocolTCP, AppProtocol: new("ws")},
		{Name: "p", Port: 1, Protocol: corev1.ProtocolTCP, AppProtocol: new("")},
		{Name: "p", Port: 1, Protocol: corev1.ProtocolTCP},
	}
	for _, other := range others {
		if got := pack([]addressEntry{of(base), of(other)}); len(got) != 1 || len(got[0].Ports) != 2 {
			t.Errorf("%v and %v were merged: %v", base, other, got)
		}
	}
}

// drawEntries draws random entries. Each entry has portsMin to portsMax ports.
func drawEntries(t *rapid.T, portsMin, portsMax int) []addressEntry {
	drawOne := rapid.Custom(func(t *rapid.T) addressEntry {
		o := newEntry(
			rapid.SampledFrom([]string{"1", "2", "3", "10", "11"}).Draw(t, "ip"),
			rapid.SampledFrom([]types.UID{"", "a", "b", "c"}).Draw(t, "pod"),
			rapid.Bool().Draw(t, "ready"),
			rapid.SliceOfN(rapid.Int32Range(1, 4), portsMin, portsMax).Draw(t, "ports")...)
		o.address.Hostname = rapid.SampledFrom([]string{"", "h"}).Draw(t, "hostname")
		return o
	})
	return rapid.SliceOfN(drawOne, 0, 20).Draw(t, "entries")
}

// TestPackProperties checks that pack keeps the content of the entries. The result must not
// depend on the order of the entries, and must not change when it is packed again.
func TestPackProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := drawEntries(t, 0, 3)
		packed := pack(entries)
		if diff := cmp.Diff(packed, pack(unpack(packed))); diff != "" {
			t.Fatalf("packing again changes (-once +twice):\n%s", diff)
		}
		if diff := cmp.Diff(packed, pack(rapid.Permutation(entries).Draw(t, "shuffled"))); diff != "" {
			t.Fatalf("another order gives (-want +got):\n%s", diff)
		}
		if !equalSubsets(packed, pack(unpack(packed))) {
			t.Fatal("equalSubsets = false for equal subsets")
		}
		type place struct {
			host hostKey
			port portID
		}
		// meaning maps each pair of host and port to the readiness of the host.
		meaning := func(entries []addressEntry) map[place]bool {
			at := map[place]bool{}
			for _, o := range entries {
				for _, id := range o.ports {
					p := place{hostKeyOf(o.address), id}
					ready, known := at[p]
					at[p] = o.ready && (ready || !known)
				}
			}
			return at
		}
		if diff := cmp.Diff(meaning(entries), meaning(unpack(packed)), cmp.AllowUnexported(hostKey{}, portID{}, place{})); diff != "" {
			t.Fatalf("packed means something else (-want +got):\n%s", diff)
		}
		checkPacked(t, packed)
	})
}

// checkPacked checks the properties of every result of pack.
func checkPacked(t *rapid.T, packed []subset) {
	seen := map[portID]bool{}
	for _, s := range packed {
		if len(s.Addresses)+len(s.NotReadyAddresses) == 0 {
			t.Fatalf("subset without addresses: %v", render(packed))
		}
		for _, p := range s.Ports {
			if seen[portIDOf(p)] {
				t.Fatalf("duplicate port: %v", render(packed))
			}
			seen[portIDOf(p)] = true
		}
		hosts := map[hostKey]bool{}
		for _, list := range [][]address{s.Addresses, s.NotReadyAddresses} {
			if !slices.IsSortedFunc(list, compareAddresses) {
				t.Fatalf("addresses are not sorted: %v", render(packed))
			}
			for _, a := range list {
				if hosts[hostKeyOf(a)] {
					t.Fatalf("duplicate address in a subset: %v", render(packed))
				}
				hosts[hostKeyOf(a)] = true
			}
		}
	}
}

func TestEqualSubsets(t *testing.T) {
	full := func() []subset {
		s := pack([]addressEntry{newEntry("1", "a", true, 80, 443), newEntry("2", "b", false, 80, 443)})
		s[0].Addresses[0].NodeName = new("n")
		s[0].Addresses[0].Hostname = "h"
		return s
	}
	for name, test := range map[string]struct {
		change func(*subset)
		want   bool
	}{
		"nothing":                        {func(*subset) {}, true},
		"resourceVersion of the pod":     {func(s *subset) { s.Addresses[0].TargetRef.ResourceVersion = "7" }, true},
		"empty instead of nil addresses": {func(s *subset) { s.NotReadyAddresses = append([]address{}, s.NotReadyAddresses...) }, true},
		"IP":                             {func(s *subset) { s.Addresses[0].IP = "3" }, false},
		"hostname":                       {func(s *subset) { s.Addresses[0].Hostname = "" }, false},
		"node":                           {func(s *subset) { s.Addresses[0].NodeName = new("m") }, false},
		"pod":                            {func(s *subset) { s.Addresses[0].TargetRef.Name = "z" }, false},
		"no pod":                         {func(s *subset) { s.Addresses[0].TargetRef = nil }, false},
		"readiness":                      {func(s *subset) { s.Addresses, s.NotReadyAddresses = s.NotReadyAddresses, s.Addresses }, false},
		"additional address":             {func(s *subset) { s.Addresses = append(s.Addresses, address{IP: "9"}) }, false},
		"port":                           {func(s *subset) { s.Ports[0].Port = 1 }, false},
		"app protocol":                   {func(s *subset) { s.Ports[0].AppProtocol = new("") }, false},
		"missing port":                   {func(s *subset) { s.Ports = s.Ports[:1] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			other := full()
			test.change(&other[0])
			if got := equalSubsets(full(), other); got != test.want {
				t.Errorf("equal: %t, want %t", got, test.want)
			}
		})
	}
	if equalSubsets(full(), nil) {
		t.Error("subsets equal no subsets")
	}
}
