package timeline

import (
	"encoding/json"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Timeline is the timeline of one run. All times are durations since the start of the history.
type Timeline struct {
	Start  history.Start // the first record: subject, namespace and start time
	End    time.Duration // the time of the last record
	Phases []Phase       // in order
	// Tracks are in display order. Mark.Track and Band.Track are indexes in Tracks.
	Tracks     []Track
	Bands      []Band // in order of their starts
	Marks      []Mark // in order of Mark.Seq
	Charts     []Chart
	Violations []Violation
	// Cited has the records that the evidence of the violations cites, as JSON. The key is the
	// Seq of the record.
	Cited map[int64]json.RawMessage
	// Displayed is the displayed window: the time range in which every record has its mark.
	Displayed Span
	// Omitted says in one sentence which records the timeline does not show. It is empty if the
	// timeline shows all records.
	Omitted string
}

// Span is a time range. Both ends are included.
type Span struct{ From, To time.Duration }

// Phase is the start of a phase of the run.
type Phase struct {
	Name history.PhaseName
	At   time.Duration
}

// Group is a group of tracks. The constants have the order in which the page shows the groups.
type Group int

// The groups of tracks.
const (
	Run     Group = iota // the tracks of the workload, of each fault, of each process, and of gaps
	Subject              // the tracks of reads, watches, leases, events and of objects in other namespaces
	Objects              // the tracks of objects
	groups               // the number of groups
)

func (g Group) String() string { return [groups]string{"run", "subject", "objects"}[g] }

// Track is a row of the timeline. It shows one object, the pods of one owner, a fault, a
// process, or another series of events.
type Track struct {
	Group Group
	// Name is unique in the timeline, such as "replicasets.apps web" or
	// "pods of replicasets.apps web".
	Name string
	// Resource is the resource of the track's objects. It is empty outside the group Objects.
	Resource string
}

// Kind is the kind of event that a mark or a band shows.
type Kind int

// The kinds of marks.
const (
	Step     Kind = iota // a step of the workload, from its start to its end
	Fault                // an action of a fault
	Process              // a start or an end of a process
	Commit               // a version of an object that etcd committed
	Delivery             // a watch event, from the commit of the version to the delivery to the subject
	Write                // a write of the subject that did not fail, from the request to the response
	Refused              // a failed request of the subject, from the request to the response
	Read                 // a get, list or watch of the subject, from the request to the response
	Gap                  // a gap in the history, or a stall of gauntlet
	kinds                // the number of kinds
)

func (k Kind) String() string {
	return [kinds]string{"step", "fault", "process", "commit", "delivery", "write", "refused", "read", "gap"}[k]
}

// Mark is one event on a track.
type Mark struct {
	Seq int64 // the Seq of the record that the mark shows
	// Answer is the Seq of the record that ends the mark, such as the response of a request.
	// It is 0 if the history has no such record.
	Answer int64
	// From and To are the start and the end of the mark. For a delivery, From is the time of
	// the commit, or the time at which the watch was established if that is later. Therefore
	// To - From is the lag of the delivery.
	From, To time.Duration
	Track    int // the index in Timeline.Tracks
	Kind     Kind
	Action   string          // such as "create" (verb), "MODIFIED" (type of an event) or "step 2"
	Object   string          // the object, such as "pods web-x7k2p"; empty if the mark has none
	Note     string          // details, such as the response, the object's state or the fault's detail
	Version  history.Version // the version of the object; 0 if the mark has none
	Fault    string          // the fault that changed the request or the response; empty if none did
}

// Band is a colored time range of a track: the time of an injected fault, or of a running
// process.
type Band struct {
	Track    int  // the index in Timeline.Tracks
	Kind     Kind // Fault or Process
	From, To time.Duration
	Note     string // the name of the fault or process
}

// Chart is a diagram of values over time. All lines have the same unit.
type Chart struct {
	Title string
	Unit  string // the unit of the values; empty if the values are counts
	Lines []Line
}

// Line is one series of values in a chart. Each value holds until the time of the next value.
type Line struct {
	Name   string
	At     []time.Duration // the times of the values, ascending
	Values []float64
}

// Violation is one piece of evidence of a check, with its marks on the timeline.
type Violation struct {
	Check    string // the ID of the check
	Number   int    // the position in the evidence of the check, counted from 1
	Summary  string // what was found
	Expected string // what was expected
	At       time.Duration
	Marks    []int   // the marks that show the violation, as indexes in Timeline.Marks, ascending
	Records  []int64 // the Seqs of all cited records, ascending, also of records without a mark
}
