package history

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Record is one line of a history. Exactly one of the pointers is set.
type Record struct {
	// Seq is the position in the history, from 1, without holes.
	Seq int64 `json:"seq"`
	// At is the time since Start.Time, in nanoseconds.
	At time.Duration `json:"at"`

	Start       *Start       `json:"start,omitempty"`
	Phase       *Phase       `json:"phase,omitempty"`
	Commit      *Commit      `json:"commit,omitempty"`
	Request     *Request     `json:"request,omitempty"`
	Response    *Response    `json:"response,omitempty"`
	List        *List        `json:"list,omitempty"`
	Delivery    *Delivery    `json:"delivery,omitempty"`
	WatchClosed *WatchClosed `json:"closed,omitempty"`
	Fault       *Fault       `json:"fault,omitempty"`
	Step        *Step        `json:"step,omitempty"`
	Process     *Process     `json:"process,omitempty"`
	Gap         *Gap         `json:"gap,omitempty"`
	Stall       *Stall       `json:"stall,omitempty"`
}

// payloads is how many of the pointers are set.
func (r *Record) payloads() int {
	n := 0
	for _, set := range [...]bool{
		r.Start != nil, r.Phase != nil, r.Commit != nil, r.Request != nil, r.Response != nil, r.List != nil, r.Delivery != nil,
		r.WatchClosed != nil, r.Fault != nil, r.Step != nil, r.Process != nil, r.Gap != nil, r.Stall != nil,
	} {
		if set {
			n++
		}
	}
	return n
}

// Format is the version of the record format that this package writes. A
// reader refuses any other, and a record of a kind that it does not know.
//
// It is raised when a field or a kind of record changes its meaning or goes, not when
// one is added: a history from before then has none of it, which says nothing of what
// happened. So it is with Stall, with Awaited of a Step, and with Bytes of a Request, a
// Response and a Delivery, which the first histories of format 1 lack.
const Format = 2

// format1 is the format before Format, which is still read: a Commit was
// called truth.
const format1 = 1

// Start is the first record of every history.
type Start struct {
	Format    int       `json:"format"`
	Time      time.Time `json:"time"`
	Scenario  string    `json:"scenario"`
	Seed      uint64    `json:"seed"`
	Subject   string    `json:"subject"`  // ours, upstream, exec:PATH
	Provider  string    `json:"provider"` // embedded
	Namespace string    `json:"namespace"`
}

// Phase marks the beginning of a part of the run.
type Phase struct {
	Name PhaseName `json:"name"`
}

// PhaseName names a part of the run.
type PhaseName string

// The phases of a run, in order.
const (
	// PhaseChaos: the subject leads and has filled its caches; workload and faults begin.
	PhaseChaos PhaseName = "chaos"
	// PhaseSettle: the workload has ended and every fault is healed; from here the
	// bound on convergence counts.
	PhaseSettle PhaseName = "settle"
	// PhaseQuiet: what the run can see has converged; from here the subject must
	// write nothing more.
	PhaseQuiet PhaseName = "quiet"
	// PhaseEnd: observation ends; whatever follows is the teardown.
	PhaseEnd PhaseName = "end"
)

// EventType is the type of a watch event, in the API's own words.
type EventType string

// The types of watch events.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	Bookmark EventType = "BOOKMARK"
	Error    EventType = "ERROR"
)

// HasObject reports whether events of the type are about an object.
func (t EventType) HasObject() bool { return t == Added || t == Modified || t == Deleted }

// Commit is one committed version of an object, as the API server told the
// observer directly.
type Commit struct {
	Type   EventType `json:"type"` // Added, Modified or Deleted
	Object Object    `json:"object"`
}

// Request is one request of the subject, recorded when the fault proxy has read
// it and before anything is done about it.
type Request struct {
	// ID is unique in the run; Response, List, Delivery and Closed refer to it.
	ID uint64 `json:"id"`
	// Subject is the instance that sent it, such as "subject-0".
	Subject string `json:"subject"`
	// Verb is get, list, watch, create, update, patch, delete or deletecollection.
	Verb string `json:"verb"`
	// Resource is the resource and its group, such as "pods" or
	// "replicasets.apps"; empty for paths that are no resource (/healthz).
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	// Name is empty on collections, creates included.
	Name string `json:"name,omitempty"`
	// Path and Query as sent; Path only where Resource is empty.
	Path  string `json:"path,omitempty"`
	Query string `json:"query,omitempty"`
	Agent string `json:"agent,omitempty"` // User-Agent
	// Object is the body of a create or update.
	Object *Object `json:"object,omitempty"`
	// Patch is the body of a patch, PatchType its content type.
	Patch     json.RawMessage `json:"patch,omitempty"`
	PatchType string          `json:"patchType,omitempty"`
	// PreconditionUID is the UID that a delete demands, if it does.
	PreconditionUID types.UID `json:"preconditionUID,omitempty"`
	// Bytes is how long the body is, as sent.
	Bytes int `json:"bytes,omitempty"`
}

