package history

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Record is one line of a history. Exactly one of its pointers is set.
type Record struct {
	// Seq is the position of the record in the history. The first record has 1, and no
	// number is missing.
	Seq int64 `json:"seq"`
	// At is the time at which the recorder appended the record, in nanoseconds since
	// Start.Time. The clock is that of the gauntlet process, which clock-skew faults do not
	// shift.
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
	End         *End         `json:"end,omitempty"`
}

// payloads returns the number of pointers in the record that are not nil. A valid record
// has exactly one.
func (r *Record) payloads() int {
	n := 0
	for _, set := range [...]bool{
		r.Start != nil, r.Phase != nil, r.Commit != nil, r.Request != nil, r.Response != nil, r.List != nil, r.Delivery != nil,
		r.WatchClosed != nil, r.Fault != nil, r.Step != nil, r.Process != nil, r.Gap != nil, r.Stall != nil, r.End != nil,
	} {
		if set {
			n++
		}
	}
	return n
}

// Format is the version of the record format that this package writes. The reader also accepts
// [format1]. It rejects any other version, and any record of an unknown kind.
//
// The version increases when a field or a kind of record is removed or changes its meaning. It
// does not increase when a field or a kind of record is added.
//
// A history may be older than a field or kind of record, so the absence of one proves nothing.
// The first histories of format 1 lack Stall, Stall.Process, Step.Awaited, and the Bytes of
// Request, Response and Delivery. The first histories of format 2 lack Start.Controllers,
// Response.Denied, Start.Ends and End.
const Format = 2

// format1 is the Format value of format 1, which the reader still accepts. In format 1, the
// key of Record.Commit is "truth".
const format1 = 1

// Start is the first record of every history. It identifies the run.
type Start struct {
	Format    int       `json:"format"`
	Time      time.Time `json:"time"`
	Scenario  string    `json:"scenario"`
	Seed      uint64    `json:"seed"`
	Subject   string    `json:"subject"`  // what is under test: ours, upstream, exec:PATH or image:REF
	Provider  string    `json:"provider"` // provider of the control plane: embedded, kind or existing
	Namespace string    `json:"namespace"`
	// Controllers contains the names of the controllers under test, as package kube lists
	// them. If the list is empty, kube.DefaultControllers are under test.
	Controllers []string `json:"controllers,omitempty"`
	// Ends reports whether the last record of the history is an End record. If it is missing,
	// the history is truncated.
	Ends bool `json:"ends,omitempty"`
}

// Phase marks the beginning of a phase of the run. The phase lasts until the next Phase
// record.
type Phase struct {
	Name PhaseName `json:"name"`
}

// PhaseName names a phase of the run.
type PhaseName string

// These are the phases of a run, in order.
const (
	// PhaseChaos begins when the subject holds the leader-election lease and watches all
	// its resources. The workload runs and faults are active in this phase.
	PhaseChaos PhaseName = "chaos"
	// PhaseSettle begins when the workload has ended and every fault is healed. The time
	// limit for convergence counts from here.
	PhaseSettle PhaseName = "settle"
	// PhaseQuiet begins when the observed objects have converged. The subject must not
	// write any more. If it does write, the run waits for convergence again, and then
	// appends a further PhaseQuiet record.
	PhaseQuiet PhaseName = "quiet"
	// PhaseEnd marks the end of the observation. After it, the run stops its processes.
	PhaseEnd PhaseName = "end"
)

// EventType is the type of a watch event, as the Kubernetes API spells it.
type EventType string

// These are the types of watch events.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	Bookmark EventType = "BOOKMARK"
	Error    EventType = "ERROR"
)

// HasObject reports whether an event of this type contains a complete object. Bookmarks and
// errors do not.
func (t EventType) HasObject() bool { return t == Added || t == Modified || t == Deleted }

// Commit is one committed version of an object. The observer read it from etcd, or received it
// from the API server without the fault proxy in between.
type Commit struct {
	Type   EventType `json:"type"` // Added, Modified or Deleted
	Object Object    `json:"object"`
}

