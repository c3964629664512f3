package endpoints

// truncate cuts packed subsets down to capacity addresses and reports whether
// anything had to go. Ready addresses stay before any that is not ready; among
// those of which there are too many, each subset keeps its share. The result is
// packed: two subsets may have become one, and one that has nothing left, which
// the API server would refuse, is gone.
func truncate(subsets []subset, capacity int) (fitting []subset, cut bool) {
	ready, notReady := make([]int, len(subsets)), make([]int, len(subsets))
	for i := range subsets {
		ready[i], notReady[i] = len(subsets[i].Addresses), len(subsets[i].NotReadyAddresses)
	}
	if sum(ready)+sum(notReady) <= capacity {
		return subsets, false
	}
	ready = shares(ready, capacity)
	notReady = shares(notReady, capacity-sum(ready))
	fitting = make([]subset, len(subsets))
	for i, s := range subsets {
		fitting[i] = subset{Addresses: s.Addresses[:ready[i]], NotReadyAddresses: s.NotReadyAddresses[:notReady[i]], Ports: s.Ports}
	}
	return pack(unpack(fitting)), true
}

// shares cuts sizes in proportion so that they sum to limit; sizes that fit are
// returned as they are. Each share is rounded up, as far as what the ones before
// have left goes.
func shares(sizes []int, limit int) []int {
	total := sum(sizes)
	if total <= limit {
		return sizes
	}
	cut, left := make([]int, len(sizes)), limit
	for i, size := range sizes {
		cut[i] = min(left, (size*limit+total-1)/total)
		left -= cut[i]
	}
	return cut
}

func sum(sizes []int) int {
	total := 0
	for _, size := range sizes {
		total += size
	}
	return total
}
