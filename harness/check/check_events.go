package check

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// eventsCheck demands that a controller emits only events that are true. It examines creates of
// events about ReplicaSets, ReplicationControllers, Deployments and Endpoints. The reasons are those
// of a successful or failed create or delete, and ScalingReplicaSet.
//
// It does not demand that a certain event exists, because events are rate-limited and may be lost
// (allowed behavior events-not-reliable). It reports a subject that sends no event at all with a reason,
// although it had several occasions; see missingEvents.
var eventsCheck = Check{
	ID:               "events",
	Guarantee:        "An event with the reason SuccessfulCreate, SuccessfulDelete or ScalingReplicaSet describes a write of the process that the API server has accepted. It has the type Normal. An event with the reason FailedCreate, FailedDelete, ReplicaSetCreateError, FailedToCreateEndpoint or FailedToUpdateEndpoint follows a create, delete or update of the process that failed. It has the type Warning. After 3 responses that demand an event with the same reason, the subject has sent at least one event with this reason.",
	Contract:         "ReplicaSet 12, Deployment 6, 7, Endpoints 12",
	Property:         Safety,
	Scope:            contractOf(kube.OwnsPods, kube.RollsOut, kube.PublishesAddresses),
	ExercisedWhen:    "The subject creates an event with one of these reasons about a ReplicaSet, ReplicationController, Deployment or Endpoints object.",
	Ignores:          "An event about a failure, if a connection or a watch of the process ended in the 5 minutes before it. A missing event, if client-go may have dropped or delayed it: after a failed connection or a failed request for an event, after the first 20 requests about an object, during a burst of requests, or if the process was not idle afterwards.",
	AllowedBehaviors: []string{"events-not-reliable"},
	New:              newEventsChecker,
}

// eventsChecker reports an event that no accepted or failed write of the process explains.
type eventsChecker struct {
	findings
	// written contains the writes that events may describe, with the time of the response on the clock
	// of the run.
	written map[*process]map[eventSubject]time.Duration
	missing missingEvents
}

// eventSubject identifies the write that an event describes. The name is that of the written object,
// such as a pod. The field about is the UID of the object that the event names, such as the pod's
// ReplicaSet. All failed writes with the same reason and the same UID have one eventSubject without a name.
type eventSubject struct {
	about  types.UID // empty for a deleted pod, because its owner may be unknown, and for Endpoints
	reason string
	name   string
	// from and to are spec.replicas before and after a scaling, or unknownSize.
	from, to int
}

// eventDelayMax is how long after a write the process may send the event about it. client-go tries to
// send an event 12 times, with 10 seconds between two tries. After this time, the checker may forget
// the write.
const eventDelayMax = 5 * time.Minute

// writesMax is the number of writes of a process above which the checker forgets those that are older
// than eventDelayMax.
const writesMax = 1 << 14

func newEventsChecker(Settings) Checker {
	return &eventsChecker{written: map[*process]map[eventSubject]time.Duration{}, missing: newMissingEvents()}
}

func (checker *eventsChecker) Observe(m *Model, r *history.Record) {
	checker.missing.observe(m)
	if r.Phase != nil && r.Phase.Name == history.PhaseEnd {
		for _, e := range checker.missing.report(m) {
			checker.addViolation(func() Evidence { return e })
		}
	}
	if m.answered != nil {
		checker.remember(m, m.answered)
	}
	c := m.sent
	switch {
	case c == nil:
	case r.Request.Verb == "create" && r.Request.Object != nil && isEvents(r.Request.Resource):
		checker.examine(m, c.process, r.Request)
	case c.rollout != nil && c.scaling == nil && r.Request.Resource == objects.ReplicaSetResource && r.Request.IsWrite():
		checker.store(m, c.process, eventSubject{c.rollout.uid, scaledReason, r.Request.Name, unknownSize, unknownSize})
	}
}

