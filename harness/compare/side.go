package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-gauntlet/gauntlet/harness/check"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/kube"
	"github.com/kube-gauntlet/gauntlet/harness/objects"
)

// Side contains what a comparison reads of one run. A comparison has two sides: the run of the
// controllers under test, and the base run. All objects have stable names, which are equal in every
// run of the scenario; see [names].
type Side struct {
	Subject string         // the name of the controllers under test, such as ours, upstream or exec:PATH
	Results []check.Result // the result of each check of the run
	// End has the fields of the objects that existed at the end of the run. The first key is an
	// object's stable name. The second key is the path of a field, such as
	// "status.conditions[Available].reason".
	End map[string]map[string]string
	// Milestones has the values of each milestone during the run, such as the ReplicaSets of a
	// rollout. For some kinds of milestones, the order of the values matters; see [MilestoneKind].
	Milestones map[Milestone][]string
	// Aborted describes the failed step that aborted the workload. It is nil if the workload
	// completed.
	Aborted *Aborted
	// Unfinished says why the run ended early or why its history is incomplete. It is empty for a
	// complete run with a complete history.
	Unfinished string
	// Cost is what the controllers under test used in the run, such as requests and CPU time.
	Cost Cost

	// firstSeen says for each value of a milestone, such as a condition, during which step the
	// value first occurred. Steps are counted from 0. The index is -1 for the time before the first
	// step.
	firstSeen map[Milestone]map[string]int
	// lastChanged says during which step each object last changed. The keys are stable names of
	// objects, as in the field End. Steps are counted from 0. The index is -1 for the time before
	// the first step.
	lastChanged map[string]int
	names       *names

	// managed has the resources that the controllers under test reconcile, such as
	// deployments.apps.
	managed []string
	// lostAnswers is true if an Event ScalingReplicaSet may be missing although the subject (the
	// controllers under test) scaled a ReplicaSet. One reason is a lost response to a write of a
	// ReplicaSet or an Event. Another is that a replica of the subject ended before it sent the
	// Event. A comparison then accepts the missing Event.
	lostAnswers bool
	// stalledEvents is true if a component's last request to write an event got no response. The
	// component's event client then waits, and may send later events only after the run. Missing
	// events of such a run are accepted.
	stalledEvents bool
}

// isNameOf reports whether a name is the stable name of an object. The argument object has the
// object's real name. Stable names are the keys of Side.End, the objects at the end of a run.
func (s *Side) isNameOf(name string, object history.Ref) bool {
	return name == s.names.stableName(&history.Object{Ref: object})
}

// isOrIsOwnedBy reports whether a name is the stable name of an object or of one of its dependents.
// Dependents of dependents count too. Stable names are the keys of Side.End, the objects at the end
// of a run.
//
// If this run lacks the dependent, isOrIsOwnedBy finds the dependent's owner in the second run, the
// argument other.
func (s *Side) isOrIsOwnedBy(name string, object history.Ref, other *Side) bool {
	for name = strings.TrimPrefix(name, podsOf); name != ""; name = cmp.Or(s.names.ownerOf[name], other.names.ownerOf[name]) {
		if s.isNameOf(name, object) {
			return true
		}
	}
	return false
}

// Milestone identifies a property of an object, such as a Deployment's conditions. The values that
// the property has during two runs are compared.
type Milestone struct {
	Kind   MilestoneKind
	Object string // the object's stable name; for Events, a Kind such as Deployment
}

// MilestoneKind says which property of an object a milestone is about, and whether the order of
// the values matters.
type MilestoneKind string

// These are the kinds of milestones, the properties of objects that a comparison of two runs reads,
// such as conditions. Some have a sequence of values, others have a set, in which the order does
// not matter.
const (
	// Rollout is the sequence of a Deployment's ReplicaSets in the order of their creation.
	Rollout MilestoneKind = "rollout"
	// Sizes is the sequence of values of a ReplicaSet's spec.replicas at which scaling changed
	// its direction. The first and the last value are also in the sequence. For example, 0, 3,
	// 7, 5 becomes 0, 7, 5.
	Sizes MilestoneKind = "sizes"
	// Conditions is the set of an object's conditions, such as "Progressing=True
	// ReplicaSetUpdated". A value has the type, the status and the reason.
	Conditions MilestoneKind = "conditions"
	// Revisions is the sequence of values that a Deployment's revision annotation had.
	Revisions MilestoneKind = "revisions"
	// Events is the set of reasons of the Events about all objects of one Kind, such as
	// SuccessfulCreate.
	Events MilestoneKind = "events"
)

