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

// Side is one run in a form that can be compared with another run of the same scenario. All
// objects have stable names; see [names].
type Side struct {
	Subject string // as in the history: ours, upstream or exec:PATH
	Results []check.Result
	// End holds the fields of the objects that existed at the end, by stable name and path,
	// such as "status.conditions[Available].reason".
	End map[string]map[string]string
	// Milestones are the values of each milestone during the run.
	Milestones map[Milestone][]string
	// Aborted describes how the workload was aborted; nil if it completed.
	Aborted *Aborted
	// Unfinished says why the run or its history is incomplete. It is empty if both are
	// complete.
	Unfinished string
	Cost       Cost

	// firstSeen maps each value of a milestone to the step in which the value first
	// occurred. This is the last step that had started at that time, as an index from 0; -1
	// means before the first step.
	firstSeen map[Milestone]map[string]int
	// lastChanged maps each name in End to the step in which the object last changed. This
	// is the last step that had started at that time, as an index from 0; -1 means before
	// the first step.
	lastChanged map[string]int
	names       *names

	// managed lists the resources that the controllers under test reconcile.
	managed []string
	// lostAnswers reports whether the subject may have lost the response to a write of a
	// ReplicaSet. It is also true if an event may have been lost.
	lostAnswers bool
	// stalledEvents reports whether the last request of a component to write an event got
	// no response. The client may have delayed the later events of that component to the
	// end of the run.
	stalledEvents bool
}

// isNameOf reports whether a name in End belongs to the object that a piece of evidence
// names.
func (s *Side) isNameOf(name string, object history.Ref) bool {
	return name == s.names.stableName(&history.Object{Ref: object})
}

// isOrIsOwnedBy reports whether a name in End belongs to an object or to one of its
// dependents. The owners in the other run count for objects that exist only there.
func (s *Side) isOrIsOwnedBy(name string, to history.Ref, other *Side) bool {
	for name = strings.TrimPrefix(name, podsOf); name != ""; name = cmp.Or(s.names.ownerOf[name], other.names.ownerOf[name]) {
		if s.isNameOf(name, to) {
			return true
		}
	}
	return false
}

// Milestone identifies the values that some property of an object has during a run. Its
// kind determines the property, and whether the values are a sequence or a set.
type Milestone struct {
	Kind   MilestoneKind
	Object string // the stable name of the object
}

// MilestoneKind is the kind of a milestone.
type MilestoneKind string

// The kinds of milestones.
const (
	// Rollout: the ReplicaSets of a Deployment in the order of their creation.
	Rollout MilestoneKind = "rollout"
	// Sizes: the values of a ReplicaSet's spec.replicas at which scaling changed direction.
	Sizes MilestoneKind = "sizes"
	// Conditions: the types, statuses and reasons of an object's conditions, as a set.
	Conditions MilestoneKind = "conditions"
	// Revisions: the values of a Deployment's revision annotation, in order.
	Revisions MilestoneKind = "revisions"
	// Events: the reasons of the events about objects of a kind, as a set.
	Events MilestoneKind = "events"
)

// SideOf reads a run from its history and its results.
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
		return nil, fmt.Errorf("reading the end state of a run: %w", err)
	}
	if side.Milestones, side.firstSeen, err = o.milestones(); err != nil {
		return nil, fmt.Errorf("reading the milestones of a run: %w", err)
	}
	return side, nil
}

// observer collects the state of a run from its history.
type observer struct {
	subject       string
	controllers   []string // under test; none means the default controllers
	decoder       *objects.Decoder
	names         *names
	ended         bool
	step          int           // index of the last step that started, from 0
	failed        *history.Step // the failed step that aborted the workload
	gap           string        // the first gap in the history
	died          string        // the last replica that died, with the reason
	live          map[types.UID]*history.Object
	lastChanged   map[string]int            // see [Side]
	versions      []versionAtStep           // versions of objects with milestones, in order
	events        []versionAtStep           // events that the subject created
	pending       map[uint64]pendingRequest // requests that write ReplicaSets or events and have no response yet, by ID
	lostAnswers   bool
	stalledEvents map[string]bool // components whose last event got no response; see [Side]
}

