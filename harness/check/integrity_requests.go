package check

// recentRequests is for how many ended requests [requestTable] keeps the whole state. The records about a
// request follow its response at once, or after a few records about other requests.
const recentRequests = 4096

// requestTable contains the requests of a history by ID. Of a request that ended long ago, it keeps only
// one bit.
type requestTable struct {
	states map[uint64]requestState
	recent [recentRequests]uint64 // ring buffer of ended requests in states; 0 for an unused place
	next   int                    // the index in recent of the oldest request
	ended  map[uint64]uint64      // the requests that ended long ago; bit i of the word with key k is the ID 64k+i
}

func newRequestTable() *requestTable {
	return &requestTable{states: map[uint64]requestState{}, ended: map[uint64]uint64{}}
}

// state returns the state of a request. The result exists is false if the history does not contain the
// request, or if the request ended long ago.
func (t *requestTable) state(id uint64) (state requestState, exists bool) {
	state, exists = t.states[id]
	return state, exists
}

// exists reports whether the history contains a request with this ID.
func (t *requestTable) exists(id uint64) bool {
	_, exists := t.states[id]
	return exists || t.endedLongAgo(id)
}

// endedLongAgo reports whether the table has dropped the state of a request.
func (t *requestTable) endedLongAgo(id uint64) bool { return t.ended[id/64]&(1<<(id%64)) != 0 }

// set changes the state of a request. If the request is not a watch and has its response, or is a watch
// that has ended, the table may drop the state later.
func (t *requestTable) set(id uint64, state requestState) {
	before := t.states[id]
	t.states[id] = state
	if before.hasEnded() || !state.hasEnded() {
		return
	}
	if oldest := t.recent[t.next]; oldest != 0 {
		delete(t.states, oldest)
		t.ended[oldest/64] |= 1 << (oldest % 64)
	}
	t.recent[t.next] = id
	t.next = (t.next + 1) % recentRequests
}

// hasEnded reports whether the history will have at most a few further records about the request.
func (s requestState) hasEnded() bool { return s.closed || s.answered && s.verb != "watch" }
