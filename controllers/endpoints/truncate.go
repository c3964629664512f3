package endpoints

// truncate limits packed subsets to capacity addresses and reports whether it dropped
// any. It keeps ready addresses before not-ready ones, and cuts all subsets in
// proportion. The result is packed again: two subsets may become equal, and the API
// server rejects empty subsets.
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

// shares reduces sizes in proportion so that their sum is limit. If the sum is not
// above limit, it returns sizes unchanged. Each share is rounded up as long as the
// limit permits.
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
