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
)

// Side is one run, as far as it can be compared with another of the same
// scenario: everything in it has stable names.
type Side struct {
	Subject string // as the history has it: ours, upstream, exec:PATH
	Results []check.Result
	// End is the objects that were there when observation ended, by stable name:
	// what they say, by path, such as "status.conditions[Available].reason".
	End map[string]map[string]string
	// Milestones are what happened on the way, by kind and object.
	Milestones map[Milestone][]string
	// Aborted is how the workload ended before its last step; nil if it did not.
	Aborted *Aborted
	// Unfinished says what ended the run before it was over, or was missed of it; empty
	// if nothing did.
	Unfinished string
	Cost       Cost

	// firstSeen has the step, from 0, that had begun last when a value of a milestone was
	// first seen; -1 before the first.
	firstSeen map[Milestone]map[string]int
	// lastChanged has the step, from 0, that had begun last when an object last changed,
	// by the names of End; -1 before the first.
	lastChanged map[string]int
	names  *names

	// lostAnswers: a write of a ReplicaSet may have been done without the subject having
	// been told, or an event about it may have been lost.
	lostAnswers bool
	// stalledEvents: the last that was sent of some component's events got no answer, and may
	// have held up others to the end.
	stalledEvents bool
}

// isNameOf reports whether a name of End stands for an object that the run has evidence of.
func (s *Side) isNameOf(name string, object history.Ref) bool {
	return name == s.names.stableName(&history.Object{Ref: object})
}

// isOrIsOwnedBy reports whether what a name of End stands for is an object that the run has
// evidence of, or is owned by it. What only the other run made is of what it was there.
func (s *Side) isOrIsOwnedBy(name string, to history.Ref, other *Side) bool {
	for name = strings.TrimPrefix(name, podsOf); name != ""; name = cmp.Or(s.names.ownerOf[name], other.names.ownerOf[name]) {
		if s.isNameOf(name, to) {
			return true
		}
	}
	return false
}

// Milestone names something that happens to an object on its way.
type Milestone struct {
	Kind   MilestoneKind
	Object string // by its stable name
}

// MilestoneKind is what is looked at on the way.
type MilestoneKind string

// The kinds of milestones.
const (
	// Rollout: the ReplicaSets of a Deployment in the order in which they were made.
	Rollout MilestoneKind = "rollout"
	// Sizes: the sizes that a ReplicaSet was given one after another, as far as the
	// direction turned.
	Sizes MilestoneKind = "sizes"
	// Conditions: every type, status and reason that an object's conditions had, as a set.
	Conditions MilestoneKind = "conditions"
	// Revisions: the revisions that a Deployment said it was at, in order.
	Revisions MilestoneKind = "revisions"
	// Events: the reasons of the events about objects of a kind, as a set.
	Events MilestoneKind = "events"
)

// SideOf reads what of a run can be compared from its history and its results.
func SideOf(records iter.Seq2[*history.Record, error], results []check.Result) (*Side, error) {
	o := &observer{names: newNames(), step: -1, live: map[types.UID]*history.Object{}, lastChanged: map[string]int{}, pending: map[uint64]pendingRequest{}, stalledEvents: map[string]bool{}}
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
	}
	if side.End, err = o.endState(); err != nil {
		return nil, fmt.Errorf("reading the end of a run: %w", err)
	}
	if side.Milestones, side.firstSeen, err = o.milestones(); err != nil {
		return nil, fmt.Errorf("reading the course of a run: %w", err)
	}
	return side, nil
}

// observer keeps what is needed of a history.
type observer struct {
	subject  string
	names    *names
	ended    bool
	step     int           // the one that began last, from 0
	failed   *history.Step // with which the workload ended
	gap   string        // what a witness missed first
	died     string        // which replica last died, and how
	live     map[types.UID]*history.Object
	lastChanged  map[string]int  // see [Side]
	versions []versionAtStep          // of owners, in order
	events   []versionAtStep          // as the subject sent them
	pending     map[uint64]pendingRequest // writes of ReplicaSets and events that have no answer yet, by ID
	lostAnswers    bool
	stalledEvents  map[string]bool // components, see [Side]
}

// pendingRequest is a request that has no answer yet.
type pendingRequest struct {
	resource  string
	component string // whose event it is; empty if it is none, or a change of one
}

