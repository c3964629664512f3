package endpoints

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestShares(t *testing.T) {
	for _, test := range []struct {
		sizes []int
		limit int
		want  []int
	}{
		{nil, 0, nil},
		{[]int{}, 1000, []int{}},
		{[]int{1000}, 1000, []int{1000}},
		{[]int{1001}, 1000, []int{1000}},
		{[]int{1001}, 0, []int{0}},
		{[]int{600, 600}, 1000, []int{500, 500}},
		{[]int{1000, 500}, 1000, []int{667, 333}},
		{[]int{500, 1000}, 1000, []int{334, 666}},
		{[]int{1, 1, 1}, 2, []int{1, 1, 0}},
		{[]int{0, 3, 0, 3}, 4, []int{0, 2, 0, 2}},
		{[]int{700, 700, 700}, 1000, []int{334, 334, 332}},
	} {
		if diff := cmp.Diff(test.want, shares(test.sizes, test.limit)); diff != "" {
			t.Errorf("shares(%v, %d) (-want +got):\n%s", test.sizes, test.limit, diff)
		}
	}
}

// TestSharesProperties checks that the results of shares add up to the limit. No result may be
// larger than the corresponding size.
func TestSharesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 5000), 0, 12).Draw(t, "sizes")
		limit := rapid.IntRange(0, 6000).Draw(t, "limit")
		got, total := shares(sizes, limit), sum(sizes)
		if want := min(limit, total); sum(got) != want {
			t.Fatalf("shares %v sum to %d, want %d", got, sum(got), want)
		}
		for i, share := range got {
			if share < 0 || share > sizes[i] || total > limit && (share-1)*total >= sizes[i]*limit && share > 0 {
				t.Fatalf("share %d of %v at limit %d is %d", i, sizes, limit, share)
			}
		}
	})
}

// manyEntries returns the entries of n pods that serve one port. The argument from determines
// their first IP.
func manyEntries(n int, ready bool, port int32, from int) []addressEntry {
	var entries []addressEntry
	for i := range n {
		ip := fmt.Sprintf("10.%d.%d.%d", port, (from+i)/256, (from+i)%256)
		entries = append(entries, newEntry(ip, "", ready, port))
	}
	return entries
}

func TestTruncate(t *testing.T) {
	type size struct{ ready, notReady int }
	for _, test := range []struct {
		name    string
		sizes   []size // sizes of the subsets, which have no address in common
		want    []size
		wantCut bool
	}{
		{"nothing", nil, nil, false},
		{"fits", []size{{600, 400}}, []size{{600, 400}}, false},
		{"one address above capacity", []size{{1001, 0}}, []size{{1000, 0}}, true},
		{"one not-ready address above capacity", []size{{600, 401}}, []size{{600, 400}}, true},
		{"no room for not-ready addresses", []size{{1000, 1}}, []size{{1000, 0}}, true},
		{"ready addresses above capacity", []size{{1200, 300}, {600, 100}}, []size{{667, 0}, {333, 0}}, true},
		{"in proportion", []size{{300, 800}, {100, 400}}, []size{{300, 400}, {100, 200}}, true},
		{"subset without addresses is dropped", []size{{1000, 0}, {0, 50}}, []size{{1000, 0}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var entries []addressEntry
			for i, s := range test.sizes {
				entries = append(entries, manyEntries(s.ready, true, int32(i+1), 0)...)
				entries = append(entries, manyEntries(s.notReady, false, int32(i+1), s.ready)...)
			}
			fitting, cut := truncate(pack(entries), Capacity)
			var got []size
			for _, s := range fitting {
				got = append(got, size{len(s.Addresses), len(s.NotReadyAddresses)})
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(size{})); diff != "" || cut != test.wantCut {
				t.Errorf("cut: %t, want %t; sizes (-want +got):\n%s", cut, test.wantCut, diff)
			}
		})
	}
}

// TestTruncateProperties checks the results of truncate. They must not exceed the capacity, and
// must contain only existing addresses, ready ones first. They must be packed, and a second
// truncate must not change them.
func TestTruncateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Either all entries of a Service have ports, or none of them.
		ports := rapid.SampledFrom([]struct{ least, most int }{{0, 0}, {1, 3}}).Draw(t, "ports")
		packed := pack(drawEntries(t, ports.least, ports.most))
		capacity := rapid.IntRange(0, 15).Draw(t, "capacity")
		count := func(subsets []subset) (ready, notReady int) {
			for _, s := range subsets {
				ready, notReady = ready+len(s.Addresses), notReady+len(s.NotReadyAddresses)
			}
			return ready, notReady
		}
		allReady, allNotReady := count(packed)
		fitting, cut := truncate(packed, capacity)
		ready, notReady := count(fitting)
		if cut != (allReady+allNotReady > capacity) {
			t.Fatalf("truncated: %t, with %d addresses and capacity %d", cut, allReady+allNotReady, capacity)
		}
		if !cut {
			if diff := cmp.Diff(packed, fitting); diff != "" {
				t.Fatalf("modified although it fits:\n%s", diff)
			}
			return
		}
		if ready+notReady > capacity {
			t.Fatalf("%d addresses, capacity %d", ready+notReady, capacity)
		}
		before, after := readyByIP(packed), readyByIP(fitting)
		for place, is := range after {
			if was, there := before[place]; !there || was != is {
				t.Fatalf("%s existed: %t, was ready: %t, is ready: %t", place, there, was, is)
			}
		}
		if notReady > 0 {
			for place, was := range before {
				if _, there := after[place]; was && !there {
					t.Fatalf("ready address %s was dropped before a not-ready one", place)
				}
			}
		}
		checkPacked(t, fitting)
		if _, again := truncate(fitting, capacity); again {
			t.Fatal("truncating again drops addresses")
		}
	})
}

// readyByIP maps each pair of address and port to whether the address is ready.
func readyByIP(subsets []subset) map[string]bool {
	at := map[string]bool{}
	for _, o := range unpack(subsets) {
		for _, id := range o.ports {
			at[fmt.Sprint(hostKeyOf(o.address), id)] = o.ready
		}
		if len(o.ports) == 0 {
			at[fmt.Sprint(hostKeyOf(o.address))] = o.ready
		}
	}
	return at
}
