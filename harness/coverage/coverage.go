// Package coverage counts what faults have done in saved runs: to which requests
// of which resource, what the subject got for it, and what it was at work on at
// the time. What has not been seen is where a generator may go next.
//
// It reads histories, and judges nothing.
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

// Cell is a combination of what can be.
type Cell struct {
	// Fault is the kind of fault.
	Fault string `json:"fault"`
	// Verb is that of the request or watch that it touched; empty where it touched
	// none: pods, nodes, processes.
	Verb string `json:"verb,omitempty"`
	// Resource is what the request was for, with its subresource behind a slash, or
	// what the fault touched beside the subject; empty where that is no object.
	Resource string `json:"resource,omitempty"`
	Outcome  string `json:"outcome"`
	Phase    Phase  `json:"phase"`
}

// Phase is what the subject is at work on.
type Phase string

// The phases, in the order in which they are shown.
const (
	// StartUp: the replica that is concerned, or, where none is, every replica, has
	// written nothing yet since it was started.
	StartUp Phase = "start-up"
	// Rollout: the pods of a Deployment are not all of its template and available.
	Rollout Phase = "rollout"
	// Scale: a ReplicaSet or ReplicationController reports another number of pods
	// than it is asked for.
	Scale Phase = "scale"
	// Steady is everything else.
	Steady Phase = "steady"
)

// Phases are all of them.
var Phases = []Phase{StartUp, Rollout, Scale, Steady}

// Count is how often a cell was seen.
type Count struct {
	Cell
	Times int `json:"times"`
}

// Table is how often each cell was seen. The zero value is an empty one.
type Table struct{ cells map[Cell]int }

// Add counts what faults did in a history. An error of the history's ends it;
// what came before is counted.
func (t *Table) Add(records iter.Seq2[*history.Record, error]) error {
	if t.cells == nil {
		t.cells = map[Cell]int{}
	}
	w := newWitness(t)
	for record, err := range records {
		if err != nil {
			return err
		}
		w.observe(record)
	}
	w.finish()
	return nil
}

// Counts are the cells that were seen, in order.
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

// Seen is how often a fault of a kind did something to requests of a verb for a
// resource, with its subresource behind a slash. What is empty stands for any.
func (t *Table) Seen(fault, verb, resource string) int {
	sum := 0
	for cell, times := range t.cells {
		if cell.Fault == fault && (verb == "" || cell.Verb == verb) && (resource == "" || cell.Resource == resource) {
			sum += times
		}
	}
	return sum
}

// Sum names what the table holds: equal tables have equal sums.
func (t *Table) Sum() string {
	hash := fnv.New32a()
	for _, count := range t.Counts() {
		fmt.Fprintln(hash, count)
	}
	return fmt.Sprintf("%08x", hash.Sum32())
}

// file is how a table is kept.
type file struct {
	Format int     `json:"format"`
	Cells  []Count `json:"cells"`
}

// format is the version of the file's.
const format = 1

// MarshalJSON writes the table, its cells in order.
func (t *Table) MarshalJSON() ([]byte, error) { return json.Marshal(file{format, t.Counts()}) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Table) UnmarshalJSON(data []byte) error {
	var read file
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	if read.Format != format {
		return fmt.Errorf("expected a coverage of format %d, found %d", format, read.Format)
	}
	t.cells = map[Cell]int{}
	for _, count := range read.Cells {
		t.cells[count.Cell] += count.Times
	}
	return nil
}
