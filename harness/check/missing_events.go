package check

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The reasons of the events that the check events knows.
const (
	podCreatedReason      = "SuccessfulCreate"
	podDeletedReason      = "SuccessfulDelete"
	scaledReason          = "ScalingReplicaSet"
	createFailedReason    = "FailedCreate"
	deleteFailedReason    = "FailedDelete"
	setFailedReason       = "ReplicaSetCreateError"
	createEndpointsReason = "FailedToCreateEndpoint"
	updateEndpointsReason = "FailedToUpdateEndpoint"
)

// newSetScaled stands for events with the reason ScalingReplicaSet that begin from 0 replicas, as after the
// create of a ReplicaSet. scaledReason then stands for all other events with this reason. A controller may
// emit the two in different places.
const newSetScaled = scaledReason + " for a new ReplicaSet"

// isEvents reports whether a resource is events, in the core API group or in events.k8s.io.
func isEvents(resource string) bool {
	return resource == "events" || resource == "events.events.k8s.io"
}

// missingEvents finds reasons with which the subject has sent no event, although it must have emitted
// some. An event may get lost, so a reason counts only after several responses that demand an event with
// this reason.
type missingEvents struct {
	sent map[string]bool // the reasons of the events that the subject has sent, and newSetScaled
	// occasions contains, by reason, the responses after which a process must emit an event. It is empty
	// for a reason in sent.
	occasions map[string][]*eventOccasion
	emitters  map[*process]*eventEmitter
	// unreliable is true if a request for an event failed in such a way that client-go repeats it. Events
	// then wait for minutes.
	unreliable bool
}

// eventOccasion is a response after which a process must emit an event.
type eventOccasion struct {
	process *process
	request string        // the request in words
	at      time.Duration // the time of the response on the clock of the process
	seq     int64         // the sequence number of the record of the response
	// due is true if the process was idle afterwards. An event of the process has then been sent.
	due bool
}

// eventEmitter counts the responses after which a process may have emitted an event.
type eventEmitter struct {
	all      countSinceIdle
	byObject map[string]int // by the object that the event is about
}

// These numbers say when client-go may drop an event. It drops events about an object after the first 25
// (eventsPerObjectMax), and events that are emitted while 25 others wait (eventsAtOnceMax). It also drops
// an event if 1000 others have not been sent yet (eventsWaitingMax). The values are lower, so that no
// event can be lost.
const (
	eventsPerObjectMax = 20
	eventsAtOnceMax    = 20
	eventsWaitingMax   = 500
)

// eventDelay is the minimum age of a response after which an idle process has sent the event about it.
const eventDelay = 3 * lag

// eventsMin is the number of responses after which at least one event with their reason is demanded.
const eventsMin = 3

func newMissingEvents() missingEvents {
	return missingEvents{sent: map[string]bool{}, occasions: map[string][]*eventOccasion{}, emitters: map[*process]*eventEmitter{}}
}

// observe reads the next record. It stores the responses after which a process must emit an event.
func (missing *missingEvents) observe(m *Model) {
	if m.endedIdle != nil {
		missing.becameIdle(m.endedIdle, m.processTime)
	}
	c := m.answered
	if c == nil {
		return
	}
	_, key, _ := strings.Cut(c.key, " ") // the key begins with the verb and the resource
	resource, _, _ := strings.Cut(key, " ")
	switch {
	case isEvents(resource):
		code := c.response.Code
		refused := code == http.StatusForbidden || code == http.StatusNotFound || code == http.StatusConflict
		missing.unreliable = missing.unreliable || !c.response.OK() && !refused
	case c.ownerState != nil || c.rollout != nil || c.serviceState != nil:
		missing.answered(m, c)
	}
}

// addSent records that the subject has sent an event with the given reason and message.
func (missing *missingEvents) addSent(reason, message string) {
	if reason == scaledReason && strings.Contains(message, " from 0 to ") {
		reason = newSetScaled
	}
	missing.sent[reason] = true
	delete(missing.occasions, reason)
}

