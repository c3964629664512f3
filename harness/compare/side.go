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

// Side is one of the two runs that are compared. All objects have stable names, which are equal
// in every run of the scenario; see [names].
type Side struct {
	Subject string         // the subject as in the history: ours, upstream or exec:PATH
	Results []check.Result // the results of the checks
	// End has the fields of the objects that existed at the end of the run. The first key is
	// the stable name. The second key is a path, such as
	// "status.conditions[Available].reason".
	End map[string]map[string]string
	// Milestones has the values of each milestone during the run. The kind of the milestone
	// says whether they are a sequence or a set.
	Milestones map[Milestone][]string
	// Aborted describes the step that aborted the workload. It is nil if the workload
	// completed.
	Aborted *Aborted
	// Unfinished says why the run or its history is incomplete. It is empty if both are
	// complete.
	Unfinished string
	// Cost is what the subject used in the run.
	Cost Cost

	// firstSeen has the index of the step during which each value of a milestone first
	// occurred. The index is -1 for the time before the first step.
	firstSeen map[Milestone]map[string]int
	// lastChanged has the index of the step during which each object last changed, by the keys
	// of End. The index is -1 for the time before the first step.
	lastChanged map[string]int
	names       *names

	// managed has the resources that the controllers under test reconcile.
	managed []string
	// lostAnswers is true if the run may lack an Event ScalingReplicaSet although the subject
	// scaled a ReplicaSet. One reason is a lost response to a write of a ReplicaSet or an Event.
	// Another is the end of a replica of the subject. A missing Event ScalingReplicaSet is then
	// accepted.
	lostAnswers bool
	// stalledEvents is true if the last request of a component to write an event got no
	// response. The event client then waits and may send later events only after the run.
	// Missing events of this run are therefore accepted.
	stalledEvents bool
}

// isNameOf reports whether a key of End is the stable name of an object. The Ref of the object
// has its real name.
func (s *Side) isNameOf(name string, object history.Ref) bool {
	return name == s.names.stableName(&history.Object{Ref: object})
}

// isOrIsOwnedBy reports whether a key of End names the given object or one of its dependents,
// direct or indirect.
//
// If only the other run has the dependent, its owner is looked up in that run.
func (s *Side) isOrIsOwnedBy(name string, to history.Ref, other *Side) bool {
	for name = strings.TrimPrefix(name, podsOf); name != ""; name = cmp.Or(s.names.ownerOf[name], other.names.ownerOf[name]) {
		if s.isNameOf(name, to) {
			return true
		}
	}
	return false
}

// Milestone identifies a property of an object whose values during a run are compared. The kind
// says which property it is, and whether the values are a sequence or a set.
type Milestone struct {
	Kind   MilestoneKind
	Object string // the stable name of the object; for Events, the kind of the objects
}

// MilestoneKind is the property of a milestone.
type MilestoneKind string

// The kinds of milestones.
const (
	// Rollout is the sequence of a Deployment's ReplicaSets in the order of their creation.
	Rollout MilestoneKind = "rollout"
	// Sizes is the sequence of values of a ReplicaSet's spec.replicas at which scaling changed
	// its direction. The first and the last value are also in the sequence. For example, 0, 3,
	// 7, 5 becomes 0, 7, 5.
	Sizes MilestoneKind = "sizes"
	// Conditions is the set of types, statuses and reasons of an object's conditions.
	Conditions MilestoneKind = "conditions"
	// Revisions is the sequence of values of a Deployment's revision annotation.
	Revisions MilestoneKind = "revisions"
	// Events is the set of reasons of the events about objects of a kind.
	Events MilestoneKind = "events"
)

// SideOf reads a run from the records of its history and the results of its checks. It returns
// an error if a record cannot be read.
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