// componentOf is the component that an event is of.
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

// versionAtStep is a version of an object and the step that had begun last by then.
type versionAtStep struct {
	*history.Object
	step int
}

// trackLostAnswers looks for answers, and events, that were lost: those of requests that failed
// in a way that leaves open what has become of them, and of replicas that ended.
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

// unfinished says why the run is not whole.
func (o *observer) unfinished() string {
	if o.ended || o.gap != "" {
		return o.gap
	}
	return cmp.Or(o.died, "the history ends before the run did")
}

func isSubject(p *history.Process) bool { return strings.HasPrefix(p.Name, "subject-") }

func isEvents(resource string) bool {
	return resource == "events" || resource == "events.events.k8s.io"
}

func (o *observer) observe(r *history.Record) {
	if !o.ended {
		o.trackLostAnswers(r)
	}
	switch {
	case o.ended:
	case r.Start != nil:
		o.subject = r.Start.Subject
	case r.Phase != nil:
		o.ended = r.Phase.Name == history.PhaseEnd
	case r.Commit != nil:
		object := &r.Commit.Object
		o.names.observe(object)
		o.lastChanged[o.names.endStateName(object)] = o.step
		if r.Commit.Type == history.Deleted {
			delete(o.live, object.UID)
			return
		}
		o.live[object.UID] = object
		if object.Resource == deployments || object.Resource == replicaSets || object.Resource == controllers {
			o.versions = append(o.versions, versionAtStep{object, o.step})
		}
	case r.Gap != nil && o.gap == "":
		detail, _, _ := strings.Cut(r.Gap.Detail, "\n") // the rest is the end of a log
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

// The resources that are treated apart.
const (
	pods        = "pods"
	deployments = "deployments.apps"
	replicaSets = "replicasets.apps"
	controllers = "replicationcontrollers"
)

// milestoneSet gathers what happens to objects on their way.
type milestoneSet struct {
	milestones map[Milestone][]string
	firstSeen      map[Milestone]map[string]int // see [Side]
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

// milestones looks at the versions of owners and at events in order.
func (o *observer) milestones() (map[Milestone][]string, map[Milestone]map[string]int, error) {
	all := milestoneSet{map[Milestone][]string{}, map[Milestone]map[string]int{}}
	for _, version := range o.versions {
		if err := o.milestonesOf(version, &all); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", version.Ref, err)
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

// milestonesOf looks at one version of an owner.
func (o *observer) milestonesOf(version versionAtStep, all *milestoneSet) error {
	name := o.names.stableName(version.Object)
	var body struct {
		Spec   struct{ Replicas *int }
		Status struct {
			Conditions []struct{ Type, Status, Reason string }
		}
	}
	if err := json.Unmarshal(version.Body, &body); err != nil {
		return err
	}
	for _, c := range body.Status.Conditions {
		all.add(version.step, Conditions, name, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	if owner := version.ControllerRef(); owner != nil && version.Resource == replicaSets {
		all.add(version.step, Rollout, deployments+" "+owner.Name, name)
		if body.Spec.Replicas != nil {
			all.add(version.step, Sizes, name, fmt.Sprint(*body.Spec.Replicas))
		}
	}
	if revision := version.Annotations[revisionAnnotation]; version.Resource == deployments && revision != "" {
		all.add(version.step, Revisions, name, revision)
	}
	return nil
}

const revisionAnnotation = "deployment.kubernetes.io/revision"

// normalize leaves what is compared of the values of a milestone.
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

// firstOccurrences leaves the first of each value.
func firstOccurrences(values []string) []string {
	var first []string
	for _, value := range values {
		if !slices.Contains(first, value) {
			first = append(first, value)
		}
	}
	return first
}

// turningPoints leaves the values between which a sequence of whole numbers rises or
// falls, its ends included.
func turningPoints(values []string) []string {
	number := func(i int) int {
		var n int
		_, _ = fmt.Sscan(values[i], &n) // they were written by milestones
		return n
	}
	var kept []string
	for i := range values {
		inner := i > 0 && i < len(values)-1
		if inner && (number(i-1) < number(i)) == (number(i) < number(i+1)) {
			continue
		}
		kept = append(kept, values[i])
	}
	return kept
}
