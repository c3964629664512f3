package timeline

import (
	"encoding/json"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Timeline is the timeline of one run. All times count from the start of the history.
type Timeline struct {
	Start  history.Start
	End    time.Duration // of the last record
	Phases []Phase
	// Tracks are in display order. Mark.Track and Band.Track are indexes in Tracks.
	Tracks     []Track
	Bands      []Band // in order of their starts
	Marks      []Mark // in order of Seq
	Charts     []Chart
	Violations []Violation
	// Cited are the records that the evidence of the violations cites, by Seq.
	Cited map[int64]json.RawMessage
	// Displayed is the displayed window: the time range in which all records have marks.
	// Omitted says which records are missing; it is empty if none are.
	Displayed Span
	Omitted   string
}

// Span is a time range, both ends included.
type Span struct{ From, To time.Duration }

// Phase is the start of a phase of the run.
type Phase struct {
	Name history.PhaseName
	At   time.Duration
}

// Group is the group of a track. The order of the constants is the display order.
type Group int

// The groups of tracks.
const (
	Run     Group = iota // the workload, each fault, each process
	Subject              // the leases, events and reads of the subject
	Objects              // the objects that the subject manages
	groups
)

func (g Group) String() string { return [groups]string{"run", "subject", "objects"}[g] }

// Track is a row of the timeline: one object, or several related ones.
type Track struct {
	Group Group
	// Name is unique in the timeline, such as "replicasets.apps web" or
	// "pods of replicasets.apps web".
	Name string
	// Resource is the resource of the track's objects; empty outside the group Objects.
	Resource string
}

// Kind is the kind of event that a mark shows.
type Kind int

// The kinds of marks.
const (
	Step     Kind = iota // a step of the workload, from its start to its end
	Fault                // an action of a fault
	Process              // a start or end of a process
	Commit               // a version of an object that etcd committed
	Delivery             // a watch event, from its commit to its delivery to the subject
	Write                // a mutating request of the subject, until its response
	Refused              // a failed request of the subject, until its response
	Read                 // a get, list or watch of the subject, until its response
	Gap                  // a gap in the records
	kinds
)

func (k Kind) String() string {
	return [kinds]string{"step", "fault", "process", "commit", "delivery", "write", "refused", "read", "gap"}[k]
}

// Mark is one event.
type Mark struct {
	Seq int64 // Seq of the record that the mark shows
	// Answer is the Seq of the record that ends the mark, such as a Response; 0 if there is
	// none.
	Answer int64
	// From and To are the start and the end. For a delivery, From is the time of the commit,
	// or of the start of the watch if that is later. So To - From is the delivery lag.
	From, To time.Duration
	Track    int
	Kind     Kind
	Action   string // the verb or the event type, such as "create" or "MODIFIED"
	Object   string // the object, such as "pods web-x7k2p"; empty for none
	Note     string // the response, the object's state or the fault's detail
	Version  history.Version
	Fault    string // the fault that changed the request or response, or delayed the delivery
}

// Band is a time range: an injected fault or a running process.
type Band struct {
	Track    int
	Kind     Kind // Fault or Process
	From, To time.Duration
	Note     string
}

// Chart is a set of lines with a common unit.
type Chart struct {
	Title string
	Unit  string // of the values; empty for a count
	Lines []Line
}

// Line is a series of numbers. Each value is valid until the next one.
type Line struct {
	Name   string
	At     []time.Duration // ascending
	Values []float64
}

// Violation is one piece of evidence of a check.
type Violation struct {
	Check    string
	Number   int // position in the evidence of the check, from 1
	Summary  string
	Expected string
	At       time.Duration
	Marks    []int   // indexes in Timeline.Marks, ascending
	Records  []int64 // by Seq, ascending, including those without a mark
}