// remember stores an accepted or failed write that the process may describe in an event.
func (checker *eventsChecker) remember(m *Model, c *answeredCall) {
	var subject eventSubject
	switch {
	case !c.response.OK() && (failureReason(c.call) == "" || c.verb == callDeletePod && c.response.Code == http.StatusNotFound):
		return // no event follows; a pod that does not exist needs no delete
	case !c.response.OK():
		subject = failureSubject(c.call)
	case c.verb == callCreatePod && c.response.Object != nil:
		subject = eventSubject{about: c.ownerState.uid, reason: podCreatedReason, name: c.response.Object.Name}
	case c.verb == callDeletePod:
		subject = eventSubject{reason: podDeletedReason, name: c.key[strings.LastIndex(c.key, "/")+1:]}
	case c.scaling != nil && c.rollout != nil:
		subject = eventSubject{c.rollout.uid, scaledReason, c.scaling.name, c.scaling.from, c.scaling.to}
	default:
		return
	}
	checker.store(m, c.process, subject)
}

// failureSubject identifies the failed writes with the same event as the given one.
func failureSubject(c *call) eventSubject {
	subject := eventSubject{reason: failureReason(c)}
	switch {
	case c.ownerState != nil:
		subject.about = c.ownerState.uid
	case c.rollout != nil:
		subject.about = c.rollout.uid
	case c.serviceState != nil:
		subject.name = c.serviceState.name.name // upstream's events about new Endpoints lack the namespace
	}
	return subject
}

// store adds a write of a process. It forgets the writes of processes that have ended, and old writes if
// there are too many.
func (checker *eventsChecker) store(m *Model, p *process, subject eventSubject) {
	writes := checker.written[p]
	if writes == nil {
		maps.DeleteFunc(checker.written, func(p *process, _ map[eventSubject]time.Duration) bool { return p.ended })
		writes = map[eventSubject]time.Duration{}
		checker.written[p] = writes
	}
	if len(writes) >= writesMax {
		maps.DeleteFunc(writes, func(_ eventSubject, at time.Duration) bool { return m.now-at > eventDelayMax })
	}
	writes[subject] = m.now
}

// recordedEvent contains the fields of an event that the check reads, in the form of either API
// group.
type recordedEvent struct {
	InvolvedObject, Regarding struct {
		Kind, Name string
		UID        types.UID
	}
	Reason, Message, Note, Type string
}

// scalingMessage matches the message of an event with the reason ScalingReplicaSet (contract
// Deployment 7).
var scalingMessage = regexp.MustCompile(`^Scaled (up|down) replica set (\S+) from (\d+) to (\d+)$`)

// combinedPrefix begins the message of an event in which client-go combines several similar ones.
const combinedPrefix = "(combined from similar events): "

// examine reports an event that is not true.
func (checker *eventsChecker) examine(m *Model, p *process, r *history.Request) {
	var event recordedEvent
	if objects.Unmarshal(r.Object.Body, &event) != nil {
		return // the API server rejects it
	}
	about, message := event.InvolvedObject, strings.TrimPrefix(event.Message+event.Note, combinedPrefix)
	checker.missing.addSent(event.Reason, message)
	if about.Kind == "" {
		about = event.Regarding
	}
	eventType := corev1.EventTypeNormal
	_, fails := failedRequests[event.Reason]
	if fails {
		eventType = corev1.EventTypeWarning
	}
	stopping := strings.Contains(message, "rate limiter") || strings.Contains(message, "context canceled") // client-go then sent no request
	if !examinedKinds[event.Reason][about.Kind] || fails && (stopping || p.disconnectedAt >= m.processTime-eventDelayMax) {
		return
	}
	checker.exercised++
	var expected string
	if fails {
		expected = checker.expectedFailure(m, p, event.Reason, about.UID, about.Name)
	} else {
		expected = checker.expected(p, about.UID, event.Reason, message)
	}
	if expected == "" && event.Type != eventType {
		expected = "the type " + eventType
	}
	if expected == "" {
		return
	}
	checker.addViolation(func() Evidence {
		return m.evidenceOf(&history.Ref{Namespace: r.Namespace, Resource: r.Resource, Name: r.Object.Name},
			fmt.Sprintf("%s emitted the event %s (%s) about %s %s/%s: %q", p.name, event.Reason, event.Type, about.Kind, r.Namespace, about.Name, message), expected)
	})
}

