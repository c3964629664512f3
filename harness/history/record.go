package history

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Record is one line of a history. Exactly one of its pointers is set, such as Commit or Request.
// This pointer says what the record contains.
type Record struct {
	// Seq is the sequence number of the record: its line in the file. The first record has 1, and
	// no number is missing.
	Seq int64 `json:"seq"`
	// At is when the recorder appended the record, in nanoseconds since Start.Time. It is the time
	// on gauntlet's own clock, which clock-skew faults do not shift.
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

// payloads returns how many of the record's pointers are set, from the field Start to the field
// End. The reader rejects a record if this number is not 1.
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
// [format1]. It rejects any other version, and any record type that it does not know.
//
// The version increases when a field or a record type is removed or changes its meaning. It does
// not increase when a field or a record type is added.
//
// Old histories lack fields and record types that were added later, so a missing field or record
// proves nothing. The first histories of format 1 lack Stall, Stall.Process, Step.Awaited, and
// the Bytes of Request, Response and Delivery. The first histories of format 2 lack
// Start.Controllers, Response.Denied, Start.Ends and End.
const Format = 2

// format1 is the Format value of format 1, which the reader still accepts. In format 1, the JSON
// key of Record.Commit is "truth".
const format1 = 1

// Start is the first record of every history. It says what was run: the scenario, its seed, the
// controllers under test (the subject) and the cluster's provider.
type Start struct {
	Format    int       `json:"format"` // the version of the record format: the constant Format
	Time      time.Time `json:"time"`   // when the run began, by gauntlet's clock
	Scenario  string    `json:"scenario"`
	Seed      uint64    `json:"seed"`
	Subject   string    `json:"subject"`  // what is under test, such as ours, upstream, exec:PATH, image:REF or go:PATH
	Provider  string    `json:"provider"` // provider of the control plane: embedded, kind, existing or virtual
	Namespace string    `json:"namespace"`
	// Controllers lists the names of the controllers under test, which are names of package kube.
	// An empty list means kube.DefaultControllers.
	Controllers []string `json:"controllers,omitempty"`
	// Ends is true if a complete history ends with an End record. If that record is missing, the
	// history is truncated. Ends is false in old histories, which have no End record.
	Ends bool `json:"ends,omitempty"`
}

// Phase marks the beginning of a phase of the run, such as settle. The phase lasts until the
// next Phase record.
type Phase struct {
	Name PhaseName `json:"name"`
}

// PhaseName is the name of a phase of the run, such as settle.
type PhaseName string

// These are the phases of a run, in order: faults and workload, convergence, quiet, and the end.
const (
	// PhaseChaos begins when a replica of the controllers under test holds the leader-election
	// lease and has opened its watches. The workload runs and faults are active in this phase.
	PhaseChaos PhaseName = "chaos"
	// PhaseSettle begins when the workload has ended and every fault is healed. The objects must
	// converge within a time limit that starts here.
	PhaseSettle PhaseName = "settle"
	// PhaseQuiet begins when all objects have converged. The controllers under test must write
	// nothing from then on. If they do write, the run waits for convergence again, and then appends
	// another PhaseQuiet record.
	PhaseQuiet PhaseName = "quiet"
	// PhaseEnd is the last phase. The observation ends here, and the run stops the processes that
	// it started.
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

// HasObject reports whether a watch event of this type contains a complete object. An event of
// type Bookmark or Error does not.
func (t EventType) HasObject() bool { return t == Added || t == Modified || t == Deleted }

// Commit is one version of an object that etcd has committed. The observer read the version from
// etcd, or received it from the API server without the fault proxy in between.
type Commit struct {
	Type   EventType `json:"type"` // Added, Modified or Deleted
	Object Object    `json:"object"`
}

// Request is one request to the API server by the controllers under test (the subject). The fault
// proxy records the request after reading it, and before a fault or the API server acts on it.
type Request struct {
	// ID identifies the request in the run. The records Response, List, Delivery and WatchClosed
	// contain the ID of the request to which they belong.
	ID uint64 `json:"id"`
	// Subject is the name of the replica that sent the request, such as "subject-0".
	Subject string `json:"subject"`
	// Verb is the API verb: get, list, watch, create, update, patch, delete or
	// deletecollection.
	Verb string `json:"verb"`
	// Resource is the resource with its API group, such as "pods" or "replicasets.apps". It is
	// empty for a URL path without a resource, such as /healthz.
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	// Name is the name in the URL path. It is empty for a request to a collection, such as
	// a list or a create.
	Name string `json:"name,omitempty"`
	// Path is the URL path; it is empty if Resource is set. Query is the URL query as the
	// controllers under test sent it, such as "watch=true".
	Path  string `json:"path,omitempty"`
	Query string `json:"query,omitempty"`
	Agent string `json:"agent,omitempty"` // User-Agent header
	// Object is the object in the body of a create or update. It is nil for other requests.
	Object *Object `json:"object,omitempty"`
	// PodSpec is the whole spec of the pod in a create of a pod. The body of Object has only parts of
	// it. PodSpec is nil for other requests and in old histories.
	PodSpec json.RawMessage `json:"podSpec,omitempty"`
	// Patch is the body of a patch request. PatchType is its Content-Type header, such as
	// "application/merge-patch+json".
	Patch     json.RawMessage `json:"patch,omitempty"`
	PatchType string          `json:"patchType,omitempty"`
	// PreconditionUID is the UID that a delete request requires the object to have
	// (preconditions.uid). It is empty if the request has no such precondition.
	PreconditionUID types.UID `json:"preconditionUID,omitempty"`
	// BodyDryRun is true if the body of a delete asks for a dry run. Query says it for other requests.
	BodyDryRun bool `json:"bodyDryRun,omitempty"`
	// Bytes is the length of the request body, in bytes.
	Bytes int `json:"bytes,omitempty"`
}

// Response is the API server's response to a request. For a watch, it is the response that opens
// the stream. The fault proxy records the response before sending it to the controllers under
// test (the subject).
type Response struct {
	ID uint64 `json:"id"`
	// Code is the HTTP status that the controllers under test (the subject) receive. It is 0 if the
	// subject receives no complete response, because a fault or the subject closed the connection.
	Code int `json:"code"`
	// ServerCode is the HTTP status that the API server returned to the fault proxy. It is 0 if the
	// request did not reach the API server. It is also 0 if the proxy did not wait for the
	// response.
	ServerCode int `json:"serverCode,omitempty"`
	// Reached is true if the fault proxy forwarded the request to the API server. If Reached is
	// true and ServerCode is 0, a write may or may not have been committed.
	Reached bool `json:"reached,omitempty"`
	// Reason is the reason in a Status response, such as AlreadyExists.
	Reason string `json:"reason,omitempty"`
	// Cause is the type of the first cause in the details of a Status response, such as
	// NamespaceTerminating.
	Cause string `json:"cause,omitempty"`
	// Denied is true if the authorizer of the API server, such as RBAC, rejected the request.
	// Reason is then Forbidden. Admission control also rejects requests with the reason Forbidden,
	// but Denied is then false.
	Denied bool `json:"denied,omitempty"`
	// Fault is the type of the fault that changed the request or its response, such as "api-error".
	// It is empty if no fault changed them.
	Fault string `json:"fault,omitempty"`
	// RetryAfter is the value of the Retry-After header, in seconds. It is nil if the response has
	// no such header. With the header, client-go sends the request again by itself, without a new
	// sync of the controller.
	RetryAfter *int `json:"retryAfter,omitempty"`
	// Object is the object in the API server's response. It is recorded even if the controllers
	// under test did not receive the response.
	Object *Object `json:"object,omitempty"`
	// Bytes is the length of the response body that the controllers under test receive, in bytes.
	// It is 0 for a watch, because Delivery.Bytes has the length of each event. It is also 0 for a
	// response without an object, such as a log, if the response has no Content-Length.
	Bytes int `json:"bytes,omitempty"`
}

// OK reports whether the controllers under test (the subject) received a response with a 2xx
// status.
func (r *Response) OK() bool { return r.Code >= 200 && r.Code < 300 }

// List contains the objects of a list response. The fault proxy records it after the Response
// record, and before sending the response to the controllers under test.
type List struct {
	ID       uint64   `json:"id"` // ID of the list request
	Subject  string   `json:"subject"`
	Resource string   `json:"resource"`
	Version  Version  `json:"version"` // resourceVersion of the list response
	Items    []Object `json:"items"`
	// Continued is true if this is the second or a later page of a paged list.
	Continued bool `json:"continued,omitempty"`
	// More is true if further pages of the list follow.
	More bool `json:"more,omitempty"`
}

// Delivery is one watch event. The fault proxy records the event before sending it to the
// controllers under test (the subject).
type Delivery struct {
	ID       uint64    `json:"id"` // ID of the watch request
	Subject  string    `json:"subject"`
	Resource string    `json:"resource"`
	Type     EventType `json:"type"`
	// Object is the object in the event. In a bookmark, only its resourceVersion is set; in an
	// error event, it is empty.
	Object Object `json:"object"`
	// InitialEventsEnd is true for the bookmark that ends the initial events of a watch with
	// sendInitialEvents=true. An object without an event before this bookmark did not exist.
	InitialEventsEnd bool `json:"initialEventsEnd,omitempty"`
	// Held is how long faults delayed the event, in nanoseconds. It includes the time for which the
	// event waited behind an earlier event that a fault delayed.
	Held time.Duration `json:"held,omitempty"`
	// Bytes is the length of the event on the watch stream, in bytes. It includes the line break
	// (JSON) or the length prefix (protobuf).
	Bytes int `json:"bytes,omitempty"`
}

// WatchClosed says that a watch stream of the controllers under test has ended, and why.
type WatchClosed struct {
	ID       uint64 `json:"id"`
	Subject  string `json:"subject"`
	Resource string `json:"resource"`
	Reason   string `json:"reason"` // why the stream ended, in words
	// Broken is true if a fault broke the connection of the controllers under test. This breaks all
	// requests on the connection.
	Broken bool `json:"broken,omitempty"`
}

// Fault records that a fault was injected, fired, was healed or failed. A fault fires each time
// it changes something, such as refusing one request.
type Fault struct {
	// Index is the position of the fault in the scenario, from 0. Name is the type of the fault,
	// such as "api-error".
	Index int        `json:"index"`
	Name  string     `json:"name"`
	Event FaultEvent `json:"event"`
	// Detail says what the fault did and to which target.
	Detail string `json:"detail,omitempty"`
	// Request is the ID of the request on which the fault acted. It is 0 if the fault acted on no
	// request.
	Request uint64 `json:"request,omitempty"`
	// Object is the object on which the fault acted. It is nil if the fault acted on no object.
	Object *Ref `json:"object,omitempty"`
}

// FaultEvent says what happened to the fault in a [Fault] record.
type FaultEvent string

// These are the events in the life cycle of a fault, from its injection until it is healed.
const (
	FaultInjected FaultEvent = "injected" // the fault is active and may fire from here on
	FaultFired    FaultEvent = "fired"    // the fault changed something, such as refusing one request
	FaultHealed   FaultEvent = "healed"   // the fault is over and its effects are undone
	FaultFailed   FaultEvent = "failed"   // the fault could not act as the scenario specifies
)

// Step records that a workload step has begun, is late, is done or has failed. A step is one user
// operation, such as scale, a wait for a condition (await), or both.
type Step struct {
	Index  int       `json:"index"` // position of the step in the workload, from 0
	Event  StepEvent `json:"event"`
	Detail string    `json:"detail"` // the step in words
	Object *Ref      `json:"object,omitempty"`
	Error  string    `json:"error,omitempty"` // why the step failed
	// Awaited is the object that did not meet the awaited condition in time. It is nil unless the
	// step failed because its await timed out.
	Awaited *Ref `json:"awaited,omitempty"`
}

// StepEvent says whether the step in a [Step] record has begun, is late, is done or has failed.
type StepEvent string

// These are the events in the life cycle of a workload step, such as that a step has failed.
const (
	StepBegun  StepEvent = "begun"
	StepDone   StepEvent = "done"
	StepFailed StepEvent = "failed"
	// StepLate says that an awaited condition was not met in time. The run then ends its faults, and
	// the step goes on for a limited time.
	StepLate StepEvent = "late"
)

// Process records that a process was started, stopped, paused or resumed, or that it died. In
// most cases, the process is a replica of the controllers under test, such as subject-0.
type Process struct {
	Name  string       `json:"name"` // name of the process, such as "subject-0" or "kube-apiserver"
	Event ProcessEvent `json:"event"`
	PID   int          `json:"pid,omitempty"`
	// Detail says how or why the process ended. It may contain the end of the process's log.
	Detail string `json:"detail,omitempty"`
	// Usage is the resource usage of a process that has ended. It is nil for other events, and if
	// the usage is unknown.
	Usage *Usage `json:"usage,omitempty"`
}

// Usage is how much CPU time and memory a process used from its start to its end.
type Usage struct {
	// CPU is the user time plus the system time, in nanoseconds.
	CPU time.Duration `json:"cpu"`
	// PeakMemory is the maximum resident set size, in bytes.
	PeakMemory int64 `json:"peakMemory"`
}

// ProcessEvent says what happened to the process in a [Process] record.
type ProcessEvent string

// These are the events in the life cycle of a process, such as a replica of the controllers under
// test.
const (
	ProcessStarted ProcessEvent = "started"
	ProcessStopped ProcessEvent = "stopped" // the process ended because the run stopped it
	ProcessDied    ProcessEvent = "died"    // the process ended although the run did not stop it
	ProcessPaused  ProcessEvent = "paused"  // the process is suspended until it is resumed or ends
	ProcessResumed ProcessEvent = "resumed"
)

// Gap says that a source of records missed something, so that records are missing from here on.
// After a gap, the absence of a record no longer proves that nothing happened.
type Gap struct {
	Source string `json:"source"` // the records that are incomplete, such as "commits of pods" or "requests for pods by subject-0, and watch events that it received"
	Detail string `json:"detail"` // what is missing, and why
}

// SourceRun is the source of the gap in the history of a run that was aborted. The detail of the gap
// says why.
const SourceRun = "the run"

// Stall says that gauntlet or a replica of the controllers under test got no CPU time before this
// record. The machine may have been overloaded or suspended.
//
// If gauntlet itself stalled, it recorded the events of that time late. The absence of records
// in that time therefore proves nothing.
type Stall struct {
	Duration time.Duration `json:"lasted"` // how long the process got no CPU time, in nanoseconds
	// Process is the name of the replica that got no CPU time, such as "subject-0". It is empty
	// if gauntlet itself got none.
	Process string `json:"process,omitempty"`
}

// End is the last record of a history if Start.Ends is true. If that record is missing, other
// records may be missing at the end of the file too.
type End struct{}

// HasKindOfResource reports whether the objects of a subresource have the kind of the resource itself. The
// subresource scale, for example, has objects of the kind Scale, without the owners of the scaled object.
func HasKindOfResource(subresource string) bool { return subresource == "" || subresource == "status" }