// Request is one request of the subject. The fault proxy records it when it has read the
// request, before a fault or the API server acts on it.
type Request struct {
	// ID is unique in the run. The records Response, List, Delivery and WatchClosed refer to it.
	ID uint64 `json:"id"`
	// Subject is the name of the replica that sent the request, such as "subject-0".
	Subject string `json:"subject"`
	// Verb is the API verb: get, list, watch, create, update, patch, delete or
	// deletecollection.
	Verb string `json:"verb"`
	// Resource is the resource with its API group, such as "pods" or "replicasets.apps". It
	// is empty if the URL path names no resource, such as /healthz.
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	// Name is the name in the URL path. It is empty for a request to a collection, such as
	// a list or a create.
	Name string `json:"name,omitempty"`
	// Path is the URL path, recorded only if Resource is empty. Query is the raw URL
	// query.
	Path  string `json:"path,omitempty"`
	Query string `json:"query,omitempty"`
	Agent string `json:"agent,omitempty"` // User-Agent header
	// Object is the object in the body of a create or update, or nil.
	Object *Object `json:"object,omitempty"`
	// Patch is the body of a patch. PatchType is its content type.
	Patch     json.RawMessage `json:"patch,omitempty"`
	PatchType string          `json:"patchType,omitempty"`
	// PreconditionUID is the UID in the preconditions of a delete, if there is one.
	PreconditionUID types.UID `json:"preconditionUID,omitempty"`
	// Bytes is the length of the request body.
	Bytes int `json:"bytes,omitempty"`
}

// Response is the response to a request. For a watch, it is the response that opens the
// stream. The fault proxy records it before it sends the response to the subject.
type Response struct {
	ID uint64 `json:"id"`
	// Code is the HTTP status that the subject receives. It is 0 if a fault or the subject
	// closed the connection, so that the subject receives no response or only a part of it.
	Code int `json:"code"`
	// ServerCode is the HTTP status that the API server returned. It is 0 if the request
	// did not reach the API server, or if the proxy did not wait for the response.
	ServerCode int `json:"serverCode,omitempty"`
	// Reached reports whether the proxy forwarded the request to the API server. If Reached
	// is true and ServerCode is 0, nobody knows whether a write was committed.
	Reached bool `json:"reached,omitempty"`
	// Reason is the reason in a Status response, such as AlreadyExists.
	Reason string `json:"reason,omitempty"`
	// Cause is the type of the first cause in the details of a Status response, such as
	// NamespaceTerminating.
	Cause string `json:"cause,omitempty"`
	// Denied reports whether the authorizer of the API server, such as RBAC, refused the
	// request. Reason is then Forbidden. Admission control refuses with the same reason, but
	// Denied is false.
	Denied bool `json:"denied,omitempty"`
	// Fault is the type of the fault that changed the request or its response, or "" if no
	// fault did.
	Fault string `json:"fault,omitempty"`
	// RetryAfter is the value of the Retry-After header in seconds, or nil if the response
	// does not have this header. If it has, client-go sends the request again by itself,
	// without a new sync of the controller.
	RetryAfter *int `json:"retryAfter,omitempty"`
	// Object is the object in the API server's response, whether or not the subject
	// received the response.
	Object *Object `json:"object,omitempty"`
	// Bytes is the length of the body that the subject receives. It is 0 for a watch, whose
	// events have their length in Delivery.Bytes. It is also 0 for a response that contains
	// no object, such as a log, if the API server sends no Content-Length.
	Bytes int `json:"bytes,omitempty"`
}

// OK reports whether the subject received a response with a 2xx status.
func (r *Response) OK() bool { return r.Code >= 200 && r.Code < 300 }

// List is the content of a list response. The fault proxy records it after the Response
// record, and before it sends the response to the subject.
type List struct {
	ID       uint64   `json:"id"` // ID of the list request
	Subject  string   `json:"subject"`
	Resource string   `json:"resource"`
	Version  Version  `json:"version"`
	Items    []Object `json:"items"`
	// Continued reports whether this is a page of a list after the first page.
	Continued bool `json:"continued,omitempty"`
	// More reports whether further pages of the list follow.
	More bool `json:"more,omitempty"`
}

// Delivery is one watch event. The fault proxy records it before it sends the event to
// the subject.
type Delivery struct {
	ID       uint64    `json:"id"` // ID of the watch request
	Subject  string    `json:"subject"`
	Resource string    `json:"resource"`
	Type     EventType `json:"type"`
	// Object is the object in the event. In a bookmark only its version is set; in an
	// error it is empty.
	Object Object `json:"object"`
	// InitialEventsEnd marks the bookmark that ends the initial events of a streaming list.
	// An object without an event before this bookmark did not exist.
	InitialEventsEnd bool `json:"initialEventsEnd,omitempty"`
	// Held is the time for which a fault delayed the event, in nanoseconds.
	Held time.Duration `json:"held,omitempty"`
	// Bytes is the length of the event on the watch stream, including the line break (JSON) or
	// the length prefix (protobuf).
	Bytes int `json:"bytes,omitempty"`
}