// examinedKinds contains the kinds about which controllers emit events with each reason.
var examinedKinds = map[string]map[string]bool{
	podCreatedReason:      {kube.ReplicaSet: true, kube.ReplicationController: true},
	podDeletedReason:      {kube.ReplicaSet: true, kube.ReplicationController: true},
	scaledReason:          {kube.Deployment: true},
	createFailedReason:    {kube.ReplicaSet: true, kube.ReplicationController: true},
	deleteFailedReason:    {kube.ReplicaSet: true, kube.ReplicationController: true},
	setFailedReason:       {kube.Deployment: true},
	createEndpointsReason: {kube.Endpoints: true},
	updateEndpointsReason: {kube.Endpoints: true},
}

// expectedFailure says what the check expected instead of an event about a failure. It returns "" if a
// failed write of the process explains the event. The event is about the object with this UID and name.
func (checker *eventsChecker) expectedFailure(m *Model, p *process, reason string, about types.UID, name string) string {
	subjects := []eventSubject{{reason: reason, about: about}}
	switch reason {
	case deleteFailedReason:
		subjects = append(subjects, eventSubject{reason: reason}) // the owner of the pod may be unknown
	case createEndpointsReason, updateEndpointsReason:
		subjects = []eventSubject{{reason: reason, name: name}}
	}
	for _, subject := range subjects {
		if at, ok := checker.written[p][subject]; ok && m.now-at <= eventDelayMax {
			return ""
		}
	}
	return failedRequests[reason] + " of the process before the event"
}

// failedRequests says in words which failed requests the events with each reason are about.
var failedRequests = map[string]string{
	createFailedReason:    "a failed create of a pod of the object",
	deleteFailedReason:    "a failed delete of a pod",
	setFailedReason:       "a failed create of a ReplicaSet of the object",
	createEndpointsReason: "a failed create of the Endpoints",
	updateEndpointsReason: "a failed update of the Endpoints",
}

// expected says what the check expected instead of an event. It returns "" if an accepted write of the
// process explains the event.
func (checker *eventsChecker) expected(p *process, about types.UID, reason, message string) string {
	writes := checker.written[p]
	lastWord := message[strings.LastIndex(message, " ")+1:]
	switch reason {
	case podCreatedReason:
		if _, ok := writes[eventSubject{about: about, reason: reason, name: lastWord}]; !ok {
			return "the name of a pod that the process has created for this object"
		}
		return ""
	case podDeletedReason:
		if _, ok := writes[eventSubject{reason: reason, name: lastWord}]; !ok {
			return "the name of a pod that the process has deleted"
		}
		return ""
	}
	parts := scalingMessage.FindStringSubmatch(message)
	if parts == nil {
		return "the message Scaled up|down replica set NAME from NUMBER to NUMBER"
	}
	from, _ := strconv.Atoi(parts[3]) // the expression admits only digits
	to, _ := strconv.Atoi(parts[4])
	_, exact := writes[eventSubject{about, reason, parts[2], from, to}]
	_, similar := writes[eventSubject{about, reason, parts[2], unknownSize, to}]
	_, unknown := writes[eventSubject{about, reason, parts[2], unknownSize, unknownSize}]
	switch {
	case (parts[1] == "up") != (to > from) || to == from:
		return "up if the number increases, and down if it decreases"
	case !exact && !similar && !unknown:
		return "the numbers of a scaling of this ReplicaSet that the process has sent"
	}
	return ""
}
