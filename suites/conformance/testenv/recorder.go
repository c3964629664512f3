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

// subjectRecorder stores the records of the current Ginkgo spec. They are the tested program's
// requests, responses and watch events, and the faults. The fault proxy and the faults call
// Append.
type subjectRecorder struct {
	mu       sync.Mutex
	records  []history.Record
	onRecord func() // Append calls it after each record; nil if no spec is running
}

func newSubjectRecorder() *subjectRecorder { return &subjectRecorder{} }

// Append stores a record, and implements interceptor.Recorder. If no Ginkgo spec is running, it
// drops the record.
func (r *subjectRecorder) Append(record history.Record) {
	r.mu.Lock()
	onRecord := r.onRecord
	if onRecord != nil {
		r.records = append(r.records, record)
	}
	r.mu.Unlock()
	if onRecord != nil {
		onRecord()
	}
}

// reset discards all records. Append then calls onRecord after each new record. If onRecord is
// nil, no spec is running, and Append drops new records.
func (r *subjectRecorder) reset(onRecord func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records, r.onRecord = nil, onRecord
}

// requests returns the tested program's requests with the given namespace, verb and resource.
func (r *subjectRecorder) requests(namespace, verb, resource string) []history.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []history.Request
	for _, record := range r.records {
		if q := record.Request; q != nil && q.Namespace == namespace && q.Verb == verb && q.Resource == resource {
			found = append(found, *q)
		}
	}
	return found
}

// delivered returns the last resourceVersion of an object that a watch has delivered to the
// program under test. It returns 0 if no watch has delivered the object.
func (r *subjectRecorder) delivered(resource, namespace, name string) history.Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range slices.Backward(r.records) {
		if d := record.Delivery; d != nil && d.Resource == resource && d.Object.Namespace == namespace && d.Object.Name == name {
			return d.Object.Version
		}
	}
	return 0
}

// faultsFired returns how often faults of a type, such as "watch-delay", have fired in the current
// spec. A fault fires each time it changes something, such as delaying one watch event.
func (r *subjectRecorder) faultsFired(kind string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := 0
	for _, record := range r.records {
		if f := record.Fault; f != nil && f.Name == kind && f.Event == history.FaultFired {
			count++
		}
	}
	return count
}

// recentTraffic returns the tested program's last watch events and writes in a namespace as text,
// except writes of Event objects. It returns at most 24 lines, oldest first.
func (r *subjectRecorder) recentTraffic(namespace string) []string {
	const maxLines = 24
	r.mu.Lock()
	defer r.mu.Unlock()
	responses := map[uint64]string{} // key: request ID. The loop runs backward, so the response comes before its request
	var lines []string
	for _, record := range slices.Backward(r.records) {
		if len(lines) == maxLines {
			break
		}
		switch {
		case record.Response != nil:
			responses[record.Response.ID] = "status " + strconv.Itoa(record.Response.Code)
			if record.Response.Code == 0 {
				responses[record.Response.ID] = "response lost"
			}
		case record.Request != nil:
			if q := record.Request; q.Namespace == namespace && q.Resource != ResourceOf(eventKind) && writeVerbs[q.Verb] {
				lines = append(lines, fmt.Sprintf("write  %s: %s", describeWrite(q), cmp.Or(responses[q.ID], "no response yet")))
			}
		case record.Delivery != nil:
			if d := record.Delivery; d.Object.Namespace == namespace && d.Type.HasObject() {
				lines = append(lines, fmt.Sprintf("watch  %-8s %s %s, version %d", d.Type, d.Resource, d.Object.Name, d.Object.Version))
			}
		}
	}
	slices.Reverse(lines)
	return lines
}

// writeVerbs are the verbs of requests that change objects.
var writeVerbs = map[string]bool{"create": true, "update": true, "patch": true, "delete": true, "deletecollection": true}

// describeWrite returns a write request as text, such as "update replicasets.apps/status web".
func describeWrite(r *history.Request) string {
	resource := strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/")
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", r.Verb, resource, r.Name, r.Patch)), " ")
}
