// Package historytest provides an in-memory history. Tests use it instead of [history.Recorder]
// for code that appends records.
package historytest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Recording is an in-memory history. The zero value is empty and ready to use.
type Recording struct {
	mu      sync.Mutex
	records []history.Record
	grown   chan struct{} // closed at the next record; nil while nobody waits
}

// Append adds a record, and sets its Seq to its position, counted from 1.
func (r *Recording) Append(record history.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record.Seq = int64(len(r.records) + 1)
	r.records = append(r.records, record)
	if r.grown != nil {
		close(r.grown)
		r.grown = nil
	}
}

// All returns the records so far.
func (r *Recording) All() []history.Record {
	records, _ := r.snapshot()
	return records
}

// Faults returns the fault records so far, such as those that say that a fault fired.
func (r *Recording) Faults() []history.Fault {
	var all []history.Fault
	for _, record := range r.All() {
		if record.Fault != nil {
			all = append(all, *record.Fault)
		}
	}
	return all
}

// awaitTimeout is the maximum time for which Await waits for a record.
const awaitTimeout = 20 * time.Second

// Await waits for the first record for which match returns true, and returns this record. It fails
// the test if there is no such record within awaitTimeout (20 s). The argument description is the
// name of the expected record in the failure message.
func (r *Recording) Await(t *testing.T, description string, match func(history.Record) bool) history.Record {
	t.Helper()
	timeout := time.After(awaitTimeout)
	for {
		records, grown := r.snapshot()
		if i := slices.IndexFunc(records, match); i >= 0 {
			return records[i]
		}
		select {
		case <-grown:
		case <-timeout:
			t.Fatalf("no record of %s in:\n%s", description, Summary(records))
		}
	}
}

// snapshot returns the records so far, and a channel that is closed when the next record is added.
// Await uses the channel to wait.
func (r *Recording) snapshot() ([]history.Record, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.grown == nil {
		r.grown = make(chan struct{})
	}
	return slices.Clone(r.records), r.grown
}

// Summary returns a text that describes the records, one line each. Tests compare it with the text
// that they expect.
func Summary(records []history.Record) string {
	var lines []string
	for _, r := range records {
		lines = append(lines, Line(r))
	}
	return strings.Join(lines, "\n")
}

// Line returns a text that describes a record by its kind and its main fields, such as "request
// get pods".
func Line(r history.Record) string {
	switch {
	case r.Request != nil:
		return strings.TrimSpace(fmt.Sprintf("request %s %s%s", r.Request.Verb, r.Request.Resource, r.Request.Path))
	case r.Response != nil:
		return strings.TrimSpace(fmt.Sprintf("response %d server %d reached %v %s", r.Response.Code, r.Response.ServerCode, r.Response.Reached, r.Response.Reason))
	case r.List != nil:
		return fmt.Sprintf("list %d items version %d", len(r.List.Items), r.List.Version)
	case r.Delivery != nil:
		text := fmt.Sprintf("delivery %s %s version %d", r.Delivery.Type, r.Delivery.Object.Name, r.Delivery.Object.Version)
		if r.Delivery.Held > 0 {
			text += " held " + r.Delivery.Held.String()
		}
		if r.Delivery.InitialEventsEnd {
			text += " end of initial events"
		}
		return text
	case r.WatchClosed != nil:
		reason, _, _ := strings.Cut(r.WatchClosed.Reason, ":")
		return "closed " + reason
	case r.Gap != nil:
		return "gap " + r.Gap.Source
	case r.Stall != nil:
		return "stall " + r.Stall.Duration.String()
	}
	return "other record"
}
