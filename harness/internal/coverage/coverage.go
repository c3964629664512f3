// Package coverage counts how often faults acted in saved runs. It has a separate count for each
// combination of fault, verb, resource, outcome and phase of the controllers under test (the
// subject). The scenario generator can use these counts to prefer faults that rarely acted.
//
// The package does not decide whether the subject is correct. Package check does that.
package coverage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"iter"
	"slices"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Cell identifies one cell of a [Table]: fault, request, outcome, and phase of the controllers
// under test. The table counts how often the fault acted (changed something) in this combination.
type Cell struct {
	// Fault is the type of the fault, such as api-error.
	Fault string `json:"fault"`
	// Verb is the verb of the request or watch on which the fault acted. It is empty if the fault
	// acted on a pod, a node or a process.
	Verb string `json:"verb,omitempty"`
	// Resource is the resource of the request, such as "pods" or "pods/status" with a subresource.
	// If the fault acted on no request, it is the resource of the object on which the fault acted.
	// It is empty if there is no such object either.
	Resource string `json:"resource,omitempty"`
	// Outcome says what happened to the request on which the fault acted, such as "refused, 503".
	// It is the type of the fault if the fault acted on a watch or on no request. It is also the
	// type of the fault if another fault determined the response.
	Outcome string `json:"outcome"`
	Phase   Phase  `json:"phase"`
}

// Phase is what the subject (the controllers under test) was doing when a fault acted, such as a
// rollout. If several phases apply, the one that comes first in Phases counts.
type Phase string

// These values of Phase say what the controllers under test did when a fault acted. The order is
// that of the columns that [Table.WriteText] prints.
const (
	// StartUp means that the replica on which the fault acted has written nothing since its start.
	// A replica is one process of the controllers under test. If the fault acted on no replica, no
	// replica has written anything since its start.
	StartUp Phase = "start-up"
	// Rollout means that a Deployment has not completed its rollout, or that another object's
	// status.observedGeneration is older than its metadata.generation. ReplicaSets and
	// ReplicationControllers do not count.
	Rollout Phase = "rollout"
	// Scale means that status.replicas of an object differs from its spec.replicas. Deployments do
	// not count.
	Scale Phase = "scale"
	// Steady means that the controllers under test are neither starting up, nor rolling out, nor
	// scaling.
	Steady Phase = "steady"
)

// Phases lists all phases, in the order of the columns that [Table.WriteText] prints.
var Phases = []Phase{StartUp, Rollout, Scale, Steady}

// Count is a cell of a [Table] together with the number of times that the fault acted in this
// combination.
type Count struct {
	Cell
	Times int `json:"times"`
}

// Table contains how often faults acted, for each [Cell]. The zero value is an empty table.
type Table struct{ cells map[Cell]int }

// Add adds one history to the table: it counts how often faults acted. If the history cannot be
// read, Add returns the error. The records before the error are counted.
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

// Merge adds the counts of another table to this table.
func (t *Table) Merge(other *Table) {
	if t.cells == nil {
		t.cells = map[Cell]int{}
	}
	for cell, times := range other.cells {
		t.cells[cell] += times
	}
}

// Counts returns all cells of the table whose count is above 0. They are sorted by fault, resource,
// verb, outcome and phase.
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

// Seen returns how often faults of one type acted on requests with the given verb and resource.
// A subresource follows the resource, as in "pods/status". An empty verb or resource matches
// every value.
func (t *Table) Seen(fault, verb, resource string) int {
	sum := 0
	for cell, times := range t.cells {
		if cell.Fault == fault && (verb == "" || cell.Verb == verb) && (resource == "" || cell.Resource == resource) {
			sum += times
		}
	}
	return sum
}

// Condensed returns a smaller table for which Seen returns the same counts. Its cells have neither
// outcomes nor phases.
func (t *Table) Condensed() *Table {
	condensed := &Table{cells: map[Cell]int{}}
	for cell, times := range t.cells {
		cell.Outcome, cell.Phase = "", ""
		condensed.cells[cell] += times
	}
	return condensed
}

// Sum returns a checksum of the table, such as "1a2b3c4d". A scenario that was generated with
// the help of a table contains the table's checksum.
func (t *Table) Sum() string {
	hash := fnv.New32a()
	for _, count := range t.Counts() {
		fmt.Fprintln(hash, count)
	}
	return fmt.Sprintf("%08x", hash.Sum32())
}

// file is the JSON form of a [Table], in which coverage is stored. The field Format is the version
// of this form.
type file struct {
	Format int     `json:"format"`
	Cells  []Count `json:"cells"`
}

// format is the version of the JSON that MarshalJSON writes.
const format = 1

// MarshalJSON returns the table as JSON. The cells are sorted, so equal tables have equal JSON.
func (t *Table) MarshalJSON() ([]byte, error) { return json.Marshal(file{format, t.Counts()}) }

// UnmarshalJSON replaces the table by one that MarshalJSON wrote. It returns an error if the
// JSON has another format version.
func (t *Table) UnmarshalJSON(data []byte) error {
	var read file
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		return err
	}
	if read.Format != format {
		return fmt.Errorf("found a coverage table in format version %d; expected version %d", read.Format, format)
	}
	t.cells = map[Cell]int{}
	for i, count := range read.Cells {
		if count.Times < 1 {
			return fmt.Errorf("cells[%d].times: found %d; expected at least 1", i, count.Times)
		}
		t.cells[count.Cell] += count.Times
	}
	return nil
}
