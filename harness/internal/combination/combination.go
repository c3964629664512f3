// Package combination counts which combinations of pods, operations and faults scenarios have.
// It reads scenarios, not runs: a scenario has a combination if its file has all parts of it.
// Whether they meet at the same time depends on the run.
package combination

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-gauntlet/gauntlet/harness/scenario"
)

// Combination says what happens to a Deployment or a Service in a scenario. For example, its pods
// are slow, users scale it during a rollout, and a fault delays the watch events of pods. In the
// table that [Table.WriteText] prints, a combination is one cell.
type Combination struct {
	// Object is the strategy of the Deployment, or "Service".
	Object string
	Pods   Pods   // how its pods behave
	Change Change // what users do
	Watch  Watch  // what faults do to the watches of the subject
}

// Service is the value of [Combination.Object] for Services.
const Service = "Service"

// Pods says how the pods of an object behave.
type Pods string

// These are the behaviors of pods.
const (
	Prompt    Pods = "prompt"
	SlowStart Pods = "slow to start" // podStartDelay, at least slow
	SlowEnd   Pods = "slow to end"   // podStopDelay, at least slow, or a finalizer
	NeverUp   Pods = "never ready"   // a fault keeps them pending or unready until it ends
	LateUp    Pods = "ready late"    // a fault makes them unready or restarts them for a time
)

// slow is the least delay for which pods count as slow.
const slow = 500 * time.Millisecond

// Change is what users do to a Deployment, to a Service, or to the Deployment whose pods a
// Service selects.
type Change string

// These are the changes. All but Reselect happen in a rollout that is not complete.
const (
	PausedInRollout     Change = "pause in mid-rollout"
	ScaledInRollout     Change = "scale in mid-rollout"
	RolledBackInRollout Change = "rollback in mid-rollout"
	Reselect            Change = "new selector"
)

// Watch is what faults do to the watches of the subject, such as delaying the events of pods.
type Watch string

// Each of these constants is a column of the table of [Table.WriteText]. A kind of object lags
// if its watch events are delayed or held. Relist means that a fault makes the subject list one of
// these kinds again.
const (
	PodsLag        Watch = "pods lag"
	ReplicaSetsLag Watch = "ReplicaSets lag"
	DeploymentsLag Watch = "Deployments lag"
	ServicesLag    Watch = "Services lag"
	EndpointsLag   Watch = "Endpoints lag"
	Relist         Watch = "relist"
)

// The values of the fields of [Combination], in the order in which [Table.WriteText]
// prints them.
var (
	allPods           = []Pods{Prompt, SlowStart, SlowEnd, NeverUp, LateUp}
	rolloutChanges    = []Change{PausedInRollout, ScaledInRollout, RolledBackInRollout}
	deploymentWatches = []Watch{PodsLag, ReplicaSetsLag, DeploymentsLag, Relist}
	serviceWatches    = []Watch{PodsLag, ServicesLag, EndpointsLag, Relist}
)

// lagging maps a resource to the value of [Combination.Watch] for its delayed watch events.
var lagging = map[string]Watch{
	"pods": PodsLag, "replicasets.apps": ReplicaSetsLag, "deployments.apps": DeploymentsLag,
	"services": ServicesLag, "endpoints": EndpointsLag,
}

// all returns all combinations, in the order in which [Table.WriteText] prints them.
func all() []Combination {
	var combinations []Combination
	add := func(object string, changes []Change, watches []Watch) {
		for _, pods := range allPods {
			for _, change := range changes {
				for _, watch := range watches {
					combinations = append(combinations, Combination{object, pods, change, watch})
				}
			}
		}
	}
	add(string(scenario.RollingUpdate), rolloutChanges, deploymentWatches)
	add(string(scenario.Recreate), rolloutChanges, deploymentWatches)
	add(Service, append(slices.Clone(rolloutChanges), Reselect), serviceWatches)
	return combinations
}

// Of returns the combinations that a scenario has, in the order in which [Table.WriteText] prints
// them.
func Of(s *scenario.Scenario) []Combination {
	w := workloadOf(s)
	watches := watchesOf(s)
	return slices.DeleteFunc(all(), func(c Combination) bool {
		return !watches[c.Watch] || !slices.ContainsFunc(w.objects, func(o *object) bool {
			return o.kind == c.Object && slices.Contains(o.changes, c.Change) && slices.Contains(podsOf(s, o), c.Pods)
		})
	})
}

// object is a Deployment or a Service of a workload.
type object struct {
	scenario.Target
	kind     string            // the value of [Combination.Object]
	labels   map[string]string // of the pods of a Deployment
	selector map[string]string // of a Service
	changes  []Change
	rolling  bool // a rollout has begun that no step has awaited
}

// workload contains the Deployments and Services of a scenario, as its steps create and change
// them.
type workload struct{ objects []*object }