// answered stores the response to a request if the process must emit an event after it.
func (missing *missingEvents) answered(m *Model, c *answeredCall) {
	emitter := missing.emitters[c.process]
	if emitter == nil {
		maps.DeleteFunc(missing.emitters, func(p *process, _ *eventEmitter) bool { return p.ended })
		emitter = &eventEmitter{byObject: map[string]int{}}
		missing.emitters[c.process] = emitter
	}
	about := aboutObject(c.call)
	emitter.all.add(m.processTime, 1)
	emitter.byObject[about]++
	reason := demandedReason(c)
	if reason == "" || missing.sent[reason] || emitter.byObject[about] > eventsPerObjectMax ||
		emitter.all.current+emitter.all.previous > eventsAtOnceMax || emitter.all.total() > eventsWaitingMax {
		return
	}
	missing.occasions[reason] = append(missing.occasions[reason], &eventOccasion{process: c.process, request: callName(c.call), at: m.processTime, seq: m.seq})
}

// aboutObject identifies the object that events about a request name.
func aboutObject(c *call) string {
	switch {
	case c.ownerState != nil:
		return string(c.ownerState.uid)
	case c.rollout != nil:
		return string(c.rollout.uid)
	}
	return c.serviceState.name.namespace + "/" + c.serviceState.name.name
}

// demandedReason returns the reason of the event that a process must emit after a response. It returns ""
// if the process need not emit one, or if it is unknown whether it must. An example is a response after
// which client-go sends the request again.
func demandedReason(c *answeredCall) string {
	ok, code := c.response.OK(), c.response.Code
	refused := code >= http.StatusBadRequest && !isRetriedByClient(c.response) && c.response.Cause != string(corev1.NamespaceTerminatingCause)
	scales := c.rollout != nil && c.scaling != nil
	switch {
	case ok && c.verb == callCreatePod:
		return podCreatedReason
	case ok && c.verb == callDeletePod:
		return podDeletedReason
	case ok && scales && c.scaling.creates && c.scaling.to > 0:
		return newSetScaled
	case ok && scales && c.scaling.from > 0 && c.scaling.from != c.scaling.to:
		return scaledReason
	case !refused, c.verb == callDeletePod && code == http.StatusNotFound, c.rollout != nil && (!scales || code == http.StatusConflict):
		return ""
	}
	return failureReason(c.call)
}

// failureReason returns the reason of the event that a process may emit after a request has failed. It
// returns "" if the process emits no event after a failure of this request.
func failureReason(c *call) string {
	creates := strings.HasPrefix(c.key, "create ")
	switch {
	case c.verb == callCreatePod:
		return createFailedReason
	case c.verb == callDeletePod:
		return deleteFailedReason
	case c.rollout != nil && creates:
		return setFailedReason
	case c.serviceState != nil && creates:
		return createEndpointsReason
	case c.serviceState != nil && strings.HasPrefix(c.key, "update "):
		return updateEndpointsReason
	}
	return ""
}

// becameIdle records that a process is idle, or was so until now. It has then sent its events, unless a
// connection has failed since it emitted them.
func (missing *missingEvents) becameIdle(p *process, at time.Duration) {
	if emitter := missing.emitters[p]; emitter != nil {
		emitter.all.becameIdle(at)
	}
	for _, occasions := range missing.occasions {
		for _, o := range occasions {
			o.due = o.due || o.process == p && at-o.at >= eventDelay && p.disconnectedAt < o.at-lag
		}
	}
}

// report returns evidence for each reason with which the subject should have sent an event. The check calls
// it when the observation ends.
func (missing *missingEvents) report(m *Model) (found []Evidence) {
	for _, p := range m.processes {
		if at := m.clockOf(p.name); p.idle(at) {
			missing.becameIdle(p, at)
		}
	}
	if missing.unreliable {
		return nil
	}
	for _, reason := range slices.Sorted(maps.Keys(missing.occasions)) {
		due := slices.DeleteFunc(missing.occasions[reason], func(o *eventOccasion) bool { return !o.due })
		if len(due) < eventsMin {
			continue
		}
		first := due[0]
		e := m.evidenceOf(nil, fmt.Sprintf("%s sent no event with the reason %s, in spite of %d responses such as that to %s", first.process.name, reason, len(due), first.request),
			"an event after each of these responses")
		e.Records = nil
		for _, o := range due[:eventsMin] {
			e.Records = append(e.Records, o.seq)
		}
		found = append(found, e)
	}
	return found
}
