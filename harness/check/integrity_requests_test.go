package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// TestIntegrityOfManyRequests requires that requests which ended long ago are still known. The table of
// requests must not grow with their number.
func TestIntegrityOfManyRequests(t *testing.T) {
	const first, many = 7, 5 * recentRequests
	i := newIntegrity()
	seq := int64(0)
	observe := func(r history.Record) string {
		seq++
		r.Seq = seq
		return i.observe(&r)
	}
	request := func(id uint64, verb string) history.Record {
		return history.Record{Request: &history.Request{ID: id, Subject: "subject-0", Verb: verb, Resource: "pods"}}
	}
	response := func(id uint64) history.Record { return history.Record{Response: &history.Response{ID: id, Code: 200}} }
	event := func(id uint64) history.Record {
		return history.Record{Delivery: &history.Delivery{ID: id, Subject: "subject-0", Resource: "pods", Type: history.Bookmark}}
	}
	const watch, closed, open = 1, 2, 3
	records := []history.Record{
		request(watch, "watch"), response(watch), request(closed, "watch"), response(closed), request(open, "get"),
		{WatchClosed: &history.WatchClosed{ID: closed, Subject: "subject-0", Resource: "pods"}},
	}
	for id := uint64(first); id < many; id++ {
		records = append(records, request(id, "get"), response(id))
	}
	for _, r := range append(records, event(watch), response(open)) {
		if wrong := observe(r); wrong != "" {
			t.Fatal(wrong)
		}
	}
	if n := len(i.requests.states); n > recentRequests+2 {
		t.Errorf("the table has %d states; want at most %d", n, recentRequests+2)
	}
	for _, c := range []struct {
		record history.Record
		want   string
	}{
		{request(first, "get"), fmt.Sprintf("is a second request with the ID %d", first)},
		{response(first), fmt.Sprintf("is a second response to request %d", first)},
		{response(many - 1), fmt.Sprintf("is a second response to request %d", many-1)},
		{event(closed), fmt.Sprintf("is a watch event of request %d, which ended more than %d requests before", closed, recentRequests)},
		{response(many + 1), fmt.Sprintf("is a response of request %d, which the history does not contain", many+1)},
	} {
		if wrong := observe(c.record); !strings.Contains(wrong, c.want) {
			t.Errorf("got %q, want %q", wrong, c.want)
		}
	}
}