// Response ends a request, or, for a watch, is its first answer. It is recorded
// before it is handed to the subject.
type Response struct {
	ID uint64 `json:"id"`
	// Code is the HTTP status that the subject gets; 0 when it gets no answer, or
	// not all of it (its connection was broken, or it went away first).
	Code int `json:"code"`
	// ServerCode is the HTTP status that the API server answered; 0 when the
	// request never reached it, or its answer was not awaited.
	ServerCode int `json:"serverCode,omitempty"`
	// Reached is whether the request was sent on to the API server. A write that
	// reached it and has ServerCode 0 has an unknown outcome.
	Reached bool `json:"reached,omitempty"`
	// Reason is the reason of a Status answer, such as AlreadyExists.
	Reason string `json:"reason,omitempty"`
	// Cause is the first cause that a Status answer gives beside its reason, such as
	// NamespaceTerminating.
	Cause string `json:"cause,omitempty"`
	// Fault names the fault that changed the request or its answer, if one did.
	Fault string `json:"fault,omitempty"`
	// RetryAfter is for how many seconds the answer asks the client to wait before
	// it repeats the request, which client-go does by itself; nil if it does not ask.
	RetryAfter *int `json:"retryAfter,omitempty"`
	// Object is what the API server answered with, whether or not the subject got
	// its answer.
	Object *Object `json:"object,omitempty"`
	// Bytes is how long the body is that the subject is handed; 0 for a watch, whose
	// deliveries have their own, and where the API server does not say beforehand.
	Bytes int `json:"bytes,omitempty"`
}

// OK reports whether the subject was told that its request succeeded.
func (r *Response) OK() bool { return r.Code >= 200 && r.Code < 300 }

// List is the content of a list answer, recorded before it is handed over and
// after its Response.
type List struct {
	ID       uint64   `json:"id"`
	Subject  string   `json:"subject"`
	Resource string   `json:"resource"`
	Version  Version  `json:"version"`
	Items    []Object `json:"items"`
	// Continued is whether this is a further page of the list before it.
	Continued bool `json:"continued,omitempty"`
	// More is whether a further page follows.
	More bool `json:"more,omitempty"`
}

// Delivery is one watch event, recorded before it is handed to the subject.
type Delivery struct {
	ID       uint64    `json:"id"` // of the watch request
	Subject  string    `json:"subject"`
	Resource string    `json:"resource"`
	Type     EventType `json:"type"`
	// Object is the event's object; of a bookmark only its version is set, of an
	// error nothing.
	Object Object `json:"object"`
	// InitialEventsEnd marks the bookmark that ends the initial events of a
	// streaming list: what the stream has not named by then does not exist.
	InitialEventsEnd bool `json:"initialEventsEnd,omitempty"`
	// Held is how long a fault kept the event back, in nanoseconds.
	Held time.Duration `json:"held,omitempty"`
	// Bytes is how long the event is on the stream, its frame included.
	Bytes int `json:"bytes,omitempty"`
}

// WatchClosed is the end of a watch stream.
type WatchClosed struct {
	ID       uint64 `json:"id"`
	Subject  string `json:"subject"`
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// Fault is something that a fault did.
type Fault struct {
	// Index is the fault's position in the scenario, from 0; Name its kind.
	Index int        `json:"index"`
	Name  string     `json:"name"`
	Event FaultEvent `json:"event"`
	// Detail says what it did, to what, in words.
	Detail string `json:"detail,omitempty"`
	// Request is the ID of the request it touched, if any.
	Request uint64 `json:"request,omitempty"`
	// Object is the object it touched, if any.
	Object *Ref `json:"object,omitempty"`
}

// FaultEvent is what happened to a fault.
type FaultEvent string

// The events in the life of a fault.
const (
	FaultInjected FaultEvent = "injected" // it may fire from here on
	FaultFired    FaultEvent = "fired"    // it did something
	FaultHealed   FaultEvent = "healed"   // it can fire no more, its effects are undone
	FaultFailed   FaultEvent = "failed"   // it could not do what it should
)

// Step is a step of the workload: what a user did.
type Step struct {
	Index  int       `json:"index"` // position in the scenario, from 0
	Event  StepEvent `json:"event"`
	Detail string    `json:"detail"` // the step in words
	Object *Ref      `json:"object,omitempty"`
	Error  string    `json:"error,omitempty"`
	// Awaited is the object that a step which failed awaited in vain; nil if it failed
	// for another reason.
	Awaited *Ref `json:"awaited,omitempty"`
}

// StepEvent is what happened to a step.
type StepEvent string

// The events in the life of a step.
const (
	StepBegun  StepEvent = "begun"
	StepDone   StepEvent = "done"
	StepFailed StepEvent = "failed"
)

// Process is something that happened to a process of the run, above all the
// subject's.
type Process struct {
	Name  string       `json:"name"` // such as "subject-0" or "kube-apiserver"
	Event ProcessEvent `json:"event"`
	PID   int          `json:"pid,omitempty"`
	// Detail says how it ended, or why.
	Detail string `json:"detail,omitempty"`
	// Usage is what it used in its life, known once it has ended.
	Usage *Usage `json:"usage,omitempty"`
}

// Usage is what a process used from its start to its end.
type Usage struct {
	// CPU is user and system time, in nanoseconds.
	CPU time.Duration `json:"cpu"`
	// PeakMemory is the largest resident set, in bytes.
	PeakMemory int64 `json:"peakMemory"`
}

// ProcessEvent is what happened to a process.
type ProcessEvent string

// The events in the life of a process.
const (
	ProcessStarted ProcessEvent = "started"
	ProcessStopped ProcessEvent = "stopped" // the run asked it to
	ProcessDied    ProcessEvent = "died"    // nobody asked it to
	ProcessPaused  ProcessEvent = "paused"  // it stands still, until it is resumed or ends
	ProcessResumed ProcessEvent = "resumed"
)

// Gap says that a witness missed something: what a check concludes from
// absence is worth nothing from here on.
type Gap struct {
	Source string `json:"source"` // such as "commits of pods"
	Detail string `json:"detail"`
}

// Stall says that for a while, up to this record, the witnesses got no time to run,
// as on a machine that is starved or stands still. What others did meanwhile, if they
// ran, was recorded late; that nothing was recorded says nothing of them.
type Stall struct {
	Duration time.Duration `json:"lasted"` // in nanoseconds
}
