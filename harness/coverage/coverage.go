// Package coverage counts the effects of faults in saved runs. It counts by the verb and
// resource of the request, by the outcome, and by the phase of the subject. The scenario
// generator can prefer faults with low counts.
//
// The package reads histories and returns no verdicts.
package coverage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Cell is a combination of a fault, a request, an outcome and a phase.
type Cell struct {
	// Fault is the type of the fault.
	Fault string `json:"fault"`
	// Verb is the verb of the request or watch. It is empty for a fault of pods, nodes
	// or processes.
	Verb string `json:"verb,omitempty"`
	// Resource is the resource of the request, with its subresource after a slash, or of
	// the object on which the fault acted. It is empty if there is no object.
	Resource string `json:"resource,omitempty"`
	Outcome  string `json:"outcome"`
	Phase    Phase  `json:"phase"`
}

// Phase is a phase of the subject.
type Phase string

// The phases, in the order of the table.
const (
	// StartUp: the replica has written nothing since its start. If the fault acts on no
	// replica, this holds for all replicas.
	StartUp Phase = "start-up"
	// Rollout: a Deployment has pods that are unavailable or have an old template.
	Rollout Phase = "rollout"
	// Scale: status.replicas of a ReplicaSet or ReplicationController differs from
	// spec.replicas.
	Scale Phase = "scale"
	// Steady is everything else.
	Steady Phase = "steady"
)

// Phases is the list of phases.
var Phases = []Phase{StartUp, Rollout, Scale, Steady}

// Count is the number of times that a cell occurred.
type Count struct {
	Cell
	Times int `json:"times"`
}

// Table has the count of each cell. The zero value is an empty table.
type Table struct{ cells map[Cell]int }

// Add counts the effects of faults in a history. If the history ends with an error, Add
// counts the records before it and returns the error.
func (t *Table) Add(records iter.Seq2[*history.Record, error]) error {
	if t.cells == nil {
		t.cells = map[Cell]int{}
	}
	w := newObserver(t)
	for record, err := range records {
		if err != nil {
			return err
		}
		w.observe(record)
	}
	w.finish()
	return nil
}

// Counts returns the cells with a count above 0, in order.
func (t *Table) Counts() []Count {
	counts := make([]Count, 0, len(t.cells))
	for cell, times := range t.cells {
		counts = append(counts, Count{cell, times})
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Fault, b.Fault), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb),
			cmp.Compare(a.Outcome, b.Outcome), slices.Index(Phases, a.Phase)-slices.Index(Phases, b.Phase))
	})
	return counts
}

// Seen returns the count of a fault type with a verb and a resource. A resource has its
// subresource after a slash. An empty string matches any value.
func (t *Table) Seen(fault, verb, resource string) int {
	sum := 0
	for cell, times := range t.cells {
		if cell.Fault == fault && (verb == "" || cell.Verb == verb) && (resource == "" || cell.Resource == resource) {
			sum += times
		}
	}
	return sum
}

// Sum returns a checksum of the table.
func (t *Table) Sum() string {
	hash := fnv.New32a()
	for _, count := range t.Counts() {
		fmt.Fprintln(hash, count)
	}
	return fmt.Sprintf("%08x", hash.Sum32())
}

// file is the JSON form of a table.
type file struct {
	Format int     `json:"format"`
	Cells  []Count `json:"cells"`
}

// format is the version of the JSON form.
const format = 1

// MarshalJSON returns the table with its cells in order.
func (t *Table) MarshalJSON() ([]byte, error) { return json.Marshal(file{format, t.Counts()}) }

// UnmarshalJSON reads the output of MarshalJSON.
func (t *Table) UnmarshalJSON(data []byte) error {
	var read file
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	if read.Format != format {
		return fmt.Errorf("found coverage format %d; expected %d", read.Format, format)
	}
	t.cells = map[Cell]int{}
	for _, count := range read.Cells {
		t.cells[count.Cell] += count.Times
	}
	return nil
}
