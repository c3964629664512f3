package endpoints

// truncate returns the subsets with at most as many addresses as the argument capacity says. The
// result cut is true if truncate removed an address. It removes not-ready addresses first, and
// shrinks all subsets by the same proportion.
//
// Two subsets may become equal or empty, and the API server rejects empty subsets. truncate
// therefore packs its result again.
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

// shares returns the sizes, reduced by the same proportion so that their sum equals the argument
// limit. If the sum is at most the limit already, the result has the same sizes. The first
// elements are rounded up, as long as the sum stays within the limit.
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