// WatchClosed says that a watch stream of the subject has ended.
type WatchClosed struct {
	ID       uint64 `json:"id"`
	Subject  string `json:"subject"`
	Resource string `json:"resource"`
	Reason   string `json:"reason"` // why the stream ended
}

// Fault is an event of a fault: it was injected, fired, was healed or failed. A fault fires
// each time it changes something, such as refusing one request.
type Fault struct {
	// Index is the position of the fault in the scenario, from 0. Name is its type, such as
	// "api-error".
	Index int        `json:"index"`
	Name  string     `json:"name"`
	Event FaultEvent `json:"event"`
	// Detail describes the action of the fault and its target.
	Detail string `json:"detail,omitempty"`
	// Request is the ID of the request that the fault affected, if there is one.
	Request uint64 `json:"request,omitempty"`
	// Object is the object that the fault affected, if there is one.
	Object *Ref `json:"object,omitempty"`
}

// FaultEvent says what has happened to the fault of a [Fault] record.
type FaultEvent string

// These are the events in the life cycle of a fault.
const (
	FaultInjected FaultEvent = "injected" // the fault is active and may fire from here on
	FaultFired    FaultEvent = "fired"    // the fault changed something, such as refusing one request
	FaultHealed   FaultEvent = "healed"   // the fault is over and its effects are undone
	FaultFailed   FaultEvent = "failed"   // the fault could not act as the scenario specifies
)

// Step records the beginning or the end of a workload step: one user operation, an await, or
// both.
type Step struct {
	Index  int       `json:"index"` // position in the workload, from 0
	Event  StepEvent `json:"event"`
	Detail string    `json:"detail"` // description of the step
	Object *Ref      `json:"object,omitempty"`
	Error  string    `json:"error,omitempty"`
	// Awaited is the object for which the step waited in vain. It is nil unless the step failed
	// because of the timeout of its await.
	Awaited *Ref `json:"awaited,omitempty"`
}

// StepEvent says whether the step of a [Step] record has begun, ended or failed.
type StepEvent string

// These are the events in the life cycle of a step.
const (
	StepBegun  StepEvent = "begun"
	StepDone   StepEvent = "done"
	StepFailed StepEvent = "failed"
)

// Process says that a process was started, stopped, paused or resumed, or that it died. The
// process is usually a replica of the subject.
type Process struct {
	Name  string       `json:"name"` // such as "subject-0" or "kube-apiserver"
	Event ProcessEvent `json:"event"`
	PID   int          `json:"pid,omitempty"`
	// Detail describes how or why the process ended.
	Detail string `json:"detail,omitempty"`
	// Usage is the resource usage of a process that has ended. It is nil for a running
	// process, or if the usage is unknown.
	Usage *Usage `json:"usage,omitempty"`
}

// Usage is the resource usage of a process from its start to its end.
type Usage struct {
	// CPU is the sum of user and system time, in nanoseconds.
	CPU time.Duration `json:"cpu"`
	// PeakMemory is the maximum resident set size, in bytes.
	PeakMemory int64 `json:"peakMemory"`
}

// ProcessEvent says what has happened to the process of a [Process] record.
type ProcessEvent string

// These are the events in the life cycle of a process.
const (
	ProcessStarted ProcessEvent = "started"
	ProcessStopped ProcessEvent = "stopped" // the process ended because the run stopped it
	ProcessDied    ProcessEvent = "died"    // the process ended although the run did not stop it
	ProcessPaused  ProcessEvent = "paused"  // the process is suspended until it is resumed or ends
	ProcessResumed ProcessEvent = "resumed"
)

// Gap says that a source of records missed something. After a gap, the absence of a record
// no longer proves that nothing happened.
type Gap struct {
	Source string `json:"source"` // such as "commits of pods" or "subject-0's view of pods"
	Detail string `json:"detail"` // what is missing, and why
}

// Stall says that a process got no CPU time for a while before this record. The machine may have
// been overloaded or suspended.
//
// If gauntlet itself stalled, records of events in that time have a later timestamp. The absence
// of records in that time therefore proves nothing.
type Stall struct {
	Duration time.Duration `json:"lasted"` // nanoseconds
	// Process is the name of the replica of the subject that stalled, such as "subject-0". It is
	// empty if gauntlet itself stalled.
	Process string `json:"process,omitempty"`
}

// End is the last record of a history, if Start.Ends is true. Without it, records may be
// missing at the end of the file.
type End struct{}