// observer reads the history of a run and collects the data of a [Side].
type observer struct {
	subject       string
	controllers   []string // the controllers under test; empty means the default controllers
	decoder       *objects.Decoder
	names         *names
	ended         bool          // true after the phase end began
	step          int           // index of the last step that began, from 0; -1 before the first step
	failed        *history.Step // the step that failed and aborted the workload; nil if none failed
	gap           string        // the first gap in the history; empty if there is none
	earlyEnd      history.EarlyEnd
	live          map[types.UID]*history.Object // the last versions of the objects that exist
	lastChanged   map[string]int                // see Side.lastChanged
	versions      []versionAtStep               // all versions of objects that have milestones, in order
	events        []versionAtStep               // the events that the subject created
	pending       map[uint64]pendingRequest     // writes of ReplicaSets and events without a response, by request ID
	lostAnswers   bool                          // see Side.lostAnswers
	stalledEvents map[string]bool               // the components whose last event got no response; see Side.stalledEvents
}

// pendingRequest is a write whose response the history does not contain yet.
type pendingRequest struct {
	resource  string
	component string // the component that created the event; empty for other requests
}

// componentOf returns the component that created an event, such as deployment-controller. It
// returns "" if the event does not name a component.
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

// versionAtStep is a version of an object, with the index of a step. It is the last step that
// had begun when the version was committed.
type versionAtStep struct {
	*history.Object
	step int
}

// trackLostAnswers updates lostAnswers and stalledEvents with the next record of the history.
//
// It sets lostAnswers if a replica of the subject ended, or if a write of an Event failed. A
// failed write of a ReplicaSet also sets lostAnswers if the API server may have applied the write.
// The map stalledEvents has the components whose last write of an Event got no response.
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

// unfinished returns the reason why the run or its history is incomplete. It returns "" if both
// are complete.
func (o *observer) unfinished() string {
	if o.ended || o.gap != "" {
		return o.gap
	}
	return o.earlyEnd.Reason()
}

// isSubject reports whether a process is a replica of the subject.
func isSubject(p *history.Process) bool { return strings.HasPrefix(p.Name, "subject-") }

// isEvents reports whether a resource is events, in any API group.
func isEvents(resource string) bool {
	k, _ := kube.ByResource(resource)
	return k.Name == "Event"
}

// managedResources returns the resources that the named controllers reconcile. Without names,
// it uses the default controllers.
func managedResources(controllers ...string) []string {
	rows, _ := kube.ControllersNamed(controllers...) // no rows for an unknown name
	var resources []string
	for _, c := range rows {
		resources = append(resources, resourceOf(c.Kind))
	}
	return resources
}

// resourceOf returns the resource of a kind that package kube knows.
func resourceOf(kind string) string {
	k, _ := kube.Named(kind)
	return k.Resource()
}

// hasMilestones reports whether the milestones of a resource's objects are compared, such as
// their rollouts and conditions.
//
// This holds for kinds with the role [kube.Workload], such as Deployment, and for kinds that
// [kube.Kinds] does not contain.
func hasMilestones(resource string) bool {
	kind, known := kube.ByResource(resource)
	return !known || kind.Role == kube.Workload
}

// observe reads one record. After the record that begins [history.PhaseEnd], it ignores all
// records.
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

// Resources for which this package has special rules.
var (
	pods        = objects.PodResource
	deployments = objects.DeploymentResource
	replicaSets = objects.ReplicaSetResource
	services    = objects.ServiceResource
	endpoints   = objects.EndpointsResource
)

// milestoneSet collects the values of all milestones of a run, such as all conditions that a
// Deployment had.
type milestoneSet struct {
	milestones map[Milestone][]string       // all values in order, with repetitions
	firstSeen  map[Milestone]map[string]int // see Side.firstSeen
}

// add adds a value of a milestone that occurred during a step.
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

// milestones returns the values of all milestones of the run, and the step in which each value
// first occurred.
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

// milestonesOf adds the values that one version of an object gives to milestones, such as its
// conditions.
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
			add(c)
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

// normalize reduces the values of a milestone to those in which correct runs agree. For example, it
// removes repetitions. Only the reduced values are compared with the other run.
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

// firstOccurrences returns each value once, in the order in which the values first occur.
func firstOccurrences(values []string) []string {
	var first []string
	for _, value := range values {
		if !slices.Contains(first, value) {
			first = append(first, value)
		}
	}
	return first
}

// turningPoints returns the integers at which a rising sequence begins to fall or a falling one
// to rise. It also returns the first and the last integer.
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
