package world

import (
	"slices"
	"sync"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// witness keeps what the subject asked for, what it was told and what faults did,
// of one spec at a time.
type witness struct {
	mu      sync.Mutex
	records []history.Record
	moved   func() // called after each record; nil between specs
}

func newWitness() *witness { return &witness{} }

// Append takes a record; see proxy.Recorder.
func (w *witness) Append(record history.Record) {
	w.mu.Lock()
	moved := w.moved
	if moved != nil {
		w.records = append(w.records, record)
	}
	w.mu.Unlock()
	if moved != nil {
		moved()
	}
}

// begin forgets what was, and tells moved of every record from here on. A nil one
// ends it.
func (w *witness) begin(moved func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records, w.moved = nil, moved
}

// requests are those that the subject has sent about a resource of a namespace.
func (w *witness) requests(namespace, verb, resource string) []history.Request {
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

// told is the latest version of an object that the subject's watches have brought
// it.
func (w *witness) told(resource, namespace, name string) history.Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, record := range slices.Backward(w.records) {
		if d := record.Delivery; d != nil && d.Resource == resource && d.Object.Namespace == namespace && d.Object.Name == name {
			return d.Object.Version
		}
	}
	return 0
}

// fired is how often the faults of a kind have fired.
func (w *witness) fired(kind string) int {
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
