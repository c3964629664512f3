package timeline

import (
	"encoding/json"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Timeline is one run, ready to be drawn. All times count from the start of the
// history.
type Timeline struct {
	Start  history.Start
	End    time.Duration // of the last record
	Phases []Phase
	// Tracks are in the order in which they are to be shown: Mark.Lane and Band.Lane
	// are places in it.
	Tracks     []Track
	Bands      []Band // in order of their beginnings
	Marks      []Mark // in order of Seq
	Charts     []Chart
	Violations []Violation
	// Cited are the records that the violations' evidence names, by Seq.
	Cited map[int64]json.RawMessage
	// Displayed is of which time all is drawn, and Cut says what is not, and why; empty if
	// all is.
	Displayed Span
	Omitted   string
}

// Span is a time, both ends included.
type Span struct{ From, To time.Duration }

// Phase is a part of the run.
type Phase struct {
	Name history.PhaseName
	At   time.Duration
}

// Group is what kind of lane a lane is. Groups are shown in the order of the
// constants.
type Group int

// The groups of lanes.
const (
	Run     Group = iota // what users did, each fault, each process
	Subject              // what the subject does beside its work: leases, events, reads
	Objects              // the objects that the subject works on
	groups
)

func (g Group) String() string { return [groups]string{"run", "subject", "objects"}[g] }

// Track is a row of the timeline: an object, or several that belong together.
type Track struct {
	Group Group
	// Name is unique in the timeline, such as "replicasets.apps web" or
	// "pods of replicasets.apps web".
	Name string
	// Resource is that of the lane's objects; empty outside of Objects.
	Resource string
}

// Kind is what kind of event a mark is.
type Kind int

// The kinds of marks.
const (
	Step     Kind = iota // a user's step, until it was done
	Fault                // something that a fault did
	Process              // something that happened to a process
	Commit               // a version of an object, as it was committed
	Delivery             // a watch event that was handed to the subject, since it was true
	Write                // a request of the subject that changes something, until its answer
	Refused              // a request of the subject that failed, until its answer
	Read                 // a get, list or watch of the subject, until its answer
	Gap                  // a witness missed something
	kinds
)

func (k Kind) String() string {
	return [kinds]string{"step", "fault", "process", "commit", "delivery", "write", "refused", "read", "gap"}[k]
}

// Mark is one event.
type Mark struct {
	Seq int64 // of its record
	// Answer is the Seq of the record that ends it, such as a Response; 0 if none does.
	Answer int64
	// From and To are when it began and ended. For a delivery, From is when the
	// version was committed, or its watch was opened if that was later: To less
	// From is how late the subject learned of it.
	From, To time.Duration
	Track    int
	Kind     Kind
	Action   string // the verb or the type of the event, such as "create" or "MODIFIED"
	Object   string // what it happened to, such as "pods web-x7k2p"; empty for none
	Note     string // what is to be known of it: an answer, a state, a fault's words
	Version  history.Version
	Fault    string // the fault that changed a request, its answer, or held a delivery
}

// Band is something that lasts: a fault, or the life of a process.
type Band struct {
	Track    int
	Kind     Kind // Fault or Process
	From, To time.Duration
	Note     string
}

// Chart is lines over one axis of time.
type Chart struct {
	Title string
	Unit  string // of the values; empty for a count
	Lines []Line
}

// Line is how a number changed. It keeps each value until the next.
type Line struct {
	Name   string
	At     []time.Duration // ascending
	Values []float64
}

// Violation is one piece of a check's evidence.
type Violation struct {
	Check    string
	Number   int // among the check's evidence, from 1
	Summary  string
	Expected string
	At       time.Duration
	Marks    []int   // places in Timeline.Marks, ascending
	Records  []int64 // by Seq, ascending, those without a mark included
}