// SideOf returns what a comparison needs of a run, from the records of the run's history. The
// argument results has the results of the run's checks. SideOf returns an error if a record
// cannot be read.
func SideOf(records iter.Seq2[*history.Record, error], results []check.Result) (*Side, error) {
	decoder := objects.NewDecoder()
	o := &observer{decoder: decoder, names: newNames(decoder), step: -1, live: map[types.UID]*history.Object{}, lastChanged: map[string]int{}, pending: map[uint64]pendingRequest{}, stalledEvents: map[string]bool{}}
	cost, err := CostOf(func(yield func(*history.Record, error) bool) {
		for record, err := range records {
			if record != nil {
				o.observe(record)
			}
			if !yield(record, err) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	side := &Side{
		Subject: o.subject, Results: results, Cost: cost, Aborted: abortedAt(o.failed, results),
		Unfinished: o.unfinished(), lostAnswers: o.lostAnswers || len(o.pending) > 0, stalledEvents: len(o.stalledEvents) > 0, lastChanged: o.lastChanged, names: o.names,
		managed: managedResources(o.controllers...),
	}
	if side.End, err = o.endState(); err != nil {
		return nil, fmt.Errorf("reading the end state of the objects from the history: %w", err)
	}
	if side.Milestones, side.firstSeen, err = o.milestones(); err != nil {
		return nil, fmt.Errorf("reading the rollouts, conditions, revisions and Events to compare from the history: %w", err)
	}
	return side, nil
}

// observer reads the records of a run's history and collects what a comparison needs: the content
// of a [Side].
type observer struct {
	subject       string
	controllers   []string // the controllers under test; empty means the default controllers
	decoder       *objects.Decoder
	names         *names
	ended         bool          // true after the run entered the phase history.PhaseEnd
	step          int           // index of the last step that began, from 0; -1 before the first step
	failed        *history.Step // the step that failed and aborted the workload; nil if none failed
	gap           string        // the first gap record, which says that records are missing; empty if there is none
	earlyEnd      history.EarlyEnd
	live          map[types.UID]*history.Object // the objects that exist, in their last version
	lastChanged   map[string]int                // the step during which each object last changed; see Side.lastChanged
	versions      []versionAtStep               // all versions of the objects for which hasMilestones is true, in order of commit
	events        []versionAtStep               // the Events that the controllers under test created
	pending       map[uint64]pendingRequest     // requests that write ReplicaSets or Events and have no response yet, by request ID
	lostAnswers   bool                          // true if an Event ScalingReplicaSet may be missing; see Side.lostAnswers
	stalledEvents map[string]bool               // the components whose last write of an Event got no response; see Side.stalledEvents
}

// pendingRequest is a write of a ReplicaSet or an Event that has no response in the records read so
// far. With it, the observer finds writes whose response was lost.
type pendingRequest struct {
	resource  string
	component string // the component that created the Event; empty if the resource is not events
}

// componentOf returns the component that created an Event, such as deployment-controller. It
// returns "" if the Event is nil, cannot be decoded, or names no component.
func componentOf(event *history.Object) string {
	var body struct {
		Source              struct{ Component string }
		ReportingController string
	}
	if event == nil || json.Unmarshal(event.Body, &body) != nil {
		return ""
	}
	return cmp.Or(body.Source.Component, body.ReportingController)
}

// versionAtStep is a version of an object and the step of the workload during which the version was
// committed. For an Event, it is the step during which a controller sent the Event. The field step
// is the index of the last step that had begun. It is -1 before the first step.
type versionAtStep struct {
	*history.Object
	step int
}

// trackLostAnswers updates lostAnswers and stalledEvents with the next record of the history.
// With them, a comparison accepts Events that are missing because of a lost request.
//
// trackLostAnswers sets lostAnswers if a replica of the controllers under test ended, or if a
// write of an Event failed. A failed write of a ReplicaSet also sets lostAnswers if the API
// server may have applied the write. The map stalledEvents has the components whose last write of
// an Event got no response.
func (o *observer) trackLostAnswers(r *history.Record) {
	switch {
	case r.Request != nil && r.Request.Verb != "get" && r.Request.Verb != "list" && r.Request.Verb != "watch" &&
		(r.Request.Resource == replicaSets || isEvents(r.Request.Resource)):
		o.pending[r.Request.ID] = pendingRequest{r.Request.Resource, componentOf(r.Request.Object)}
	case r.Response != nil:
		request, asked := o.pending[r.Response.ID]
		delete(o.pending, r.Response.ID)
		server := r.Response.ServerCode
		undecided := server == 0 || server < 300 || server >= 500
		switch {
		case !isEvents(request.resource):
		case r.Response.Code == 0:
			o.stalledEvents[request.component] = true
		default:
			delete(o.stalledEvents, request.component)
		}
		o.lostAnswers = o.lostAnswers || asked && !r.Response.OK() && (isEvents(request.resource) || r.Response.Reached && undecided)
	case r.Process != nil && isSubject(r.Process):
		o.lostAnswers = o.lostAnswers || r.Process.Event == history.ProcessStopped || r.Process.Event == history.ProcessDied
	}
}

// unfinished returns the reason why the run or its history is incomplete. It returns "" if the run
// and its history are complete.
func (o *observer) unfinished() string {
	if o.ended || o.gap != "" {
		return o.gap
	}
	return o.earlyEnd.Reason()
}

// isSubject reports whether a process is a replica of the subject, the controllers under test.
func isSubject(p *history.Process) bool { return strings.HasPrefix(p.Name, "subject-") }

// isEvents reports whether a resource is events or events.events.k8s.io.
func isEvents(resource string) bool {
	k, _ := kube.ByResource(resource)
	return k.Name == "Event"
}

// managedResources returns the resources that the named controllers reconcile, such as
// deployments.apps. Without names, it returns those of the default controllers.
func managedResources(controllers ...string) []string {
	rows, _ := kube.ControllersNamed(controllers...) // with an unknown name, rows is empty
	var resources []string
	for _, c := range rows {
		resources = append(resources, resourceOf(c.Kind))
	}
	return resources
}

// resourceOf returns the resource of a Kind that package kube knows. For example, it returns
// deployments.apps for Deployment.
func resourceOf(kind string) string {
	k, _ := kube.Named(kind)
	return k.Resource()
}

// hasMilestones reports whether a comparison includes the rollouts, conditions and other
// milestones of a resource's objects. It returns true for Kinds that own other objects, such as
// Deployment and CronJob (see [kube.Workload]). It also returns true for Kinds that [kube.Kinds]
// does not contain.
func hasMilestones(resource string) bool {
	kind, known := kube.ByResource(resource)
	return !known || kind.Role == kube.Workload
}

// observe reads the next record of the history, and collects from it what the comparison needs. It
// ignores all records after the one that begins [history.PhaseEnd].
func (o *observer) observe(r *history.Record) {
	if !o.ended {
		o.trackLostAnswers(r)
	}
	o.earlyEnd.Observe(r)
	switch {
	case o.ended:
	case r.Start != nil:
		o.subject, o.controllers = r.Start.Subject, r.Start.Controllers
	case r.Phase != nil:
		o.ended = r.Phase.Name == history.PhaseEnd
	case r.Commit != nil && !isEvents(r.Commit.Object.Resource):
		object := &r.Commit.Object
		o.names.observe(object)
		o.lastChanged[o.names.endStateName(object)] = o.step
		if r.Commit.Type == history.Deleted {
			delete(o.live, object.UID)
			return
		}
		o.live[object.UID] = object
		if hasMilestones(object.Resource) {
			o.versions = append(o.versions, versionAtStep{object, o.step})
		}
	case r.Gap != nil && o.gap == "":
		o.gap = r.Gap.Summary()
	case r.Step != nil && r.Step.Event == history.StepBegun:
		o.step = r.Step.Index
	case r.Step != nil && r.Step.Event == history.StepFailed:
		o.failed = r.Step
	case r.Request != nil && r.Request.Verb == "create" && r.Request.Object != nil && isEvents(r.Request.Resource):
		o.events = append(o.events, versionAtStep{r.Request.Object, o.step})
	}
}

// These resources, such as deployments.apps, need code of their own in this package. Pods are
// counted by owner. ReplicaSets get stable names from their Deployment, and show the Deployment's
// rollouts. Endpoints belong to the Service with the same name.
var (
	pods        = objects.PodResource
	deployments = objects.DeploymentResource
	replicaSets = objects.ReplicaSetResource
	services    = objects.ServiceResource
	endpoints   = objects.EndpointsResource
)

// milestoneSet collects the values of all milestones of a run. A milestone is a property of an
// object that is compared, such as the conditions that a Deployment had.
type milestoneSet struct {
	milestones map[Milestone][]string       // the values of each milestone, such as the conditions of a Deployment, in order, with repetitions
	firstSeen  map[Milestone]map[string]int // the step during which each value first occurred; see Side.firstSeen
}

// add adds a value of a milestone, such as a condition. The value occurred during the step with the
// given index.
func (c *milestoneSet) add(step int, kind MilestoneKind, object, value string) {
	m := Milestone{kind, object}
	c.milestones[m] = append(c.milestones[m], value)
	if c.firstSeen[m] == nil {
		c.firstSeen[m] = map[string]int{}
	}
	if _, ok := c.firstSeen[m][value]; !ok {
		c.firstSeen[m][value] = step
	}
}

// milestones returns the values of each milestone, such as an object's conditions. It also returns
// the step during which each value first occurred. It returns an error if an object cannot be
// decoded.
func (o *observer) milestones() (map[Milestone][]string, map[Milestone]map[string]int, error) {
	all := milestoneSet{map[Milestone][]string{}, map[Milestone]map[string]int{}}
	for _, version := range o.versions {
		if err := o.milestonesOf(version, &all); err != nil {
			return nil, nil, err
		}
	}
	for _, event := range o.events {
		var body struct {
			Reason                    string
			InvolvedObject, Regarding struct{ Kind string }
		}
		if err := json.Unmarshal(event.Body, &body); err != nil {
			return nil, nil, fmt.Errorf("decoding event %s: %w", event.Ref, err)
		}
		all.add(event.step, Events, body.InvolvedObject.Kind+body.Regarding.Kind, body.Reason)
	}
	for milestone, values := range all.milestones {
		all.milestones[milestone] = milestone.Kind.normalize(values)
	}
	return all.milestones, all.firstSeen, nil
}

// milestonesOf adds the values of one version of an object, such as its conditions, to the argument
// all. This set collects the values of the whole run.
func (o *observer) milestonesOf(version versionAtStep, all *milestoneSet) error {
	name := o.names.stableName(version.Object)
	decoded, err := o.decoder.Decode(version.Object)
	if err != nil {
		return err
	}
	add := func(c objects.Condition) {
		all.add(version.step, Conditions, name, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	switch decoded := decoded.(type) {
	case *objects.Deployment:
		for _, c := range decoded.Status.Conditions {
			add(c.Condition)
		}
	case *objects.Owner:
		for _, c := range decoded.Conditions {
			add(c.Condition)
		}
		if controller := version.ControllerRef(); controller != nil && version.Resource == replicaSets {
			all.add(version.step, Rollout, deployments+" "+controller.Name, name)
			all.add(version.step, Sizes, name, fmt.Sprint(decoded.Replicas))
		}
	default:
		generic, err := o.decoder.Generic(version.Object)
		if err != nil {
			break // an object whose body is not a JSON object has no conditions
		}
		for _, c := range generic.Conditions {
			add(c)
		}
	}
	if revision := version.Annotations[objects.RevisionAnnotation]; version.Resource == deployments && revision != "" {
		all.add(version.step, Revisions, name, revision)
	}
	return nil
}

// normalize removes those values of a milestone (such as an object's conditions) that may differ
// between correct runs. For example, it removes repetitions. A comparison reads only the remaining
// values.
func (k MilestoneKind) normalize(values []string) []string {
	switch k {
	case Conditions, Events:
		slices.Sort(values)
		return slices.Compact(values)
	case Rollout:
		return firstOccurrences(values)
	case Sizes:
		return turningPoints(slices.Compact(values))
	default:
		return slices.Compact(values)
	}
}

// firstOccurrences removes repetitions from a list. It keeps the first occurrence of each value.
func firstOccurrences(values []string) []string {
	var first []string
	for _, value := range values {
		if !slices.Contains(first, value) {
			first = append(first, value)
		}
	}
	return first
}

// turningPoints returns the first and the last integer of a sequence, and those at which its
// direction changes. For example, 0, 3, 7, 5 becomes 0, 7, 5. Correct runs may differ in the
// values between, such as the sizes of a ReplicaSet during a rollout.
func turningPoints(values []string) []string {
	number := func(i int) int {
		var n int
		_, _ = fmt.Sscan(values[i], &n) // the values are integers, so there is no error
		return n
	}
	var points []string
	for i := range values {
		inner := i > 0 && i < len(values)-1
		if inner && (number(i-1) < number(i)) == (number(i) < number(i+1)) {
			continue
		}
		points = append(points, values[i])
	}
	return points
}
