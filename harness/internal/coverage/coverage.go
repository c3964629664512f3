// Package coverage counts the effects of faults in saved runs. It counts them by the verb
// and resource of the request, by the outcome, and by the phase of the subject. The
// scenario generator can use these counts to prefer faults that rarely had an effect.
//
// The package does not decide whether the subject is correct. Package check does that.
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

// Cell is one combination of a fault, a request, an outcome and a phase. The package counts how
// often the fault acted in this combination.
type Cell struct {
	// Fault is the type of the fault, as scenarios name it.
	Fault string `json:"fault"`
	// Verb is the verb of the request or watch. It is empty if the fault acted on a pod, a
	// node or a process.
	Verb string `json:"verb,omitempty"`
	// Resource is the resource of the request, with its subresource after a slash. If the
	// fault acted on no request, Resource is the resource of the object. It is empty if
	// there is no object.
	Resource string `json:"resource,omitempty"`
	// Outcome describes the response to the request on which the fault acted. It is the
	// type of the fault if the fault acted on a watch or on no request, or if another fault
	// determined the response.
	Outcome string `json:"outcome"`
	Phase   Phase  `json:"phase"`
}

// Phase says what the subject was doing when a fault acted. If several phases apply, the first
// one in Phases counts.
type Phase string

// The phases of the subject, in the order of the table's columns.
const (
	// StartUp means that the replica on which the fault acted has not written since its
	// start. If the fault acted on no replica, it means that no replica has written since
	// its start.
	StartUp Phase = "start-up"
	// Rollout means that a Deployment has not completed its rollout. It also means that
	// status.observedGeneration of another object is older than metadata.generation, unless
	// the object is a ReplicaSet or ReplicationController.
	Rollout Phase = "rollout"
	// Scale means that status.replicas of an object differs from spec.replicas. Deployments do
	// not count.
	Scale Phase = "scale"
	// Steady means that none of the other phases applies.
	Steady Phase = "steady"
)

// Phases lists the phases in the order of the table's columns.
var Phases = []Phase{StartUp, Rollout, Scale, Steady}

// Count is how often faults acted in the situation that a cell describes.
type Count struct {
	Cell
	Times int `json:"times"`
}

// Table contains, for each cell, how often faults acted. The zero value is an empty table.
type Table struct{ cells map[Cell]int }

// Add counts how often faults acted in a history. If reading the history fails, Add counts the
// records before the error and returns the error.
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

// Counts returns the cells with a count above 0. They are sorted by fault, resource, verb,
// outcome and phase.
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

// Seen returns how often faults of a type acted on requests with the given verb and resource.
// The resource includes a subresource after a slash. An empty verb or resource matches any
// value.
func (t *Table) Seen(fault, verb, resource string) int {
	sum := 0
	for cell, times := range t.cells {
		if cell.Fault == fault && (verb == "" || cell.Verb == verb) && (resource == "" || cell.Resource == resource) {
			sum += times
		}
	}
	return sum
}

// Sum returns a checksum of the table. A scenario that was generated with the help of a table
// names the table by this checksum.
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

// format is the version of the JSON form of a table.
const format = 1

// MarshalJSON returns the table as JSON. The cells are sorted, so that equal tables have
// equal JSON.
func (t *Table) MarshalJSON() ([]byte, error) { return json.Marshal(file{format, t.Counts()}) }

// UnmarshalJSON reads a table from the output of MarshalJSON. It returns an error if the
// version of the format is not the constant format.
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