// workloadOf returns the objects of a scenario after all of its steps.
func workloadOf(s *scenario.Scenario) *workload {
	w := &workload{}
	for _, step := range s.Workload {
		w.do(step.Operation)
		if step.Await == nil {
			continue
		}
		if o := w.find(step.Await.Target); o != nil && step.Await.Until == scenario.Complete {
			o.rolling = false
		}
	}
	return w
}

// do applies an operation of a user.
func (w *workload) do(operation scenario.Operation) {
	switch op := operation.(type) {
	case *scenario.Create:
		w.create(op)
	case *scenario.Rollout:
		if o := w.find(op.Target); o != nil {
			o.rolling = true
		}
	case *scenario.Pause:
		w.change(op.Target, PausedInRollout)
	case *scenario.Scale:
		w.change(op.Target, ScaledInRollout)
	case *scenario.Rollback:
		w.change(op.Target, RolledBackInRollout)
	case *scenario.Select:
		if o := w.find(op.Target); o != nil && o.kind == Service {
			o.selector = op.Selector
			o.changes = append(o.changes, Reselect)
		}
	}
}

// create adds a Deployment or a Service.
func (w *workload) create(op *scenario.Create) {
	switch op.Kind {
	case scenario.Deployment:
		strategy := op.Strategy
		if strategy == "" {
			strategy = scenario.RollingUpdate
		}
		w.objects = append(w.objects, &object{Target: op.Target, kind: string(strategy), labels: op.Labels})
	case scenario.Service:
		w.objects = append(w.objects, &object{Target: op.Target, kind: Service, selector: op.Selector})
	}
}

// change records a change of a Deployment that is in a rollout. The change also counts for the
// Services that select the pods of the Deployment.
func (w *workload) change(target scenario.Target, change Change) {
	deployment := w.find(target)
	if deployment == nil || !deployment.rolling {
		return
	}
	deployment.changes = append(deployment.changes, change)
	for _, o := range w.objects {
		if o.kind == Service && len(o.selector) > 0 && labels.SelectorFromSet(o.selector).Matches(labels.Set(deployment.labels)) {
			o.changes = append(o.changes, change)
			o.labels = deployment.labels
		}
	}
}

// find returns the last object with a kind and a name that the workload created, or nil.
func (w *workload) find(target scenario.Target) *object {
	for _, o := range slices.Backward(w.objects) {
		if o.Target == target {
			return o
		}
	}
	return nil
}

// podsOf returns how the pods of an object behave.
func podsOf(s *scenario.Scenario, o *object) []Pods {
	var found []Pods
	if s.Cluster.PodStartDelay >= slow {
		found = append(found, SlowStart)
	}
	if s.Cluster.PodStopDelay >= slow {
		found = append(found, SlowEnd)
	}
	for _, fault := range s.Faults {
		if pods, ok := churn(fault); ok && selects(fault, o) {
			found = append(found, pods)
		}
	}
	if len(found) == 0 {
		return []Pods{Prompt}
	}
	return found
}

// churn returns the behavior of pods that a fault causes. It returns false if the fault causes
// none of the values of [Pods].
func churn(fault scenario.Fault) (Pods, bool) {
	switch action := fault.Params.Text("action"); {
	case fault.Name == "pod-pending":
		return NeverUp, true
	case fault.Name != "pod-churn":
		return "", false
	case action == "linger":
		return SlowEnd, true
	case action == "unready" && untilEnd(fault):
		return NeverUp, true
	case action == "unready" || action == "restart":
		return LateUp, true
	}
	return "", false
}

// untilEnd reports whether a fault keeps a pod unready until the fault ends.
func untilEnd(fault scenario.Fault) bool {
	downtime, err := time.ParseDuration(fault.Params.Text("downtime"))
	return err == nil && fault.For > 0 && downtime >= fault.For
}

// selects reports whether a fault on pods may act on the pods of an object. It returns true if
// the labels of these pods are not known.
func selects(fault scenario.Fault, o *object) bool {
	set := o.labels
	if set == nil {
		set = o.selector
	}
	if prefix := fault.Params.Text("prefix"); prefix != "" {
		return set["app"]+"-" == prefix
	}
	selector, err := labels.Parse(fault.Params.Text("selector"))
	return err == nil && selector.Matches(labels.Set(set))
}

// watchesOf returns what the faults of a scenario do to the watches of the subject.
func watchesOf(s *scenario.Scenario) map[Watch]bool {
	found := map[Watch]bool{}
	for _, fault := range s.Faults {
		switch fault.Name {
		case "watch-delay", "watch-stall":
			found[lagging[fault.Params.Text("resource")]] = true
		case "watch-end":
			_, known := lagging[fault.Params.Text("resource")]
			found[Relist] = found[Relist] || known && fault.Params.Text("how") == "expired"
		case "restart", "crash", "stale-list", "api-server-restart", "etcd-restart":
			found[Relist] = true
		}
	}
	return found
}
