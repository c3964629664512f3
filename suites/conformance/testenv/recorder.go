package testenv

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// subjectRecorder keeps what the subject asked for, what it was told and what faults did,
// of one spec at a time.
type subjectRecorder struct {
	mu      sync.Mutex
	records []history.Record
	onRecord   func() // called after each record; nil between specs
}

func newSubjectRecorder() *subjectRecorder { return &subjectRecorder{} }

// Append takes a record; see proxy.Recorder.
func (w *subjectRecorder) Append(record history.Record) {
	w.mu.Lock()
	moved := w.onRecord
	if moved != nil {
		w.records = append(w.records, record)
	}
	w.mu.Unlock()
	if moved != nil {
		moved()
	}
}

// reset forgets what was, and tells moved of every record from here on. A nil one
// ends it.
func (w *subjectRecorder) reset(moved func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records, w.onRecord = nil, moved
}

// requests are those that the subject has sent about a resource of a namespace.
func (w *subjectRecorder) requests(namespace, verb, resource string) []history.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []history.Request
	for _, record := range w.records {
		if r := record.Request; r != nil && r.Namespace == namespace && r.Verb == verb && r.Resource == resource {
			all = append(all, *r)
		}
	}
	return all
}

// delivered is the latest version of an object that the subject's watches have brought
// it.
func (w *subjectRecorder) delivered(resource, namespace, name string) history.Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, record := range slices.Backward(w.records) {
		if d := record.Delivery; d != nil && d.Resource == resource && d.Object.Namespace == namespace && d.Object.Name == name {
			return d.Object.Version
		}
	}
	return 0
}

// faultsFired is how often the faults of a kind have fired.
func (w *subjectRecorder) faultsFired(kind string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, record := range w.records {
		if f := record.Fault; f != nil && f.Name == kind && f.Event == history.FaultFired {
			count++
		}
	}
	return count
}

// recentTraffic is the last of what the subject was told by its watches of a namespace, and
// of what it wrote there and was answered, a line each, as a failure tells it.
func (w *subjectRecorder) recentTraffic(namespace string) []string {
	const most = 24
	w.mu.Lock()
	defer w.mu.Unlock()
	answers := map[uint64]string{} // by request; met before it, since this goes backward
	var lines []string
	for _, record := range slices.Backward(w.records) {
		if len(lines) == most {
			break
		}
		switch {
		case record.Response != nil:
			answers[record.Response.ID] = "answered " + strconv.Itoa(record.Response.Code)
			if record.Response.Code == 0 {
				answers[record.Response.ID] = "its answer was lost"
			}
		case record.Request != nil:
			if r := record.Request; r.Namespace == namespace && r.Resource != "events" && writeVerbs[r.Verb] {
				lines = append(lines, fmt.Sprintf("wrote  %s: %s", describeWrite(r), cmp.Or(answers[r.ID], "no answer yet")))
			}
		case record.Delivery != nil:
			if d := record.Delivery; d.Object.Namespace == namespace && d.Type.HasObject() {
				lines = append(lines, fmt.Sprintf("told   %-8s %s %s, version %d", d.Type, d.Resource, d.Object.Name, d.Object.Version))
			}
		}
	}
	slices.Reverse(lines)
	return lines
}

// writeVerbs are the verbs that change something.
var writeVerbs = map[string]bool{"create": true, "update": true, "patch": true, "delete": true, "deletecollection": true}

// describeWrite is a write in words.
func describeWrite(r *history.Request) string {
	what := strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", r.Verb, what, r.Name, r.Patch)), " ")
}