// pendingRequest is a request without a response.
type pendingRequest struct {
	resource  string
	component string // the component that created the event; empty for other requests
}

// componentOf returns the component that created an event.
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

// versionAtStep is a version of an object with the last step that had started at that time.
type versionAtStep struct {
	*history.Object
	step int
}

// trackLostAnswers records requests with an unknown result, and replicas of the subject
// that ended. Either may mean that a response or an event was lost.
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

// unfinished says why the run or its history is incomplete. It returns "" if both are
// complete.
func (o *observer) unfinished() string {
	if o.ended || o.gap != "" {
		return o.gap
	}
	return cmp.Or(o.died, "the history ends before the run did")
}

func isSubject(p *history.Process) bool { return strings.HasPrefix(p.Name, "subject-") }

func isEvents(resource string) bool {
	k, _ := kube.ByResource(resource)
	return k.Name == "Event"
}

// managedResources returns the resources that the named controllers reconcile, or those of
// the default controllers.
func managedResources(controllers ...string) []string {
	rows, _ := kube.ControllersNamed(controllers...) // no rows for an unknown name
	var resources []string
	for _, c := range rows {
		resources = append(resources, resourceOf(c.Kind))
	}
	return resources
}

// resourceOf returns the resource of a kind with a row in the registry.
func resourceOf(kind string) string {
	k, _ := kube.Named(kind)
	return k.Resource()
}

// hasMilestones reports whether objects of a resource have milestones: those of workloads
// and of generic kinds.
func hasMilestones(resource string) bool {
	kind, known := kube.ByResource(resource)
	return !known || kind.Role == kube.Workload
}

func (o *observer) observe(r *history.Record) {
	if !o.ended {
		o.trackLostAnswers(r)
	}
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
		detail, _, _ := strings.Cut(r.Gap.Detail, "\n") // the other lines are the last lines of a log
		o.gap = r.Gap.Source + ": " + detail
	case r.Process != nil && r.Process.Event == history.ProcessDied && isSubject(r.Process):
		o.died = r.Process.Name + " died: " + r.Process.Detail
	case r.Step != nil && r.Step.Event == history.StepBegun:
		o.step = r.Step.Index
	case r.Step != nil && r.Step.Event == history.StepFailed:
		o.failed = r.Step
	case r.Request != nil && r.Request.Verb == "create" && r.Request.Object != nil && isEvents(r.Request.Resource):
		o.events = append(o.events, versionAtStep{r.Request.Object, o.step})
	}
}

// Resources that need special rules. Those of Deployments and ReplicaSets are about rollouts.
const (
	pods        = objects.PodResource
	deployments = objects.DeploymentResource
	replicaSets = objects.ReplicaSetResource
	services    = objects.ServiceResource
	endpoints   = objects.EndpointsResource
)

// milestoneSet collects the values of milestones.
type milestoneSet struct {
	milestones map[Milestone][]string
	firstSeen  map[Milestone]map[string]int // see [Side]
}

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

// milestones returns the milestones of workloads, generic objects and events.
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
			return nil, nil, fmt.Errorf("an event: %w", err)
		}
		all.add(event.step, Events, body.InvolvedObject.Kind+body.Regarding.Kind, body.Reason)
	}
	for milestone, values := range all.milestones {
		all.milestones[milestone] = milestone.Kind.normalize(values)
	}
	return all.milestones, all.firstSeen, nil
}

// milestonesOf adds the milestones of one version of a workload or of a generic object.
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
			break // a body that is no JSON object has no conditions
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

// normalize reduces the values of a milestone to those that must be equal in two runs.
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

// firstOccurrences returns each value once, in the order of the first occurrences.
func firstOccurrences(values []string) []string {
	var first []string
	for _, value := range values {
		if !slices.Contains(first, value) {
			first = append(first, value)
		}
	}
	return first
}

// turningPoints returns the first and last value of a sequence of integers, and the values
// at which it changes direction.
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
